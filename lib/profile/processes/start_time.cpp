#include "processes/start_time.hpp"

#include <ctime>
#include <fcntl.h>
#include <unistd.h>

#include "processes/proc_text.hpp"
#include "processes/safe_open.hpp"

namespace perfmap {
namespace {

constexpr std::int64_t kSecond = 1'000'000'000;

std::int64_t now_ns(clockid_t clock) noexcept {
  timespec now{};
  ::clock_gettime(clock, &now);
  return now.tv_sec * kSecond + now.tv_nsec;
}

/// When the machine began. /proc may be another machine's, as it was once: its "stat" says so.
std::int64_t boot_time_ns(const std::string& proc) {
  const OwnedFd directory(::open(proc.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  const bool is_ours = !directory.is_open() || is_on_procfs(directory.get());
  const std::int64_t ours = now_ns(CLOCK_REALTIME) - now_ns(CLOCK_BOOTTIME);
  if (is_ours) return ours;
  constexpr std::size_t kMost = std::size_t{64} << 10;
  const Result<ReadText> stat = read_text_at(directory.get(), "stat", proc + "/stat", kMost);
  if (!stat) return ours;
  const auto told = status_numbers("\n" + stat->text, "btime");
  constexpr std::int64_t kMostSeconds = INT64_MAX / kSecond / 2;
  return told.empty() || told[0] < 0 || told[0] > kMostSeconds ? ours : told[0] * kSecond;
}

}  // namespace

std::int64_t start_time_ns(const ProcSource& process, const std::string& proc) {
  const auto per_second = static_cast<std::uint64_t>(::sysconf(_SC_CLK_TCK));
  if (process.start() / per_second > UINT32_MAX) return 0;
  const auto since_boot = static_cast<std::int64_t>(process.start() / per_second) * kSecond +
                          static_cast<std::int64_t>(process.start() % per_second) * kSecond /
                              static_cast<std::int64_t>(per_second);
  return boot_time_ns(proc) + since_boot;
}

}  // namespace perfmap
