#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <tuple>
#include <vector>

#include "perfmap/stack_sample.hpp"
#include "perfmap/stacks.hpp"
#include "perfmap/symbolizer.hpp"
#include "stacks/kernel_symbols.hpp"
#include "stacks/known_places.hpp"
#include "stacks/raw_stack.hpp"

namespace perfmap {

/// Whether a region shows a file's bytes, at whatever address.
inline bool is_mapped_file(const Region& region) noexcept {
  return region.file->is_file() || region.file->kind == RegionKind::vdso;
}

/// Of the frames of a stack, those that were inlined included.
struct FrameCounts {
  std::uint64_t frames = 0;
  std::uint64_t unnamed = 0;
  std::uint64_t unnamed_jit = 0;
  std::uint64_t doubtful = 0;
  std::array<std::uint64_t, kDoubtCount> doubts = {};  ///< as doubt_at() counts
  std::array<std::uint64_t, 11> sources = {};          ///< by FrameSource
};

/// Names the addresses of stacks. Each place of code is looked up once: code of files by file and
/// offset, whatever process without names of its own it is in; code of runtimes by process and
/// address, for as long as it was there.
class PlaceFinder {
 public:
  PlaceFinder(RecordedProcesses& processes, const StackOptions& options, KernelSymbols& kernel,
              FrameTable& table);

  /// Finds out what their frames stand for.
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
    bool is_jit = false;     ///< a runtime's code
    bool is_return = false;  ///< named by the address before
  };
  /// An address as it was found last: most stacks of a process have the same callers.
  struct Recent {
    Address address = 0;
    std::uint32_t moment = 0;  ///< 0: the place is free
    bool is_return = false;
    Found found = {};
  };
  static constexpr unsigned kRecentBits = 13;
  struct Wanted {
    Key key;
    Address pc = 0;  ///< as sampled
    std::uint64_t time = 0;
    ReturnSite site = {};  ///< where its name is; at first, where it most likely is

    Address address() const noexcept { return pc - (site.is_return ? 1 : 0); }
  };
  /// A frame, by its position in found_, that has to be looked up first.
  struct Pending {
    std::size_t frame = 0;
    const ProcessMoment* moment = nullptr;
    bool is_file = false;
    Wanted wanted;
  };
  /// How often the same address of a file is asked for.
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
  void name_all(const ProcessMoment& moment, std::span<Wanted> wanted);
  void look_at_call(const ProcessMoment& moment, Wanted& wanted, AddressName& name);
  void keep(const Key& key, const Places& places);
  void name_kernel(const Key& key);
  Places of_address(const AddressName& name, const Wanted& wanted, const ProcessMoment& moment,
                    const Region* region);
  void add_frames(const AddressName& name, FrameFunction function, FramePlace place);
  void add_jit_line(const AddressName& name, FrameFunction& function, FramePlace& place) const;
  FrameFunction function_of(const AddressName& name, const Region* region) const;
  static void set_jit_span(const AddressName& name, const Wanted& wanted,
                           const ProcessMoment& moment, const Region* region, Places& places);
  std::uint32_t mapping_of(const AddressName& name, const Region* region, FrameKind kind);

  const StackOptions& options_;
  KernelSymbols& kernel_;
  FrameTable& table_;
  Symbolizer symbolizer_;
  KnownPlaces known_;
  std::vector<std::uint32_t> all_;
  std::vector<Recent> recent_;
  std::vector<Found> found_;                          // of all frames that were prepared
  std::size_t next_ = 0;                              // of these
  std::vector<std::shared_ptr<const void>> keepers_;  // of what keys speak of
  // Places of files as the sources of a program name them, by those and the file: for keys.
  std::map<std::pair<const void*, const void*>, char> own_files_;
  // By what is mapped, how much of it from which offset on, and, of memory, where.
  std::map<std::tuple<const void*, std::uint64_t, std::uint64_t, Address>, std::uint32_t> mappings_;
};

}  // namespace perfmap
