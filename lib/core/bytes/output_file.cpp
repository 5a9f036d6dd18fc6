#include "perfmap/output_file.hpp"

#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>

namespace perfmap {
namespace {

constexpr std::size_t kBuffer = std::size_t{256} << 10;

/// Where the last link leads, so that its target is what gets replaced; `path` itself otherwise.
std::string behind_links(const std::string& path) {
  char* const real = ::realpath(path.c_str(), nullptr);
  if (real == nullptr) return path;
  std::string target(real);
  std::free(real);
  return target;
}

/// Creates a file of a new name in the directory of `target`; -1 and errno where that fails.
int create_beside(const std::string& target, mode_t mode, std::string& name) {
  static std::atomic<unsigned> counter{0};
  for (int attempt = 0; attempt < 100; ++attempt) {
    const std::string tried =
        target + "." + std::to_string(::getpid()) + "-" + std::to_string(counter++) + ".tmp";
    const int fd =
        ::open(tried.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode);
    if (fd >= 0) name = tried;
    if (fd >= 0 || errno != EEXIST) return fd;
  }
  return -1;
}

}  // namespace

Result<OutputFile> OutputFile::replace(const std::string& path) { return replace(path, nullptr); }

Result<OutputFile> OutputFile::replace(const Input& input) {
  return replace(input.name(), &input.facts());
}

// `target` holds no link any more, and rename() follows none, so a file that is the one wanted here
// is the one that is replaced in the end, or another that was put in its very place.
Result<OutputFile> OutputFile::replace(const std::string& path, const FileFacts* only) {
  OutputFile file;
  file.name_ = path;
  file.owns_ = true;
  const std::string target = behind_links(path);
  struct stat old {};
  const bool exists =
      (only == nullptr ? ::stat(target.c_str(), &old) : ::lstat(target.c_str(), &old)) == 0;
  if (only != nullptr && (!exists || !S_ISREG(old.st_mode) || old.st_dev != only->device ||
                          old.st_ino != only->inode)) {
    return Failure(
        {Errc::refused, path + " is another file now than the one that was read", 0, {}});
  }
  if (exists && !S_ISREG(old.st_mode)) {
    file.fd_ = ::open(target.c_str(), O_WRONLY | O_CLOEXEC | O_NOCTTY);
    if (file.fd_ < 0) return Failure(system_error("cannot open " + path, errno));
    return file;
  }
  file.final_path_ = target;
  // What replaces a file is its owner's alone until it has the old one's mode; a new one gets what
  // the umask leaves, as from any program.
  file.fd_ = create_beside(target, exists ? 0600 : 0666, file.temporary_path_);
  if (file.fd_ < 0) return Failure(system_error("cannot write " + path, errno));
  if (exists) {
    // Only root may give a file away; for others it stays theirs, which is no failure.
    if (::fchown(file.fd_, old.st_uid, old.st_gid) != 0) errno = 0;
    ::fchmod(file.fd_, old.st_mode & 07777);
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
  std::swap(errno_, other.errno_);
  name_.swap(other.name_);
  final_path_.swap(other.final_path_);
  temporary_path_.swap(other.temporary_path_);
  buffer_.swap(other.buffer_);
  std::swap(used_, other.used_);
  return *this;
}

OutputFile::~OutputFile() { discard(); }

void OutputFile::discard() noexcept {
  if (!temporary_path_.empty()) ::unlink(temporary_path_.c_str());
  temporary_path_.clear();
  if (owns_ && fd_ >= 0) ::close(fd_);
  fd_ = -1;
}

bool OutputFile::is_terminal() const noexcept { return ::isatty(fd_) == 1; }

char* OutputFile::room(std::size_t most) {
  if (buffer_.empty()) buffer_.resize(kBuffer + kRoom);
  if (used_ + most > buffer_.size()) drain();
  return buffer_.data() + used_;
}

void OutputFile::write(std::string_view bytes) {
  while (!bytes.empty()) {
    const std::string_view part = bytes.substr(0, kRoom);
    std::memcpy(room(part.size()), part.data(), part.size());
    wrote(part.size());
    bytes.remove_prefix(part.size());
  }
}

void OutputFile::drain() {
  std::size_t done = 0;
  while (errno_ == 0 && done < used_) {
    const ssize_t count = ::write(fd_, buffer_.data() + done, used_ - done);
    if (count >= 0) {
      done += static_cast<std::size_t>(count);
    } else if (errno != EINTR) {
      errno_ = errno;
    }
  }
  used_ = 0;
}

Error OutputFile::error() const { return system_error("cannot write " + name_, errno_); }

Result<void> OutputFile::flush() {
  drain();
  if (failed()) return Failure(error());
  return {};
}

Result<void> OutputFile::commit() {
  drain();
  if (owns_ && !failed() && ::close(std::exchange(fd_, -1)) != 0) errno_ = errno;
  if (!failed() && !temporary_path_.empty()) {
    if (::rename(temporary_path_.c_str(), final_path_.c_str()) != 0) errno_ = errno;
    if (!failed()) temporary_path_.clear();
  }
  if (failed()) return Failure(error());
  return {};
}

}  // namespace perfmap
