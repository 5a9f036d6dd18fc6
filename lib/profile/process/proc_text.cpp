// SPDX-License-Identifier: MIT
#include "process/proc_text.hpp"

#include <algorithm>
#include <charconv>
#include <ctime>
#include <fcntl.h>
#include <unistd.h>

#include "process/safe_open.hpp"

namespace perfmap {

namespace {

constexpr std::size_t kMaxNumbers = 64;

/// Removes and returns the first word.
std::string_view take_word(std::string_view& text) noexcept {
  text.remove_prefix(std::min(text.size(), text.find_first_not_of(" \t")));
  const std::string_view word = text.substr(0, text.find_first_of(" \t\n"));
  text.remove_prefix(word.size());
  return word;
}

template <class T>
bool parse(std::string_view word, T& number) noexcept {
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), number);
  return error == std::errc() && end == word.data() + word.size() && !word.empty();
}

constexpr std::int64_t kSecond = 1'000'000'000;

std::int64_t now_ns(clockid_t clock) noexcept {
  timespec now{};
  ::clock_gettime(clock, &now);
  return now.tv_sec * kSecond + now.tv_nsec;
}

}  // namespace

/// "pid (comm) state parent ...": comm may contain blanks and parentheses.
std::optional<StatLine> parse_stat(std::string_view text) noexcept {
  constexpr int kToFlags = 4;   // number of fields between parent and flags
  constexpr int kToStart = 12;  // and from flags to the start time
  const std::size_t open = text.find('(');
  const std::size_t close = text.rfind(')');
  if (open == std::string_view::npos || close == std::string_view::npos || close < open) {
    return std::nullopt;
  }
  StatLine line;
  line.comm = text.substr(open + 1, close - open - 1);
  text.remove_prefix(close + 1);
  const std::string_view state = take_word(text);
  if (state.size() != 1 || !parse(take_word(text), line.parent)) return std::nullopt;
  line.state = state.front();
  for (int i = 0; i < kToFlags; ++i) take_word(text);
  if (!parse(take_word(text), line.flags)) return std::nullopt;
  for (int i = 0; i < kToStart; ++i) take_word(text);
  if (!parse(take_word(text), line.start)) return std::nullopt;
  return line;
}

std::vector<std::int64_t> status_numbers(std::string_view text, std::string_view key) {
  std::vector<std::int64_t> numbers;
  const std::size_t at = text.find("\n" + std::string(key));
  if (at == std::string_view::npos) return numbers;
  text.remove_prefix(at + 1 + key.size());
  text = text.substr(0, text.find('\n'));
  std::int64_t number = 0;
  while (numbers.size() < kMaxNumbers && parse(take_word(text), number)) numbers.push_back(number);
  return numbers;
}

std::vector<std::string> split_at_nul(std::string_view text) {
  std::vector<std::string> strings;
  while (!text.empty()) {
    const std::string_view one = text.substr(0, text.find('\0'));
    text.remove_prefix(std::min(text.size(), one.size() + 1));
    strings.emplace_back(one);
  }
  return strings;
}

std::int64_t file_clock_ns() noexcept { return now_ns(CLOCK_REALTIME); }

// `proc` may be a copy from another machine; its "stat" has the second of the boot, of which the
// middle is the best guess: the end would leave nothing of kTimeSlack for the clocks.
std::int64_t boot_time_ns(const std::string& proc) {
  const Descriptor directory(::open(proc.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  const std::int64_t ours = now_ns(CLOCK_REALTIME) - now_ns(CLOCK_BOOTTIME);
  if (!directory.is_open() || is_on_procfs(directory.get())) return ours;
  constexpr std::size_t kMax = std::size_t{64} << 10;
  const Result<ReadText> stat = read_text_at(directory.get(), "stat", proc + "/stat", kMax);
  if (!stat) return ours;
  const auto told = status_numbers("\n" + stat->text, "btime");
  constexpr std::int64_t kMaxSeconds = INT64_MAX / kSecond / 2;
  if (told.empty() || told[0] < 0 || told[0] > kMaxSeconds) return ours;
  return told[0] * kSecond + kSecond / 2;
}

std::int64_t start_time_ns(const ProcSource& process, std::int64_t boot_ns) noexcept {
  const auto per_second = static_cast<std::uint64_t>(::sysconf(_SC_CLK_TCK));
  if (process.start() / per_second > UINT32_MAX) return 0;
  const auto since_boot = static_cast<std::int64_t>(process.start() / per_second) * kSecond +
                          static_cast<std::int64_t>(process.start() % per_second) * kSecond /
                              static_cast<std::int64_t>(per_second);
  return boot_ns + since_boot;
}

bool is_older_than(const ProcSource& process, const std::string& proc, const FileFacts& file) {
  return file.mtime_ns + kTimeSlack < start_time_ns(process, proc);
}

}  // namespace perfmap
