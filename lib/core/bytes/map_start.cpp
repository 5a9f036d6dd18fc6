#include "bytes/map_start.hpp"

#include <cerrno>
#include <cstdint>
#include <ctime>
#include <optional>
#include <sys/stat.h>
#include <unistd.h>

#include "bytes/file_lock.hpp"
#include "bytes/process_age.hpp"

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

}  // namespace perfmap
