// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "perfmap/input.hpp"
#include "perfmap/pypylog.hpp"
#include "support/catch.hpp"
#include "support/scratch.hpp"

namespace perfmap::test {

/// A simple reader of logs whose sections hold one line and are not nested.
struct JitlogSection {
  int thread = 0;  ///< 0: its lines have no thread number
  std::uint64_t tick = 0;
  std::string category;
  std::string name;

  friend bool operator==(const JitlogSection&, const JitlogSection&) = default;
};

struct ReadJitlog {
  std::vector<JitlogSection> sections;
  std::size_t rest = 0;  ///< number of bytes from the first incomplete or invalid section

  std::vector<JitlogSection> of(const std::string& category) const {
    std::vector<JitlogSection> found;
    for (const JitlogSection& section : sections) {
      if (section.category == category) found.push_back(section);
    }
    return found;
  }
  /// "+loop1" for entering a loop and "-loop1" for leaving it, in the order of the log.
  std::vector<std::string> events(int thread = -1) const {
    std::vector<std::string> found;
    for (const JitlogSection& section : sections) {
      if (thread >= 0 && section.thread != thread) continue;
      if (section.category == "jit-profile-enter") found.push_back("+" + section.name);
      if (section.category == "jit-profile-exit") found.push_back("-" + section.name);
    }
    return found;
  }
  /// The ticks in each loop, over all threads. Entering a loop leaves the previous one.
  std::map<std::string, std::uint64_t> profile() const {
    std::map<std::string, std::uint64_t> ticks;
    std::map<int, const JitlogSection*> current;
    for (const JitlogSection& section : sections) {
      const JitlogSection*& inside = current[section.thread];
      if (section.category == "jit-profile-clock") continue;
      if (inside != nullptr) ticks[inside->name] += section.tick - inside->tick;
      inside = section.category == "jit-profile-enter" ? &section : nullptr;
    }
    return ticks;
  }
};

/// Reads the line at `at`, moves `at` after it, and removes the thread number before it. Nothing if
/// the line is incomplete.
inline std::optional<std::string> jitlog_line(const std::string& text, std::size_t& at,
                                              int& thread) {
  const std::size_t end = text.find('\n', at);
  if (end == std::string::npos) return std::nullopt;
  std::string line = text.substr(at, end - at);
  const std::size_t digits = line.find_first_not_of("0123456789");
  thread = 0;
  if (digits != 0 && digits != std::string::npos && line.compare(digits, 2, "# ") == 0) {
    thread = std::stoi(line);
    line.erase(0, digits + 2);
  }
  at = end + 1;
  return line;
}

inline std::optional<JitlogSection> jitlog_section(const std::string& text, std::size_t& at) {
  JitlogSection section;
  int second = 0;
  int third = 0;
  const auto opening = jitlog_line(text, at, section.thread);
  const auto name = opening ? jitlog_line(text, at, second) : std::nullopt;
  const auto closing = name ? jitlog_line(text, at, third) : std::nullopt;
  if (!closing || second != section.thread || third != section.thread) return std::nullopt;
  const std::size_t bracket = opening->find("] {");
  if (opening->front() != '[' || bracket == std::string::npos) return std::nullopt;
  const std::string tick = opening->substr(1, bracket - 1);
  section.tick = std::stoull(tick, nullptr, 16);
  section.category = opening->substr(bracket + 3);
  section.name = *name;
  if (*closing != "[" + tick + "] " + section.category + "}") return std::nullopt;
  return section;
}

inline ReadJitlog parse_jitlog(const std::string& text) {
  ReadJitlog log;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t begin = at;
    auto section = jitlog_section(text, at);
    if (!section) {
      log.rest = text.size() - begin;
      break;
    }
    log.sections.push_back(*std::move(section));
  }
  return log;
}

inline ReadJitlog read_jitlog(const std::string& path) { return parse_jitlog(read_file(path)); }

/// The same, read by the library.
inline LoopProfile profile_in(const std::string& path) {
  const Result<Input> input = Input::open(path);
  REQUIRE(input);
  LoopProfile profile({});
  read_pypylog(*input, profile);
  profile.finish();
  return profile;
}

}  // namespace perfmap::test
