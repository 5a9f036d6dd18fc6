#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <sys/types.h>
#include <vector>

#include "perfmap/profile/module.hpp"
#include "perfmap/profile/process.hpp"
#include "perfmap/profile/process_tracker.hpp"
#include "perfmap/types.hpp"

namespace perfmap {

/// How a frame was found.
enum class FrameSource : std::uint8_t {
  initial,        ///< the sample's own registers
  leaf,           ///< the caller of a leaf, by what its code is about to do with the stack
  eh_cfi,         ///< .eh_frame
  debug_frame,    ///< .debug_frame
  jit_cfi,        ///< unwinding information in a jitdump
  frame_pointer,  ///< the chain of saved frame pointers
  plt,            ///< the caller of a linkage table's entry, by its code
  scan,           ///< a word on the stack that looks like a return address: a guess
  stitched,       ///< taken from another sample of the thread: a guess
  callchain,      ///< recorded by the kernel, of user space
  kernel,         ///< recorded by the kernel, of itself
};
/// "leaf" (of `initial`, too), "eh-cfi", "debug-frame", "jit-cfi", "frame-pointer", "plt", "scan",
/// "stitched", "callchain", "kernel".
PERFMAP_API std::string_view to_string(FrameSource source) noexcept;

/// How a stack ended.
enum class StackEnd : std::uint8_t {
  root,        ///< at the thread's first function
  truncated,   ///< at the end of the copy of the stack: full, or ended at a page by the kernel
  no_info,     ///< at code that nothing is known about
  bad_memory,  ///< what is known led out of the stack, or to no code
  loop,        ///< the caller's frame did not lie above
  limit,       ///< after as many frames as were asked for
  callchain,   ///< the chain is the kernel's, and is as long as it is
};
/// "root", "truncated", "no-info", "bad-memory", "loop", "limit", "callchain".
PERFMAP_API std::string_view to_string(StackEnd end) noexcept;

/// A frame of a stack that was unwound.
struct UnwoundFrame {
  Address pc = 0;  ///< a caller's is its return address
  Address sp = 0;  ///< the stack pointer there
  FrameSource source = FrameSource::initial;
  /// The pc was found where return addresses are: it may belong to the next function already, so
  /// names are those of pc - 1 unless UnwindSpace::return_site() says otherwise. Not so for the
  /// leaf, for what a signal interrupted, and for the trampoline of a signal.
  bool is_return = false;

  friend bool operator==(const UnwoundFrame&, const UnwoundFrame&) = default;
};

/// Machines whose user registers a perf event can sample.
enum class Machine : std::uint8_t { x86_64, x86, aarch64, arm };

/// The machine of an ELF file's e_machine (EM_X86_64 and so on), where it is one of these.
constexpr std::optional<Machine> machine_of(std::uint16_t e_machine) noexcept {
  switch (e_machine) {
    case 62: return Machine::x86_64;
    case 3: return Machine::x86;
    case 183: return Machine::aarch64;
    case 40: return Machine::arm;
    default: return std::nullopt;
  }
}

/// What perf_event_attr::sample_regs_user should be for stacks to be unwound: of each machine, on
/// any host, as a recording may come from elsewhere. Bit n is register n of that machine's enum in
/// Linux, arch/*/include/uapi/asm/perf_regs.h.
///
/// x86-64: ax to sp, ip and r8 to r15; x86 (i386): ax to sp and ip; aarch64: x19 to x29, lr,
/// sp and pc, which are those that a callee preserves; arm: r0 to pc.
constexpr std::uint64_t preferred_regs_mask(Machine machine) noexcept {
  switch (machine) {
    case Machine::x86_64: return 0xff01ff;
    case Machine::x86: return 0x1ff;
    case Machine::aarch64: return 0x1fff80000;
    case Machine::arm: return 0xffff;
  }
  return 0;
}

class ProcessTracker;

/// The registers of a thread: what perf's sample has, or ptrace(2), or a signal handler.
struct UserRegisters {
  Machine machine = Machine::x86_64;
  /// Bit n: `values` has register n of that machine's enum in Linux,
  /// arch/*/include/uapi/asm/perf_regs.h. At least the pc, the stack pointer and the frame pointer
  /// are of use; all of preferred_regs_mask() are wanted.
  std::uint64_t mask = 0;
  std::array<std::uint64_t, 64> values = {};  ///< by n

  bool has(unsigned number) const noexcept { return number < 64 && (mask >> number & 1) != 0; }
};

/// A thread at a moment, as far as a profiler copied it. Borrowed.
struct UserSample {
  UserRegisters registers;
  std::string_view stack;      ///< the memory from the stack pointer on
  bool is_stack_full = false;  ///< there was no room for more of it
  std::uint64_t time = 0;      ///< for code that comes and goes; of the jitdumps' clock
};

/// Which address has the name of a caller.
struct ReturnSite {
  bool is_return = true;  ///< that before its pc; otherwise the pc itself
  bool is_guess = false;  ///< nobody has the code, and the two have different names
};

/// An address space made ready for unwinding: the modules and the runtime's sources of its code.
/// Immutable: may be shared by threads, as long as nobody refreshes the JitSources.
class PERFMAP_API UnwindSpace {
 public:
  /// The ELF file that a region shows, or null; asked once for each executable region.
  using OpenModule = std::function<std::shared_ptr<const Module>(const Region& region)>;
  struct Options {
    OpenModule open_module;  ///< nothing: no module is known
    /// The process's own, then those of the processes that it was forked from.
    std::vector<std::shared_ptr<const JitSources>> jit = {};
    /// Reads code that is in no file, such as from /proc/PID/mem; answers how many bytes there are.
    /// Called from the unwinding threads. Nothing: only jitdumps have such code.
    std::function<std::size_t(Address address, std::span<char> bytes)> read_code = {};
  };

