// SPDX-License-Identifier: MIT
#include "writer/append_file.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "writer/map_owner.hpp"
#include "writer/mmap_appender.hpp"

namespace perfmap {
namespace {

constexpr std::uint64_t kSecond = 1'000'000'000;
constexpr std::size_t kPage = 4096;
constexpr std::size_t kBlock = std::size_t{256} << 10;
constexpr std::size_t kSelf = 40;

std::uint64_t to_ns(const timespec& time) noexcept {
  return static_cast<std::uint64_t>(time.tv_sec) * kSecond +
         static_cast<std::uint64_t>(time.tv_nsec);
}

/// kBlock bytes and one more.
class Block {
 public:
  Block() noexcept : at_(map_memory(kBlock + 1)) {}
  ~Block() {
    if (at_ != nullptr) ::munmap(at_, kBlock + 1);
  }
  Block(const Block&) = delete;
  Block& operator=(const Block&) = delete;
  char* get() const noexcept { return at_; }

 private:
  char* at_;
};

/// Writes all bytes or returns an error. The unwritten rest stays in `bytes`.
int write_all(int fd, std::string_view& bytes) noexcept {
  while (!bytes.empty()) {
    const ssize_t count = ::write(fd, bytes.data(), bytes.size());
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return count < 0 ? errno : ENOSPC;
    bytes.remove_prefix(static_cast<std::size_t>(count));
  }
  return 0;
}

sigset_t size_signal() noexcept {
  sigset_t set;
  ::sigemptyset(&set);
  ::sigaddset(&set, SIGXFSZ);
  return set;
}

void path_of(int fd, char (&path)[kSelf]) noexcept {
  std::snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
}

}  // namespace

std::uint64_t size_limit() noexcept {
  rlimit max{};
  const bool known = ::getrlimit(RLIMIT_FSIZE, &max) == 0 && max.rlim_cur != RLIM_INFINITY;
  return known ? max.rlim_cur : UINT64_MAX;
}

NoSizeSignal::NoSizeSignal() noexcept {
  const sigset_t set = size_signal();
  ::pthread_sigmask(SIG_BLOCK, &set, &before_);
  sigset_t pending;
  was_pending_ = ::sigpending(&pending) == 0 && ::sigismember(&pending, SIGXFSZ) == 1;
}

NoSizeSignal::~NoSizeSignal() {
  const int error = errno;
  const sigset_t set = size_signal();
  constexpr timespec kNow{0, 0};
  if (!was_pending_) ::sigtimedwait(&set, nullptr, &kNow);
  ::pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  errno = error;
}

char* map_memory(std::size_t size) noexcept {
  void* const at =
      ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  return at == MAP_FAILED ? nullptr : static_cast<char*>(at);
}

std::uint64_t now_ns(clockid_t clock) noexcept {
  timespec now{};
  ::clock_gettime(clock, &now);
  return to_ns(now);
}

bool get_process_age(std::uint64_t& ns) noexcept {
  std::uint64_t ticks = 0;
  timespec now{};
  const auto per_second = static_cast<std::uint64_t>(::sysconf(_SC_CLK_TCK));
  if (!get_start_ticks(ticks) || ::clock_gettime(CLOCK_BOOTTIME, &now) != 0 || per_second == 0 ||
      ticks / per_second > UINT32_MAX) {
    return false;
  }
  const std::uint64_t start =
      ticks / per_second * kSecond + ticks % per_second * kSecond / per_second;
  ns = to_ns(now) > start ? to_ns(now) - start : 0;
  return true;
}

bool GrowingBuffer::grow(std::size_t wanted, std::size_t first) noexcept {
  const std::size_t old_capacity = capacity();
  const std::size_t usual = std::max(first, 2 * old_capacity);
  const std::size_t made_capacity = (std::max(usual, wanted) + kPage - 1) / kPage * kPage;
  char* const made = map_memory(made_capacity);
  if (made == nullptr) return false;
  char* const old = data();
  if (size() != 0) std::memcpy(made, old, size());
  // The old memory is unmapped last: a child forked before that must still find its content.
  data_.store(made);
  capacity_.store(made_capacity);
  if (old != nullptr) ::munmap(old, old_capacity);
  return true;
}

void GrowingBuffer::release() noexcept {
  const std::size_t capacity = capacity_.exchange(0);
  clear();
  if (char* const data = data_.exchange(nullptr); data != nullptr) ::munmap(data, capacity);
}

namespace {

constexpr int kFlags = O_APPEND | O_CLOEXEC | O_NOCTTY;

/// The length of "DIRECTORY/" in "DIRECTORY/NAME"; 0 if there is none.
std::size_t directory_size(const char* path) noexcept {
  const char* const slash = std::strrchr(path, '/');
  return slash == nullptr ? 0 : static_cast<std::size_t>(slash - path) + 1;
}

}  // namespace

void WholeFile::drop_hidden() noexcept {
  if (hidden_[0] != '\0') ::unlink(hidden_);
  hidden_[0] = '\0';
}

int WholeFile::create(const char* path) noexcept {
  path_ = path;
  const std::size_t size = directory_size(path);
  if (std::strlen(path) + sizeof "..part" > kMaxPath) return ENAMETOOLONG;
  std::memcpy(hidden_, path, size);
  std::memcpy(hidden_ + size, ".", 2);
  fd_ = Descriptor(::open(hidden_, O_RDWR | kFlags | O_TMPFILE, 0600));
  hidden_[0] = '\0';
  if (!fd_.is_open()) {
    const bool unknown = errno == EOPNOTSUPP || errno == EISDIR || errno == EINVAL;
    return unknown ? create_named() : errno;
  }
  char self[kSelf];
  path_of(fd_.get(), self);
  return ::access(self, F_OK) == 0 ? 0 : create_named();
}

/// The hidden name contains the pid: an existing file of that name was left by a former process
/// with this pid.
int WholeFile::create_named() noexcept {
  const std::size_t size = directory_size(path_);
  char name[kMaxPath];
  std::snprintf(name, sizeof name, "%.*s.%s.part", static_cast<int>(size), path_, path_ + size);
  ::unlink(name);
  fd_ = Descriptor(::open(name, O_RDWR | kFlags | O_CREAT | O_EXCL | O_NOFOLLOW, 0600));
  if (!fd_.is_open()) return errno;
  std::memcpy(hidden_, name, sizeof name);
  return 0;
}

int WholeFile::append(std::string_view bytes) noexcept {
  const NoSizeSignal no_signal;
  const std::size_t size = bytes.size();
  const int error = write_all(fd_.get(), bytes);
  size_ += size - bytes.size();
  return error;
}

namespace {

/// The end of the last complete line in the first `size` bytes of a file.
int end_of_lines(int fd, std::uint64_t size, std::uint64_t& end) noexcept {
  std::array<char, kPage> block;
  for (end = size; end != 0;) {
    const std::uint64_t begin = end - std::min<std::uint64_t>(end, block.size());
    const ssize_t got =
        ::pread(fd, block.data(), static_cast<std::size_t>(end - begin), static_cast<off_t>(begin));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return errno;
    const std::string_view bytes(block.data(), static_cast<std::size_t>(got));
    if (const std::size_t newline = bytes.rfind('\n'); newline != bytes.npos) {
      end = begin + newline + 1;
      return 0;
    }
    end = begin;
  }
  return 0;
}

}  // namespace

/// In the kernel, where file systems can share the blocks; what is left, in blocks.
int WholeFile::append_lines(int source, std::uint64_t size) noexcept {
  constexpr std::uint64_t kShared = std::uint64_t{64} << 10;  // a multiple of any block
  const NoSizeSignal no_signal;
  std::uint64_t end = 0;
  if (const int error = end_of_lines(source, size, end); error != 0) return error;
  off_t from = 0;
  if (size_ == 0 && ::fcntl(fd_.get(), F_SETFL, 0) == 0) {  // it does not append
    for (std::uint64_t rest = end / kShared * kShared; rest != 0;) {
      const ssize_t got = ::copy_file_range(source, &from, fd_.get(), nullptr, rest, 0);
      if (got <= 0) break;
      rest -= static_cast<std::uint64_t>(got);
      size_ += static_cast<std::uint64_t>(got);
    }
    if (::fcntl(fd_.get(), F_SETFL, O_APPEND) != 0) return errno;
  }
  if (size_ == end) return 0;
  const Block block;
  if (block.get() == nullptr) return ENOMEM;
  while (static_cast<std::uint64_t>(from) < end) {
    const std::uint64_t rest = end - static_cast<std::uint64_t>(from);
    const ssize_t got = ::pread(source, block.get(), std::min<std::uint64_t>(kBlock, rest), from);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return errno;
    if (got == 0) break;  // the source was truncated
    if (const int error = append({block.get(), static_cast<std::size_t>(got)}); error != 0) {
      return error;
    }
    from += got;
  }
  return 0;
}

int WholeFile::publish() noexcept {
  char self[kSelf];
  path_of(fd_.get(), self);
  const char* const from = hidden_[0] != '\0' ? hidden_ : self;
  const int flags = hidden_[0] != '\0' ? 0 : AT_SYMLINK_FOLLOW;
  if (::linkat(AT_FDCWD, from, AT_FDCWD, path_, flags) != 0) return errno;
  drop_hidden();
  return 0;
}

namespace {

/// The descriptor numbers of our open files, below kNumbers. If other code closes such a
/// descriptor, and a file of ours is opened on its number, the former file would write into the
/// latter.
constexpr unsigned kNumbers = 4096;
constexpr unsigned kBits = 64;
std::atomic<std::uint64_t> owned_numbers[kNumbers / kBits];

std::uint64_t bit_of(int fd) noexcept {
  return std::uint64_t{1} << (static_cast<unsigned>(fd) % kBits);
}
std::atomic<std::uint64_t>& word_of(int fd) noexcept {
  return owned_numbers[static_cast<unsigned>(fd) / kBits];
}
bool is_counted(int fd) noexcept { return fd >= 0 && fd < static_cast<int>(kNumbers); }

/// False if another file of ours has it.
bool own_number(int fd) noexcept {
  return !is_counted(fd) || (word_of(fd).fetch_or(bit_of(fd)) & bit_of(fd)) == 0;
}
void disown_number(int fd) noexcept {
  if (is_counted(fd)) word_of(fd).fetch_and(~bit_of(fd));
}

}  // namespace

/// Takes a new descriptor, on a number that no other file of ours believes to have.
void AppendFile::own(Descriptor fd) noexcept {
  while (!own_number(fd.get())) {
    Descriptor other(::fcntl(fd.get(), F_DUPFD_CLOEXEC, fd.get() + 1));
    if (!other.is_open()) break;
    fd = std::move(other);
  }
  fd_ = std::move(fd);
}

int AppendFile::open_again(const char* path, unsigned rules, bool is_mapped) noexcept {
  if (!fd_was_replaced()) return EBADF;
  AppendFile again;
  if (again.open(path, Create::never, rules) != 0 || again.file_ != file_) return EBADF;
  if (again.lock() != 0 && !is_mapped) return EBADF;
  if (again.size_ != size_) return EBADF;
  again.start_ = start_;
  again.torn_ = torn_;
  swap(again);
  return 0;
}

void AppendFile::swap(AppendFile& other) noexcept {
  std::swap(fd_, other.fd_);
  std::swap(file_, other.file_);
  std::swap(regular_, other.regular_);
  std::swap(newline_first_, other.newline_first_);
  std::swap(start_, other.start_);
  std::swap(size_, other.size_);
  std::swap(look_at_, other.look_at_);
  std::swap(torn_, other.torn_);
}

/// Opens for reading as well: a lock, an executable mapping and a child that inherits the file need
/// that. A FIFO or a terminal given by path is opened for writing only: a FIFO opened for reading
/// as well would not wait for its reader.
int AppendFile::open(const char* path, Create create, unsigned rules) noexcept {
  struct stat status {};
  const bool strict = (rules & regular) != 0;
  const bool other =
      !strict && create != Create::always && ::stat(path, &status) == 0 && !S_ISREG(status.st_mode);
  int flags = kFlags;
  if (create != Create::never) flags |= O_CREAT;
  if (create == Create::always) flags |= O_EXCL | O_NOFOLLOW;
  if (strict) flags |= O_NOFOLLOW | O_NONBLOCK;  // a planted FIFO must not hang us
  Descriptor fd(::open(path, flags | (other ? O_WRONLY : O_RDWR), 0600));
  if (!fd.is_open() && errno == EACCES && create == Create::if_absent) {
    fd = Descriptor(::open(path, flags | O_WRONLY, 0600));
  }
  if (!fd.is_open() || ::fstat(fd.get(), &status) != 0) return errno;
  if (strict && !S_ISREG(status.st_mode)) return EINVAL;
  if ((rules & ours) != 0 && status.st_uid != ::geteuid()) return EPERM;
  if ((rules & one_name) != 0 && status.st_nlink > 1) return EMLINK;
  regular_ = S_ISREG(status.st_mode);
  start_ = MapStart::appended;
  newline_first_ = false;
  look_at_ = 0;
  torn_ = 0;
  own(std::move(fd));
  file_ = {status.st_dev, status.st_ino};
  size_ = regular_ ? static_cast<std::uint64_t>(status.st_size) : 0;
  return 0;
}

int AppendFile::open(int fd) noexcept {
  Descriptor copy(::fcntl(fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1));
  if (!copy.is_open()) return errno;
  own(std::move(copy));
  regular_ = false;
  start_ = MapStart::appended;
  newline_first_ = false;
  look_at_ = 0;
  torn_ = 0;
  size_ = 0;
  return 0;
}

bool AppendFile::fd_was_replaced() const noexcept {
  return regular_ && is_open() && file_ != file_number(fd_.get());
}

bool AppendFile::leads_to(const char* path) const noexcept {
  struct stat status {};
  return is_open() && ::lstat(path, &status) == 0 && is({status.st_dev, status.st_ino});
}

int AppendFile::close() noexcept {
  const bool lost = fd_was_replaced();
  const int fd = fd_.release();
  disown_number(fd);
  newline_first_ = false;
  if (lost) return EBADF;
  // On Linux the descriptor is closed even if close(2) is interrupted.
  return fd >= 0 && ::close(fd) != 0 && errno != EINTR ? errno : 0;
}

std::uint64_t AppendFile::size_now() const noexcept {
  struct stat status {};
  const bool known = regular_ && ::fstat(fd_.get(), &status) == 0;
  return known ? static_cast<std::uint64_t>(status.st_size) : 0;
}

std::uint64_t AppendFile::position() const noexcept {
  const off_t position = regular_ ? ::lseek(fd_.get(), 0, SEEK_CUR) : -1;
  return position < 0 ? 0 : static_cast<std::uint64_t>(position);
}

namespace {

/// If /proc does not say when this process began, no file counts as older.
bool is_older_than_we(const struct stat& status) noexcept {
  std::uint64_t age = 0;
  return get_process_age(age) && status.st_mtim.tv_sec >= 0 &&
         to_ns(status.st_mtim) + age + kSecond < now_ns(CLOCK_REALTIME);
}

/// Whether the entries in a file were written before this process, or its image, began.
bool is_stale(MapOwner owner, const struct stat& status) noexcept {
  return owner == MapOwner::unknown ? is_older_than_we(status) : owner != MapOwner::this_image;
}

/// Empties the file if it is stale. EBUSY if another process, of another container, writes it.
int look_at(int fd, bool empty_stale, MapStart& start) noexcept {
  struct stat status {};
  start = MapStart::appended;
  if (::fstat(fd, &status) != 0) return 0;
  const MapOwner owner = owner_of(fd);
  const bool is_locked = lock_file(fd, F_WRLCK) != 0;
  if (is_locked && owner == MapOwner::another_process) return EBUSY;
  // Check only now: another process may have written before we had the lock.
  if (::fstat(fd, &status) != 0) return 0;
  if (status.st_size == 0) {
    start = MapStart::made;
  } else if (!is_stale(owner, status)) {
    start = MapStart::appended;
  } else if (!empty_stale) {
    start = MapStart::appended_kept;
  } else {
    start = !is_locked && ::ftruncate(fd, 0) == 0 ? MapStart::emptied : MapStart::appended_in_use;
  }
  return 0;
}

char last_byte(int fd) noexcept {
  struct stat status {};
  char last = 0;
  const bool got = ::fstat(fd, &status) == 0 && status.st_size != 0 &&
                   ::pread(fd, &last, 1, status.st_size - 1) == 1;
  return got ? last : '\0';
}

/// Whether the file contains `text` at `begin`.
bool holds(int fd, off_t begin, std::string_view text) noexcept {
  std::array<char, kPage> block;
  while (!text.empty()) {
    const std::string_view part = first_bytes(text, block.size());
    if (::pread(fd, block.data(), part.size(), begin) != static_cast<ssize_t>(part.size()) ||
        std::memcmp(block.data(), part.data(), part.size()) != 0) {
      return false;
    }
    text.remove_prefix(part.size());
    begin += static_cast<off_t>(part.size());
  }
  return true;
}

}  // namespace

int AppendFile::begin_map(bool of_process, bool empty_stale, bool alone) noexcept {
  if (of_process) {
    if (const int error = look_at(fd_.get(), empty_stale, start_); error != 0) return error;
    mark_as_ours(fd_.get());
  }
  // Also replaces an exclusive lock. Descriptors that cannot be read, and some file systems, do not
  // support the lock: other writers do not notice us there.
  const int locked = lock_file(fd_.get(), alone ? F_WRLCK : F_RDLCK);
  if (locked == EBUSY) start_ = MapStart::appended_in_use;
  return 0;
}

int AppendFile::open_map(const char* path, MapRules rules) noexcept {
  int error = open(path, Create::if_absent, rules.own ? regular | ours | one_name : any);
  if (error != 0 || !regular_) return error;
  error = begin_map(rules.of_process, rules.empty_stale, rules.alone);
  if (error != 0) {
    close();
    return error;
  }
  restat();
  newline_first_ = size_ != 0 && !ends_in_newline(path, rules.own);
  return 0;
}

/// If the file cannot be read, false: a blank line is the smaller damage.
bool AppendFile::ends_in_newline(const char* path, bool own) const noexcept {
  const Descriptor reader(::open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | (own ? O_NOFOLLOW : 0)));
  if (!reader.is_open() || file_number(fd_.get()) != file_number(reader.get())) return false;
  // A line that another process is writing becomes visible page by page. On most file systems, a
  // search for holes waits until that write is done; on the others, a short sleep has to do.
  constexpr timespec kMoment{0, 1'000'000};
  for (int tries = 0; tries < 5; ++tries) {
    if (last_byte(reader.get()) == '\n') return true;
    ::lseek(reader.get(), 0, SEEK_HOLE);
    if (last_byte(reader.get()) == '\n') return true;
    ::nanosleep(&kMoment, nullptr);
  }
  return false;
}

