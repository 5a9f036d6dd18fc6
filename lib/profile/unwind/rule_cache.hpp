// SPDX-License-Identifier: MIT
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <unordered_map>
#include <vector>

#include "dwarf/cfi_program.hpp"
#include "perfmap/profile/unwinder.hpp"
#include "unwind/code_bytes.hpp"
#include "unwind/machine_registers.hpp"

namespace perfmap {

/// How to find the caller from an address. One cache line.
struct alignas(64) UnwindRule {
  enum class Kind : std::uint8_t {
    no_code,         ///< the address is not in executable memory
    no_information,  ///< code of a runtime, or not described by its file
    simple,          ///< CFA = register + offset; saved registers at fixed offsets from the CFA
    general,         ///< see RuleCache::row()
    signal_return,   ///< of a handler: saved registers at cfa_offset from the stack pointer
    stack_switch,    ///< the callee is on another stack
    root,            ///< start of the thread, or of a coroutine: no caller
  };
  static constexpr std::int16_t kKept = INT16_MIN;
  static constexpr std::size_t kMaxSaved = 12;

  Address vaddr = 0;
  const Module* module = nullptr;  ///< nullptr: the slot is free
  std::uint32_t row = 0;
  std::int32_t cfa_offset = 0;
  Kind kind = Kind::no_code;
  std::uint8_t cfa_register = 0;
  bool is_signal = false;  ///< a signal frame: its caller was interrupted, not called
  /// This is the last byte of the rule, and not part of a call: a frame that returns to the next
  /// byte was not called from here.
  bool ends_without_call = false;
  bool is_pointer = false;  ///< of signal_return: see SavedContext
  bool keeps_fp = false;    ///< of stack_switch: see StackSwitch
  bool is_plain = false;    ///< simple, and also valid for a return to the next byte
  FrameSource source = FrameSource::eh_cfi;
  /// In words from the CFA, in the order of Arch::kSaved; kKept: the register is unchanged.
  std::array<std::int16_t, kMaxSaved> saved = {};
  std::int16_t return_at = 0;
};
static_assert(sizeof(UnwindRule) == 64);

/// All rules computed so far, by file and vaddr, shared by all processes that map the file.
class RuleCache {
 public:
  RuleCache();

  /// The result of `find` is valid until the next call.
  template <class Arch>
  const UnwindRule& find(const UnwindSpace::State& space, Address pc) {
    const CodeRegion* const region = region_at(space, pc);
    if (region == nullptr) return kNoCode;
    if (region->module == nullptr) return kNoInformation;
    const Address vaddr = pc + region->delta;
    const std::size_t last = places_.size() - 1;
    for (std::size_t at = slot_of(region->module, vaddr);; at = (at + 1) & last) {
      const UnwindRule& rule = places_[at];
      if (rule.vaddr == vaddr && rule.module == region->module) [[likely]]
        return rule;
      if (rule.module == nullptr) return make<Arch>(space, pc, *region);
    }
  }
  /// The region that covers the address, or null.
  const CodeRegion* region_at(const UnwindSpace::State& space, Address pc) noexcept {
    return regions_.find(space, pc);
  }
  /// For code that no file describes.
  static const UnwindRule& no_information() noexcept { return kNoInformation; }
  const CfiRow& row(const UnwindRule& rule) const noexcept { return rows_[rule.row]; }
  /// Function bounds of the modules in use.
  FunctionBounds& functions() noexcept { return functions_; }
  std::uint64_t made() const noexcept { return made_; }

 private:
  static constexpr unsigned kFirstBits = 10;
  static constexpr std::size_t kMaxPlaces = std::size_t{1} << 19;
  static constexpr std::size_t kMaxRows = 20000;
  static const UnwindRule kNoCode;
  static const UnwindRule kNoInformation;

  std::size_t slot_of(const Module* module, Address vaddr) const noexcept {
    const auto which = reinterpret_cast<std::uintptr_t>(module) / alignof(std::max_align_t);
    return ((vaddr + which * 0x85ebca77U) * 0x9e3779b97f4a7c15U) >> shift_;
  }
  template <class Arch>
  const UnwindRule& make(const UnwindSpace::State& space, Address pc, const CodeRegion& region);
  template <class Arch>
  std::optional<CfiRow> row_without_cfi(const Module& module, Address vaddr);
  template <class Arch>
  UnwindRule compute(const Module& module, Address vaddr);
  UnwindRule& free_place(const Module& module, Address vaddr) noexcept;
  void grow();
  void forget() noexcept;

  std::vector<UnwindRule> places_;  // hash table, at most half full
  unsigned shift_ = 64 - kFirstBits;
  std::size_t used_ = 0;
  RecentRegions regions_;
  std::deque<CfiRow> rows_;
  std::unordered_map<const Module*, std::shared_ptr<const Module>> modules_;  // keeps the modules
                                                                              // of the rules alive
  FunctionBounds functions_;
  std::uint64_t made_ = 0;
};

}  // namespace perfmap
