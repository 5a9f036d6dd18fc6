// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace perfmap::test {

/// Computes the times of a log as defined in perfmap/pypylog.hpp, in the simplest way: line by
/// line, with names as keys. Does not handle bridges.
struct PlainProfile {
  struct Thread {
    std::uint64_t first = 0, last = 0, changed = 0, outside = 0, rest = 0;
    bool started = false;
    std::vector<std::string> open;
    std::string loop;   // empty: outside loops
    std::string event;  // category of the jit-profile section that has not named a loop yet
    std::uint64_t event_tick = 0;
  };
  std::map<std::string, Thread> threads;
  std::map<std::string, std::uint64_t> loops, entered, categories, sections;

  void read(const std::string& log, int base) {
    std::size_t at = 0;
    while (at < log.size()) {
      const std::size_t end = std::min(log.find('\n', at), log.size());
      line(log.substr(at, end - at), base);
      at = end + 1;
    }
    for (auto& [number, thread] : threads) {
      if (!thread.event.empty()) change(thread, "");
      thread.event_tick = thread.last;
      settle(thread, thread.last);
    }
  }

 private:
  void settle(Thread& thread, std::uint64_t tick) {
    (thread.loop.empty() ? thread.outside : loops[thread.loop]) += tick - thread.changed;
    thread.changed = tick;
  }
  void change(Thread& thread, const std::string& loop) {
    settle(thread, thread.event_tick);
    if (thread.event == "jit-profile-enter" && !loop.empty()) {
      thread.loop = loop;
      ++entered[loop];
    } else {
      loops[loop.empty() ? thread.loop : loop] += 0;
      thread.loop.clear();
    }
    thread.event.clear();
  }
  void pass(Thread& thread, std::uint64_t tick) {
    if (!thread.started) thread.first = thread.last = thread.changed = tick;
    thread.started = true;
    if (tick < thread.last) tick = thread.last;
    (thread.open.empty() ? thread.rest : categories[thread.open.back()]) += tick - thread.last;
    thread.last = tick;
  }

  static std::string prefix_of(std::string& line) {
    std::size_t digits = 0;
    while (digits < line.size() && std::isdigit(static_cast<unsigned char>(line[digits]))) ++digits;
    if (digits == 0 || line.compare(digits, 2, "# ") != 0) return "";
    const std::string prefix = line.substr(0, digits);
    line = line.substr(digits + 2);
    return prefix;
  }

  void line(std::string line, int base) {
    while (line.ends_with('\r')) line.pop_back();
    const std::string prefix = prefix_of(line);
    const std::size_t close = line.find("] ");
    const bool numbered = line.starts_with('[') && close != std::string::npos && close > 1 &&
                          line.find_first_not_of("0123456789abcdefABCDEF", 1) == close;
    std::string rest = numbered ? line.substr(close + 2) : "";
    const bool opens = rest.starts_with('{');
    const bool closes = !opens && rest.ends_with('}');
    const std::string category = opens    ? rest.substr(1)
                                 : closes ? rest.substr(0, rest.size() - 1)
                                          : "";
    const bool is_word =
        !category.empty() &&
        category.find_first_not_of("abcdefghijklmnopqrstuvwxyz-_0123456789") == std::string::npos;
    if (!is_word) {
      text(line, prefix);
      return;
    }
    Thread& thread = threads[prefix];
    const std::uint64_t tick = std::stoull(line.substr(1, close - 1), nullptr, base);
    opens ? open(thread, category, tick) : shut(thread, category, tick);
  }

  void open(Thread& thread, const std::string& category, std::uint64_t tick) {
    pass(thread, tick);
    thread.open.push_back(category);
    ++sections[category];
    categories[category] += 0;
    if (!category.starts_with("jit-profile-")) return;
    if (!thread.event.empty()) change(thread, "");
    thread.event = category;
    thread.event_tick = thread.last;
  }

  void shut(Thread& thread, const std::string& category, std::uint64_t tick) {
    const bool is_open =
        std::find(thread.open.begin(), thread.open.end(), category) != thread.open.end();
    if (is_open && thread.event == category) change(thread, "");
    pass(thread, tick);
    categories[category] += 0;
    if (!is_open) return;
    while (thread.open.back() != category) thread.open.pop_back();
    thread.open.pop_back();
  }

  void text(std::string line, const std::string& prefix) {
    const auto found = threads.find(prefix);
    if (found == threads.end() || found->second.event.empty()) return;
    if (found->second.open.empty() || found->second.open.back() != found->second.event) return;
    for (std::size_t mark = line.find('#'); mark != std::string::npos;
         mark = line.find('#', mark + 1)) {
      if (mark == 0 || line[mark - 1] == ' ') line.resize(mark);
    }
    while (line.ends_with(' ')) line.pop_back();
    while (line.starts_with(' ')) line.erase(0, 1);
    if (!line.empty()) change(found->second, line);
  }
};

}  // namespace perfmap::test
