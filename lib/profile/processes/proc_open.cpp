#include <array>
#include <cerrno>
#include <cstdio>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "processes/proc_state.hpp"

namespace perfmap {
namespace {

const OpenPolicy kFoundFile{
    .follow_link = false, .regular_only = true, .bounded = true, .keep_descriptor = false};

enum class SameFile : std::uint8_t { by_name, by_inode, by_inode_and_device };

/// Refuses what was found (`status`) where it is not the file that is mapped.
Result<void> check_same(const struct stat& status, const MappedFile& file, SameFile same,
                        const std::string& name) {
  const bool same_device =
      major(status.st_dev) == file.device_major && minor(status.st_dev) == file.device_minor;
  const bool is_same = same == SameFile::by_name ||
                       (status.st_ino == file.inode && (same == SameFile::by_inode || same_device));
  if (is_same) return {};
  return Failure(
      {Errc::refused, "cannot use " + name + ": it is not the file that is mapped", 0, {}});
}

/// Whether a link of the kernel's says that it leads to the file `name`, deleted or not.
bool shows_name(int directory, const std::string& link, std::string_view name) noexcept {
  std::array<char, 4097> target;
  const ssize_t size = ::readlinkat(directory, link.c_str(), target.data(), target.size());
  if (size < 0) return false;
  const std::string_view shown(target.data(), static_cast<std::size_t>(size));
  return shown.starts_with(name) &&
         (shown.size() == name.size() || shown.substr(name.size()) == " (deleted)");
}

/// One line of all reasons; the code is that of the one that tells most.
Error none_of(const std::string& name, const std::vector<Error>& reasons) {
  Error error{Errc::not_found, "cannot find the file " + name, 0, {}};
  for (const Error& reason : reasons) {
    error.message += (&reason == &reasons.front() ? ": " : "; ") + reason.message;
    if (reason.code != Errc::not_found) error.code = reason.code;
    error.sys_errno = reason.sys_errno;
  }
  return error;
}

/// What the kernel calls the region's entry in map_files: without leading zeros.
std::string map_file_of(const Region& region) {
  std::array<char, 40> text;
  std::snprintf(text.data(), text.size(), "%llx-%llx",
                static_cast<unsigned long long>(region.range.begin),
                static_cast<unsigned long long>(region.range.end()));
  return text.data();
}

bool shows_file(const Region& region) noexcept {
  return region.file != nullptr && region.file->name.starts_with('/');
}

Failure no_file() { return Failure({Errc::unsupported, "the region shows no file", 0, {}}); }

}  // namespace

Result<OwnedFd> ProcSource::State::root() const {
  // Elsewhere than in the kernel's /proc, "root" is a directory or it is nothing.
  const int flags = O_PATH | O_DIRECTORY | O_CLOEXEC | (is_procfs ? 0 : O_NOFOLLOW);
  OwnedFd fd(::openat(subject(), "root", flags));
  if (!fd.is_open()) return Failure(system_error("cannot open " + name + "/root", errno));
  return fd;
}

Result<void> ProcSource::State::find_mapped(const Region& region, const UseFound& use) const {
  const MappedFile& file = *region.file;
  std::vector<Error> reasons;
  const auto attempt = [&](const OwnedFd& found, SameFile same, const std::string& where) {
    struct stat status {};
    Result<void> done;
    if (!found.is_open() || ::fstat(found.get(), &status) != 0) {
      done = Failure(system_error("cannot open " + where, errno));
    } else if (done = check_same(status, file, same, where); done) {
      done = use(found, status, where);
    }
    if (!done) reasons.push_back(std::move(done.error()));
    return done.has_value();
  };
  if (is_procfs) {
    const std::string link = "map_files/" + map_file_of(region);
    const OwnedFd found(::openat(directory.get(), link.c_str(), O_PATH | O_CLOEXEC));
    // Between two looks the range may have come to show something else.
    const bool same_name = shows_name(directory.get(), link, file.name);
    const SameFile same = same_name ? SameFile::by_name : SameFile::by_inode;
    if (attempt(found, same, name + "/" + link)) return {};
  }
  if (const Result<OwnedFd> below = root(); below) {
    const OwnedFd found = find_below(below->get(), file.name);
    if (attempt(found, SameFile::by_inode, name + "/root" + file.name)) return {};
  } else {
    reasons.push_back(below.error());
  }
  if (is_procfs) {
    const OwnedFd found(::open(file.name.c_str(), O_PATH | O_NOFOLLOW | O_CLOEXEC));
    if (attempt(found, SameFile::by_inode_and_device, file.name)) return {};
  }
  return Failure(none_of(file.name, reasons));
}

ProcSource::Seen<Input> ProcSource::open_region(const Region& region) const {
  if (!shows_file(region)) return no_file();
  return state_->while_alive<Input>([&]() -> Result<Input> {
    OwnedFd opened;
    const auto open = [&](const OwnedFd& found, const struct stat&,
                          const std::string& where) -> Result<void> {
      Result<OwnedFd> fd = open_found(found, where);
      if (!fd) return Failure(std::move(fd.error()));
      opened = *std::move(fd);
      return {};
    };
    const Result<void> found = state_->find_mapped(region, open);
    if (!found) return Failure(found.error());
    return Input::from_descriptor(opened.get(), region.file->name, kFoundFile);
  });
}

ProcSource::Seen<FileFacts> ProcSource::region_facts(const Region& region) const {
  if (!shows_file(region)) return no_file();
  return state_->while_alive<FileFacts>([&]() -> Result<FileFacts> {
    FileFacts facts;
    const auto look = [&facts](const OwnedFd&, const struct stat& status,
                               const std::string& where) -> Result<void> {
      facts = facts_of(status);
      if (facts.is_regular) return {};
      return Failure({Errc::refused, "cannot use " + where + ": not a regular file", 0, {}});
    };
    const Result<void> found = state_->find_mapped(region, look);
    if (!found) return Failure(found.error());
    return facts;
  });
}

ProcSource::Seen<std::string> ProcSource::root_path() const {
  return state_->while_alive<std::string>([this]() -> Result<std::string> {
    const Result<OwnedFd> below = state_->root();
    if (!below) return Failure(below.error());
    return state_->name + "/root";
  });
}

ProcSource::Seen<Input> ProcSource::open_below_root(const std::string& path,
                                                    const OpenPolicy& policy) const {
  return state_->while_alive<Input>([&]() -> Result<Input> {
    const Result<OwnedFd> below = state_->root();
    if (!below) return Failure(below.error());
    const std::string name = state_->name + "/root" + path;
    const OwnedFd found = find_below(below->get(), path);
    if (!found.is_open()) return Failure(system_error("cannot open " + name, errno));
    const Result<OwnedFd> fd = open_found(found, name);
    if (!fd) return Failure(fd.error());
    return Input::from_descriptor(fd->get(), name, policy);
  });
}

ProcSource::Seen<FileFacts> ProcSource::look_below_root(const std::string& path) const {
  return state_->while_alive<FileFacts>([&]() -> Result<FileFacts> {
    const Result<OwnedFd> below = state_->root();
    if (!below) return Failure(below.error());
    const OwnedFd found = find_below(below->get(), path);
    struct stat status {};
    if (!found.is_open() || ::fstat(found.get(), &status) != 0) {
      return Failure(system_error("cannot find " + state_->name + "/root" + path, errno));
    }
    return facts_of(status);
  });
}

}  // namespace perfmap
