// SPDX-License-Identifier: MIT
// Ruby's YJIT: "[JIT] label@file:line" for methods, "[JIT] label" for code of its own.

#include <algorithm>

#include "runtimes/catalogue.hpp"

namespace perfmap::runtimes {
namespace {

std::optional<DecodedName> decode(std::string_view raw) {
  if (!raw.starts_with("[JIT] ") || raw.size() == 6) return std::nullopt;
  DecodedName name{.runtime = Runtime::ruby, .function = raw.substr(6)};
  const std::size_t at = name.function.find('@');
  if (at == std::string_view::npos || at == 0) return name;
  const std::size_t colon = name.function.rfind(':');
  const auto line = colon == std::string_view::npos
                        ? std::nullopt
                        : parse_decimal(name.function.substr(colon + 1));
  if (!line || colon <= at + 1) return name;
  name.file = name.function.substr(at + 1, colon - at - 1);
  name.line = *line;
  name.function = name.function.substr(0, at);
  return name;
}

constexpr std::string_view kVariables[] = {"RUBYOPT", "RUBY_YJIT_ENABLE"};
constexpr std::string_view kNamingVariables[] = {"RUBYOPT=--yjit --yjit-perf"};

Words options_of(const ProgramStart& start) {
  Words words = own_options(start, {"-e", "-I", "-r", "-C", "-E"});
  add_variable(words, start, "RUBYOPT");
  return words;
}

/// Ruby 4.0 has a second JIT, with options of the same form. Source: ruby --help of 4.0.
bool uses_zjit(const ProgramStart& start) {
  const Words words = options_of(start);
  return std::ranges::find(words, "--zjit") != words.end();
}

StartFlags flags_of(const ProgramStart& start) {
  StartFlags asked;
  for (const std::string& word : options_of(start)) {
    const std::string_view name = std::string_view(word).substr(0, word.find('='));
    const bool perf = name == "--yjit-perf" || name == "--zjit-perf";
    if (perf) asked.map_by = word;
    if (perf || word == "--yjit" || word == "--zjit") asked.jit = true;
  }
  if (start.variable("RUBY_YJIT_ENABLE") == "1") asked.jit = true;
  return asked;
}

CommandLine naming_command(const RuntimeProcess& process) {
  Words flags;
  if (!process.flags.jit) flags.emplace_back("--yjit");
  const bool zjit = uses_zjit(process.start);
  if (process.flags.map_by.empty()) flags.emplace_back(zjit ? "--zjit-perf" : "--yjit-perf");
  return with_flags(process.start, std::move(flags));
}

constexpr StartVariable kStartVariables[] = {{"RUBYOPT", "--yjit --yjit-perf", ' '}};
constexpr std::string_view kVersionArguments[] = {"--version"};

}  // namespace

constinit const RuntimeInfo kRuby = {
    .runtime = Runtime::ruby,
    .id = "ruby",
    .title = "Ruby",
    .frame_type = "ruby",
    .names = {.decode = decode},
    // Ruby names its memory with PR_SET_VMA_ANON_NAME.
    .signs = {.programs = {"ruby"},
              .libraries = {"libruby"},
              .region = "[anon:Ruby:",
              .version_program = "ruby",
              .version_library = "libruby-"},
    .maps = {.language = "Ruby",
             .first_release = "3.3",
             .variables = kVariables,
             .flags = flags_of,
             .command = naming_command,
             .naming_variables = kNamingVariables},
    .doctor = {.no_jit = "Ruby runs without YJIT, and only YJIT's code can have names"},
    .started = {.variables = kStartVariables,
                .first_release = "3.3",
                .version_arguments = kVersionArguments,
                .prints = "\"YJIT perf map: ...\""},
    .guide = {.title = "Ruby (YJIT)",
              .writes = "perf map",
              .names = "methods and blocks, with file and line"},
};

}  // namespace perfmap::runtimes
