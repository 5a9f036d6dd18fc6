// SPDX-License-Identifier: MIT
#include "writer/mmap_appender.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <ctime>
#include <fcntl.h>
#include <linux/magic.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/vfs.h>
#include <utility>

#include "base/descriptor.hpp"
#include "writer/append_file.hpp"
#include "writer/find_writer.hpp"

namespace perfmap {

namespace {

constexpr std::uint64_t kLine = 512;  // several joined lines are still shorter than readers accept
constexpr std::uint64_t kChunk = std::uint64_t{48} << 10;
constexpr std::uint64_t kReserve = std::uint64_t{512} << 10;
constexpr std::uint64_t kFileAhead = std::uint64_t{8} << 10;
/// Readers read in multiples of this, and the file may change between two reads.
constexpr std::uint64_t kReadAtOnce = 4096;
constexpr std::uint64_t kWindow = std::uint64_t{4} << 20;
constexpr std::uint64_t kPage = std::uint64_t{64} << 10;  // the largest page size

constexpr std::array<char, kReadAtOnce> make_filler() {
  std::array<char, kReadAtOnce> lines{};
  lines.fill('.');
  for (std::size_t at = 0; at < lines.size(); at += kLine) {
    lines[at] = lines[at + 2] = '0';
    lines[at + 1] = lines[at + 3] = ' ';
    lines[at + kLine - 1] = '\n';
  }
  return lines;
}
/// Written as often as needed.
constexpr std::array<char, kReadAtOnce> kFiller = make_filler();

constexpr std::uint64_t round_up(std::uint64_t value, std::uint64_t unit) noexcept {
  return (value + unit - 1) / unit * unit;
}

/// The end of a filler line that begins at `begin`. It is at a multiple of kLine, because a reader
/// sees writes page by page.
std::uint64_t filler_end(std::uint64_t begin) noexcept {
  return round_up(begin + MmapAppender::kLeast, kLine);
}

/// Writes all bytes or returns an error; after a partial write, the next byte shows the reason.
int write_at(int fd, std::uint64_t offset, const iovec* parts, int count,
             std::uint64_t total) noexcept {
  for (;;) {
    const ssize_t written = ::pwritev(fd, parts, count, static_cast<off_t>(offset));
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return errno;
    const auto done = static_cast<std::uint64_t>(written);
    if (done == total) return 0;
    // Writing the next byte gives the reason why the rest does not fit.
    return ::pwrite(fd, "\n", 1, static_cast<off_t>(offset + done)) < 0 ? errno : ENOSPC;
  }
}

/// Filler lines from one end of a block to another.
int write_filler(int fd, std::uint64_t begin, std::uint64_t end) noexcept {
  std::array<iovec, kChunk / kReadAtOnce> parts;
  while (begin != end) {
    std::uint64_t total = 0;
    int count = 0;
    while (count < static_cast<int>(parts.size()) && begin + total != end) {
      const std::uint64_t size = std::min<std::uint64_t>(end - begin - total, kFiller.size());
      parts[static_cast<std::size_t>(count++)] = {const_cast<char*>(kFiller.data()), size};
      total += size;
    }
    if (const int error = write_at(fd, begin, parts.data(), count, total); error != 0) return error;
    begin += total;
  }
  return 0;
}

}  // namespace

void MmapAppender::goes_on_at(std::uint64_t size, bool newline_first) noexcept {
  end_ = line_end_ = file_end_ = size;
  reserved_ = 0;
  newline_first_ = newline_first;
}

int MmapAppender::make_room(std::size_t size) noexcept {
  const int error = file_end_ - end_ < size + kFileAhead ? grow(size) : 0;
  if (!is_open()) return error;
  while (line_end_ != file_end_ && line_end_ - end_ < size + kAhead) join_next_line();
  return line_end_ - end_ < size + kLeast ? error : 0;
}

/// Joins the current filler line with the next. The head of the next stays: see kAhead.
void MmapAppender::join_next_line() noexcept {
  at(line_end_)[-1] = '.';
  line_end_ += kLine;
  if (line_end_ % kReadAtOnce == 0 && line_end_ != file_end_) line_end_ += kLine;
}

/// Adds filler lines, at least enough for an entry of `size` bytes.
int MmapAppender::grow(std::uint64_t size) noexcept {
  const NoCancel uncancelled;
  if (!is_size(file_end_)) {  // another engine has written after our filler, or cut it
    detach();
    return EBUSY;
  }
  const std::uint64_t least = filler_end(end_ + (newline_first_ ? 1 : 0) + size);
  const std::uint64_t limit = size_limit();
  if (least > limit) return EFBIG;  // an attempt would raise SIGXFSZ
  const std::uint64_t max = round_up(std::max(least, file_end_) + kChunk, kReadAtOnce);
  const std::uint64_t target = std::min(max, std::max(least, limit / kLine * kLine));
  if (target <= file_end_) return EFBIG;  // no more space than there is
  const int error = extend(target);
  return error == 0 || !is_open() || least <= file_end_ ? error : extend(least);
}

/// Reserves disk space up to `target` and more, because each request costs as much as a page fault.
int MmapAppender::reserve(std::uint64_t target) noexcept {
  if (target <= reserved_) return 0;
  // Not beyond the process's file size limit, where the kernel raises SIGXFSZ.
  const std::uint64_t ahead = std::min(kReserve, size_limit() - target);
  for (const std::uint64_t more : {ahead, std::uint64_t{0}}) {
    const auto begin = static_cast<off_t>(file_end_);
    const auto length = static_cast<off_t>(target + more - file_end_);
    int error = 0;
    do {
      error = ::fallocate(fd_.get(), FALLOC_FL_KEEP_SIZE, begin, length) == 0 ? 0 : errno;
    } while (error == EINTR);
    if (error == 0) reserved_ = target + more;
    if (error == 0 || more == 0) return error;
  }
  return 0;
}

int MmapAppender::extend(std::uint64_t target) noexcept {
  const auto begin = static_cast<off_t>(file_end_);
  int error = reserve(target);
  if (error == EOPNOTSUPP || error == ENOSYS) {
    close();
    return error;
  }
  if (error == 0) error = fill(target);
  if (error == 0) error = map_up_to(target);
  if (error != 0) {
    reserved_ = 0;
    return ::ftruncate(fd_.get(), begin) == 0 ? error : errno;
  }
  join_pages(target);
  file_end_ = target;
  return 0;
}

/// Adds new filler lines to the current one. The newlines at page ends were for concurrent readers;
/// once an entry crosses a page end, no line may begin there.
void MmapAppender::join_pages(std::uint64_t target) noexcept {
  if (line_end_ == end_) {
    if (std::exchange(newline_first_, false)) ++end_;
    line_end_ = filler_end(end_);
  }
  for (std::uint64_t page = round_up(file_end_, kReadAtOnce); page < target; page += kReadAtOnce) {
    if (page == 0 || page < line_end_) continue;
    at(page)[-1] = '.';
    if (page == line_end_) line_end_ += kLine;
  }
}

/// Writes filler lines from the end of the file to `target`.
int MmapAppender::fill(std::uint64_t target) noexcept {
  std::array<char, kReadAtOnce + 2 * kLine> first;
  std::size_t size = 0;
  if (newline_first_) first[size++] = '\n';
  do {
    const std::uint64_t begin = file_end_ + size;
    const std::size_t length = filler_end(begin) - begin;
    std::memset(first.data() + size, '.', length);
    std::memcpy(first.data() + size, kFillerHead.data(), kFillerHead.size());
    size += length;
    first[size - 1] = '\n';
  } while ((file_end_ + size) % kReadAtOnce != 0 && file_end_ + size != target);

  const iovec head{first.data(), size};
  const int error = write_at(fd_.get(), file_end_, &head, 1, size);
  return error != 0 ? error : write_filler(fd_.get(), file_end_ + size, target);
}

/// Maps a window from the current filler line to `target`.
int MmapAppender::map_up_to(std::uint64_t target) noexcept {
  if (target <= window_end_) return 0;
  const std::uint64_t begin = end_ / kPage * kPage;
  const std::uint64_t size = std::max(kWindow, round_up(target - begin, kPage));
  void* const window = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd_.get(),
                              static_cast<off_t>(begin));
  if (window == MAP_FAILED) return errno;
  // A child must not write into its parent's map, even if it does not know that it is a child.
  if (::madvise(window, size, MADV_DONTFORK) != 0) {
    const int error = errno;
    ::munmap(window, size);
    return error;
  }
  unmap();
  window_ = static_cast<char*>(window);
  window_begin_ = begin;
  window_end_ = begin + size;
  range_.cover(window_, size, true);
  return 0;
}

