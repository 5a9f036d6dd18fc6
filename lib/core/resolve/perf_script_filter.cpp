// SPDX-License-Identifier: MIT
#include <algorithm>
#include <charconv>
#include <optional>

#include "base/text.hpp"
#include "base/utf8.hpp"
#include "perfmap/jit_paths.hpp"
#include "perfmap/map.hpp"
#include "perfmap/resolver.hpp"
#include "perfmap/text.hpp"

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

/// The maximum pid of Linux. The limit avoids taking other numbers for a pid.
constexpr pid_t kGreatestPid = 4194304;

std::optional<pid_t> number(std::string_view text) {
  pid_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (!all_digits(text) || error != std::errc() || value > kGreatestPid) return std::nullopt;
  return value;
}

/// Fields that perf prints between the ids and the time: "[003]", the guest ("VM:1 VCPU:0"), and
/// those of `-F misc` ("U", "KG", "E").
bool is_between_ids_and_time(std::string_view token) {
  if (token.starts_with("VM:") || token.starts_with("VCPU:")) return true;
  if (token.size() > 2 && token.front() == '[' && token.back() == ']') {
    return all_digits(token.substr(1, token.size() - 2));
  }
  return token.find_first_not_of("UKGHMEFSpt") == std::string_view::npos;
}

struct Ids {
  pid_t pid = 0;  // 0 if the header has only a tid
  pid_t tid = 0;
  std::uint64_t time = Timeline::kEnd;
};

/// "603/604" or "604"; perf prints -1 for an unknown id.
std::optional<Ids> parse_ids(std::string_view token) {
  const std::size_t slash = token.find('/');
  const auto id = [](std::string_view text) {
    return text == "-1" ? std::optional<pid_t>(0) : number(text);
  };
  const auto first = id(token.substr(0, slash));
  if (!first) return std::nullopt;
  if (slash == std::string_view::npos) return Ids{0, *first, Timeline::kEnd};
  const auto second = id(token.substr(slash + 1));
  if (!second) return std::nullopt;
  return Ids{*first, *second, Timeline::kEnd};
}

/// Parses "4513.566110008:" as the next token, after the optional fields above.
std::optional<std::uint64_t> following_time(std::string_view rest) {
  std::string_view next = take_token(rest);
  while (!next.empty() && is_between_ids_and_time(next)) next = take_token(rest);
  if (!next.ends_with(':') || next.find('.') == std::string_view::npos) return std::nullopt;
  next.remove_suffix(1);
  return parse_seconds(next);
}

/// The ids of a header with a time, `[COMM] IDS [CPU] TIME: …`. They are searched for right before
/// the time, because COMM may contain blanks and numbers.
std::optional<Ids> timed_ids(std::string_view rest) {
  while (!rest.empty()) {
    auto ids = parse_ids(take_token(rest));
    const auto time = ids ? following_time(rest) : std::nullopt;
    if (!time) continue;
    ids->time = *time;
    return ids;
  }
  return std::nullopt;
}

/// The ids of a header without a time (`perf script -F comm,pid,tid,ip,sym,dso`): the first
/// PID/TID, or else the first number.
std::optional<Ids> untimed_ids(std::string_view rest) {
  std::optional<Ids> found;
  while (!rest.empty()) {
    const auto ids = parse_ids(take_token(rest));
    if (ids && ids->pid != 0) return ids;
    if (!found) found = ids;
  }
  return found;
}

std::string_view first_token(std::string_view line) {
  line.remove_prefix(std::min(line.find_first_not_of(" \t"), line.size()));
  return line.substr(0, line.find(' '));
}

/// N of /tmp/perf-N.map or "[JIT] tid N"; 0 for other places of JIT code; nothing for files and
/// everything else.
std::optional<pid_t> jit_process(std::string_view dso) {
  if (dso == "[unknown]" || dso == "//anon") return 0;
  if (dso.starts_with("[anon:") && dso.ends_with(']')) return 0;
  if (dso.starts_with("/memfd:") || dso.starts_with("/dev/shm/")) return 0;
  if (dso.starts_with("[JIT] tid ")) return number(dso.substr(10));
  if (dso.starts_with("/tmp/") && dso.rfind('/') == 4 && kMapName.is_last_of(dso)) {
    return number(kMapName.number_in(dso));
  }
  return std::nullopt;
}

/// A frame without a symbol, split into `before` + address + kUnknown + dso + ")".
struct UnknownFrame {
  std::string_view before;
  std::string_view address_text;
  Address address = 0;
  std::string_view dso;
};

/// The mark that `perfmap stacks` adds to a doubtful frame: a tab and "(?)" or "(?KIND,KIND)".
std::string_view mark_of(std::string_view line) noexcept {
  const std::size_t tab = line.rfind('\t');
  if (tab == std::string_view::npos || tab == 0 || line[tab - 1] != ')') return {};
  return line.substr(tab).starts_with("\t(?") ? line.substr(tab) : std::string_view();
}

