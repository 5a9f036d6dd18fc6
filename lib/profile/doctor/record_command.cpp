// SPDX-License-Identifier: MIT
#include "doctor/record_command.hpp"

#include <algorithm>
#include <array>

#include "doctor/evidence.hpp"
#include "perfmap/text.hpp"

namespace perfmap {
namespace {

constexpr std::size_t kLongest = 8192;  // characters that a terminal still accepts in a line

/// Options whose value may be the next word.
constexpr std::string_view kLettersWithValue = "cCDeFGjkmoprtu";
/// Options whose value, if any, is in the same word.
constexpr std::string_view kLettersWithRest = "ISz";
// clang-format off
constexpr std::string_view kNamesWithValue[] = {
    "affinity", "branch-filter", "call-graph", "cgroup", "clang-opt", "clang-path", "clockid",
    "control", "count", "cpu", "delay", "event", "filter", "freq", "max-size", "mmap-flush",
    "mmap-pages", "num-thread-synthesize", "off-cpu-thresh", "output", "pfm-events", "pid",
    "proc-map-timeout", "realtime", "setup-filter", "switch-max-files", "switch-output-event",
    "synth", "tid", "uid", "vmlinux"};
// clang-format on
/// They would be beginnings of those.
constexpr std::string_view kNamesWithout[] = {"off-cpu", "switch-output"};

/// perf also accepts prefixes of option names.
bool takes_value(std::string_view name) noexcept {
  if (std::ranges::find(kNamesWithValue, name) != std::end(kNamesWithValue)) return true;
  constexpr std::size_t kFewest = 4;
  const bool is_other = std::ranges::find(kNamesWithout, name) != std::end(kNamesWithout);
  return name.size() >= kFewest && !is_other &&
         std::ranges::any_of(kNamesWithValue,
                             [&](std::string_view one) { return one.starts_with(name); });
}

/// The name as typed by users, if the shell finds it.
std::string program_text(const std::string& path) {
  for (const std::string_view directory : {"/usr/bin/", "/bin/", "/usr/local/bin/"}) {
    if (path.starts_with(directory) && path.find('/', directory.size()) == std::string::npos) {
      return path.substr(directory.size());
    }
  }
  return path;
}

}  // namespace

bool RecordCommand::Option::is(Name other) const noexcept {
  if (!name.empty()) return name == other.name;
  return letter != 0 && letter == other.letter;
}

std::string RecordCommand::Option::text() const {
  std::string line = name.empty() ? std::string("-") + letter : shell_word("--" + name);
  if (!value) return line;
  const bool is_attached =
      name.empty() ? kLettersWithRest.find(letter) != std::string_view::npos : !takes_value(name);
  line += is_attached ? (name.empty() ? "" : "=") : " ";
  return line + (is_shell_text ? *value : shell_word(*value));
}

void RecordCommand::take_long(std::span<const std::string> words, std::size_t& at) {
  std::string_view word = std::string_view(words[at]).substr(2);
  Option option;
  const std::size_t equals = word.find('=');
  option.name = word.substr(0, equals);
  if (equals != std::string_view::npos) {
    option.value = word.substr(equals + 1);
  } else if (takes_value(option.name) && at + 1 < words.size()) {
    option.value = words[++at];
  }
  options_.push_back(std::move(option));
}

/// "-ag", "-F99", "-F 99", "-agF99".
void RecordCommand::take_letters(std::span<const std::string> words, std::size_t& at) {
  const std::string& word = words[at];
  for (std::size_t i = 1; i < word.size(); ++i) {
    Option option;
    option.letter = word[i];
    const bool takes = kLettersWithValue.find(word[i]) != std::string_view::npos;
    const bool takes_rest = kLettersWithRest.find(word[i]) != std::string_view::npos;
    const bool has_rest = i + 1 < word.size();
    if ((takes || takes_rest) && has_rest) {
      option.value = word.substr(i + 1);
    } else if (takes && at + 1 < words.size()) {
      option.value = words[at + 1];
    }
    const bool is_last = takes || takes_rest;
    const bool took_word = takes && !has_rest && option.value;
    options_.push_back(std::move(option));
    if (!is_last) continue;
    at += took_word ? 1 : 0;
    return;
  }
}

std::optional<RecordCommand> RecordCommand::parse(std::span<const std::string> words) {
  if (words.size() < 2 || !base_name(words[0]).starts_with("perf") || words[1] != "record") {
    return std::nullopt;
  }
  RecordCommand command;
  command.perf = program_text(words[0]);
  for (std::size_t at = 2; at < words.size(); ++at) {
    const std::string& word = words[at];
    const bool is_end = word == "--";
    if (is_end || word.size() < 2 || word[0] != '-') {
      command.workload.assign(words.begin() + static_cast<std::ptrdiff_t>(at + (is_end ? 1 : 0)),
                              words.end());
      break;
    }
    word[1] == '-' ? command.take_long(words, at) : command.take_letters(words, at);
  }
  return command;
}

bool RecordCommand::has(Name name) const noexcept {
  return std::any_of(options_.begin(), options_.end(),
                     [&](const Option& option) { return option.is(name); });
}

bool RecordCommand::records_all() const noexcept { return has(kAll) || has(kCpu); }

bool RecordCommand::records_others() const noexcept {
  return records_all() || has(kPid) || has(kThread) || has(kUser);
}

std::optional<std::string_view> RecordCommand::value_of(Name name) const noexcept {
  const auto last = std::find_if(options_.rbegin(), options_.rend(),
                                 [&](const Option& option) { return option.is(name); });
  if (last == options_.rend() || !last->value) return std::nullopt;
  return *last->value;
}

void RecordCommand::remove(Name name) {
  std::erase_if(options_, [&](const Option& option) { return option.is(name); });
}

void RecordCommand::set(Name name, std::optional<std::string> value) {
  remove(name);
  Option option;
  option.letter = name.letter;
  if (name.letter == 0) option.name = name.name;
  option.value = std::move(value);
  options_.push_back(std::move(option));
}

void RecordCommand::set_shell_text(Name name, std::string text) {
  set(name, std::move(text));
  options_.back().is_shell_text = true;
}

void RecordCommand::set_call_graph(const std::string& mode) {
  remove(kCallGraph);
  remove(kFramePointers);
  mode.empty() ? set(kFramePointers) : set(kCallGraph, mode);
}

void RecordCommand::add_variable(const std::string& variable) {
  const std::size_t equals = variable.find('=') + 1;
  const std::string name = variable.substr(0, equals);
  const auto same = std::find_if(environment.begin(), environment.end(),
                                 [&](const std::string& one) { return one.starts_with(name); });
  if (same == environment.end()) {
    environment.push_back(variable);
  } else if (same->find(variable.substr(equals)) == std::string::npos) {
    *same += " " + variable.substr(equals);
  }
}

/// Those of `perfmap record`, which gives perf the other ones itself; nothing if it does not have
/// one of them.
std::optional<std::string> RecordCommand::perfmap_options() const {
  static constexpr std::array kItsOwn = {
      Name{'q', "quiet"},     Name{'N', "no-buildid-cache"}, kClock, kPages, kOutput,
      Name{0, "no-bpf-event"}};
  static constexpr std::array kBoth = {kFrequency, kCallGraph, kPid, Name{'e', "event"},
                                       Name{0, "off-cpu"}};
  std::string line;
  for (const Option& option : options_) {
    const auto is_it = [&](Name name) { return option.is(name); };
    if (std::ranges::any_of(kItsOwn, is_it)) continue;
    if (!option.is(kFramePointers) && std::ranges::none_of(kBoth, is_it)) return std::nullopt;
    line += " " + (option.is(kFramePointers) ? "--call-graph fp" : option.text());
  }
  if (!has(kPid) || workload.empty()) return line;
  const bool has_time = workload.size() == 2 && workload.front() == "sleep";
  return has_time ? std::optional(line + " --duration " + shell_word(workload.back()))
                  : std::nullopt;
}

std::string RecordCommand::text() const {
  const std::optional<std::string> own = by_perfmap ? perfmap_options() : std::nullopt;
  std::string line = with_sudo ? "sudo " : "";
  if (with_sudo && !environment.empty()) line += "env ";
  for (const std::string& one : environment) {
    const std::size_t value = one.find('=') + 1;
    line += one.substr(0, value) + shell_word(std::string_view(one).substr(value)) + " ";
  }
  line += own ? "perfmap record" + *own : shell_word(perf) + " record";
  for (const Option& option : options_) line += own ? "" : " " + option.text();
  if (own && has(kPid)) return line;
  if (!workload.empty()) line += " --";
  for (const std::string& word : workload) {
    line += " " + shell_word(word);
    if (line.size() > kLongest) return {};
  }
  return line.size() > kLongest ? std::string() : line;
}

}  // namespace perfmap
