-- SPDX-License-Identifier: MIT
-- Names the traces of LuaJIT (x86-64, arm64) for perf: local stop = require("perfmap")([DIRECTORY])
-- Writes the map of the process, and, to a directory that is given, a jitdump with lines.
local ffi, jutil = require("ffi"), require("jit.util")
ffi.cdef [[
typedef struct { size_t struct_size; int32_t sys_errno; uint64_t offset; char message[256]; } perfmap_error;
typedef struct { uint64_t address; int32_t line, column; const char* file; } perfmap_jitdump_line;
typedef struct { size_t struct_size; uint64_t start, size; const char* name; size_t name_size; const void* code;
  const perfmap_jitdump_line* lines; size_t line_count; const void* eh_frame; size_t eh_frame_size;
  const void* eh_frame_hdr; size_t eh_frame_hdr_size; uint64_t mapped_size, time; } perfmap_jitdump_function;
int perfmap_state_write_entry(uintptr_t code, size_t size, const char* name);
int perfmap_jitdump_open_own(const char* directory, const void* options, void** out, perfmap_error* error);
int perfmap_jitdump_load(void*, const perfmap_jitdump_function*, uint64_t* code_index, perfmap_error* error);
void perfmap_jitdump_free(void*);
]]
local lib, starts, groups = ffi.load("libperfmap.so.0"), {}, {}
local err, dump = ffi.new("perfmap_error", ffi.sizeof("perfmap_error")), ffi.new("void*[1]")
local function write(address, code, name, file, line)
  if lib.perfmap_state_write_entry(address, #code, name) ~= 0 then io.stderr:write("cannot write the map\n") end
  if dump[0] == nil then return end
  local lines = ffi.new("perfmap_jitdump_line[1]", { { address, line, 0, file } })
  local load = ffi.new("perfmap_jitdump_function", ffi.sizeof("perfmap_jitdump_function"), address, #code, name, #name, code, lines, 1)
  if lib.perfmap_jitdump_load(dump[0], load, nil, err) ~= 0 then io.stderr:write(ffi.string(err.message), "\n") end
end
local function on_trace(what, trace, func, pc, parent)
  if what == "start" then starts[trace] = { jutil.funcinfo(func, pc), parent } end
  if what ~= "stop" then return end
  local at, from = unpack(starts[trace])
  local code, address = jutil.tracemc(trace)
  local name = ("lua::trace%d%s:%s"):format(trace, from and "<-" .. from or "", at.loc or "?")
  write(address, code, name, at.source and at.source:match("[^@].*") or "?", at.currentline or 0)
  -- On x86 a trace is left by stubs, of which each 32 have 5 bytes in common. They are made as needed.
  for exit = 0, jit.arch == "x64" and jutil.traceinfo(trace).nexit - 1 or -1, 32 do
    local stubs, size = jutil.traceexitstub(exit), jutil.traceexitstub(exit + 1) - jutil.traceexitstub(exit)
    groups[stubs] = groups[stubs] or write(stubs, ffi.string(ffi.cast("char*", stubs), 32 * size + 5), "lua::exit_stubs", "?", 0) or true
  end
end
jit.off(on_trace, true) -- this callback itself is never compiled
return function(directory)
  assert(not directory or lib.perfmap_jitdump_open_own(directory, nil, dump, err) == 0, ffi.string(err.message))
  jit.attach(on_trace, "trace")
  return function() jit.attach(on_trace); lib.perfmap_jitdump_free(dump[0]); dump[0] = nil end
end