int MmapAppender::lose() noexcept {
  detach();
  return EIO;
}

void MmapAppender::unmap() noexcept {
  range_.release();
  if (window_ != nullptr) ::munmap(window_, window_end_ - window_begin_);
  window_ = nullptr;
  window_begin_ = window_end_ = 0;
}

int MmapAppender::cut() noexcept {
  unmap();
  // If another engine has written after the filler, the filler stays: readers skip it.
  const bool is_ours = is_open() && file_end_ != end_ && is_size(file_end_);
  const int error = is_ours && ::ftruncate(fd_.get(), static_cast<off_t>(end_)) != 0 ? errno : 0;
  line_end_ = file_end_ = end_;
  reserved_ = 0;
  return error;
}

int MmapAppender::close() noexcept {
  const int error = cut();
  drop_descriptor();
  return error;
}

void MmapAppender::forget() noexcept {
  range_.release();
  window_ = nullptr;
  detach();
}

void MmapAppender::detach() noexcept {
  drop_descriptor();
  unmap();
}

/// Other code may have closed the descriptor and reopened its number.
void MmapAppender::drop_descriptor() noexcept {
  if (is_open() && file_number(fd_.get()) != file_) fd_.release();
  fd_ = Descriptor();
}

bool MmapAppender::is_size(std::uint64_t size) const noexcept {
  struct stat status {};
  return ::fstat(fd_.get(), &status) == 0 && file_ == FileNumber{status.st_dev, status.st_ino} &&
         static_cast<std::uint64_t>(status.st_size) == size;
}

