// SPDX-License-Identifier: MIT
// PHP 8: JIT$function, JIT$Class::method, JIT$$stub, TRACE-1$function$line.

#include <algorithm>
#include <array>

#include "runtimes/catalogue.hpp"

namespace perfmap::runtimes {
namespace {

std::optional<DecodedName> decode(std::string_view raw) {
  if (raw.starts_with("JIT$$") || raw.starts_with("jit$$")) {
    return DecodedName{.runtime = Runtime::php, .tier = "stub", .function = raw.substr(5)};
  }
  if (raw.starts_with("JIT$") && raw.size() > 4) {
    DecodedName name{.runtime = Runtime::php, .function = raw.substr(4)};
    if (name.function.starts_with('/')) name.file = name.function;
    return name;
  }
  const std::size_t first = raw.find('$');
  if (!raw.starts_with("TRACE-") || first == std::string_view::npos ||
      !all_digits(raw.substr(6, first - 6))) {
    return std::nullopt;
  }
  DecodedName name{.runtime = Runtime::php, .tier = "trace", .function = raw.substr(first + 1)};
  const std::size_t last = name.function.rfind('$');
  const auto line =
      last == std::string_view::npos ? std::nullopt : parse_decimal(name.function.substr(last + 1));
  if (line && last != 0) {
    name.line = *line;
    name.function = name.function.substr(0, last);
  }
  if (name.function.starts_with('/')) name.file = name.function;
  return name;
}

/// A function has a trace for each of its loops, and side traces: they are one function.
std::string without_tier(std::string_view raw, const DecodedName& name) {
  return std::string(name.function.empty() ? raw : name.function);
}

constexpr std::string_view kJit = "opcache.jit=";

bool is_off(std::string_view value) noexcept {
  constexpr std::array<std::string_view, 5> kOff = {"off", "disable", "no", "false", "0"};
  return std::ranges::find(kOff, value) != kOff.end();
}

Words options_of(const ProgramStart& start) {
  return own_options(start, {"-d", "--define", "-c", "-r", "-f", "-z"});
}

/// php.ini cannot be read, so its settings are unknown.
StartFlags flags_of(const ProgramStart& start) {
  constexpr std::uint64_t kMap = 0x10;
  constexpr std::uint64_t kDump = 0x20;
  StartFlags asked;
  for (std::string_view word : options_of(start)) {
    if (word.starts_with("-d")) word.remove_prefix(2);
    if (word.starts_with("opcache.jit_buffer_size=")) asked.jit = true;
    if (word.starts_with(kJit)) asked.only_interprets = is_off(word.substr(kJit.size()));
    constexpr std::string_view kDebug = "opcache.jit_debug=";
    if (!word.starts_with(kDebug)) continue;
    const std::uint64_t bits = number_of(word.substr(kDebug.size()), 10);
    if ((bits & kMap) != 0) asked.map_by = std::string(word);
    if ((bits & kDump) != 0) asked.dump_by = std::string(word);
  }
  return asked;
}

CommandLine naming_command(const RuntimeProcess& process) {
  constexpr std::string_view kNoIni = "-n";  // nor the compiler, which php.ini loads
  Words flags;
  if (std::ranges::count(options_of(process.start), kNoIni) != 0) {
    flags = {"-d", "zend_extension=opcache"};
  }
  if (!process.has_jit) {
    flags.insert(flags.end(), {"-d", "opcache.enable_cli=1", "-d", "opcache.jit=tracing", "-d",
                               "opcache.jit_buffer_size=64M"});
  }
  flags.insert(flags.end(), {"-d", "opcache.jit_debug=0x10"});
  return with_flags(process.start, std::move(flags));
}

/// The empty directory before the colon stands for PHP's own. Debian and Ubuntu turn the JIT
/// compiler off there (opcache.jit=off), so a buffer alone names nothing. By default PHP does not
/// compile a file that is younger than two seconds, such as one of a fresh checkout.
constexpr StartVariable kStartVariables[] = {{"PHP_INI_SCAN_DIR", ":{dir}/ini", ':'}};

}  // namespace

constinit const RuntimeInfo kPhp = {
    .runtime = Runtime::php,
    .id = "php",
    .title = "PHP",
    .frame_type = "php",
    .names = {.decode = decode, .without_tier = without_tier},
    .signs = {.programs = {"php", "php-fpm", "php-cgi"}, .libraries = {"libphp"}},
    .maps = {.flags = flags_of, .command = naming_command},
    .doctor = {.no_jit = "PHP runs without its JIT compiler, and only JIT code can have names",
               .only_interprets =
                   "PHP only interprets (opcache.jit=off), so the functions of scripts have no "
                   "code to name; remove that option"},
    .started = {.variables = kStartVariables,
                .ini = "opcache.enable_cli=1\nopcache.jit=tracing\n"
                       "opcache.jit_buffer_size=64M\nopcache.jit_debug=0x10\n"
                       "opcache.file_update_protection=0\n"},
    .guide = {.title = "PHP",
              .start = "php -d opcache.enable_cli=1 -d opcache.jit=tracing "
                       "-d opcache.jit_buffer_size=64M -d opcache.jit_debug=0x10",
              .writes = "perf map",
              .names = "functions and traces",
              .lines = "PHP names the line where a trace begins, without its file",
              .since = "8.0",
              .tested = "8.2",
              .recorded = "2 % of stacks to the root, because its code has no frame "
                          "pointers; 100 % of JIT frames named"},
};

}  // namespace perfmap::runtimes
