// SPDX-License-Identifier: MIT
#include "perfmap/runtimes.hpp"

#include <algorithm>
#include <charconv>

#include "perfmap/text.hpp"
#include "runtimes/catalogue.hpp"

namespace perfmap {
namespace {

using runtimes::Words;

/// In the order in which names are tried: grammars with a clear mark first. HotSpot's grammar is
/// the loosest, and .NET's matches some Ruby names.
constexpr std::array kRuntimes = {
    &runtimes::kV8,     &runtimes::kCpython,    &runtimes::kDotnet,       &runtimes::kJsc,
    &runtimes::kErlang, &runtimes::kPhp,        &runtimes::kLuajit,       &runtimes::kHhvm,
    &runtimes::kQemu,   &runtimes::kWasmtime,   &runtimes::kJulia,        &runtimes::kRuby,
    &runtimes::kPypy,   &runtimes::kMono,       &runtimes::kSpidermonkey, &runtimes::kHotspot,
    &runtimes::kDeno,   &runtimes::kPostgresql, &runtimes::kGuile,        &runtimes::kSbcl,
    &runtimes::kRacket,
};

constinit const RuntimeInfo kUnknown = {.id = "", .title = "this program"};

constexpr std::array kTiers = {
    Tier{"interpreted", TierClass::interpreted, false},
    Tier{"interpreter", TierClass::interpreted, true},
    Tier{"bytecode", TierClass::interpreted, true},
    Tier{"baseline", TierClass::baseline, false},
    Tier{"tier0", TierClass::baseline, false},
    Tier{"instrumented", TierClass::baseline, false},
    Tier{"maglev", TierClass::middle, false},
    Tier{"dfg", TierClass::middle, false},
    Tier{"turbofan", TierClass::optimized, false},
    Tier{"ion", TierClass::optimized, false},
    Tier{"ftl", TierClass::optimized, false},
    Tier{"tier1", TierClass::optimized, false},
    Tier{"trace", TierClass::optimized, false},
    Tier{"wasm", TierClass::optimized, false},
    Tier{"builtin", TierClass::runtime, true},
    Tier{"regexp", TierClass::runtime, true},
    Tier{"stub", TierClass::runtime, true},
    Tier{"adapter", TierClass::runtime, true},
    Tier{"trampoline", TierClass::runtime, true},
    Tier{"prejit", TierClass::runtime, false},
};

/// `name` is a stem with a version: "python3.11", "pypy3.9-c", "luajit-2.1.0-beta3".
bool is_program(std::string_view name, std::string_view stem) noexcept {
  if (stem.empty() || !name.starts_with(stem)) return false;
  name.remove_prefix(stem.size());
  if (stem.ends_with('-')) return true;
  if (name.ends_with("-c")) name.remove_suffix(2);
  if (name.ends_with("d") && name.size() > 1) name.remove_suffix(1);  // debug build
  return name.find_first_not_of("0123456789.") == std::string_view::npos;
}

/// "libpython3.11.so.1.0" for the stem "libpython"; "libpypy3.9-c.so".
bool is_library(std::string_view name, std::string_view stem) noexcept {
  if (stem.empty() || !name.starts_with(stem)) return false;
  const std::size_t end = name.find(".so", stem.size());
  if (end == std::string_view::npos) return false;
  const std::string_view middle = name.substr(stem.size(), end - stem.size());
  return middle.find_first_not_of("0123456789.-cdm") == std::string_view::npos;
}

template <class Is>
const RuntimeInfo* first_runtime(Is&& is) noexcept {
  const auto* const found =
      std::ranges::find_if(kRuntimes, [&](const RuntimeInfo* row) { return is(*row); });
  return found == kRuntimes.end() ? nullptr : *found;
}

/// Whether the arguments were overwritten by a title: "nginx: worker process".
bool is_title(const Words& arguments) noexcept {
  return arguments.empty() ||
         (arguments.size() == 1 && arguments[0].find(' ') != std::string::npos);
}

/// Environment variables for runtimes that a new shell would not set.
Words runtime_variables(const ProgramStart& start) {
  Words found;
  for (const RuntimeInfo* const row : kRuntimes) {
    for (const std::string_view name : row->maps.variables) {
      const auto value = start.variable(name);
      if (value) found.push_back(std::string(name) + "=" + std::string(*value));
    }
  }
  return found;
}

std::string without_number(std::string_view text, const RunNumber& number) {
  constexpr std::size_t kAddressDigits = 8;
  const std::string begin = std::string(number.after).append(number.mark);
  const char* const digits = number.is_address ? "0123456789abcdef" : "0123456789";
  const std::size_t fewest = number.is_address ? kAddressDigits : 1;
  std::string kept;
  for (std::size_t at = text.find(begin); at != std::string_view::npos; at = text.find(begin)) {
    const std::size_t first = at + begin.size();
    const std::size_t end = std::min(text.find_first_not_of(digits, first), text.size());
    const std::string_view rest = text.substr(end);
    // "/0" is no number in "/0x20".
    const bool is_inside =
        number.is_begin && at > 0 && (is_word(text[at - 1]) || text[at - 1] == '$');
    const bool is_it = end - first >= fewest && !rest.starts_with('x') && !is_inside &&
                       rest.starts_with(number.end) && (!number.is_last || rest.empty());
    kept.append(text.substr(0, is_it ? at + number.after.size() : end));
    text = rest.substr(is_it ? number.end.size() : 0);
  }
  return kept.append(text);
}

}  // namespace

std::span<const RuntimeInfo* const> all_runtimes() noexcept { return kRuntimes; }

const RuntimeInfo& runtime_info(Runtime runtime) noexcept {
  const RuntimeInfo* const row =
      first_runtime([&](const RuntimeInfo& one) { return one.runtime == runtime; });
  return row == nullptr ? kUnknown : *row;
}

std::string_view to_string(Runtime runtime) noexcept { return runtime_info(runtime).id; }

std::string_view process_word(Runtime runtime) noexcept {
  const RuntimeInfo& row = runtime_info(runtime);
  return row.process.empty() ? row.id : row.process;
}

std::string_view title_of(Runtime runtime) noexcept { return runtime_info(runtime).title; }

const RuntimeInfo* runtime_of_program(std::string_view path) noexcept {
  return first_runtime([name = base_name(path)](const RuntimeInfo& row) {
    return std::ranges::any_of(row.signs.programs,
                               [&](std::string_view stem) { return is_program(name, stem); });
  });
}

const RuntimeInfo* runtime_of_library(std::string_view path) noexcept {
  return first_runtime([name = base_name(path)](const RuntimeInfo& row) {
    return std::ranges::any_of(row.signs.libraries,
                               [&](std::string_view stem) { return is_library(name, stem); });
  });
}

const RuntimeInfo* runtime_of_region(std::string_view name) noexcept {
  return first_runtime([name](const RuntimeInfo& row) {
    return !row.signs.region.empty() && name.starts_with(row.signs.region);
  });
}

Version parse_version(std::string_view text) noexcept {
  Version version;
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, version.major);
  if (error == std::errc() && stop != end && *stop == '.') {
    std::from_chars(stop + 1, end, version.minor);
  }
  return version;
}