int AppendFile::append_bytes(std::string_view& bytes) noexcept {
  const std::size_t size = bytes.size();
  const int error = write_all(fd_.get(), bytes);
  size_ += size - bytes.size();
  return error;
}

/// Removes the rest that a short write left, if the file still ends there. If others have written
/// after it, ends it with a newline, so that their lines are complete.
void AppendFile::take_back(std::string_view left) noexcept {
  const bool cut_short = left.back() != '\n';
  newline_first_ = cut_short;
  const off_t end = ::lseek(fd_.get(), 0, SEEK_CUR);
  const off_t begin = end - static_cast<off_t>(left.size());
  struct stat status {};
  if (begin < 0 || ::fstat(fd_.get(), &status) != 0) return;
  // Opens the same file again to read and write in place, because O_APPEND moves even pwrite() to
  // the end. This fails if there is no /proc, or the process has given up the right.
  char self[kSelf];
  path_of(fd_.get(), self);
  const Descriptor file(::open(self, O_RDWR | O_CLOEXEC));
  // A forked child shares our file offset: check that these are our bytes.
  if (file.is_open() && !holds(file.get(), begin, left)) return;
  if (status.st_size == end) {
    if (::ftruncate(fd_.get(), begin) != 0) return;
    size_ -= std::min<std::uint64_t>(size_, left.size());
    newline_first_ = false;
  } else if (cut_short && file.is_open()) {
    newline_first_ = ::pwrite(file.get(), "\n", 1, end - 1) != 1;
  }
}

