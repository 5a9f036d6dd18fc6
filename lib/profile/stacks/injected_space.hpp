#pragma once

#include <memory>
#include <optional>
#include <sys/types.h>
#include <unordered_map>
#include <vector>

#include "perfmap/process_tracker.hpp"
#include "stacks/injected_code.hpp"

namespace perfmap {

/// Where the memory of recorded processes shows ELF files: readers of the recording have names from
/// there, and a mapping of a dump's code would hide that file. V8's builtins are such code: the
/// dump lists them, and they lie in the program's own file.
class ElfRegions {
 public:
  /// The tracker has had the recording's events. Where it opens no modules, every file counts.
  explicit ElfRegions(ProcessTracker tracker) : tracker_(std::move(tracker)) {}

  /// Cuts the mappings, which are in the order of time, to what lies before the first ELF file, and
  /// drops those that begin in one that has a symbol there. Answers how many pieces of code went.
  /// O(log n) for each, and O(n) whenever the process's memory has changed.
  std::uint64_t cut(std::vector<CodeMapping>& mappings, pid_t pid);
  /// Whether no ELF file has any of that place at that time. O(n).
  bool is_free(const CodeMapping& place, pid_t pid);

 private:
  struct Ranges {
    std::shared_ptr<const AddressSpace> space;
    std::vector<Region> elf;  // ascending
  };

  bool is_elf(pid_t pid, const Region& region);
  bool has_symbol(pid_t pid, const Region& region, Address address);
  void look(pid_t pid, std::uint64_t time, Ranges& ranges);
  /// The first file that has some of the place; nothing where none has.
  static const Region* first_in(const Ranges& ranges, const AddressRange& place) noexcept;

  ProcessTracker tracker_;
  std::unordered_map<std::shared_ptr<const MappedFile>, bool> known_;
};

}  // namespace perfmap
