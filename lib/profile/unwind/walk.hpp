#pragma once

#include <optional>
#include <vector>

#include "unwind/code_bytes.hpp"
#include "unwind/jit_cfi.hpp"
#include "unwind/leaf.hpp"
#include "unwind/machine_registers.hpp"
#include "unwind/rule_cache.hpp"

namespace perfmap {

/// From one frame of a sample to the next.
template <class Arch>
class Walk {
 public:
  Walk(const Unwinder::Options& options, RuleCache& rules, JitCfi& jit, const UserSample& sample,
       const UnwindSpace::State& space, std::vector<UnwoundFrame>& frames)
      : options_(options),
        rules_(rules),
        jit_(jit),
        space_(space),
        frames_(frames),
        time_(sample.time),
        registers_(dwarf_registers<Arch>(sample.registers)),
        memory_(registers_.values[Arch::kSp], sample.stack, sample.is_stack_full) {}

  StackEnd run();

 private:
  /// A caller that the code or the stack suggests.
  struct Caller {
    Address pc = 0;
    Address sp = 0;
    std::optional<std::uint64_t> fp;
    FrameSource source = FrameSource::leaf;
  };
  /// A caller that information about the code led to.
  struct Arrival {
    std::uint64_t return_address = 0;
    Address sp = 0;
    FrameSource source = FrameSource::eh_cfi;
    bool was_interrupted = false;
  };
  enum class Step : std::uint8_t { done, failed, ended };

  const UnwindRule& rule_here();
  const UnwindRule& rule_at(Address address);
  Step simple(const UnwindRule& rule);
  Step general(const UnwindRule& rule);
  Step by_row(const CfiRow& row, FrameSource source);
  void restore(unsigned number, Address from);
  Step arrive(const Arrival& arrival);

  Step without_information(UnwindRule::Kind kind);
  bool leaf(UnwindRule::Kind kind, const std::optional<CodeRegion>& region);
  bool frame_pointer();
  bool is_frame_pointer_cut();
  Step jit_cfi();
  bool take(const Caller& caller);
  bool scan();
  bool is_call_before(Address address);

  bool is_code(Address address);
  void go_to(Address to, Address new_sp, FrameSource source, bool is_return);
  Step end(StackEnd end) {
    end_ = end;
    return Step::ended;
  }
  Step cannot_read(Address address) {
    return end(memory_.was_cut_before(address) ? StackEnd::truncated : StackEnd::bad_memory);
  }
  Address pc() const noexcept { return registers_.values[Arch::kPc]; }
  Address sp() const noexcept { return registers_.values[Arch::kSp]; }
  /// Where what is known of the frame is looked up.
  Address place() const noexcept { return pc() - (is_return_ ? 1 : 0); }

  const Unwinder::Options& options_;
  RuleCache& rules_;
  JitCfi& jit_;
  const UnwindSpace::State& space_;
  std::vector<UnwoundFrame>& frames_;
  std::uint64_t time_;
  DwarfRegisters registers_;
  StackMemory memory_;
  bool is_return_ = false;    ///< the pc is a return address
  bool was_cut_ = false;      ///< a register is not known because the copy of the stack was full
  bool was_guessed_ = false;  ///< a frame is one that scan() found
  StackEnd end_ = StackEnd::no_info;
};

}  // namespace perfmap
