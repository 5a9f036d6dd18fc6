#include <algorithm>
#include <optional>
#include <unordered_map>

#include "diagnosis/lint_rules.hpp"
#include "perfmap/module.hpp"
#include "perfmap/rules.hpp"
#include "perfmap/runtimes.hpp"

namespace perfmap::process_lint {
namespace {

using ModulePtr = std::shared_ptr<const Module>;

/// V8 names bytecode, too, which is data: no address of code has such a name, wherever it lies.
bool is_bytecode(const Entry& entry) {
  const DecodedName name = decode_name(entry.name);
  return !name.tier.empty() && name.tier == runtime_info(name.runtime).names.data_tier;
}

/// What was executable at one of a few looks.
class ExecutableMemory {
 public:
  explicit ExecutableMemory(const Subject& subject) : process_(subject.process) {
    add(subject.memory->regions());
  }
  /// False where the process is gone, or cannot be read any more.
  bool look_again() {
    MappedFiles files;
    const ProcSource::Seen<MemoryMap> memory = process_.memory_map(files);
    if (!memory || !*memory) return false;
    add((*memory)->regions);
    return true;
  }
  const Region* find(Address address) const noexcept { return space_->find(address); }
  /// The first address that is not; nothing where all are.
  std::optional<Address> first_hole(AddressRange range) const noexcept {
    Address at = range.begin;
    do {
      const Region* const region = space_->find(at);
      if (region == nullptr) return at;
      at = region->range.end();
    } while (at <= range.last() && at != 0);
    return std::nullopt;
  }
  bool has_all_of(const Map& map) const {
    Diagnostics ignored(1);
    Map::LineReader lines(map);
    while (const std::optional<Entry> entry = lines.next(ignored)) {
      if (first_hole(entry->range) && !is_bytecode(*entry)) return false;
    }
    return true;
  }

 private:
  /// Those of a former look keep what they have: they may be what is gone by now.
  void add(std::span<const Region> regions) {
    std::vector<Region> changes;
    std::copy_if(regions.begin(), regions.end(), std::back_inserter(changes),
                 [](const Region& region) { return region.access.execute; });
    space_ = AddressSpace::changed(std::move(space_), changes);
  }

  const ProcSource& process_;
  std::shared_ptr<const AddressSpace> space_ = std::make_shared<AddressSpace>();
};

/// The ELF files among what is mapped, each opened once.
class ElfFiles {
 public:
  explicit ElfFiles(const Subject& subject) : subject_(subject) {}

  /// The module that a region shows; null where that is no ELF file, or cannot be opened.
  const Module* at(const Region* region) {
    if (region == nullptr || !region->file->is_file() || !subject_.options.open_module) {
      return nullptr;
    }
    const auto [known, is_new] = modules_.try_emplace(region->file.get());
    if (is_new) {
      auto module = subject_.options.open_module(*region, &subject_.process);
      known->second = {region->file, module ? *std::move(module) : nullptr};
    }
    return known->second.module.get();
  }

 private:
  struct Opened {
    std::shared_ptr<const MappedFile> file;  // so that no other one gets its address
    ModulePtr module;
  };
  const Subject& subject_;
  std::unordered_map<const MappedFile*, Opened> modules_;
};

std::string describe(const Module& module, const Region& region, Address address) {
  std::string text = region.file->name + " is mapped there";
  const auto vaddr = module.file_offset_to_vaddr(address - region.range.begin + region.offset);
  const auto symbol = vaddr ? module.find_symbol(*vaddr) : std::nullopt;
  if (symbol) text += ", with its symbol " + std::string(module.demangled(*symbol));
  return text;
}

/// PM111 and PM112, one map at a time.
class EntryRules {
 public:
  EntryRules(const Map& map, const ExecutableMemory& memory, ElfFiles& elf_files,
             Diagnostics& problems)
      : map_(map), memory_(memory), elf_files_(elf_files), problems_(problems) {}

  void see(const Entry& entry) {
    const auto hole = memory_.first_hole(entry.range);
    if (hole && !is_bytecode(entry)) {
      say(rule::kNotExecutable, entry, [&] {
        return *hole == entry.range.begin ? "the process has no executable memory there"
                                          : "it ends behind the executable memory there";
      });
    }
    for (const Address address : {entry.range.begin, entry.range.last()}) {
      const Region* const region = memory_.find(address);
      const Module* const module = elf_files_.at(region);
      if (module == nullptr) continue;
      say(rule::kOverElfFile, entry, [&] { return describe(*module, *region, address); });
      return;
    }
  }

 private:
  template <class Message>
  void say(const Rule& rule, const Entry& entry, Message&& message) {
    if (!problems_.count(rule)) return;
    problems_.keep({&rule, {entry.offset, map_.line_number(entry.offset), 1}, message(), 0});
  }

  const Map& map_;
  const ExecutableMemory& memory_;
  ElfFiles& elf_files_;
  Diagnostics& problems_;
};

void check_map(const Map& map, ExecutableMemory& memory, ElfFiles& elf_files,
               Diagnostics& problems) {
  constexpr int kLooks = 3;
  for (int look = 1; look < kLooks && !memory.has_all_of(map); ++look) {
    if (!memory.look_again()) break;
  }
  EntryRules rules(map, memory, elf_files, problems);
  Diagnostics ignored(1);
  map.for_each(ignored, [&rules](const Entry& entry) { rules.see(entry); });
}

/// Whether a region shows the dump: on some file systems the device that stat(2) tells is another
/// than that of the memory map, and then the name has to do.
bool shows(const Region& region, const Input& dump) {
  const auto last_of = [](std::string_view path) { return path.substr(path.rfind('/') + 1); };
  return region.file->is_file() && region.file->inode == dump.facts().inode &&
         last_of(region.file->name) == last_of(dump.name());
}

/// JD110
void check_marker(const Subject& subject, const Jitdump& dump, Diagnostics& problems) {
  bool is_mapped = false;
  for (const Region& region : subject.memory->regions()) {
    if (!shows(region, dump.input())) continue;
    if (region.access.execute) return;
    is_mapped = true;
  }
  problems.add(rule::kNoMarker, whole_file(true),
               is_mapped
                   ? "the process has mapped it, but not to be executed: perf does not see that"
                   : "the process has not mapped it: perf inject does not find it");
}

}  // namespace

void check_memory(const Subject& subject, std::span<const LintedFile> files) {
  ExecutableMemory memory(subject);
  ElfFiles elf_files(subject);
  for (const LintedFile& file : files) {
    if (file.map != nullptr) {
      check_map(*file.map, memory, elf_files, *file.problems);
    } else {
      check_marker(subject, *file.dump, *file.problems);
    }
  }
}

}  // namespace perfmap::process_lint