bool is_too_old(const RuntimeInfo& runtime, std::string_view text) noexcept {
  const Version version = parse_version(text);
  return version != Version() && version < parse_version(runtime.maps.first_release);
}

std::string naming_start(const RuntimeInfo& runtime) {
  std::string text(runtime.guide.start);
  if (!text.empty()) return text;
  for (const std::string_view variable : runtime.maps.naming_variables) {
    const std::size_t value = variable.find('=') + 1;
    const std::string_view quote = variable.find(' ') == std::string_view::npos ? "" : "'";
    text.append(text.empty() ? "" : " ").append(variable.substr(0, value));
    text.append(quote).append(variable.substr(value)).append(quote);
  }
  return text;
}

std::string_view naming_since(const RuntimeInfo& runtime) noexcept {
  if (!runtime.guide.since.empty()) return runtime.guide.since;
  return runtime.maps.first_release.empty() ? "any" : runtime.maps.first_release;
}

StartFlags start_flags(Runtime runtime, const ProgramStart& start) {
  const auto flags = runtime_info(runtime).maps.flags;
  return flags == nullptr ? StartFlags() : flags(start);
}

StackFlags stack_flags(Runtime runtime, const RuntimeProcess& process) {
  const auto flags = runtime_info(runtime).stacks.flags;
  return flags == nullptr ? StackFlags() : flags(process);
}

CommandLine own_command(const ProgramStart& start) {
  CommandLine command;
  command.environment = runtime_variables(start);
  if (is_title(start.arguments)) {
    command.program = base_name(start.executable);
    command.arguments = {"..."};
  } else {
    command.program = start.arguments.front().empty() ? start.executable : start.arguments.front();
    command.arguments.assign(start.arguments.begin() + 1, start.arguments.end());
  }
  return command;
}

std::optional<std::string_view> ProgramStart::variable(std::string_view name) const noexcept {
  for (const std::string& one : environment) {
    if (one.starts_with(name) && one.size() > name.size() && one[name.size()] == '=') {
      return std::string_view(one).substr(name.size() + 1);
    }
  }
  return std::nullopt;
}

std::vector<std::string> CommandLine::words() const {
  std::vector<std::string> words = {program};
  words.insert(words.end(), inserted.begin(), inserted.end());
  words.insert(words.end(), arguments.begin(), arguments.end());
  return words;
}

std::string CommandLine::text() const {
  constexpr std::size_t kLongest = 400;  // characters; longer lines are not readable
  std::string line;
  for (const std::string& one : environment) {
    const std::size_t value = one.find('=') + 1;
    line += one.substr(0, value) + shell_word(std::string_view(one).substr(value)) + " ";
  }
  line += shell_word(std::string_view(program).substr(0, kLongest));
  for (const std::string& one : inserted) line += " " + shell_word(one);
  for (const std::string& one : arguments) {
    if (one.size() > kLongest || line.size() + one.size() > kLongest) return line + " ...";
    line += " " + shell_word(one);
  }
  return line;
}

