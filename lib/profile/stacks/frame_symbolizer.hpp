// SPDX-License-Identifier: MIT
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <tuple>
#include <unordered_map>
#include <vector>

#include "perfmap/profile/stack_writer.hpp"
#include "perfmap/profile/stacks.hpp"
#include "perfmap/profile/symbolizer.hpp"
#include "stacks/kernel_symbols.hpp"
#include "stacks/sample_unwinder.hpp"

namespace perfmap {

/// Identifies code at an address, across all processes in which it is the same code.
struct PlaceKey {
  const void* what = nullptr;  ///< a MappedFile, or the sources of runtime code, or null
  std::uint64_t where = 0;     ///< offset in the file, or the address
  bool is_return = false;
  bool operator==(const PlaceKey&) const = default;
};
struct HashPlaceKey {
  std::size_t operator()(const PlaceKey& key) const noexcept {
    return (reinterpret_cast<std::uintptr_t>(key.what) ^
            (key.where << 1 | (key.is_return ? 1U : 0U))) *
           0x9e3779b97f4a7c15U;
  }
};

/// The places of one address, innermost first, as a range of a list.
struct PlaceRun {
  std::uint32_t first = 0;
  std::uint32_t count = 0;  ///< never 0 if known
  std::uint64_t since = 0;  ///< for code that can be replaced
  std::uint64_t until = UINT64_MAX;
  bool is_return = false;  ///< looked up at the address minus one

  bool is_forever() const noexcept { return since == 0 && until == UINT64_MAX; }
  /// Valid at the queried time only.
  bool is_moment() const noexcept { return until - since == 1; }
};

/// Maps keys to runs of places. Code of files is in one hash table of 32 bytes an entry, because
/// most look-ups are for such code; runtime code has a list of runs for each key.
class SymbolCache {
 public:
  SymbolCache() : slots_(kFirst) {}

  /// count is 0 if unknown.
  PlaceRun find(const PlaceKey& key, std::uint64_t time) const noexcept {
    const Slot& slot = slots_[place_of(key)];
    if (slot.count != 0) return {slot.first, slot.count, 0, UINT64_MAX, slot.is_return != 0};
    if (runs_.empty()) return {};
    const auto found = runs_.find(key);
    if (found == runs_.end()) return {};
    for (const PlaceRun& run : found->second) {
      if (time >= run.since && (time < run.until || run.until == UINT64_MAX)) return run;
    }
    return {};
  }
  /// The key must have no run for that time yet.
  void add(const PlaceKey& key, const PlaceRun& run) {
    if (!run.is_forever()) {
      runs_[key].push_back(run);
      return;
    }
    if (2 * ++used_ > slots_.size()) grow();
    slots_[place_of(key)] = {key, run.first, run.count & kMaxPlaces, run.is_return ? 1U : 0U};
  }
  /// The last added run that is limited in time, or null. Valid until the next add().
  PlaceRun* last_of(const PlaceKey& key) {
    const auto found = runs_.find(key);
    return found == runs_.end() ? nullptr : &found->second.back();
  }

 private:
  static constexpr std::size_t kFirst = 1024;
  static constexpr std::uint32_t kMaxPlaces = UINT32_MAX >> 1;
  struct Slot {
    PlaceKey key;
    std::uint32_t first = 0;
    std::uint32_t count : 31 = 0;  // 0: free
    std::uint32_t is_return : 1 = 0;
  };
  static_assert(sizeof(Slot) == 32);

  std::size_t place_of(const PlaceKey& key) const noexcept {
    std::size_t at = HashPlaceKey()(key) >> 16 & (slots_.size() - 1);
    while (slots_[at].count != 0 && !(slots_[at].key == key)) at = (at + 1) & (slots_.size() - 1);
    return at;
  }
  void grow() {
    std::vector<Slot> before(2 * slots_.size());
    before.swap(slots_);
    for (const Slot& slot : before) {
      if (slot.count != 0) slots_[place_of(slot.key)] = slot;
    }
  }

  std::vector<Slot> slots_;  // at most half full
  std::size_t used_ = 0;
  std::unordered_map<PlaceKey, std::vector<PlaceRun>, HashPlaceKey> runs_;
};

/// Whether a region shows a file's bytes, at any address.
inline bool is_mapped_file(const Region& region) noexcept {
  return region.file->is_file() || region.file->kind == RegionKind::vdso;
}

/// Counts of the frames of a stack, including inlined ones.
struct FrameCounts {
  std::uint64_t frames = 0;
  std::uint64_t unnamed = 0;
  std::uint64_t unnamed_jit = 0;
  std::uint64_t doubtful = 0;
  std::array<std::uint64_t, kDoubtCount> doubts = {};     ///< indexed by doubt_at()
  std::array<std::uint64_t, kFrameSources> sources = {};  ///< by FrameSource
};

/// Names the addresses of stacks. Each piece of code is looked up once: code of files by file and
/// offset, shared by all processes without names of their own; runtime code by process and address,
/// for as long as it exists.
class FrameSymbolizer {
 public:
  FrameSymbolizer(RecordedProcesses& processes, const RecordedPrograms& programs,
                  const StackOptions& options, KernelSymbols& kernel, FrameTable& table);

