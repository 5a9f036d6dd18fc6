#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <vector>

#include "perfmap/stack_sample.hpp"
#include "perfmap/stacks.hpp"
#include "perfmap/symbolizer.hpp"
#include "stacks/kernel_symbols.hpp"
#include "stacks/known_places.hpp"
#include "stacks/raw_stack.hpp"

namespace perfmap {

/// Names the addresses of stacks. Each place of code is looked up once: code of files by file and
/// offset, whatever process it is in; code of runtimes by process and address, for as long as it
/// was there.
class PlaceFinder {
 public:
  PlaceFinder(RecordedProcesses& processes, const StackOptions& options,
              const KernelSymbols& kernel, FrameTable& table);

  /// Looks up what is not known yet.
  void prepare(std::span<const RawStack> stacks);
  /// The frames of the next of these stacks. Answers how many have no name though a runtime made
  /// them.
  std::uint64_t next(const RawStack& stack, std::vector<StackFrame>& frames);
  std::span<const Error> failures() const noexcept { return symbolizer_.failures(); }

 private:
  using Key = PlaceKey;
  using Places = PlaceRun;
  /// An address as it was found last: most stacks of a process have the same callers.
  struct Recent {
    Address address = 0;
    std::uint32_t moment = 0;  ///< 0: the place is free
    bool is_return = false;
    std::uint32_t first = 0;
    std::uint32_t count = 0;
  };
  static constexpr unsigned kRecentBits = 13;
  struct Wanted {
    Key key;
    Address address = 0;  ///< as sampled
    std::uint64_t time = 0;
  };

  struct Located {
    Key key;
    const Region* region = nullptr;
  };
  static Address looked_up(const UnwoundFrame& frame) noexcept {
    return frame.pc - (frame.is_return ? 1 : 0);
  }
  Recent& recent(const RawStack& stack, const UnwoundFrame& frame) noexcept;
  Located locate(const RawStack& stack, const UnwoundFrame& frame) const;
  bool is_known(const Key& key, std::uint64_t time) const noexcept {
    return known_.find(key, time).count != 0;
  }
  void name_all(const ProcessMoment& moment, std::span<const Wanted> wanted);
  void name_kernel(const Key& key);
  Places of_address(const AddressName& name, const Wanted& wanted, const Region* region);
  void add_frames(const AddressName& name, FrameFunction function, FramePlace place);
  FrameFunction function_of(const AddressName& name, const Region* region) const;
  void set_jit_span(const AddressName& name, const Wanted& wanted, Places& places) const;
  std::uint32_t mapping_of(const AddressName& name, const Region* region, FrameKind kind);

  const StackOptions& options_;
  const KernelSymbols& kernel_;
  FrameTable& table_;
  Symbolizer symbolizer_;
  KnownPlaces known_;
  std::vector<std::uint32_t> all_;
  std::vector<Recent> recent_;
  std::vector<std::shared_ptr<const void>> keepers_;  // of what keys speak of
  std::map<std::pair<const void*, std::uint64_t>, std::uint32_t> mappings_;
};

}  // namespace perfmap
