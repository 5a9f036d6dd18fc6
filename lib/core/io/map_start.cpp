#include "io/map_start.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstdint>
#include <ctime>
#include <fcntl.h>
#include <optional>
#include <string_view>
#include <sys/stat.h>
#include <unistd.h>

#include "base/descriptor.hpp"
#include "base/filler.hpp"
#include "io/mapped_tail.hpp"

namespace perfmap {

namespace {

constexpr std::uint64_t kSecond = 1'000'000'000;

std::uint64_t to_ns(const timespec& time) noexcept {
  return static_cast<std::uint64_t>(time.tv_sec) * kSecond +
         static_cast<std::uint64_t>(time.tv_nsec);
}

/// Where /proc does not say when we began, nothing is older.
bool is_older_than_we(const struct stat& status) noexcept {
  const std::optional<std::uint64_t> age = process_age_ns();
  timespec now{};
  if (!age || status.st_mtim.tv_sec < 0 || ::clock_gettime(CLOCK_REALTIME, &now) != 0) return false;
  return to_ns(status.st_mtim) + *age + kSecond < to_ns(now);
}

MapStart begin_stale(int fd, bool empty_stale) noexcept {
  if (!empty_stale) return MapStart::appended_kept;
  if (lock_file(fd, F_WRLCK) != 0) return MapStart::appended_in_use;
  // Again, as somebody may have written before we had the lock.
  struct stat status {};
  if (::fstat(fd, &status) != 0 || !is_older_than_we(status)) return MapStart::appended;
  return ::ftruncate(fd, 0) == 0 ? MapStart::emptied : MapStart::appended_in_use;
}

MapStart look_at(int fd, bool empty_stale) noexcept {
  struct stat status {};
  if (::fstat(fd, &status) != 0) return MapStart::appended;
  if (status.st_uid != ::geteuid()) return MapStart::appended_foreign;
  if (status.st_size == 0) return MapStart::made;
  return is_older_than_we(status) ? begin_stale(fd, empty_stale) : MapStart::appended;
}

}  // namespace

MapStart begin_map(int fd, bool empty_stale, bool alone) noexcept {
  const MapStart start = look_at(fd, empty_stale);
  // In place of an exclusive one, too. Descriptors that cannot read, and some file systems, have no
  // such lock: nobody notices us there.
  return lock_file(fd, alone ? F_WRLCK : F_RDLCK) == EBUSY ? MapStart::appended_in_use : start;
}

namespace {

/// The 22nd field of /proc/PID/stat. The second one, in parentheses, is a name and may hold both
/// blanks and parentheses.
std::optional<std::uint64_t> start_in_ticks(std::string_view stat) noexcept {
  constexpr int kBehindName = 20;
  const std::size_t name_end = stat.rfind(')');
  if (name_end == std::string_view::npos) return std::nullopt;
  stat.remove_prefix(name_end);
  for (int i = 0; i < kBehindName; ++i) {
    const std::size_t blank = stat.find(' ');
    if (blank == std::string_view::npos) return std::nullopt;
    stat.remove_prefix(blank + 1);
  }
  std::uint64_t ticks = 0;
  const auto parsed = std::from_chars(stat.data(), stat.data() + stat.size(), ticks);
  if (parsed.ec != std::errc()) return std::nullopt;
  return ticks;
}

}  // namespace

std::optional<std::uint64_t> process_age_ns() noexcept {
  constexpr std::uint64_t kSecond = 1'000'000'000;
  const Descriptor file(::open("/proc/self/stat", O_RDONLY | O_CLOEXEC));
  std::array<char, 1024> text;
  const ssize_t size = file.is_open() ? ::read(file.get(), text.data(), text.size()) : -1;
  timespec now{};
  if (size <= 0 || ::clock_gettime(CLOCK_BOOTTIME, &now) != 0) return std::nullopt;
  const auto ticks = start_in_ticks({text.data(), static_cast<std::size_t>(size)});
  const auto per_second = static_cast<std::uint64_t>(::sysconf(_SC_CLK_TCK));
  if (!ticks || per_second == 0 || *ticks / per_second > UINT32_MAX) return std::nullopt;
  const std::uint64_t start =
      *ticks / per_second * kSecond + *ticks % per_second * kSecond / per_second;
  const std::uint64_t now_ns =
      static_cast<std::uint64_t>(now.tv_sec) * kSecond + static_cast<std::uint64_t>(now.tv_nsec);
  return now_ns > start ? now_ns - start : 0;
}

namespace {

constexpr std::size_t kBlock = 2048;

/// Where the last line of the first `size` bytes begins, of which there is one at least.
std::uint64_t last_line(int fd, std::uint64_t size) noexcept {
  std::array<char, kBlock> block;
  std::uint64_t end = size - 1;  // in front of its newline
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
  std::array<char, 2 * MappedTail::kLeast> head;
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
    // The block may begin inside a line, of which nothing can be said.
    const std::size_t newline = have == size ? text.npos : text.find('\n');
    const std::size_t skipped = have == size ? 0 : newline == text.npos ? have : newline + 1;
    text.remove_prefix(skipped);
    if (text.empty()) {  // a line that is longer than the block
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