/// Whether the next `more` bytes may come to the file size limit. Other processes may append, too,
/// so the file may be longer than size().
bool AppendFile::look_ahead(std::uint64_t more) noexcept {
  constexpr std::uint64_t kMargin = std::uint64_t{64} << 10;
  struct stat status {};
  look_at_ = size_ + more + kLook;
  if (::fstat(fd_.get(), &status) != 0 || !S_ISREG(status.st_mode)) return false;
  const std::uint64_t limit = size_limit();
  const std::uint64_t size = std::max(size_, static_cast<std::uint64_t>(status.st_size));
  if (limit - std::min(limit, size) > more + kLook + kMargin) return false;
  look_at_ = 0;
  return true;
}

int AppendFile::append_with_care(std::string_view lines) noexcept {
  const NoCancel uncancelled;
  const bool is_near = size_ + lines.size() > look_at_ && look_ahead(lines.size());
  if (!is_near && !newline_first_) return append(lines);
  const NoSizeSignal no_signal;
  if (newline_first_) {
    std::string_view newline = "\n";
    if (const int error = append_bytes(newline); error != 0) return error;
    newline_first_ = false;
  }
  const ssize_t count = ::write(fd_.get(), lines.data(), lines.size());
  if (count != static_cast<ssize_t>(lines.size())) return append_slowly(lines, count);
  size_ += lines.size();
  return 0;
}

