// SPDX-License-Identifier: MIT
#include <cerrno>
#include <climits>
#include <fcntl.h>
#include <optional>
#include <string>
#include <string_view>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>

#include "base/descriptor.hpp"
#include "base/found_file.hpp"
#include "perfmap/output_file.hpp"

// The walk is our own because the kernel applies its rule to the last component only, and only if
// fs.protected_symlinks and its like are set. Source: Linux, fs/namei.c, may_follow_link() and
// may_create_in_sticky().

namespace perfmap {
namespace {

constexpr int kMaxLinks = 40;  // the kernel's limit
constexpr int kFind = O_PATH | O_NOFOLLOW | O_CLOEXEC;
constexpr int kFindDirectory = O_PATH | O_DIRECTORY | O_CLOEXEC;

/// A directory in which other users may create files but not remove ours, such as /tmp.
bool is_shared(const struct stat& directory) noexcept {
  return (directory.st_mode & S_ISVTX) != 0 && (directory.st_mode & (S_IWOTH | S_IWGRP)) != 0;
}

/// Whether a user other than us and the directory's owner may have put the file there.
bool may_be_planted(const struct stat& directory, const struct stat& file) noexcept {
  return is_shared(directory) && file.st_uid != ::geteuid() && file.st_uid != directory.st_uid;
}

/// Walks a path from its beginning, one component at a time.
class Walk {
 public:
  explicit Walk(const std::string& path) : path_(path), rest_(path) {}

  /// Ends at the last component. `follow_last`: or at the target of the last link.
  Result<void> run(bool follow_last);

  Descriptor directory;  // of the last component
  struct stat directory_status {};
  std::string name;
  Descriptor file;  // not open: there is none
  struct stat status {};

 private:
  Result<void> begin();
  Result<void> step(bool follow_last);
  Result<void> follow_link();
  Result<void> enter(Descriptor next);
  Failure failed(int sys_errno) const {
    return Failure(system_error("cannot write", (path_.empty() ? "''" : path_), sys_errno));
  }

