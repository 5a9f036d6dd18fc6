#include "bytes/process_age.hpp"

#include <array>
#include <charconv>
#include <ctime>
#include <fcntl.h>
#include <string_view>
#include <unistd.h>

#include "bytes/descriptor.hpp"

namespace perfmap {
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

}  // namespace perfmap