int AppendFile::append_records_with_care(iovec* parts, std::size_t count,
                                         std::size_t total) noexcept {
  const NoCancel uncancelled;
  if (const int error = cut_torn(); error != 0) return error;
  if (!look_ahead(total)) return append(parts, count, total);
  const NoSizeSignal no_signal;
  const ssize_t written = ::writev(fd_.get(), parts, static_cast<int>(count));
  if (written != static_cast<ssize_t>(total)) {
    return append_records_slowly(parts, count, total, written);
  }
  size_ += total;
  return 0;
}

/// `count` and errno are the result of write(2) for all of `lines`. For a file, a partial write
/// means that there is no space: on the disk, or under the process's file size limit, up to which
/// the kernel writes. A pipe or a terminal may accept a part at any time.
int AppendFile::append_slowly(std::string_view lines, ssize_t count) noexcept {
  const NoCancel uncancelled;
  if (count < 0 && errno != EINTR) return errno;  // NoCancel does not change it
  if (count < 0) return append(lines);
  const auto written = static_cast<std::size_t>(count);
  size_ += written;
  if (regular_) {
    const int why = is_at_limit() ? EFBIG : ENOSPC;
    if (written != 0) take_back(first_bytes(lines, written));
    return why;
  }
  std::string_view rest = without_first(lines, written);
  const int error = append_bytes(rest);
  const std::size_t begun = lines.size() - rest.size();
  newline_first_ = error != 0 && begun != 0 && lines[begun - 1] != '\n';
  return error;
}

