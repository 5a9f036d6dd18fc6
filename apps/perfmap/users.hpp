// SPDX-License-Identifier: MIT
#pragma once

#include <optional>
#include <string>
#include <sys/types.h>

namespace perfmap::app {

struct User {
  uid_t uid = 0;
  gid_t gid = 0;
};

/// The user with this name or number. The static program looks in /etc/passwd alone: other
/// databases, such as LDAP, are shared libraries.
std::optional<User> find_user(const std::string& name_or_number);

}  // namespace perfmap::app