std::span<const Tier> all_tiers() noexcept { return kTiers; }

std::span<const Tier> tiers_of(TierClass code) noexcept {
  // Not equal_range(): clang 14 cannot compile the std::ranges::subrange of libstdc++ 12.
  const auto* const begin = std::ranges::lower_bound(kTiers, code, {}, &Tier::code);
  const auto* const end = std::ranges::upper_bound(kTiers, code, {}, &Tier::code);
  return {begin, end};
}

const Tier* find_tier(std::string_view name) noexcept {
  const auto* const found = std::ranges::find(kTiers, name, &Tier::name);
  return found == kTiers.end() ? nullptr : found;
}

bool may_name_data(std::string_view raw) {
  const DecodedName name = decode_name(raw);
  return !name.tier.empty() && name.tier == runtime_info(name.runtime).names.data_tier;
}

DecodedName decode_name(std::string_view raw) {
  for (const RuntimeInfo* const row : kRuntimes) {
    if (row->names.decode == nullptr) continue;
    if (auto decoded = row->names.decode(raw)) return *std::move(decoded);
  }
  return {.function = raw};
}

std::string without_tier(std::string_view raw) {
  const DecodedName decoded = decode_name(raw);
  const auto shorten = runtime_info(decoded.runtime).names.without_tier;
  const Tier* const tier = find_tier(decoded.tier);
  const bool is_own_code = tier != nullptr && tier->is_own_code;
  return is_own_code || shorten == nullptr ? std::string(raw) : shorten(raw, decoded);
}

std::string stable_name(std::string_view raw) {
  std::string name(raw);
  for (const RunNumber& number : runtime_info(decode_name(raw).runtime).names.run_numbers) {
    name = without_number(name, number);
  }
  return name;
}

namespace runtimes {

const Kind* kind_of(std::string_view raw, std::span<const Kind> kinds) noexcept {
  for (const Kind& kind : kinds) {
    if (raw.starts_with(kind.prefix) && raw.size() > kind.prefix.size()) return &kind;
  }
  return nullptr;
}

std::optional<std::uint64_t> parse_decimal(std::string_view text) noexcept {
  std::uint64_t value = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  if (text.empty() || error != std::errc() || stop != end) return std::nullopt;
  return value;
}

std::optional<Place> split_place(std::string_view text) noexcept {
  const auto take_number = [&]() -> std::optional<std::uint64_t> {
    const std::size_t colon = text.rfind(':');
    if (colon == std::string_view::npos) return std::nullopt;
    const auto number = parse_decimal(text.substr(colon + 1));
    if (number) text = text.substr(0, colon);
    return number;
  };
  const auto last = take_number();
  if (!last) return std::nullopt;
  const auto before = take_number();
  if (!before) return Place{text, *last, 0};
  return Place{text, *before, *last};
}

void set_place(const Place& place, DecodedName& name) noexcept {
  name.file = place.path;
  name.line = place.line;
  name.column = place.column;
}

std::string from_function(std::string_view raw, const DecodedName& name) {
  const auto begin = static_cast<std::size_t>(name.function.data() - raw.data());
  return (name.function.empty() ? "(anonymous)" : "") + std::string(raw.substr(begin));
}

Words words_of(std::string_view text) {
  Words words;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find_first_of(" \t\n"), text.size());
    if (end != 0) words.emplace_back(text.substr(0, end));
    text.remove_prefix(std::min(text.size(), end + 1));
  }
  return words;
}

Words own_options(const ProgramStart& start, std::initializer_list<std::string_view> with_value) {
  Words own;
  for (std::size_t i = 1; i < start.arguments.size(); ++i) {
    const std::string& word = start.arguments[i];
    if (!word.starts_with('-') && !word.starts_with('+')) break;
    if (word == "--") break;
    own.push_back(word);
    const bool takes = std::ranges::find(with_value, word) != with_value.end();
    if (takes && i + 1 < start.arguments.size()) own.push_back(start.arguments[++i]);
  }
  return own;
}

void add_variable(Words& words, const ProgramStart& start, std::string_view name) {
  for (std::string& word : words_of(start.variable(name).value_or(""))) {
    words.push_back(std::move(word));
  }
}

std::uint64_t number_of(std::string_view text, int base) noexcept {
  if (text.starts_with("0x") || text.starts_with("0X")) {
    text.remove_prefix(2);
    base = 16;
  }
  std::uint64_t number = 0;
  std::from_chars(text.data(), text.data() + text.size(), number, base);
  return number;
}

CommandLine with_flags(const ProgramStart& start, Words flags) {
  CommandLine command = own_command(start);
  command.inserted = std::move(flags);
  return command;
}

CommandLine with_variables(const ProgramStart& start, std::span<const std::string_view> variables) {
  CommandLine command = own_command(start);
  for (const std::string_view one : variables) {
    const std::string_view name = one.substr(0, one.find('=') + 1);
    std::erase_if(command.environment,
                  [&](const std::string& had) { return had.starts_with(name); });
    command.environment.emplace_back(one);
  }
  return command;
}

}  // namespace runtimes
}  // namespace perfmap
