// SPDX-License-Identifier: MIT
#include "perfmap/output_file.hpp"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <dirent.h>
#include <fcntl.h>
#include <memory>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>

#include "base/descriptor.hpp"
#include "base/found_file.hpp"
#include "perfmap/text.hpp"
#include "writer/find_writer.hpp"

namespace perfmap {

namespace {

constexpr std::size_t kBufferSize = (std::size_t{256} << 10) + OutputFile::kRoom;

std::string link_to(int fd) { return "/proc/self/fd/" + std::to_string(fd); }

/// Calls act(name) with new names that begin with `target` until the result is not EEXIST; returns
/// the result and the name.
template <class Act>
int with_new_name(const std::string& target, std::string& name, Act act) {
  static std::atomic<unsigned> counter{0};
  for (int attempt = 0; attempt < 100; ++attempt) {
    const std::string tried =
        target + "." + std::to_string(::getpid()) + "-" + std::to_string(counter++) + ".tmp";
    const int result = act(tried.c_str());
    if (result >= 0) name = tried;
    if (result >= 0 || errno != EEXIST) return result;
  }
  return -1;
}

}  // namespace

/// Creates a file in the directory of the place, without a name if the file system supports that:
/// then nothing is left if the program is killed. -1 and errno if both fail.
int OutputFile::create(mode_t mode) {
  const int directory = place_->directory();
  const int fd = ::openat(directory, ".", O_WRONLY | O_TMPFILE | O_CLOEXEC, mode);
  if (fd >= 0 && ::access(link_to(fd).c_str(), F_OK) == 0) return fd;
  if (fd >= 0) ::close(fd);  // without /proc it could not be named later
  return with_new_name(place_->name(), temporary_, [&](const char* tried) {
    return ::openat(directory, tried, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode);
  });
}

Result<OutputFile> OutputFile::replace(const std::string& path) { return replace(path, nullptr); }

Result<OutputFile> OutputFile::replace(const Input& input) {
  return replace(input.name(), &input.facts());
}

Result<OutputFile> OutputFile::replace_itself(const std::string& path) {
  Result<OutputPlace> place = OutputPlace::find(path, OutputPlace::Last::kept);
  if (!place) return failure(place);
  OutputFile file;
  file.name_ = path;
  file.owns_ = true;
  file.place_ = *std::move(place);
  file.fd_ = file.create(0666);
  if (file.fd_ < 0) return Failure(system_error("cannot write", path, errno));
  return file;
}

namespace {

bool is_same(const struct stat* file, const FileFacts& wanted) noexcept {
  return file != nullptr && S_ISREG(file->st_mode) && file->st_dev == wanted.device &&
         file->st_ino == wanted.inode;
}

}  // namespace

// The name of a place is no longer a link, and rename() follows none. So what is replaced in the
// end is the file checked here, or a file put in its place meanwhile.
Result<OutputFile> OutputFile::replace(const std::string& path, const FileFacts* only) {
  Result<OutputPlace> place = OutputPlace::find(path);
  if (!place) return failure(place);
  OutputFile file;
  file.name_ = path;
  file.owns_ = true;
  const struct stat* const old = place->existing();
  if (only != nullptr && !is_same(old, *only)) return Failure(Error::of(Reason::replaced, path));
  if (old != nullptr && !S_ISREG(old->st_mode)) {
    const Result<int> fd = place->open_existing();
    if (!fd) return failure(fd);
    file.fd_ = *fd;
    return file;
  }
  // A file that was read and is replaced by a new version keeps its owner.
  if (only == nullptr) {
    if (const Result<void> checked = place->check_existing(); !checked) return failure(checked);
  }
  file.place_ = *std::move(place);
  // A replacement is private to its owner until it has the mode of the old file. A new file gets
  // the mode that the umask leaves, as from any program.
  file.fd_ = file.create(old != nullptr ? 0600 : 0666);
  if (file.fd_ < 0) return Failure(system_error("cannot write", path, errno));
  if (old != nullptr) {
    // Only root can give a file away; for others it stays theirs, which is not an error.
    if (::fchown(file.fd_, old->st_uid, old->st_gid) != 0) errno = 0;
    ::fchmod(file.fd_, old->st_mode & 07777);
  }
  return file;
}

OutputFile OutputFile::to_descriptor(int fd, std::string name) {
  OutputFile file;
  file.fd_ = fd;
  file.name_ = std::move(name);
  return file;
}

OutputFile::OutputFile(OutputFile&& other) noexcept { *this = std::move(other); }

OutputFile& OutputFile::operator=(OutputFile&& other) noexcept {
  std::swap(fd_, other.fd_);
  std::swap(owns_, other.owns_);
  std::swap(shows_, other.shows_);
  std::swap(errno_, other.errno_);
  name_.swap(other.name_);
  place_.swap(other.place_);
  temporary_.swap(other.temporary_);
  buffer_.swap(other.buffer_);
  std::swap(used_, other.used_);
  return *this;
}

OutputFile::~OutputFile() { discard(); }

void OutputFile::discard() noexcept {
  if (!temporary_.empty()) ::unlinkat(place_->directory(), temporary_.c_str(), 0);
  temporary_.clear();
  if (owns_ && fd_ >= 0) ::close(fd_);
  fd_ = -1;
}

bool OutputFile::is_terminal() const noexcept { return ::isatty(fd_) == 1; }

void OutputFile::make_private() noexcept {
  if (place_) ::fchmod(fd_, 0600);
}

void OutputFile::protect_terminal() { shows_ = is_terminal(); }

char* OutputFile::room(std::size_t max) {
  // Not zeroed: most outputs need a page or two of it.
  if (!buffer_) buffer_ = std::make_unique_for_overwrite<char[]>(kBufferSize);
  if (used_ + max > kBufferSize) drain_lines();
  if (used_ + max > kBufferSize) drain();
  return buffer_.get() + used_;
}

void OutputFile::write(std::string_view bytes) {
  while (!bytes.empty()) {
    const std::string_view part = bytes.substr(0, kRoom);
    std::memcpy(room(part.size()), part.data(), part.size());
    wrote(part.size());
    bytes.remove_prefix(part.size());
  }
}

void OutputFile::send(std::string_view bytes) {
  while (errno_ == 0 && !bytes.empty()) {
    const ssize_t count = ::write(fd_, bytes.data(), bytes.size());
    if (count >= 0) {
      bytes.remove_prefix(static_cast<std::size_t>(count));
    } else if (errno != EINTR) {
      errno_ = errno;
    }
  }
}

/// Output to a terminal is written in whole lines if possible, so that no character is cut in two.
void OutputFile::drain_lines() {
  const std::string_view bytes(buffer_.get(), used_);
  const std::size_t end = shows_ ? bytes.rfind('\n') + 1 : used_;  // npos + 1 is 0
  const std::string rest(bytes.substr(end));
  used_ = end;
  drain();
  rest.copy(buffer_.get(), rest.size());
  used_ = rest.size();
}

void OutputFile::drain() {
  std::string_view bytes(buffer_.get(), used_);
  used_ = 0;
  if (!shows_) return send(bytes);
  std::string shown;
  while (!bytes.empty()) {
    const std::string_view line = bytes.substr(0, bytes.find('\n'));
    append_visible(shown, line);
    if (line.size() < bytes.size()) shown += '\n';
    bytes.remove_prefix(std::min(bytes.size(), line.size() + 1));
  }
  send(shown);
}

Error OutputFile::error() const { return system_error("cannot write", name_, errno_); }

Result<void> OutputFile::flush() {
  drain();
  if (failed()) return Failure(error());
  return {};
}

/// Gives a temporary name to a file without a name, so that it can be renamed.
void OutputFile::give_name() {
  const std::string file = link_to(fd_);
  const int linked = with_new_name(place_->name(), temporary_, [&](const char* tried) {
    return ::linkat(AT_FDCWD, file.c_str(), place_->directory(), tried, AT_SYMLINK_FOLLOW);
  });
  if (linked != 0) errno_ = errno;
}

Result<void> OutputFile::commit() {
  drain();
  if (!failed() && place_ && temporary_.empty() && fd_ >= 0) give_name();
  if (owns_ && !failed() && ::close(std::exchange(fd_, -1)) != 0) errno_ = errno;
  if (!failed() && !temporary_.empty()) {
    const int directory = place_->directory();
    const char* const name = place_->name().c_str();
    if (::renameat(directory, temporary_.c_str(), directory, name) != 0) errno_ = errno;
    if (!failed()) temporary_.clear();
  }
  if (failed()) return Failure(error());
  return {};
}

namespace {

/// Whether the path is "/proc/N/root/...": below it, links of other users are followed.
bool is_in_process_root(std::string_view path) noexcept {
  constexpr std::string_view kProc = "/proc/";
  if (!path.starts_with(kProc)) return false;
  path.remove_prefix(kProc.size());
  return path.substr(std::min(path.find('/'), path.size())).starts_with("/root/");
}

}  // namespace

std::optional<int> find_writer(const FileFacts& file, const std::string& proc, int except) {
  const int pid = find_writer(FileNumber{file.device, file.inode}, proc.c_str(), except);
  return pid != 0 ? std::optional(pid) : std::nullopt;
}

FileWriters::FileWriters(std::string proc) : proc_(std::move(proc)) {}

void FileWriters::read() {
  is_read_ = true;
  find_number(proc_.c_str(), [this](const char* process) {
    const std::string directory = proc_ + "/" + process + "/fd";
    find_number(directory.c_str(), [&](const char* fd) {
      struct stat status {};
      if (::stat((directory + "/" + fd).c_str(), &status) == 0 && S_ISREG(status.st_mode)) {
        open_.push_back({status.st_dev, status.st_ino, std::atoi(process), std::atoi(fd)});
      }
      return false;
    });
    return false;
  });
  std::sort(open_.begin(), open_.end());
}

std::optional<int> FileWriters::find(const FileFacts& file) {
  if (!is_read_) read();
  const OpenFile first{file.device, file.inode, 0, 0};
  for (auto at = std::lower_bound(open_.begin(), open_.end(), first); at != open_.end(); ++at) {
    if (at->device != file.device || at->inode != file.inode) break;
    if (writes_through(proc_.c_str(), std::to_string(at->pid).c_str(),
                       std::to_string(at->fd).c_str(), {file.device, file.inode})) {
      return at->pid;
    }
  }
  return std::nullopt;
}

std::optional<std::string> objection_to_rewriting(const Input& input, bool force) {
  if (input.name() == "-") return "cannot rewrite standard input in place";
  if (!input.facts().is_regular) {
    return "cannot rewrite " + input.name() + " in place: " + kIsNotRegular;
  }
  if (!force && is_in_process_root(input.name())) {
    return "cannot rewrite " + input.name() +
           " in place: the process's user could put another file at this path (--force rewrites it "
           "anyway)";
  }
  const auto writer = force ? std::nullopt : find_writer(input.facts());
  if (!writer) return std::nullopt;
  return "cannot rewrite " + input.name() + " in place: process " + std::to_string(*writer) +
         " has it open for writing (--force rewrites it anyway)";
}

Result<void> take_write_rights(const Input& input) {
  const std::string& name = input.name();
  const Descriptor file(::open(input.name().c_str(), O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
  struct stat status {};
  if (file.get() < 0 || ::fstat(file.get(), &status) != 0) {
    return Failure(system_error("cannot change the mode of", name, errno));
  }
  if (status.st_dev != input.facts().device || status.st_ino != input.facts().inode) {
    return Failure(
        Error::refused("cannot change the mode of " + name + ": it was replaced by another file"));
  }
  const mode_t mode = status.st_mode & 07777 & ~static_cast<mode_t>(S_IWGRP | S_IWOTH);
  if (::fchmod(file.get(), mode) != 0)
    return Failure(system_error("cannot change the mode of", name, errno));
  return {};
}

}  // namespace perfmap
