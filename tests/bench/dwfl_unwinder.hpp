// SPDX-License-Identifier: MIT
#pragma once

#include <elfutils/libdwfl.h>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "support/recorded_samples.hpp"

namespace perfmap::bench {

/// Unwinds the same samples with elfutils, used as efficiently as possible: one Dwfl per address
/// space, attached once, and one Elf per file, shared by all modules.
class DwflUnwinder {
 public:
  DwflUnwinder() = default;
  DwflUnwinder(const DwflUnwinder&) = delete;
  DwflUnwinder& operator=(const DwflUnwinder&) = delete;
  ~DwflUnwinder();

  using ModuleOf = std::function<std::shared_ptr<const Module>(const Region& region)>;
  /// Prepares the address space of a sample.
  void prepare(const test::RecordedUser& user, const ModuleOf& module_of);
  /// Returns the number of frames.
  std::size_t unwind(const test::RecordedUser& user);

  /// Of a machine's registers.
  struct Numbers {
    std::size_t word;  ///< bytes
    unsigned sp;       ///< in perf
    std::vector<unsigned> of_dwarf;
    std::optional<unsigned> pc;  ///< in perf, if DWARF has none
  };

 private:
  struct Space {
    const Numbers* numbers = nullptr;
    Dwfl* dwfl = nullptr;
    const test::RecordedUser* sample = nullptr;
  };
  /// A file, shared by all address spaces.
  struct File {
    Elf* elf = nullptr;
    std::shared_ptr<const Module> module;
  };

  static int find_elf(Dwfl_Module* module, void** data, const char* name, Dwarf_Addr base,
                      char** file_name, Elf** elf);
  static int find_no_debug(Dwfl_Module*, void**, const char*, Dwarf_Addr, const char*, const char*,
                           GElf_Word, char**);
  static pid_t next_thread(Dwfl* dwfl, void* space, void** thread);
  static bool get_thread(Dwfl* dwfl, pid_t tid, void* space, void** thread);
  static bool read_memory(Dwfl* dwfl, Dwarf_Addr address, Dwarf_Word* result, void* space);
  static bool set_registers(Dwfl_Thread* thread, void* space);
  void report(Space& space, const Region& region, const std::shared_ptr<const Module>& module);
  File& file_of(const std::shared_ptr<const Module>& module);

  std::map<const AddressSpace*, Space> spaces_;
  std::map<const Module*, File> files_;
};

}  // namespace perfmap::bench