  const std::string& path_;
  std::string rest_;
  int links_ = 0;
  std::optional<uid_t> foreign_;  // the owner of a link in the place of the file
  std::string foreign_name_;
};

/// At the root, or at the working directory.
Result<void> Walk::begin() {
  return enter(Descriptor(::open(rest_.starts_with('/') ? "/" : ".", kFindDirectory)));
}

Result<void> Walk::enter(Descriptor next) {
  if (!next.is_open() || ::fstat(next.get(), &directory_status) != 0) return failed(errno);
  directory = std::move(next);
  return {};
}

Result<void> Walk::run(bool follow_last) {
  if (rest_.empty()) return failed(ENOENT);
  if (Result<void> begun = begin(); !begun) return begun;
  while (!rest_.empty()) {
    if (Result<void> done = step(follow_last); !done) return done;
  }
  // "/", "." and names that end in a slash or in "..".
  if (name.empty()) return failed(EISDIR);
  // The kernel would follow it in a directory of that user's: to any file that we may write.
  if (foreign_ && (!file.is_open() || status.st_uid != *foreign_)) {
    return Failure(Error::refused("cannot write " + path_ + ": '" + foreign_name_ +
                                  "' is a symbolic link of user " + std::to_string(*foreign_) +
                                  ", but its target does not belong to that user")
                       .with_errno(EACCES));
  }
  return {};
}

Result<void> Walk::step(bool follow_last) {
  const std::size_t end = rest_.find('/');
  const std::string part = rest_.substr(0, end);
  const std::size_t next = end == rest_.npos ? rest_.npos : rest_.find_first_not_of('/', end);
  const bool is_last = end == rest_.npos;
  rest_ = next == rest_.npos ? std::string() : rest_.substr(next);
  name.clear();
  if (part.empty() || part == ".") return {};
  if (part == "..") return enter(Descriptor(::openat(directory.get(), "..", kFindDirectory)));
  name = part;
  status = {};
  file = Descriptor(::openat(directory.get(), part.c_str(), kFind));
  if (!file.is_open()) return is_last && errno == ENOENT ? Result<void>() : failed(errno);
  if (::fstat(file.get(), &status) != 0) return failed(errno);
  if (S_ISLNK(status.st_mode) && (!is_last || follow_last)) return follow_link();
  if (is_last) return {};
  name.clear();
  if (!S_ISDIR(status.st_mode)) return failed(ENOTDIR);
  return enter(std::move(file));
}

Result<void> Walk::follow_link() {
  if (++links_ > kMaxLinks) return failed(ELOOP);
  if (may_be_planted(directory_status, status)) {
    return Failure(Error::refused("cannot write " + path_ + ": '" + name +
                                  "' is a symbolic link of user " + std::to_string(status.st_uid) +
                                  " in a directory that other users may write to")
                       .with_errno(EACCES));
  }
  if (rest_.empty() && !foreign_ && status.st_uid != 0 && status.st_uid != ::geteuid()) {
    foreign_ = status.st_uid;
    foreign_name_ = name;
  }
  char target[PATH_MAX];
  const ssize_t size = ::readlinkat(file.get(), "", target, sizeof target);
  if (size <= 0) return failed(size == 0 ? ENOENT : errno);
  // A link of the kernel's may lead to what has no path, such as a pipe.
  if (is_on_procfs(directory.get())) {
    Descriptor found(::openat(directory.get(), name.c_str(), O_PATH | O_CLOEXEC));
    if (!found.is_open() || ::fstat(found.get(), &status) != 0) return failed(errno);
    if (!S_ISREG(status.st_mode) && !S_ISDIR(status.st_mode)) {
      file = std::move(found);
      return rest_.empty() ? Result<void>() : failed(ENOTDIR);
    }
  }
  std::string path(target, static_cast<std::size_t>(size));
  if (!rest_.empty()) path += "/" + rest_;
  rest_ = std::move(path);
  name.clear();
  return rest_.starts_with('/') ? begin() : Result<void>();
}

}  // namespace

struct OutputPlace::State {
  std::string path;
  Descriptor directory;
  std::string name;
  Descriptor file;
  bool is_planted = false;
  struct stat status {};
};

OutputPlace::OutputPlace(std::unique_ptr<State> state) noexcept : state_(std::move(state)) {}
OutputPlace::OutputPlace(OutputPlace&&) noexcept = default;
OutputPlace& OutputPlace::operator=(OutputPlace&&) noexcept = default;
OutputPlace::~OutputPlace() = default;

Result<OutputPlace> OutputPlace::find(const std::string& path, Last last) {
  Walk walk(path);
  if (const Result<void> done = walk.run(last == Last::followed); !done) return failure(done);
  auto state = std::make_unique<State>();
  state->is_planted = walk.file.is_open() && may_be_planted(walk.directory_status, walk.status);
  state->path = path;
  state->directory = std::move(walk.directory);
  state->name = std::move(walk.name);
  state->file = std::move(walk.file);
  state->status = walk.status;
  return OutputPlace(std::move(state));
}

int OutputPlace::directory() const noexcept { return state_->directory.get(); }
const std::string& OutputPlace::name() const noexcept { return state_->name; }

const struct stat* OutputPlace::existing() const noexcept {
  return state_->file.is_open() ? &state_->status : nullptr;
}

Result<void> OutputPlace::check_existing() const {
  if (!state_->is_planted) return {};
  const bool is_file = S_ISREG(state_->status.st_mode);
  return Failure(Error::refused("cannot write " + state_->path + ": it is a " +
                                (is_file ? "file" : "FIFO or device") + " of user " +
                                std::to_string(state_->status.st_uid) +
                                " in a directory that other users may write to")
                     .with_errno(EACCES));
}

Result<int> OutputPlace::open_existing() const {
  if (const Result<void> checked = check_existing(); !checked) return failure(checked);
  constexpr int kFlags = O_WRONLY | O_CLOEXEC | O_NOCTTY;
  const std::string found = "/proc/self/fd/" + std::to_string(state_->file.get());
  int fd = ::open(found.c_str(), kFlags);
  // Without /proc.
  if (fd < 0 && errno == ENOENT) {
    fd = ::openat(directory(), state_->name.c_str(), kFlags | O_NOFOLLOW);
  }
  if (fd < 0) return Failure(system_error("cannot open", state_->path, errno));
  return fd;
}

Result<std::string> OutputPlace::path_for_appending() {
  // The created file is found again, because this object must not keep it open for writing: other
  // writers would wait for that descriptor.
  constexpr int kFlags = O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC;
  constexpr int kTries = 3;  // others may create and remove the file meanwhile
  for (int i = 0; i < kTries && !state_->file.is_open(); ++i) {
    const Descriptor made(::openat(directory(), state_->name.c_str(), kFlags, 0600));
    if (!made.is_open() && errno != EEXIST) {
      return Failure(system_error("cannot open", state_->path, errno));
    }
    Result<OutputPlace> again = find(state_->path);
    if (!again) return failure(again);
    *this = *std::move(again);
  }
  if (const Result<void> checked = check_existing(); !checked) return failure(checked);
  std::string found = "/proc/self/fd/" + std::to_string(state_->file.get());
  return ::access(found.c_str(), F_OK) == 0 ? std::move(found) : state_->path;
}

}  // namespace perfmap
