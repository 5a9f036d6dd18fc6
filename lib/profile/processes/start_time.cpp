#include "processes/start_time.hpp"

#include <ctime>
#include <unistd.h>

namespace perfmap {
namespace {

constexpr std::int64_t kSecond = 1'000'000'000;

std::int64_t now_ns(clockid_t clock) noexcept {
  timespec now{};
  ::clock_gettime(clock, &now);
  return now.tv_sec * kSecond + now.tv_nsec;
}

}  // namespace

std::int64_t file_clock_ns() noexcept { return now_ns(CLOCK_REALTIME); }

std::int64_t start_time_ns(const ProcSource& process) noexcept {
  const auto per_second = static_cast<std::uint64_t>(::sysconf(_SC_CLK_TCK));
  if (process.start() / per_second > UINT32_MAX) return 0;
  const auto since_boot = static_cast<std::int64_t>(process.start() / per_second) * kSecond +
                          static_cast<std::int64_t>(process.start() % per_second) * kSecond /
                              static_cast<std::int64_t>(per_second);
  return now_ns(CLOCK_REALTIME) - (now_ns(CLOCK_BOOTTIME) - since_boot);
}

bool is_older_than(const ProcSource& process, const FileFacts& file) noexcept {
  return file.mtime_ns < start_time_ns(process) - kSecond;
}

}  // namespace perfmap
