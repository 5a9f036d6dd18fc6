// SPDX-License-Identifier: MIT
#include <array>
#include <cerrno>
#include <cstdint>
#include <fcntl.h>
#include <filesystem>
#include <string>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/descriptor.hpp"
#include "perfmap/output_file.hpp"
#include "perfmap/profile/record.hpp"

namespace perfmap {
namespace {

constexpr mode_t kTraversable = 0711;
constexpr mode_t kReadable = 0755;
/// All users create files, and none can list or remove those of others.
constexpr mode_t kWritable = 01733;

/// 128 random bits in hexadecimal; empty on failure.
std::string random_name() {
  std::array<std::uint8_t, 16> bytes = {};
  constexpr auto kAll = static_cast<ssize_t>(bytes.size());
  if (::getrandom(bytes.data(), bytes.size(), 0) != kAll) return {};
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string name;
  for (const std::uint8_t byte : bytes) {
    name += kDigits[byte >> 4];
    name += kDigits[byte & 0xf];
  }
  return name;
}

/// A new directory with this mode, independent of the umask.
Result<Descriptor> make_directory(int parent, const std::string& path, mode_t mode) {
  const std::string name = parent == AT_FDCWD ? path : path.substr(path.rfind('/') + 1);
  if (::mkdirat(parent, name.c_str(), 0700) == 0) {
    constexpr int kFlags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
    Descriptor directory(::openat(parent, name.c_str(), kFlags));
    if (directory.is_open() && ::fchmod(directory.get(), mode) == 0) return directory;
  }
  return Failure(system_error("cannot create", path, errno));
}

Result<void> write_settings(int directory, const std::string& path, std::string_view text) {
  constexpr mode_t kMode = 0644;
  constexpr int kFlags = O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC;
  const Descriptor file(::openat(directory, "perfmap.ini", kFlags, kMode));
  if (!file.is_open() || ::fchmod(file.get(), kMode) != 0) {
    return Failure(system_error("cannot write", path + "/perfmap.ini", errno));
  }
  OutputFile out = OutputFile::to_descriptor(file.get(), path + "/perfmap.ini");
  out.write(text);
  return out.flush();
}

}  // namespace

bool can_map_code_in(const std::string& directory) noexcept {
  struct statvfs facts {};
  return ::statvfs(directory.c_str(), &facts) == 0 && (facts.f_flag & ST_NOEXEC) == 0;
}

std::optional<std::uint64_t> free_bytes_in(const std::string& directory) noexcept {
  struct statvfs facts {};
  if (::statvfs(directory.c_str(), &facts) != 0 || facts.f_blocks == 0) return std::nullopt;
  return std::uint64_t{facts.f_bavail} * facts.f_frsize;
}

bool can_create_files_in(const std::string& directory) {
  constexpr mode_t kPrivate = 0600;
  if (::access(directory.c_str(), W_OK | X_OK) != 0) return false;
  if (Descriptor(::open(directory.c_str(), O_TMPFILE | O_WRONLY | O_CLOEXEC, kPrivate)).is_open()) {
    return true;
  }
  // Not all file systems have files without a name.
  const std::string path = directory + "/.perfmap-" + random_name();
  constexpr int kFlags = O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC;
  const Descriptor file(::open(path.c_str(), kFlags, kPrivate));
  if (file.is_open()) ::unlink(path.c_str());
  return file.is_open();
}

RuntimeDirectory::RuntimeDirectory(const RecordingDirectory& recording, const std::string& tmp)
    : recording_(recording),
      is_in_tmp_(::geteuid() == 0 && tmp.starts_with('/') && can_map_code_in(tmp)) {
  constexpr std::size_t kShort = 12;
  top_ = is_in_tmp_ ? tmp + "/perfmap-" + random_name().substr(0, kShort)
                    : recording.path() + "/runtime";
  path_ = top_ + "/" + random_name();
}

Result<void> RuntimeDirectory::create(const NamingPlan& plan) {
  if (plan.ini.empty() && !plan.writes_to_directory) return {};
  if (path_.ends_with('/')) return Failure(system_error("cannot get random bytes", "", EIO));
  const Result<Descriptor> top =
      make_directory(is_in_tmp_ ? AT_FDCWD : recording_.descriptor(), top_, kTraversable);
  if (!top) return failure(top);
  was_made_ = true;
  const Result<Descriptor> directory = make_directory(top->get(), path_, kTraversable);
  if (!directory) return failure(directory);
  if (plan.writes_to_directory) {
    const Result<Descriptor> made = make_directory(directory->get(), written(), kWritable);
    if (!made) return failure(made);
  }
  if (plan.ini.empty()) return {};
  const std::string ini = path_ + "/ini";
  const Result<Descriptor> made = make_directory(directory->get(), ini, kReadable);
  return made ? write_settings(made->get(), ini, plan.ini) : failure(made);
}

void RuntimeDirectory::remove() noexcept {
  std::error_code ignored;
  const std::string top = is_in_tmp_ ? top_ : recording_.held_path() + "/runtime";
  if (was_made_) std::filesystem::remove_all(top, ignored);
  was_made_ = false;
}

}  // namespace perfmap
