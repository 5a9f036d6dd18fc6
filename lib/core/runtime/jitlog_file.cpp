#include "runtime/jitlog_file.hpp"

#include <array>
#include <cerrno>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "formats/jitlog_text.hpp"

namespace perfmap {
namespace {

bool has_other_name(const RecordFile& file) noexcept {
  struct stat status {};
  return ::fstat(file.descriptor(), &status) != 0 || status.st_nlink > 1;
}

/// A log that is there, locked.
int open_existing(RecordFile& file, const std::string& path, bool own) noexcept {
  int error = file.open(path, own);
  if (error == 0 && own && has_other_name(file)) error = EMLINK;
  return error != 0 ? error : file.lock();
}

int open_locked(RecordFile& file, const std::string& path, bool own) noexcept {
  constexpr int kTries = 3;  // others may make and remove it meanwhile
  int error = 0;
  for (int i = 0; i < kTries; ++i) {
    error = file.create(path);
    if (error == 0) return file.lock();
    if (error != EEXIST) return error;
    error = open_existing(file, path, own);
    if (error != ENOENT) return error;
  }
  return error;
}

/// Of a file that has bytes.
bool is_log(const RecordFile& file) noexcept {
  std::array<char, 64> begin;
  const ssize_t got = ::pread(file.descriptor(), begin.data(), begin.size(), 0);
  return got > 0 && begins_as_jitlog({begin.data(), static_cast<std::size_t>(got)});
}

/// Whether the process's limit leaves no room for so many bytes more.
bool passes_limit(std::uint64_t size, std::uint64_t more) noexcept {
  rlimit most{};
  if (::getrlimit(RLIMIT_FSIZE, &most) != 0 || most.rlim_cur == RLIM_INFINITY) return false;
  return size > most.rlim_cur || more > most.rlim_cur - size;
}

iovec part(std::string_view bytes) noexcept {
  return {const_cast<char*>(bytes.data()), bytes.size()};
}

}  // namespace

Result<void> JitlogFile::open(const std::string& path, bool own) {
  int error = open_locked(file_, path, own);
  const bool has_bytes = error == 0 && file_.is_regular() && file_.size() != 0;
  if (has_bytes && !is_log(file_)) {
    file_.close();
    return Failure({Errc::bad_format, "cannot begin " + path + ": it is no log", EINVAL, {}});
  }
  if (has_bytes) error = file_.cut(0);
  if (error == 0) return {};
  file_.close();
  return Failure(system_error("cannot open " + path, error));
}

int JitlogFile::append(std::string_view first, std::string_view second) noexcept {
  const std::size_t total = first.size() + second.size();
  if (file_.is_regular() && passes_limit(file_.size(), total)) return EFBIG;
  std::array<iovec, 2> parts = {part(first), part(second)};
  return file_.append(parts, total);
}

int JitlogFile::begin_copy(WholeFile& copy, const std::string& path) noexcept {
  const int error = copy.create(path.c_str());
  return error != 0 ? error : copy.append_lines(file_.descriptor(), file_.size());
}

/// Where a former process of this pid has left its log, that goes.
int JitlogFile::become(WholeFile& copy, const std::string& path, bool own) noexcept {
  int error = copy.publish();
  if (error == EEXIST) {
    RecordFile former;
    error = open_existing(former, path, own);
    if (error == 0 && former.size() != 0 && !is_log(former)) error = EEXIST;
    if (error == 0 && ::unlink(path.c_str()) != 0) error = errno;
    if (error == 0) error = copy.publish();
  }
  RecordFile made;
  if (error == 0) error = open_existing(made, path, own);
  if (error == 0) file_.swap(made);
  return error;
}

int JitlogFile::end() noexcept {
  if (!file_.is_lost()) file_.unlock();
  return file_.close();
}

}  // namespace perfmap
