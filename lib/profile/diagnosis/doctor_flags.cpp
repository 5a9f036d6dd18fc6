#include "diagnosis/doctor_flags.hpp"

#include <algorithm>
#include <charconv>
#include <initializer_list>

namespace perfmap {
namespace {

using Words = std::vector<std::string>;

constexpr std::string_view kJitless = "--jitless";

Words words_of(std::string_view text) {
  Words words;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find_first_of(" \t\n"), text.size());
    if (end != 0) words.emplace_back(text.substr(0, end));
    text.remove_prefix(std::min(text.size(), end + 1));
  }
  return words;
}

/// A runtime's own options: those before the script. `with_value` take the word behind them.
Words own_options(const ProcessView& view, std::initializer_list<std::string_view> with_value) {
  Words own;
  for (std::size_t i = 1; i < view.arguments.size(); ++i) {
    const std::string& word = view.arguments[i];
    if (!word.starts_with('-') && !word.starts_with('+')) break;
    if (word == "--") break;
    own.push_back(word);
    const bool takes = std::find(with_value.begin(), with_value.end(), word) != with_value.end();
    if (takes && i + 1 < view.arguments.size()) own.push_back(view.arguments[++i]);
  }
  return own;
}

void add_variable(Words& words, const ProcessView& view, std::string_view name) {
  for (std::string& word : words_of(variable(view, name).value_or(""))) {
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

Words node_options(const ProcessView& view) {
  return own_options(view, {"-e", "--eval", "-p", "--print", "-r", "--require", "--import",
                            "--loader", "--experimental-loader", "-C", "--conditions"});
}

/// V8 takes '_' for '-' in the names of its options.
AskedFor node_flags(const ProcessView& view) {
  Words words = node_options(view);
  add_variable(words, view, "NODE_OPTIONS");
  AskedFor asked;
  for (std::string& word : words) {
    const std::size_t value = std::min(word.find('='), word.size());
    std::replace(word.begin(), word.begin() + static_cast<std::ptrdiff_t>(value), '_', '-');
    constexpr std::string_view kPath = "--perf-basic-prof-path=";
    if (word == "--perf-basic-prof" || word == "--perf-basic-prof-only-functions") {
      asked.map_by = word;
    } else if (word.starts_with(kPath)) {
      asked.directory = word.substr(kPath.size());
    } else if (word == "--perf-prof") {
      asked.dump_by = word;
    } else if (word == "--interpreted-frames-native-stack") {
      asked.interpreted_frames = true;
    } else if (word == kJitless) {
      asked.only_interprets = true;
    } else if (word == "--no-jitless" || word == "--nojitless") {
      asked.only_interprets = false;
    }
  }
  return asked;
}

AskedFor java_flags(const ProcessView& view) {
  Words words = own_options(view, {"-cp", "-classpath", "--class-path", "-p", "--module-path",
                                   "--upgrade-module-path", "--add-modules", "--add-opens",
                                   "--add-exports", "--add-reads", "-jar", "-m", "--module"});
  for (const std::string_view name : {"JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS", "_JAVA_OPTIONS"}) {
    add_variable(words, view, name);
  }
  AskedFor asked;
  for (const std::string& word : words) {
    if (word == "-XX:+DumpPerfMapAtExit") asked.map_by = word;
    if (word == "-Xint") asked.only_interprets = true;
    if (word == "-XX:+PreserveFramePointer") asked.frame_pointers = true;
    if (word == "-XX:-PreserveFramePointer") asked.frame_pointers = false;
  }
  return asked;
}

AskedFor python_flags(const ProcessView& view) {
  const Words words = own_options(view, {"-X", "-W", "--check-hash-based-pycs", "-c", "-m"});
  AskedFor asked;
  const auto is_on = [&view](std::string_view name) {
    const auto value = variable(view, name);
    return value && !value->empty() && *value != "0";
  };
  if (is_on("PYTHONPERFSUPPORT")) asked.map_by = "PYTHONPERFSUPPORT";
  if (is_on("PYTHON_PERF_JIT_SUPPORT")) asked.dump_by = "PYTHON_PERF_JIT_SUPPORT";
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (words[i] == "-c" || words[i] == "-m") break;
    std::string_view value;
    if (words[i] == "-X" && i + 1 < words.size()) {
      value = words[++i];
    } else if (words[i].starts_with("-X")) {
      value = std::string_view(words[i]).substr(2);
    }
    if (value == "perf") asked.map_by = "-X perf";
    if (value == "perf_jit") asked.dump_by = "-X perf_jit";
  }
  return asked;
}

/// 1: both; 2: the dump; 3: the map. The runtime reads its numbers as hexadecimal.
AskedFor dotnet_flags(const ProcessView& view) {
  AskedFor asked;
  for (const std::string prefix : {"DOTNET_", "COMPlus_"}) {
    const std::string name = prefix + "PerfMapEnabled";
    const std::uint64_t which = number_of(variable(view, name).value_or("0"), 16);
    const std::string by = name + "=" + std::to_string(which);
    if (which == 1 || which == 3) asked.map_by = by;
    if (which == 1 || which == 2) asked.dump_by = by;
    const auto directory = variable(view, prefix + "PerfMapJitDumpPath");
    if (directory) asked.directory = std::string(*directory);
    if (which != 0) break;
  }
  // Older releases write to the directory for temporary files.
  if (asked.directory.empty()) asked.directory = std::string(variable(view, "TMPDIR").value_or(""));
  while (asked.directory.size() > 1 && asked.directory.ends_with('/')) asked.directory.pop_back();
  return asked;
}

AskedFor erlang_flags(const ProcessView& view) {
  AskedFor asked;
  for (std::size_t i = 1; i + 1 < view.arguments.size() && view.arguments[i] != "--"; ++i) {
    // erlexec hands the emulator's "+" on as "-".
    if (view.arguments[i] != "+JPperf" && view.arguments[i] != "-JPperf") continue;
    const std::string& what = view.arguments[i + 1];
    const std::string by = "+JPperf " + what;
    asked.map_by = what == "true" || what == "map" ? by : "";
    asked.dump_by = what == "true" || what == "dump" ? by : "";
  }
  return asked;
}

AskedFor ruby_flags(const ProcessView& view) {
  Words words = own_options(view, {"-e", "-I", "-r", "-C", "-E"});
  add_variable(words, view, "RUBYOPT");
  AskedFor asked;
  for (const std::string& word : words) {
    const bool perf = word == "--yjit-perf" || word.starts_with("--yjit-perf=");
    if (perf) asked.map_by = word;
    if (perf || word == "--yjit") asked.jit = true;
  }
  const auto enabled = variable(view, "RUBY_YJIT_ENABLE");
  if (enabled && *enabled == "1") asked.jit = true;
  return asked;
}

/// php.ini cannot be seen: what it says is no flag here.
AskedFor php_flags(const ProcessView& view) {
  constexpr std::uint64_t kMap = 0x10;
  constexpr std::uint64_t kDump = 0x20;
  AskedFor asked;
  const Words words = own_options(view, {"-d", "--define", "-c", "-r", "-f", "-z"});
  for (std::string_view word : words) {
    if (word.starts_with("-d")) word.remove_prefix(2);
    if (word.starts_with("opcache.jit_buffer_size=")) asked.jit = true;
    constexpr std::string_view kDebug = "opcache.jit_debug=";
    if (!word.starts_with(kDebug)) continue;
    const std::uint64_t bits = number_of(word.substr(kDebug.size()), 10);
    if ((bits & kMap) != 0) asked.map_by = std::string(word);
    if ((bits & kDump) != 0) asked.dump_by = std::string(word);
  }
  return asked;
}

AskedFor mono_flags(const ProcessView& view) {
  Words words = own_options(view, {});
  add_variable(words, view, "MONO_ENV_OPTIONS");
  AskedFor asked;
  const bool map = std::find(words.begin(), words.end(), "--jitmap") != words.end();
  asked.map_by = map ? "--jitmap" : "";
  return asked;
}

AskedFor wasmtime_flags(const ProcessView& view) {
  AskedFor asked;
  const Words& words = view.arguments;
  for (std::size_t i = 1; i < words.size() && words[i] != "--"; ++i) {
    std::string_view value;
    constexpr std::string_view kProfile = "--profile";
    if (words[i] == kProfile && i + 1 < words.size()) {
      value = words[i + 1];
    } else if (words[i].starts_with("--profile=")) {
      value = std::string_view(words[i]).substr(kProfile.size() + 1);
    }
    if (value == "perfmap") asked.map_by = "--profile=perfmap";
    if (value == "jitdump") asked.dump_by = "--profile=jitdump";
  }
  return asked;
}

/// CATEGORIES:FILE, where a category is the beginning of its sections' names; +FILE has all. "-" is
/// standard error. Source: PyPy, rpython/translator/c/src/debug_print.c.
AskedFor pypy_flags(const ProcessView& view) {
  const std::string_view value = variable(view, "PYPYLOG").value_or("");
  const std::size_t colon = value.find(':');
  bool has_addresses = value.starts_with('+');
  std::string_view categories = colon == std::string_view::npos ? "" : value.substr(0, colon);
  while (!has_addresses && !categories.empty()) {
    const std::size_t end = std::min(categories.find(','), categories.size());
    has_addresses = std::string_view("jit-backend-addr").starts_with(categories.substr(0, end));
    categories.remove_prefix(std::min(categories.size(), end + 1));
  }
  AskedFor asked;
  if (!has_addresses) return asked;
  const std::string_view file = value.substr(value.starts_with('+') ? 1 : colon + 1);
  if (file != "-") asked.log = file;
  return asked;
}

}  // namespace

