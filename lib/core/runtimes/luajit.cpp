// LuaJIT: TRACE_1::file.lua:12.

#include "runtimes/catalogue.hpp"

namespace perfmap::runtimes {
namespace {

std::optional<DecodedName> decode(std::string_view raw) {
  const std::size_t colons = raw.find("::");
  if (!raw.starts_with("TRACE_") || colons == std::string_view::npos ||
      !all_digits(raw.substr(6, colons - 6))) {
    return std::nullopt;
  }
  DecodedName name{.runtime = Runtime::luajit, .tier = "trace", .function = raw.substr(0, colons)};
  if (const auto place = split_place(raw.substr(colons + 2))) {
    name.file = place->path;
    name.line = place->line;
  }
  return name;
}

}  // namespace

constinit const RuntimeInfo kLuajit = {
    .runtime = Runtime::luajit,
    .id = "luajit",
    .title = "LuaJIT",
    .names = {.decode = decode},
    .signs = {.programs = {"luajit", "luajit-"}, .libraries = {"libluajit-"}},
    .maps = {.build_command = "make XCFLAGS=-DLUAJIT_USE_PERFTOOLS"},
    .doctor = {.no_map = "LuaJIT writes a perf map only if it was built with LUAJIT_USE_PERFTOOLS, "
                         "and this one was not"},
    .guide = {.title = "LuaJIT",
              .start = "make XCFLAGS=-DLUAJIT_USE_PERFTOOLS",
              .writes = "perf map",
              .names = "traces, with file and line"},
};

}  // namespace perfmap::runtimes
