#include "perfmap/open_writers.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <dirent.h>
#include <fcntl.h>
#include <memory>
#include <sys/stat.h>
#include <unistd.h>

#include "io/descriptor.hpp"

namespace perfmap {
namespace {

struct CloseDirectory {
  void operator()(DIR* directory) const noexcept { ::closedir(directory); }
};
using Directory = std::unique_ptr<DIR, CloseDirectory>;

bool is_number(const char* name) noexcept { return *name >= '0' && *name <= '9'; }

/// The open flags of a descriptor, from the line "flags:\t0100001" of its fdinfo.
bool opened_for_writing(const std::string& info_path) {
  const Result<Input> info = Input::open(info_path);
  if (!info) return false;
  const std::string text(info->text());
  const std::size_t at = text.find("flags:");
  if (at == std::string::npos) return false;
  return (std::strtoul(text.c_str() + at + 6, nullptr, 8) & O_ACCMODE) != O_RDONLY;
}

bool writes(const std::string& process, const FileFacts& file) {
  const Directory directory(::opendir((process + "/fd").c_str()));
  if (!directory) return false;
  while (const dirent* const entry = ::readdir(directory.get())) {
    if (!is_number(entry->d_name)) continue;
    struct stat status {};
    const std::string path = process + "/fd/" + entry->d_name;
    if (::stat(path.c_str(), &status) != 0 || status.st_dev != file.device ||
        status.st_ino != file.inode) {
      continue;
    }
    if (opened_for_writing(process + "/fdinfo/" + entry->d_name)) return true;
  }
  return false;
}

/// "/proc/N/root/...": below it links of others are followed.
bool is_in_process_root(std::string_view path) noexcept {
  constexpr std::string_view kProc = "/proc/";
  if (!path.starts_with(kProc)) return false;
  path.remove_prefix(kProc.size());
  return path.substr(std::min(path.find('/'), path.size())).starts_with("/root/");
}

}  // namespace

std::optional<int> find_writer(const FileFacts& file, const std::string& proc, int except) {
  const Directory directory(::opendir(proc.c_str()));
  if (!directory) return std::nullopt;
  while (const dirent* const entry = ::readdir(directory.get())) {
    if (!is_number(entry->d_name) || std::atoi(entry->d_name) == except) continue;
    if (writes(proc + "/" + entry->d_name, file)) return std::atoi(entry->d_name);
  }
  return std::nullopt;
}

std::optional<std::string> objection_to_rewriting(const Input& input, bool force) {
  if (input.name() == "-") return "cannot rewrite standard input in place";
  if (!input.facts().is_regular) {
    return "cannot rewrite " + input.name() + " in place: it is no regular file";
  }
  if (!force && is_in_process_root(input.name())) {
    return "cannot rewrite " + input.name() +
           " in place: a process's user may change where that leads (--force does it all the same)";
  }
  const auto writer = force ? std::nullopt : find_writer(input.facts());
  if (!writer) return std::nullopt;
  return "cannot rewrite " + input.name() + " in place: process " + std::to_string(*writer) +
         " has it open for writing (--force does it all the same)";
}

Result<void> take_write_rights(const Input& input) {
  const std::string failed = "cannot change the mode of " + input.name();
  const Descriptor file(::open(input.name().c_str(), O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
  struct stat status {};
  if (file.get() < 0 || ::fstat(file.get(), &status) != 0) {
    return Failure(system_error(failed, errno));
  }
  if (status.st_dev != input.facts().device || status.st_ino != input.facts().inode) {
    return Failure({Errc::refused, failed + ": it is another file now", 0, {}});
  }
  const mode_t mode = status.st_mode & 07777 & ~static_cast<mode_t>(S_IWGRP | S_IWOTH);
  if (::fchmod(file.get(), mode) != 0) return Failure(system_error(failed, errno));
  return {};
}

}  // namespace perfmap
