// SPDX-License-Identifier: MIT
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "perfmap/profile/process_tracker.hpp"
#include "perfmap/profile/unwinder.hpp"
#include "perfmap/runtimes.hpp"
#include "process/region_tree.hpp"

namespace perfmap {

/// Executable memory that shows one segment of a module, or code outside of modules.
struct CodeRegion {
  Address begin = 0;
  Address end = 0;
  Address delta = 0;               ///< added to an address gives the vaddr, modulo 2^64
  const Module* module = nullptr;  ///< null: code of a runtime, or of unknown origin
};

/// The code of one region and of those below and above it: a tree that has the shape of a tree of
/// regions, without subtrees that have no code. Address spaces that share regions share these, too.
struct CodeNode {
  Address begin = 0;  ///< of the region
  std::shared_ptr<const CodeNode> left;
  std::shared_ptr<const CodeNode> right;
  CodeRegion first;                      ///< begin is end if the region has no code
  std::vector<CodeRegion> more;          ///< of other segments, ascending
  std::shared_ptr<const Module> module;  ///< keeps that of the regions alive
  const Module* first_module = nullptr;  ///< of the subtree
  /// Of the subtree's program or library of a runtime whose code is unwound in a way of its own;
  /// null if there is none.
  const RuntimeStacks* runtime_stacks = nullptr;
  // Whether a region of the subtree is
  bool has_jit_room = false;  ///< JitRegionKind::likely
  bool has_unopened = false;  ///< JitRegionKind::unless_elf, and not known to be an ELF file

  bool has_code() const noexcept { return first.begin != first.end; }
};

struct UnwindSpace::State {
  std::uint32_t id = 0;            ///< unique, never reused
  std::optional<Machine> machine;  ///< of the first module; see machine_of()
  bool is_unwound = true;          ///< see UnwindSpace::is_unwound()
  Address highest = 0;             ///< at or above all code
  std::shared_ptr<const CodeNode> code;
  std::vector<std::shared_ptr<const JitSources>> jit;
  std::function<std::size_t(Address, std::span<char>)> read_code;

  static std::shared_ptr<const UnwindSpace> share(
      std::shared_ptr<const CodeNode> code, std::vector<std::shared_ptr<const JitSources>> jit,
      std::function<std::size_t(Address, std::span<char>)> read_code = {});

  /// If code of the process is unwound in a way of its runtime's; else null.
  const RuntimeStacks* runtime_stacks() const noexcept {
    return code ? code->runtime_stacks : nullptr;
  }
  /// The region that covers the address, or null. O(log n).
  const CodeRegion* find(Address address) const noexcept;
  /// Cuts a range around the address so that it does not overlap the regions on both sides; none
  /// covers the address. O(log n).
  void clip(Address address, CodeRegion& around) const noexcept;
  /// The owner of the module of the region that covers the address. O(log n).
  std::shared_ptr<const Module> module_at(Address address) const noexcept;
};

/// The machine of a file; nothing if it is none of Machine. riscv32 and big-endian arm and aarch64,
/// which have the numbers of other machines, are none.
std::optional<Machine> machine_of(const Module& module) noexcept;

/// The last two regions that were asked for, of one space at a time.
class RecentRegions {
 public:
  /// The region that covers the address, or null.
  const CodeRegion* find(const UnwindSpace::State& space, Address pc) noexcept {
    if (space.id != space_) [[unlikely]] {
      space_ = space.id;
      regions_ = {};
    }
    for (const CodeRegion* const region : regions_) {
      if (region != nullptr && pc - region->begin < region->end - region->begin) return region;
    }
    const CodeRegion* const region = space.find(pc);
    if (region != nullptr) regions_ = {region, regions_[0]};
    return region;
  }

 private:
  std::uint32_t space_ = 0;
  std::array<const CodeRegion*, 2> regions_ = {};  // latest first
};

/// The code of many address spaces that share regions, as those of a recording do. What was made of
/// a node is kept in the node, so that a change of the memory costs no more here than there. A
/// tracker's address spaces have one maker, on one thread.
class SharedCode {
 public:
  SharedCode();
  /// Null if there is none. O(nodes that it has not seen), and the time of open_module for them.
  std::shared_ptr<const CodeNode> of(const RegionNode& from,
                                     const UnwindSpace::OpenModule& open_module);

 private:
  std::uint32_t maker_;
};

/// The process's own sources, and those of its ancestors, whose code it may still have.
std::vector<std::shared_ptr<const JitSources>> sources_of(const ProcessTracker& tracker, pid_t pid,
                                                          std::uint64_t time);

}  // namespace perfmap