/// If a sample is one line, its frame follows the header and perhaps an address (-F addr).
bool may_precede_frame(std::string_view before) {
  while (before.ends_with(' ')) before.remove_suffix(1);
  const std::string_view last = before.substr(before.find_last_of(' ') + 1);
  return last.empty() || last.ends_with(':') || parse_ids(last) || parse_hex(last);
}

/// A name can hold any text, so the mark counts only after the address, where no name can be.
std::optional<UnknownFrame> parse_unknown(std::string_view line, bool own_line) {
  const std::size_t mark = own_line ? line.find(kUnknown) : line.rfind(kUnknown);
  if (mark == std::string_view::npos || !line.ends_with(')')) return std::nullopt;
  const std::string_view front = line.substr(0, mark);
  const std::size_t first = front.find_last_of(" \t") + 1;
  UnknownFrame frame;
  frame.before = front.substr(0, first);
  frame.address_text = front.substr(first);
  const auto address = parse_hex(frame.address_text);
  const bool alone = frame.before.find_first_not_of(" \t") == std::string_view::npos;
  if (!address || !(own_line ? alone : may_precede_frame(frame.before))) return std::nullopt;
  frame.address = *address;
  const std::size_t dso = mark + kUnknown.size();
  frame.dso = line.substr(dso, line.size() - 1 - dso);
  return frame;
}

}  // namespace

/// perf starts frames with a tab; edited text may have blanks instead.
bool PerfScriptFilter::is_frame(std::string_view line) const {
  if (line[0] == '\t') return true;
  return line[0] == ' ' && !header_expected_ && parse_hex(first_token(line)) && !timed_ids(line);
}

void PerfScriptFilter::read_header(std::string_view line) {
  std::optional<Ids> ids = timed_ids(line);
  if (!ids && !header_expected_) return;  // such as a source line below a frame
  if (!ids) ids = untimed_ids(line);
  pid_ = ids ? ids->pid : 0;
  tid_ = ids ? ids->tid : 0;
  time_ = ids ? ids->time : Timeline::kEnd;
  leaf_next_ = true;
  header_expected_ = line.ends_with(')');  // the whole sample is on this line
}

void PerfScriptFilter::end_sample() {
  pid_ = tid_ = 0;
  time_ = Timeline::kEnd;
  leaf_next_ = header_expected_ = true;
}

/// Called only if a frame needs it, because process_of() is expensive.
pid_t PerfScriptFilter::process() {
  if (pid_ != 0 || tid_ == 0) return pid_;
  const auto [at, is_new] = processes_.try_emplace(tid_);
  if (is_new) at->second = process_of_(tid_);
  // The process of a finished thread is unknown. Most samples are from main threads, so assume pid
  // = tid.
  if (is_new && at->second == 0) at->second = tid_;
  return pid_ = at->second;
}

bool PerfScriptFilter::find_frame(pid_t pid, Address address, Name& name) {
  const bool found = find_(pid, {address, time_}, name);
  // A return address may be one past the last byte of its caller.
  if (leaf_next_ || address == 0 || (found && name.begin != address)) return found;
  return find_(pid, {address - 1, time_}, name) || (found && find_(pid, {address, time_}, name));
}

bool PerfScriptFilter::rename(std::string_view line, bool own_line, std::string& out) {
  const std::string_view mark = mark_of(line);
  const auto frame = parse_unknown(line.substr(0, line.size() - mark.size()), own_line);
  const auto named = frame ? jit_process(frame->dso) : std::nullopt;
  if (!named) return false;
  Name name;
  bool is_found = *named != 0 && find_frame(*named, frame->address, name);
  // perf names the map after the process that mapped the memory; a forked child writes to its own.
  if (!is_found && (*named == 0 || process() != *named)) {
    is_found = find_frame(process(), frame->address, name);
  }
  if (!is_found) {
    ++unnamed_;
    return false;
  }
  out.append(frame->before).append(frame->address_text).append(" ").append(name.name);
  if (offsets_) out.append("+0x").append(to_hex(frame->address - name.begin));
  out.append(" (").append(frame->dso).append(")").append(mark);
  return true;
}

void PerfScriptFilter::filter(std::string_view line, std::string& out) {
  if (line.find_first_not_of(" \t\r") == std::string_view::npos) {
    end_sample();
    out += line;
    return;
  }
  const bool frame = is_frame(line);
  if (!frame) read_header(line);
  if (line.find(kUnknown) == std::string_view::npos) {
    // perf prints offsets for all frames or for none.
    if (frame) offsets_ = line.find("+0x") != std::string_view::npos;
    out += line;
  } else if (!rename(line, frame, out)) {
    out += line;
  }
  if (frame) leaf_next_ = false;
}

}  // namespace perfmap