  /// O(regions), and what open_module takes.
  static std::shared_ptr<const UnwindSpace> make(const AddressSpace& space, const Options& options);
  /// Of the process that had the pid at that time, with the modules and the runtimes' sources that
  /// the tracker has for it; `options` needs neither. Of a live profiler's process, ask again when
  /// it has mapped something, or its sources were refreshed. Files that could not be opened go to
  /// `failures`, if there is one. nullptr: nobody had the pid.
  static std::shared_ptr<const UnwindSpace> attach(ProcessTracker& tracker, pid_t pid,
                                                   std::uint64_t time, Options options,
                                                   std::vector<Error>* failures);
  static std::shared_ptr<const UnwindSpace> attach(ProcessTracker& tracker, pid_t pid,
                                                   std::uint64_t time,
                                                   std::vector<Error>* failures = nullptr) {
    return attach(tracker, pid, time, Options(), failures);
  }
  UnwindSpace(const UnwindSpace&) = delete;
  UnwindSpace& operator=(const UnwindSpace&) = delete;
  ~UnwindSpace();

  /// Of a frame whose is_return is true. A call may be the last instruction of its function, so the
  /// caller is who has the call: pc - 1, if the bytes before the pc are one. If they are not,
  /// nobody called from there: a runtime pushed the address of what is to run next, be it the first
  /// byte of a function, and the pc itself counts. So it does for what the kernel lets a signal's
  /// handler return to. Where nobody has the code, the call is taken for granted if something
  /// covers pc - 1, or nothing covers the pc. `time` is that of the jitdumps' clock.
  ///
  /// O(log n), a few dozen nanoseconds for code of files. May be called from several threads.
  ReturnSite return_site(Address pc, std::uint64_t time) const;

  struct State;
  const State& state() const noexcept { return *state_; }

 private:
  explicit UnwindSpace(std::unique_ptr<const State> state) noexcept;
  std::unique_ptr<const State> state_;
};

/// Finds the callers of a thread from its registers and a copy of its stack.
///
/// For each frame, in this order: call frame information of the ELF file (.eh_frame, .debug_frame,
/// also of its debug file and of .gnu_debugdata). Where code has none, as that of a JIT, of a
/// runtime's builtins, and assembler code: the bytes of the code, if it is a leaf (what it is about
/// to do with the stack); the chain of frame pointers, as far as it makes sense; unwinding
/// information in a jitdump; and, if asked for, a guess. Where one of these leads to what is no
/// code, the next one is tried; call frame information of a file has the last word.
///
/// Never reads outside of the sample and of code, never loops, and gives no frame outside of
/// executable memory but the first; code that the sources have at that time is taken for such where
/// nothing is known to be mapped. A frame costs 20 to 50 ns where its code was seen before, else
/// about a microsecond.
///
/// One thread at a time: an Unwinder for each. It holds 128 to 256 bytes for each address of
/// code that it has seen, at most 64 MiB.
class PERFMAP_API Unwinder {
 public:
  struct Options {
    unsigned max_frames = 1024;
    /// Where nothing else is known, looks for a word on the stack that may be a return address.
    bool scan = false;
    /// Jitdumps' unwinding information comes before frame pointers: for runtimes whose code does
    /// not keep those.
    bool jit_cfi_first = false;
  };

  Unwinder();
  explicit Unwinder(Options options);
  Unwinder(Unwinder&&) noexcept;
  Unwinder& operator=(Unwinder&&) noexcept;
  ~Unwinder();

  /// Appends the frames, the leaf first, and says how they ended. x86-64 and aarch64; of other
  /// machines the first frame alone.
  StackEnd unwind(const UserSample& sample, const UnwindSpace& space,
                  std::vector<UnwoundFrame>& frames);

  struct Statistics {
    std::uint64_t frames = 0;
    std::uint64_t rules = 0;  ///< that were not known yet
  };
  const Statistics& statistics() const noexcept;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// Completes stacks whose copy was cut, by what other samples of the same thread show: a caller
/// with the same return address at the same place of the stack has, shortly before or after, most
/// likely the same callers. Its frames are guesses, and marked as such.
///
/// Holds 48 bytes for each distinct frame of a thread, at most 4 million of them; older ones go.
/// One thread at a time.
class PERFMAP_API StackStitcher {
 public:
  struct Options {
    /// How far in time another sample may be. Nanoseconds.
    std::uint64_t max_distance = std::uint64_t{5} * 1000 * 1000 * 1000;
    unsigned max_frames = 1024;
  };
  StackStitcher();
  explicit StackStitcher(Options options);
  StackStitcher(StackStitcher&&) noexcept;
  StackStitcher& operator=(StackStitcher&&) noexcept;
  ~StackStitcher();

  /// Remembers who called whom. `process` is any number that no other program has. O(frames).
  void learn(std::uint64_t process, pid_t tid, std::uint64_t time,
             const std::vector<UnwoundFrame>& frames, StackEnd end);
  /// Appends frames to a stack that was truncated, nearest in time first, and answers how it ends
  /// then. O(log n) a frame.
  StackEnd repair(std::uint64_t process, pid_t tid, std::uint64_t time,
                  std::vector<UnwoundFrame>& frames) const;
  /// Forgets what lies before that time.
  void forget_before(std::uint64_t time);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace perfmap