bool AppendFile::is_at_limit() const noexcept {
  const off_t end = ::lseek(fd_.get(), 0, SEEK_CUR);
  return end >= 0 && static_cast<std::uint64_t>(end) >= size_limit();
}

int AppendFile::append_from(std::string_view& lines) noexcept {
  if (!regular_ && !newline_first_) {
    const NoSizeSignal no_signal;  // the standard output may be a file
    return append_bytes(lines);
  }
  int error = append(lines);
  if (error == 0) lines = {};
  const bool is_full = error == ENOSPC || error == EFBIG;
  return is_full ? append_what_fits(lines) : error;
}

namespace {

/// The bytes of the first lines, at most `size` of them, but at least one line.
std::size_t whole_lines(std::string_view lines, std::size_t size) noexcept {
  const std::size_t end = lines.rfind('\n', size - 1);
  return (end != lines.npos ? end : lines.find('\n')) + 1;
}

}  // namespace

/// One line, then half of the rest, and so on. If not even one line fits, that is all.
int AppendFile::append_what_fits(std::string_view& lines) noexcept {
  std::size_t most = 1;
  for (bool is_first = true;;) {
    const std::size_t size = whole_lines(lines, most);
    const int error = append(first_bytes(lines, size));
    if (error == 0) {
      lines.remove_prefix(size);
      if (lines.empty()) return 0;
      if (std::exchange(is_first, false)) most = lines.size();
    } else if (is_first || size == whole_lines(lines, 1)) {
      return error;
    } else {
      most = size;
    }
    most = std::max<std::size_t>(1, most / 2);
  }
}