namespace {

/// Whether reserved space stays reserved when it is overwritten. Other file systems may raise
/// SIGBUS on a store if the disk is full.
bool keeps_room(int fd) noexcept {
  struct statfs status {};
  if (::fstatfs(fd, &status) != 0) return false;
  constexpr auto kXfs = 0x58465342L;
  const auto type = static_cast<long>(status.f_type);
  return type == EXT4_SUPER_MAGIC || type == TMPFS_MAGIC || type == kXfs;
}

/// Opens the file of `fd` again, for mapping. There may be no /proc.
Descriptor open_again(int fd, const char* path) noexcept {
  constexpr int kFlags = O_RDWR | O_CLOEXEC | O_NONBLOCK | O_NOCTTY;
  char self[40];
  std::snprintf(self, sizeof self, "/proc/self/fd/%d", fd);
  Descriptor again(::open(self, kFlags));
  if (!again.is_open()) again = Descriptor(::open(path, kFlags));
  return again.is_open() && file_number(fd) == file_number(again.get()) ? std::move(again)
                                                                        : Descriptor();
}

}  // namespace

int MmapAppender::check_unused(const char* path, bool follow_link) noexcept {
  struct stat status {};
  const int error = follow_link ? ::stat(path, &status) : ::lstat(path, &status);
  if (error != 0 || !S_ISREG(status.st_mode)) return 0;
  const FileNumber file{status.st_dev, status.st_ino};
  // A child that is about to exec has our descriptors for a moment.
  constexpr timespec kMoment{0, 5'000'000};
  for (int looks = 3; find_writer(file, "/proc") != 0; ::nanosleep(&kMoment, nullptr)) {
    if (looks-- == 0) return EBUSY;
  }
  return 0;
}

int MmapAppender::open(int fd, const char* path, bool newline_first) noexcept {
  struct stat status {};
  if (::fstat(fd, &status) != 0 || !S_ISREG(status.st_mode) || !keeps_room(fd)) return 0;
  if (lock_file(fd, F_WRLCK) == EBUSY) return EBUSY;
  Descriptor again = open_again(fd, path);
  if (!again.is_open()) return 0;
  const auto size = static_cast<std::uint64_t>(status.st_size);
  // Filler that a killed writer left.
  const std::uint64_t end = size_without_filler(again.get(), size);
  if (end != size && ::ftruncate(again.get(), static_cast<off_t>(end)) != 0) return errno;
  fd_ = std::move(again);
  file_ = {status.st_dev, status.st_ino};
  goes_on_at(end, newline_first && end == size);
  return 0;
}

namespace {

constexpr std::size_t kBlock = 2048;

/// The start of the last line in the first `size` bytes, which hold at least one line.
std::uint64_t last_line(int fd, std::uint64_t size) noexcept {
  std::array<char, kBlock> block;
  std::uint64_t end = size - 1;  // before its newline
  while (end != 0) {
    const std::uint64_t have = std::min<std::uint64_t>(end, block.size());
    if (::pread(fd, block.data(), have, static_cast<off_t>(end - have)) !=
        static_cast<ssize_t>(have)) {
      return size;
    }
    const std::string_view text(block.data(), have);
    if (const std::size_t newline = text.rfind('\n'); newline != text.npos) {
      return end - have + newline + 1;
    }
    end -= have;
  }
  return 0;
}

bool begins_as_filler(int fd, std::uint64_t begin, std::uint64_t end) noexcept {
  std::array<char, 2 * MmapAppender::kLeast> head;
  const std::uint64_t have = std::min<std::uint64_t>(end - begin, head.size());
  return ::pread(fd, head.data(), have, static_cast<off_t>(begin)) == static_cast<ssize_t>(have) &&
         is_filler({head.data(), have});
}

}  // namespace

std::uint64_t size_without_filler(int fd, std::uint64_t size) noexcept {
  const std::uint64_t with_filler = size;
  std::array<char, kBlock> block;
  while (size != 0) {
    const std::uint64_t have = std::min<std::uint64_t>(size, block.size());
    if (::pread(fd, block.data(), have, static_cast<off_t>(size - have)) !=
        static_cast<ssize_t>(have)) {
      break;
    }
    std::string_view text(block.data(), have);
    // The block may begin inside a line, which cannot be judged.
    const std::size_t newline = have == size ? text.npos : text.find('\n');
    const std::size_t skipped = have == size ? 0 : newline == text.npos ? have : newline + 1;
    text.remove_prefix(skipped);
    if (text.empty()) {  // the line is longer than the block
      const std::uint64_t begin = last_line(fd, size);
      if (!begins_as_filler(fd, begin, size)) return size;
      size = begin;
      continue;
    }
    const std::size_t kept = without_filler(text, size != with_filler).size();
    if (kept != 0) return size - text.size() + kept;
    size -= text.size();
  }
  return size;
}

}  // namespace perfmap
