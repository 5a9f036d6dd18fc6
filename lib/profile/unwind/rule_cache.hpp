#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <memory>
#include <unordered_map>
#include <vector>

#include "modules/cfi_rule.hpp"
#include "perfmap/unwinder.hpp"
#include "unwind/code_region.hpp"
#include "unwind/machine_registers.hpp"

namespace perfmap {

/// What is to be done at an address to find the caller. A cache line.
struct alignas(64) UnwindRule {
  enum class Kind : std::uint8_t {
    no_code,         ///< nothing executable is mapped there
    no_information,  ///< code of a runtime, or that its file says nothing about
    simple,          ///< CFA = register + offset; what was saved lies at fixed places below it
    general,         ///< see RuleCache::row()
    root,            ///< the thread began there
  };
  static constexpr std::int16_t kKept = INT16_MIN;
  static constexpr std::size_t kMostSaved = 11;

  Address pc = 0;
  std::uint32_t space = 0;  ///< 0: the place is free
  std::uint32_t row = 0;
  std::int32_t cfa_offset = 0;
  Kind kind = Kind::no_code;
  std::uint8_t cfa_register = 0;
  bool is_signal = false;  ///< who is called from here was interrupted
  FrameSource source = FrameSource::eh_cfi;
  /// In words from the CFA, as for Arch::kSaved; kKept: it still has its value.
  std::array<std::int16_t, kMostSaved> saved = {};
  std::int16_t return_at = 0;
};
static_assert(sizeof(UnwindRule) == 64);

/// Rules by address: those used last for any space, and all that were computed for the files.
class RuleCache {
 public:
  RuleCache();

  /// What `find` answered is valid until it is asked for more than 1000 rules, unless they fall
  /// together: whoever needs one beside the next one copies it.
  template <class Arch>
  const UnwindRule& find(const UnwindSpace::State& space, Address pc) {
    UnwindRule& place =
        recent_[(pc * 0x9e3779b97f4a7c15U + space.id * 0x85ebca77U) >> (64 - kBits)];
    if (place.pc == pc && place.space == space.id) [[likely]]
      return place;
    make<Arch>(space, pc, place);
    return place;
  }
  const CfiRow& row(const UnwindRule& rule) const noexcept { return rows_[rule.row]; }
  std::uint64_t made() const noexcept { return made_; }

 private:
  static constexpr unsigned kBits = 14;
  static constexpr std::size_t kMostRules = 300000;
  static constexpr std::size_t kMostRows = 20000;
  struct Place {
    const Module* module;
    Address vaddr;
    bool operator==(const Place&) const = default;
  };
  struct HashPlace {
    std::size_t operator()(const Place& place) const noexcept {
      return (place.vaddr ^ reinterpret_cast<std::uintptr_t>(place.module)) * 0x9e3779b97f4a7c15U;
    }
  };

  template <class Arch>
  void make(const UnwindSpace::State& space, Address pc, UnwindRule& place);
  template <class Arch>
  UnwindRule compute(const Module& module, Address vaddr);
  void forget() noexcept;

  std::vector<UnwindRule> recent_;
  std::unordered_map<Place, UnwindRule, HashPlace> of_files_;
  std::deque<CfiRow> rows_;
  std::unordered_map<const Module*, std::shared_ptr<const Module>> modules_;  // that keys speak of
  std::uint64_t made_ = 0;
};

}  // namespace perfmap