int AppendFile::copy_from(const char* path, bool follow_link, std::uint64_t max_bytes) noexcept {
  const NoSizeSignal no_signal;
  const Descriptor source(
      ::open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY | (follow_link ? 0 : O_NOFOLLOW)));
  if (!source.is_open()) return errno;
  struct stat from {};
  struct stat to {};
  if (::fstat(source.get(), &from) != 0 || ::fstat(fd_.get(), &to) != 0) return errno;
  if (S_ISDIR(from.st_mode)) return EISDIR;
  const FileNumber target{to.st_dev, to.st_ino};
  if (!S_ISREG(from.st_mode) || target == FileNumber{from.st_dev, from.st_ino}) return EINVAL;
  // Other readers have no use for a mapped writer's filler.
  const std::uint64_t count =
      size_without_filler(source.get(), static_cast<std::uint64_t>(from.st_size));
  // One extra byte for the newline that may have to end the copy.
  if (count != 0 && max_bytes != 0 && (size_ >= max_bytes || count >= max_bytes - size_)) {
    return EFBIG;
  }
  return copy_lines(source.get(), count);
}

/// `count` was determined before, so that the copy ends even if the source grows. Every block ends
/// at a line end, because another process may append between two blocks; a line longer than a block
/// is written in parts.
int AppendFile::copy_lines(int source, std::uint64_t count) noexcept {
  const Block block;
  if (block.get() == nullptr) return ENOMEM;
  std::size_t kept = 0;  // bytes at the block's start whose line end is not read yet
  bool in_line = false;  // the last write ended inside a line
  int error = 0;
  const auto append_part = [&](std::size_t size) {
    error = append({block.get(), size});
    if (error == 0) in_line = block.get()[size - 1] != '\n';
  };
  while (error == 0) {
    const std::size_t room = std::min<std::uint64_t>(kBlock - kept, count);
    const ssize_t got = ::read(source, block.get() + kept, room);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) error = errno;
    if (got <= 0) break;  // end of file, or the source was truncated
    count -= static_cast<std::size_t>(got);
    const std::string_view bytes(block.get(), kept + static_cast<std::size_t>(got));
    const std::size_t newline = bytes.rfind('\n');
    if (newline == bytes.npos && bytes.size() < kBlock) {
      kept = bytes.size();
      continue;
    }
    const std::size_t whole = newline == bytes.npos ? bytes.size() : newline + 1;
    append_part(whole);
    kept = bytes.size() - whole;
    std::memmove(block.get(), block.get() + whole, kept);
  }
  if (error == 0 && (kept != 0 || in_line)) {
    block.get()[kept] = '\n';
    append_part(kept + 1);
  }
  newline_first_ = newline_first_ || in_line;
  return error;
}

