#include "snapshots/new_tree.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <fcntl.h>
#include <filesystem>
#include <sys/stat.h>
#include <utility>

namespace perfmap {
namespace {

constexpr std::size_t kBlock = std::size_t{64} << 10;
constexpr int kDirectoryFlags = O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;

/// Why nothing can be put at `path`, or nothing.
std::optional<Error> objection(const std::string& path) {
  struct stat status {};
  if (::lstat(path.c_str(), &status) != 0) {
    if (errno == ENOENT) return std::nullopt;
    return system_error("cannot make " + path, errno);
  }
  std::error_code error;
  if (S_ISDIR(status.st_mode) && std::filesystem::is_empty(path, error)) return std::nullopt;
  const char* const what =
      S_ISDIR(status.st_mode) ? "it is there, and not empty" : "it is there, and no directory";
  return Error{Errc::refused, "cannot make " + path + ": " + what, 0, {}};
}

bool is_part(std::string_view part) noexcept {
  return !part.empty() && part != "." && part != "..";
}

int write_all(int fd, std::string_view bytes, std::uint64_t offset) noexcept {
  while (!bytes.empty()) {
    const ssize_t put = ::pwrite(fd, bytes.data(), bytes.size(), static_cast<off_t>(offset));
    if (put < 0 && errno == EINTR) continue;
    if (put <= 0) return put == 0 ? EIO : errno;
    bytes.remove_prefix(static_cast<std::size_t>(put));
    offset += static_cast<std::uint64_t>(put);
  }
  return 0;
}

/// 0 or an errno value.
int write_with_holes(int fd, std::string_view bytes) noexcept {
  for (std::size_t at = 0; at < bytes.size(); at += kBlock) {
    const std::string_view block = bytes.substr(at, kBlock);
    if (block.find_first_not_of('\0') == block.npos) continue;
    if (const int error = write_all(fd, block, at); error != 0) return error;
  }
  return ::ftruncate(fd, static_cast<off_t>(bytes.size())) == 0 ? 0 : errno;
}

timespec to_timespec(std::int64_t ns) noexcept {
  constexpr std::int64_t kSecond = 1'000'000'000;
  ns = std::max<std::int64_t>(ns, 0);
  return {.tv_sec = static_cast<time_t>(ns / kSecond), .tv_nsec = static_cast<long>(ns % kSecond)};
}

}  // namespace

Result<NewTree> NewTree::begin(const std::string& path) {
  NewTree tree;
  tree.final_path_ = path.substr(0, path.find_last_not_of('/') + 1);
  if (tree.final_path_.empty()) {
    return Failure({Errc::invalid_argument, "cannot make a directory without a name", 0, {}});
  }
  if (std::optional<Error> why = objection(tree.final_path_)) return Failure(*std::move(why));
  std::string name = tree.final_path_ + ".XXXXXX";
  if (::mkdtemp(name.data()) == nullptr) {
    return Failure(system_error("cannot make " + tree.final_path_, errno));
  }
  tree.path_ = std::move(name);
  tree.directory_ = OwnedFd(::open(tree.path_.c_str(), kDirectoryFlags));
  if (!tree.directory_.is_open()) return Failure(tree.error("", errno));
  return tree;
}

NewTree::~NewTree() {
  // Without a descriptor it was moved from, or published.
  if (path_.empty() || !directory_.is_open()) return;
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

Error NewTree::error(std::string_view path, int sys_errno) const {
  return system_error("cannot write " + final_path_ + "/" + std::string(path), sys_errno);
}

Result<NewTree::Place> NewTree::place_of(std::string_view path) {
  Place place{OwnedFd(::openat(directory_.get(), ".", kDirectoryFlags)), {}};
  std::string_view rest = path;
  while (place.directory.is_open()) {
    const std::string part(rest.substr(0, rest.find('/')));
    if (!is_part(part)) return Failure(error(path, EINVAL));
    if (part.size() == rest.size()) {
      place.name = part;
      return place;
    }
    rest.remove_prefix(part.size() + 1);
    if (::mkdirat(place.directory.get(), part.c_str(), 0700) != 0 && errno != EEXIST) break;
    place.directory = OwnedFd(::openat(place.directory.get(), part.c_str(), kDirectoryFlags));
  }
  return Failure(error(path, errno));
}

Result<void> NewTree::make_directory(std::string_view path) {
  const Result<Place> place = place_of(path);
  if (!place) return Failure(place.error());
  const int made = ::mkdirat(place->directory.get(), place->name.c_str(), 0700);
  if (made != 0 && errno != EEXIST) return Failure(error(path, errno));
  return {};
}

Result<OwnedFd> NewTree::create(std::string_view path) {
  const Result<Place> place = place_of(path);
  if (!place) return Failure(place.error());
  constexpr int kFlags = O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC;
  OwnedFd fd(::openat(place->directory.get(), place->name.c_str(), kFlags, 0600));
  if (!fd.is_open()) return Failure(error(path, errno));
  return fd;
}

Result<void> NewTree::write(std::string_view path, std::string_view bytes,
                            std::optional<std::int64_t> mtime_ns) {
  const Result<OwnedFd> fd = create(path);
  if (!fd) return Failure(fd.error());
  if (const int failed = write_with_holes(fd->get(), bytes); failed != 0) {
    return Failure(error(path, failed));
  }
  if (!mtime_ns) return {};
  const std::array<timespec, 2> times = {to_timespec(*mtime_ns), to_timespec(*mtime_ns)};
  if (::futimens(fd->get(), times.data()) != 0) return Failure(error(path, errno));
  return {};
}

Result<void> NewTree::link(std::string_view path, const std::string& target) {
  const Result<Place> place = place_of(path);
  if (!place) return Failure(place.error());
  if (::symlinkat(target.c_str(), place->directory.get(), place->name.c_str()) == 0) return {};
  return Failure(error(path, errno));
}

void NewTree::remove(std::string_view path) noexcept {
  const Result<Place> place = place_of(path);
  if (place) ::unlinkat(place->directory.get(), place->name.c_str(), 0);
}

Result<void> NewTree::publish() {
  if (::rename(path_.c_str(), final_path_.c_str()) != 0) {
    return Failure(system_error("cannot make " + final_path_, errno));
  }
  path_.clear();
  directory_ = OwnedFd();
  return {};
}

}  // namespace perfmap
