// SPDX-License-Identifier: MIT
#include "users.hpp"

#include <charconv>
#include <cstdio>
#include <memory>
#include <pwd.h>
#include <system_error>

namespace perfmap::app {
namespace {

#ifdef PERFMAP_STATIC_PROGRAM

/// The first user in /etc/passwd with this name, or, if it is null, this number.
const passwd* find_in_file(const std::string* name, uid_t number) {
  const std::unique_ptr<FILE, decltype(&std::fclose)> file(std::fopen("/etc/passwd", "re"),
                                                           &std::fclose);
  if (!file) return nullptr;
  while (const passwd* const user = ::fgetpwent(file.get())) {
    if (name != nullptr ? user->pw_name == *name : user->pw_uid == number) return user;
  }
  return nullptr;
}

const passwd* find_by_number(uid_t number) { return find_in_file(nullptr, number); }
const passwd* find_by_name(const std::string& name) { return find_in_file(&name, 0); }

#else

const passwd* find_by_number(uid_t number) { return ::getpwuid(number); }
const passwd* find_by_name(const std::string& name) { return ::getpwnam(name.c_str()); }

#endif

}  // namespace

std::optional<User> find_user(const std::string& name_or_number) {
  const char* const end = name_or_number.data() + name_or_number.size();
  uid_t number = 0;
  const auto [stop, error] = std::from_chars(name_or_number.data(), end, number);
  const bool is_number = error == std::errc() && stop == end;
  const passwd* const found = is_number ? find_by_number(number) : find_by_name(name_or_number);
  if (found == nullptr) return std::nullopt;
  return User{found->pw_uid, found->pw_gid};
}

}  // namespace perfmap::app