int AppendFile::inherit_map(const char* path, std::uint64_t size, std::string_view more,
                            bool empty_stale) noexcept {
  WholeFile whole;
  AppendFile found;
  bool goes_there = false;
  int error = whole.create(path);
  if (error == 0) error = whole.append_lines(descriptor(), size);
  if (error == 0) error = whole.append(more);
  if (error != 0) return error;
  mark_as_ours(whole.descriptor());
  const MapRules rules{.own = true, .of_process = true, .empty_stale = empty_stale};
  error = whole.publish_over([&]() -> int {
    if (const int failed = found.open_map(path, rules); failed != 0) return failed;
    if (found.is(file())) return EBUSY;
    goes_there = found.start_ != MapStart::made && found.start_ != MapStart::emptied;
    if (goes_there) return ECANCELED;
    found.close();
    return ::unlink(path) == 0 || errno == ENOENT ? 0 : errno;
  });
  if (goes_there) {
    ::lseek(whole.descriptor(), 0, SEEK_SET);
    error = found.copy_lines(whole.descriptor(), whole.size());
    if (error == 0) swap(found);
    return error;
  }
  if (error != 0) return error;
  close();  // the parent's file, if still open
  own(whole.take());
  file_ = file_number(fd_.get());
  begin_map(false, false, false);  // for the lock
  start_ = MapStart::inherited;
  size_ = whole.size();
  newline_first_ = false;
  return 0;
}

