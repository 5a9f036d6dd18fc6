// SPDX-License-Identifier: MIT
#include "perfmap/cpython.h"

#include <cerrno>
#include <cstdint>

#include "perfmap/writer.hpp"

using perfmap::ForkPolicy;
using perfmap::ProcessMap;

int PyUnstable_PerfMapState_Init(void) { return ProcessMap::init(); }

int PyUnstable_WritePerfMapEntry(const void* code_addr, size_t code_size, const char* entry_name) {
  return perfmap_state_write_entry(code_addr, code_size, entry_name);
}

void PyUnstable_PerfMapState_Fini(void) { ProcessMap::fini(); }

int PyUnstable_CopyPerfMapFile(const char* parent_filename) {
  return ProcessMap::copy(parent_filename);
}

int PyUnstable_PerfTrampoline_CompileCode(PyCodeObject* code) {
  if (code == nullptr) {
    errno = EINVAL;
    return -1;
  }
  if (code->trampoline == nullptr) return 0;
  perfmap_error error{};
  error.struct_size = sizeof error;
  if (perfmap_trampoline_compile(code->trampoline, &error) == PERFMAP_OK) return 0;
  errno = error.sys_errno != 0 ? error.sys_errno : ENOMEM;
  return -1;
}

int PyUnstable_PerfTrampoline_SetPersistAfterFork(int enable) {
  return ProcessMap::set_fork_policy(enable != 0 ? ForkPolicy::inherit : ForkPolicy::fresh) == 0
             ? 0
             : -1;
}
