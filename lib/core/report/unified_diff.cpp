// SPDX-License-Identifier: MIT
#include <algorithm>
#include <cstdint>
#include <vector>

#include "perfmap/report.hpp"
#include "perfmap/text.hpp"

namespace perfmap {
namespace {

constexpr std::size_t kContext = 3;
constexpr std::size_t kMaxDifferences = 1000;  // the search needs the square of this in memory

/// Lines with their newlines; the last may have none.
std::vector<std::string_view> lines_of(std::string_view text) {
  std::vector<std::string_view> lines;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size() - 1) + 1;
    lines.push_back(text.substr(0, end));
    text.remove_prefix(end);
  }
  return lines;
}

/// One step of the edit script from `before` to `after`.
enum class Step : std::uint8_t { keep, remove, add };
using Lines = std::vector<std::string_view>;

/// Myers, "An O(ND) difference algorithm" (1986). Works on [a, a_end) and [b, b_end); gives nothing
/// if there are more than kMaxDifferences.
class Search {
 public:
  Search(const Lines& before, const Lines& after, std::size_t first, std::size_t before_end,
         std::size_t after_end)
      : before_(before),
        after_(after),
        first_(first),
        n_(static_cast<std::ptrdiff_t>(before_end - first)),
        m_(static_cast<std::ptrdiff_t>(after_end - first)) {}

  bool run(std::vector<Step>& steps) {
    std::vector<std::ptrdiff_t> furthest(2 * kMaxDifferences + 3, 0);
    const auto at = [&](std::ptrdiff_t k) -> std::ptrdiff_t& {
      return furthest[static_cast<std::size_t>(k + std::ptrdiff_t{kMaxDifferences} + 1)];
    };
    for (std::ptrdiff_t d = 0; d <= std::ptrdiff_t{kMaxDifferences}; ++d) {
      rows_.emplace_back(furthest.begin() + (std::ptrdiff_t{kMaxDifferences} + 1 - d - 1),
                         furthest.begin() + (std::ptrdiff_t{kMaxDifferences} + 1 + d + 2));
      for (std::ptrdiff_t k = -d; k <= d; k += 2) {
        std::ptrdiff_t x = k == -d || (k != d && at(k - 1) < at(k + 1)) ? at(k + 1) : at(k - 1) + 1;
        while (x < n_ && x - k < m_ && same(x, x - k)) ++x;
        at(k) = x;
        if (x >= n_ && x - k >= m_) return trace(d, steps), true;
      }
    }
    return false;
  }

 private:
  bool same(std::ptrdiff_t x, std::ptrdiff_t y) const {
    return x >= 0 && y >= 0 &&
           before_[first_ + static_cast<std::size_t>(x)] ==
               after_[first_ + static_cast<std::size_t>(y)];
  }
  /// Walks back from the end through the stored rows, each the state before a round.
  void trace(std::ptrdiff_t d, std::vector<Step>& steps) const {
    std::ptrdiff_t x = n_;
    std::ptrdiff_t y = m_;
    std::vector<Step> back;
    for (; d > 0; --d) {
      const auto at = [&](std::ptrdiff_t k) {
        return rows_[static_cast<std::size_t>(d)][static_cast<std::size_t>(k + d + 1)];
      };
      const std::ptrdiff_t k = x - y;
      const bool down = k == -d || (k != d && at(k - 1) < at(k + 1));
      const std::ptrdiff_t from_x = down ? at(k + 1) : at(k - 1);
      const std::ptrdiff_t from_y = from_x - (down ? k + 1 : k - 1);
      while (x > from_x && y > from_y) back.push_back(Step::keep), --x, --y;
      back.push_back(down ? Step::add : Step::remove);
      x = from_x;
      y = from_y;
    }
    while (x > 0) back.push_back(Step::keep), --x;
    steps.insert(steps.end(), back.rbegin(), back.rend());
  }

  const Lines& before_;
  const Lines& after_;
  std::size_t first_;
  std::ptrdiff_t n_;
  std::ptrdiff_t m_;
  std::vector<std::vector<std::ptrdiff_t>> rows_;
};

