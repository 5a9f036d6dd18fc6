#include "perfmap/perf_script.hpp"

#include <charconv>
#include <optional>

#include "base/hex.hpp"
#include "perfmap/map.hpp"

namespace perfmap {
namespace {

constexpr std::string_view kUnknown = " [unknown] (";

std::string_view take_token(std::string_view& rest) {
  const std::size_t start = rest.find_first_not_of(' ');
  if (start == std::string_view::npos) {
    rest = {};
    return {};
  }
  rest.remove_prefix(start);
  const std::string_view token = rest.substr(0, rest.find(' '));
  rest.remove_prefix(token.size());
  return token;
}

bool all_digits(std::string_view text) {
  return !text.empty() && text.find_first_not_of("0123456789") == std::string_view::npos;
}

std::optional<pid_t> number(std::string_view text) {
  pid_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (!all_digits(text) || error != std::errc()) return std::nullopt;
  return value;
}

/// "4513.566110008:"
bool is_time(std::string_view token) {
  if (!token.ends_with(':')) return false;
  token.remove_suffix(1);
  const std::size_t point = token.find('.');
  return point != std::string_view::npos && all_digits(token.substr(0, point)) &&
         all_digits(token.substr(point + 1));
}

bool is_cpu(std::string_view token) {
  return token.size() > 2 && token.front() == '[' && token.back() == ']' &&
         all_digits(token.substr(1, token.size() - 2));
}

struct Ids {
  pid_t pid = 0;  // 0 where the header has only a tid
  pid_t tid = 0;
};

/// "603/604" or "604".
std::optional<Ids> parse_ids(std::string_view token) {
  const std::size_t slash = token.find('/');
  const auto first = number(token.substr(0, slash));
  if (!first) return std::nullopt;
  if (slash == std::string_view::npos) return Ids{0, *first};
  const auto second = number(token.substr(slash + 1));
  if (!second) return std::nullopt;
  return Ids{*first, *second};
}

/// The ids of a sample's header: `COMM IDS [CPU] TIME: …`, where COMM may hold blanks and numbers.
std::optional<Ids> header_ids(std::string_view line) {
  std::string_view rest = line;
  take_token(rest);
  while (!rest.empty()) {
    const auto ids = parse_ids(take_token(rest));
    if (!ids) continue;
    std::string_view after = rest;
    std::string_view next = take_token(after);
    if (is_cpu(next)) next = take_token(after);
    if (is_time(next)) return ids;
  }
  return std::nullopt;
}

/// "\t    7f35 name (dso)": an address first, which no header has before its time.
bool is_frame(std::string_view line) {
  if (line.empty() || (line[0] != ' ' && line[0] != '\t')) return false;
  const std::size_t start = line.find_first_not_of(" \t");
  if (start == std::string_view::npos) return false;
  const std::string_view token = line.substr(start, line.find(' ', start) - start);
  return parse_hex(token).has_value() && !header_ids(line);
}

/// N of /tmp/perf-N.map or "[JIT] tid N"; 0 for the other places where JIT code lives; nothing for
/// files and the rest.
std::optional<pid_t> jit_process(std::string_view dso) {
  if (dso == "[unknown]" || dso == "//anon") return 0;
  if (dso.starts_with("[anon:") || dso.starts_with("/memfd:")) return 0;
  if (dso.starts_with("[JIT] tid ")) return number(dso.substr(10));
  if (dso.starts_with("/tmp/perf-") && dso.ends_with(".map")) {
    return number(dso.substr(10, dso.size() - 14));
  }
  return std::nullopt;
}

/// A frame without symbol, taken apart: `before` + address + kUnknown + dso + ")".
struct UnknownFrame {
  std::string_view before;
  std::string_view address_text;
  Address address = 0;
  std::string_view dso;
};

std::optional<UnknownFrame> parse_unknown(std::string_view line) {
  const std::size_t mark = line.rfind(kUnknown);
  if (mark == std::string_view::npos || !line.ends_with(')')) return std::nullopt;
  const std::size_t start = line.find_last_of(" \t", mark == 0 ? 0 : mark - 1);
  const std::size_t first = start == std::string_view::npos || start >= mark ? 0 : start + 1;
  UnknownFrame frame;
  frame.before = line.substr(0, first);
  frame.address_text = line.substr(first, mark - first);
  const auto address = parse_hex(frame.address_text);
  if (!address) return std::nullopt;
  frame.address = *address;
  const std::size_t dso = mark + kUnknown.size();
  frame.dso = line.substr(dso, line.size() - 1 - dso);
  return frame;
}

}  // namespace

void PerfScriptFilter::read_header(std::string_view line) {
  const auto ids = header_ids(line);
  if (!ids) return;
  pid_ = ids->pid != 0 ? ids->pid : process_of_(ids->tid);
  leaf_next_ = true;
}

bool PerfScriptFilter::rename(std::string_view line, std::string& out) {
  const auto frame = parse_unknown(line);
  const auto process = frame ? jit_process(frame->dso) : std::nullopt;
  if (!process) return false;
  const pid_t pid = *process != 0 ? *process : pid_;
  Name name;
  bool found = find_(pid, frame->address, name);
  // A return address may lie behind the last byte of its caller.
  if (!leaf_next_ && frame->address != 0 && (!found || name.begin == frame->address)) {
    const bool before = find_(pid, frame->address - 1, name);
    if (!before && found) found = find_(pid, frame->address, name);
    found = found || before;
  }
  if (!found) return false;
  out.append(frame->before).append(frame->address_text).append(" ").append(name.name);
  if (offsets_) out.append("+0x").append(to_hex(frame->address - name.begin));
  out.append(" (").append(frame->dso).append(")");
  return true;
}

void PerfScriptFilter::filter(std::string_view line, std::string& out) {
  const bool frame = is_frame(line);
  if (!frame) read_header(line);
  if (line.find(kUnknown) == std::string_view::npos) {
    // perf prints offsets for all frames or for none.
    if (frame) offsets_ = line.find("+0x") != std::string_view::npos;
    out += line;
  } else if (!rename(line, out)) {
    out += line;
  }
  if (frame) leaf_next_ = false;
}

}  // namespace perfmap
