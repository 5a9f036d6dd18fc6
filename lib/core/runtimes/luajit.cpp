// SPDX-License-Identifier: MIT
// LuaJIT: TRACE_1::file.lua:12.

#include "runtimes/catalogue.hpp"

namespace perfmap::runtimes {
namespace {

std::optional<DecodedName> decode(std::string_view raw) {
  const std::size_t colons = raw.find("::");
  if (!raw.starts_with("TRACE") || colons == std::string_view::npos) return std::nullopt;
  const std::string_view number = raw.substr(5, colons - 5);
  const bool is_stable = number.empty();  // see stable_name()
  if (!is_stable && (number.front() != '_' || !all_digits(number.substr(1)))) return std::nullopt;
  DecodedName name{.runtime = Runtime::luajit, .tier = "trace", .function = raw.substr(0, colons)};
  if (const auto place = split_place(raw.substr(colons + 2))) {
    name.file = place->path;
    name.line = place->line;
  }
  return name;
}

constexpr RunNumber kRunNumbers[] = {{.after = "TRACE", .mark = "_"}};

}  // namespace

constinit const RuntimeInfo kLuajit = {
    .runtime = Runtime::luajit,
    .id = "luajit",
    .title = "LuaJIT",
    .frame_type = "luajit",
    .names = {.decode = decode, .run_numbers = kRunNumbers},
    .signs = {.programs = {"luajit", "luajit-"}, .libraries = {"libluajit-"}},
    .maps = {.build_command = "make XCFLAGS=-DLUAJIT_USE_PERFTOOLS"},
    .doctor = {.no_map = "LuaJIT was built without LUAJIT_USE_PERFTOOLS, so it writes no perf map"},
    .guide = {.title = "LuaJIT",
              .start = "luajit built with: make XCFLAGS=-DLUAJIT_USE_PERFTOOLS",
              .writes = "perf map",
              .names = "traces, with file and line"},
};

}  // namespace perfmap::runtimes