int AppendFile::open_locked(const char* path, unsigned rules, bool& was_made) noexcept {
  constexpr int kTries = 3;  // others may create and remove the file meanwhile
  int error = ENOENT;
  for (int i = 0; i < kTries && error == ENOENT; ++i) {
    error = open(path, Create::always, any);
    was_made = error == 0;
    if (error == EEXIST) error = open(path, Create::never, rules);
  }
  if (error == 0) error = lock();
  if (error != 0) close();
  return error;
}

int AppendFile::lock() noexcept {
  if (!regular_) return 0;
  if (lock_file(fd_.get(), F_WRLCK) == EBUSY) return EBUSY;
  restat();
  return 0;
}

namespace {

/// Removes the written bytes from the parts.
void skip(iovec*& parts, std::size_t& count, std::size_t written) noexcept {
  for (; count != 0 && written >= parts->iov_len; ++parts, --count) written -= parts->iov_len;
  if (count == 0) return;
  parts->iov_base = static_cast<char*>(parts->iov_base) + written;
  parts->iov_len -= written;
}

}  // namespace

/// `now` and errno are the result of writev(2) for all parts. The rest is tried again, except at
/// the process's file size limit, where that would raise SIGXFSZ.
int AppendFile::append_records_slowly(iovec* parts, std::size_t count, std::size_t total,
                                      ssize_t now) noexcept {
  const NoCancel uncancelled;
  std::size_t written = 0;
  for (;;) {
    int error = now < 0 ? errno : now == 0 ? ENOSPC : 0;
    if (now >= 0 && regular_ && is_at_limit()) error = EFBIG;
    if (now > 0) {
      written += static_cast<std::size_t>(now);
      size_ += static_cast<std::size_t>(now);
      skip(parts, count, static_cast<std::size_t>(now));
    }
    if (written == total) return 0;
    if (error != 0 && error != EINTR) {
      torn_ = written;
      cut_torn();
      return error;
    }
    now = ::writev(fd_.get(), parts, static_cast<int>(count));
  }
}

int AppendFile::cut(std::uint64_t size) noexcept {
  struct stat status {};
  if (::fstat(fd_.get(), &status) != 0) return errno;
  if (static_cast<std::uint64_t>(status.st_size) != size_) return EBUSY;
  if (::ftruncate(fd_.get(), static_cast<off_t>(size)) != 0) return errno;
  size_ = size;
  return 0;
}

/// A torn record makes the records after it unreadable, so nothing is appended there.
int AppendFile::cut_torn() noexcept {
  if (torn_ == 0) return 0;
  if (!regular_) return EIO;
  const off_t end = ::lseek(fd_.get(), 0, SEEK_CUR);  // after the torn bytes
  if (end < static_cast<off_t>(torn_)) return EIO;
  size_ = static_cast<std::uint64_t>(end);
  if (cut(size_ - torn_) != 0) return EIO;
  torn_ = 0;
  return 0;
}

}  // namespace perfmap