void remove_jitless(const ProcessView& view, CommandText& command) {
  Words& words = command.arguments;
  const std::size_t own = std::min(node_options(view).size(), words.size());
  const auto end = words.begin() + static_cast<std::ptrdiff_t>(own);
  words.erase(std::remove(words.begin(), end, kJitless), end);
  constexpr std::string_view kOptions = "NODE_OPTIONS=";
  for (std::string& one : command.environment) {
    if (!one.starts_with(kOptions)) continue;
    std::string rest(kOptions);
    for (const std::string& word : words_of(std::string_view(one).substr(kOptions.size()))) {
      if (word != kJitless) rest += (rest.size() == kOptions.size() ? "" : " ") + word;
    }
    one = rest;
  }
  std::erase(command.environment, kOptions);
}

AskedFor flags_of(HostRuntime runtime, const ProcessView& view) {
  switch (runtime) {
    case HostRuntime::node: return node_flags(view);
    case HostRuntime::jvm: return java_flags(view);
    case HostRuntime::cpython: return python_flags(view);
    case HostRuntime::pypy: return pypy_flags(view);
    case HostRuntime::dotnet: return dotnet_flags(view);
    case HostRuntime::erlang: return erlang_flags(view);
    case HostRuntime::ruby: return ruby_flags(view);
    case HostRuntime::php: return php_flags(view);
    case HostRuntime::mono: return mono_flags(view);
    case HostRuntime::wasmtime: return wasmtime_flags(view);
    case HostRuntime::luajit:
    case HostRuntime::unknown: return {};
  }
  return {};
}

}  // namespace perfmap