std::vector<Step> script(const Lines& before, const Lines& after) {
  std::size_t first = 0;
  const std::size_t shorter = std::min(before.size(), after.size());
  while (first < shorter && before[first] == after[first]) ++first;
  std::size_t tail = 0;
  while (tail < shorter - first &&
         before[before.size() - 1 - tail] == after[after.size() - 1 - tail]) {
    ++tail;
  }
  std::vector<Step> steps(first, Step::keep);
  Search search(before, after, first, before.size() - tail, after.size() - tail);
  if (!search.run(steps)) {
    steps.insert(steps.end(), before.size() - tail - first, Step::remove);
    steps.insert(steps.end(), after.size() - tail - first, Step::add);
  }
  steps.insert(steps.end(), tail, Step::keep);
  return steps;
}

void append_line(std::string& out, char mark, std::string_view line) {
  out += mark;
  out += line;
  if (!line.ends_with('\n')) out += "\n\\ No newline at end of file\n";
}

/// "3,7" or "3"; an empty range is given by the line before it.
std::string range_text(std::size_t start, std::size_t count) {
  const std::string first = std::to_string(count == 0 ? start : start + 1);
  return count == 1 ? first : first + "," + std::to_string(count);
}

/// Writes the steps as hunks; changes closer than twice the context share a hunk.
class Hunks {
 public:
  Hunks(const Lines& before, const Lines& after, const std::vector<Step>& steps)
      : before_(before), after_(after), steps_(steps) {}

  void write(std::string& out) {
    std::size_t at = 0;
    while (true) {
      std::size_t change = at;
      while (change < steps_.size() && steps_[change] == Step::keep) ++change;
      if (change == steps_.size()) return;
      const std::size_t start = std::max(at, change - std::min(change, kContext));
      advance(at, start);
      const std::size_t end = end_of_hunk(change);
      write_hunk(out, start, end);
      at = end;
    }
  }

 private:
  void advance(std::size_t from, std::size_t to) {
    for (; from < to; ++from) {
      if (steps_[from] != Step::add) ++a_;
      if (steps_[from] != Step::remove) ++b_;
    }
  }
  std::size_t end_of_hunk(std::size_t at) const {
    std::size_t kept = 0;
    for (; at < steps_.size() && kept <= 2 * kContext; ++at) {
      kept = steps_[at] == Step::keep ? kept + 1 : 0;
    }
    return kept > kContext ? at - (kept - kContext) : at;
  }
  void write_hunk(std::string& out, std::size_t start, std::size_t end) {
    std::string body;
    const std::size_t a = a_;
    const std::size_t b = b_;
    for (std::size_t i = start; i < end; ++i) {
      if (steps_[i] == Step::add) {
        append_line(body, '+', after_[b_]);
      } else {
        append_line(body, steps_[i] == Step::keep ? ' ' : '-', before_[a_]);
      }
      advance(i, i + 1);
    }
    out += "@@ -" + range_text(a, a_ - a) + " +" + range_text(b, b_ - b) + " @@\n" + body;
  }

  const Lines& before_;
  const Lines& after_;
  const std::vector<Step>& steps_;
  std::size_t a_ = 0;
  std::size_t b_ = 0;
};

/// The name of a file in the header: quoted if it would break the header, or control a terminal.
std::string header_name(std::string_view name) {
  std::string text = quoted(name);
  const bool is_plain = text.size() == name.size() + 2;
  return is_plain ? std::string(name) : text;
}

}  // namespace

std::string quoted(std::string_view bytes) {
  std::string visible;
  append_visible(visible, bytes);
  std::string text = "\"";
  std::string_view rest = visible;
  for (const char c : bytes) {
    if (c == '"' || c == '\\') text += '\\';
    if (rest.front() == c) {
      text += c;
      rest.remove_prefix(1);
      continue;
    }
    const auto byte = static_cast<unsigned char>(c);
    text += '\\';
    for (const int shift : {6, 3, 0}) text += static_cast<char>('0' + ((byte >> shift) & 7));
    rest.remove_prefix(4);  // "\xNN"
  }
  return text + '"';
}

std::string unified_diff(std::string_view before, std::string_view after, std::string_view name) {
  if (before == after) return {};
  const Lines old_lines = lines_of(before);
  const Lines new_lines = lines_of(after);
  const std::string shown = header_name(name);
  std::string out = "--- " + shown + "\n+++ " + shown + "\n";
  Hunks(old_lines, new_lines, script(old_lines, new_lines)).write(out);
  return out;
}

}  // namespace perfmap