  /// Looks up the names of their frames.
  void prepare(std::span<const RawStack> stacks);
  /// The frames of the next of these stacks.
  FrameCounts next(const RawStack& stack, std::vector<StackFrame>& frames);
  std::span<const Error> failures() const noexcept { return symbolizer_.failures(); }
  std::span<const std::string> without_lines() const noexcept {
    return symbolizer_.without_lines();
  }

 private:
  using Key = PlaceKey;
  using Places = PlaceRun;
  /// The places of a frame, in all_.
  struct Found {
    std::uint32_t first = 0;
    std::uint32_t count = 0;
    bool is_unnamed = false;
    bool is_jit = false;     ///< runtime code
    bool is_return = false;  ///< looked up at the address minus one
  };
  /// Cache of the last result for an address: most stacks of a process share callers.
  struct Recent {
    Address address = 0;
    std::uint32_t moment = 0;  ///< 0: free
    bool is_return = false;
    Found found = {};
  };
  static constexpr unsigned kRecentBits = 13;
  struct Wanted {
    Key key;
    Address pc = 0;  ///< as sampled
    std::uint64_t time = 0;
    ReturnSite site = {};        ///< where to look up the name; initially the most likely place
    bool is_trampoline = false;  ///< its caller was interrupted by a signal

    Address address() const noexcept { return pc - (site.is_return ? 1 : 0); }
  };
  /// A frame that must be looked up first, as an index in found_.
  struct Pending {
    std::size_t frame = 0;
    const AddressSpaceSnapshot* moment = nullptr;
    bool is_file = false;
    Wanted wanted;
  };
  /// How often one address of a file is looked up.
  enum class Files : std::uint8_t { once, each_time };

  struct Located {
    Key key;
    const Region* region = nullptr;
  };
  Found found_of(const Places& places) const noexcept;
  Recent& recent(const RawStack& stack, const UnwoundFrame& frame) noexcept;
  bool find_known(const RawStack& stack, const UnwoundFrame& frame, const Key& key);
  Located locate(const RawStack& stack, const UnwoundFrame& frame);
  bool is_known(const Key& key, std::uint64_t time) const noexcept {
    return known_.find(key, time).count != 0;
  }
  void name_pending(std::span<const Pending> pending, Files files);
  void settle(std::vector<Pending>& pending);
  void name_all(const AddressSpaceSnapshot& moment, std::span<Wanted> wanted);
  void look_at_call(const AddressSpaceSnapshot& moment, Wanted& wanted, AddressName& name);
  void keep(const Key& key, const Places& places);
  void name_kernel(const Key& key);
  Places of_address(const AddressName& name, const Wanted& wanted,
                    const AddressSpaceSnapshot& moment, const Region* region);
  void add_frames(const AddressName& name, FrameFunction function, FramePlace place);
  void add_jit_line(const AddressName& name, FrameFunction& function, FramePlace& place) const;
  FrameFunction function_of(const AddressName& name, const Region* region) const;
  static void set_jit_span(const AddressName& name, const Wanted& wanted,
                           const AddressSpaceSnapshot& moment, const Region* region,
                           Places& places);
  std::uint32_t mapping_of(const AddressName& name, const Region* region, FrameKind kind);
  std::string_view build_id_of(const AddressName& name, const Region& region) const;

  const RecordedPrograms& programs_;
  const StackOptions& options_;
  KernelSymbols& kernel_;
  FrameTable& table_;
  Symbolizer symbolizer_;
  SymbolCache known_;
  std::vector<std::uint32_t> all_;
  std::vector<Recent> recent_;
  std::vector<Found> found_;                          // for all prepared frames
  std::size_t next_ = 0;                              // index of the next of these
  std::vector<std::shared_ptr<const void>> keepers_;  // owners of the pointers in keys
  // Identities for places in files that a program's sources name, by sources and file.
  std::map<std::pair<const void*, const void*>, char> own_files_;
  // By mapped object, offset and size; for memory, also by address.
  std::map<std::tuple<const void*, std::uint64_t, std::uint64_t, Address>, std::uint32_t> mappings_;
};

}  // namespace perfmap
