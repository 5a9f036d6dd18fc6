#pragma once

#include <elfutils/libdwfl.h>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "bench/recorded_samples.hpp"

namespace perfmap::bench {

/// What elfutils makes of the same samples, used as well as it can be: a Dwfl for each address
/// space, attached once, whose modules share the Elf of a file with those of all others.
class DwflUnwinder {
 public:
  DwflUnwinder() = default;
  DwflUnwinder(const DwflUnwinder&) = delete;
  DwflUnwinder& operator=(const DwflUnwinder&) = delete;
  ~DwflUnwinder();

  using ModuleOf = std::function<std::shared_ptr<const Module>(const Region& region)>;
  /// Makes the address space known.
  void prepare(const RecordedUser& user, const ModuleOf& module_of);
  /// Answers how many frames there are.
  std::size_t unwind(const RecordedUser& user);

 private:
  struct Space {
    Dwfl* dwfl = nullptr;
    const RecordedUser* sample = nullptr;
  };
  /// Of a file, for all address spaces.
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
