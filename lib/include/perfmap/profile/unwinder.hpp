// SPDX-License-Identifier: MIT
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
  leaf,           ///< the caller of a leaf, or of a small frame, from what its code does
  eh_cfi,         ///< .eh_frame
  debug_frame,    ///< .debug_frame
  jit_cfi,        ///< unwinding information in a jitdump
  frame_pointer,  ///< the chain of saved frame pointers
  plt,            ///< the caller of a linkage table's entry, from its code
  scan,           ///< a word on the stack that looks like a return address: a guess
  stitched,       ///< taken from another sample of the thread: a guess
  callchain,      ///< recorded by the kernel, in user space
  kernel,         ///< recorded by the kernel, in the kernel
  repaired,       ///< as the rules of its callee say, after they were found to be wrong: a guess
  signal,         ///< interrupted: the registers that the kernel saved for a signal handler
};
inline constexpr std::size_t kFrameSources = 13;
/// "sampled" (for `initial`), "leaf", "eh-cfi", "debug-frame", "jit-cfi", "frame-pointer", "plt",
/// "scan", "stitched", "callchain", "kernel", "repaired", "signal".
PERFMAP_API std::string_view to_string(FrameSource source) noexcept;

/// How a stack ended.
enum class StackEnd : std::uint8_t {
  root,         ///< at the thread's first function
  truncated,    ///< at the end of the copy: full, or cut at a page by the kernel
  no_info,      ///< at code without any unwinding information
  bad_memory,   ///< the information led out of the stack, or to no code
  loop,         ///< the caller's frame is not above its callee's
  limit,        ///< after the maximum number of frames
  callchain,    ///< at the end of the kernel's chain
  other_stack,  ///< at a frame on another stack, which was not copied
};
inline constexpr std::size_t kStackEnds = 8;
/// "root", "truncated", "no-info", "bad-memory", "loop", "limit", "callchain", "other-stack".
PERFMAP_API std::string_view to_string(StackEnd end) noexcept;

/// A frame found by unwinding.
struct UnwoundFrame {
  Address pc = 0;  ///< for a caller, its return address
  Address sp = 0;  ///< the stack pointer there
  FrameSource source = FrameSource::initial;
  /// The pc is a return address: it may belong to the next function, so the names are those of pc -
  /// 1, unless UnwindSpace::return_site() says otherwise. False for the leaf, for code that a
  /// signal interrupted, and for the trampoline of a signal.
  bool is_return = false;

  friend bool operator==(const UnwoundFrame&, const UnwoundFrame&) = default;
};

/// Machines for which a perf event can sample user registers; the value is the e_machine of ELF
/// files (EM_X86_64 and so on).
enum class Machine : std::uint16_t {
  x86_64 = 62,
  x86 = 3,
  aarch64 = 183,
  arm = 40,
  riscv64 = 243,
  ppc64 = 21,
  s390x = 22,
  loongarch64 = 258,
};

/// The machine of an ELF file's e_machine, if it is one of these.
PERFMAP_API std::optional<Machine> machine_of(std::uint16_t e_machine) noexcept;
/// Whether Unwinder finds callers on this machine: x86-64, x86, aarch64, riscv64 and arm.
PERFMAP_API bool can_unwind(Machine machine) noexcept;

/// The value of perf_event_attr::sample_regs_user that unwinding needs. Available for each machine
/// on any host, because a recording may come from another machine. Bit n is register n of that
/// machine's enum in Linux, arch/*/include/uapi/asm/perf_regs.h.
///
/// x86-64: ax to sp, ip and r8 to r15; x86 (i386): ax to sp and ip; aarch64: x19 to x29, lr, sp and
/// pc, which a callee preserves, and x0 to x12, which are registers of Arm processes there; arm: r0
/// to pc; riscv64 and loongarch64: the pc and all others;
/// ppc64: r0 to r31, nip and link; s390x: r0 to r15, f0 to f15 and pc.
PERFMAP_API std::uint64_t preferred_regs_mask(Machine machine) noexcept;

/// The number in perf_regs.h of the register with a DWARF number; nothing if perf does not sample
/// it, or for a machine whose stacks are not unwound. The pc is 16 for x86-64, 8 for x86, 32 for
/// aarch64 and riscv64, and 15 for arm.
PERFMAP_API std::optional<unsigned> perf_register(Machine machine, unsigned dwarf) noexcept;

class ProcessTracker;

/// The registers of a thread, from a sample of perf, from ptrace(2), or from a signal handler.
struct UserRegisters {
  Machine machine = Machine::x86_64;
  /// Bit n: `values` has register n of that machine's enum in Linux,
  /// arch/*/include/uapi/asm/perf_regs.h. Needs at least the pc, the stack pointer and the frame
  /// pointer; best are all of preferred_regs_mask().
  std::uint64_t mask = 0;
  std::array<std::uint64_t, 64> values = {};  ///< by n

  bool has(unsigned number) const noexcept { return number < 64 && (mask >> number & 1) != 0; }
};

/// The state of a thread, as copied by a profiler. Borrowed.
struct UserSample {
  UserRegisters registers;
  std::string_view stack;      ///< the memory from the stack pointer on
  bool is_stack_full = false;  ///< the copy has its maximum size
  std::uint64_t time = 0;      ///< by the jitdumps' clock, for code that comes and goes
};

/// The address that names a caller.
struct ReturnSite {
  bool is_return = true;  ///< true: the address before the pc; false: the pc
  bool is_guess = false;  ///< the code is not readable, and the two have different names
  bool is_final = false;  ///< the bytes of a file say so: it holds at any time
};

/// Registers of a frame, by DWARF number, without the pc. Those of a caller are the ones that its
/// callee preserved; those of interrupted code are all that are known.
struct FrameRegisters {
  std::uint64_t known = 0;  ///< bit n: `values` has register n
  std::array<std::uint64_t, 64> values = {};
};

/// An address space prepared for unwinding, with the modules and the JIT sources of its code.
/// Immutable: threads may share it, as long as the JitSources are not refreshed.
class PERFMAP_API UnwindSpace {
 public:
  /// Returns the ELF file of a region, or null; called once for each executable region.
  using OpenModule = std::function<std::shared_ptr<const Module>(const Region& region)>;
  struct Options {
    OpenModule open_module;  ///< empty: no modules
    /// The process's own, then those of the processes that it was forked from.
    std::vector<std::shared_ptr<const JitSources>> jit = {};
    /// Reads code that is in no file, for example from /proc/PID/mem; returns the number of bytes.
    /// Called from the unwinding threads. Empty: only jitdumps have such code.
    std::function<std::size_t(Address address, std::span<char> bytes)> read_code = {};
  };

  /// O(regions), and the time of open_module.
  static std::shared_ptr<const UnwindSpace> make(const AddressSpace& space, const Options& options);
  /// For the process that had the pid at that time, with the tracker's modules and JIT sources;
  /// `options` needs neither. For a live process, make a new one after it has mapped memory, or its
  /// sources were refreshed. Files that could not be opened go to `failures`, if not null. nullptr:
  /// no process had the pid.
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

  /// For a frame whose is_return is true. A call may be the last instruction of its function, so
  /// the caller is at pc - 1 if the bytes before the pc are a call. If they are not a call, a
  /// runtime pushed the address of the next code to run, which may be the first byte of a function,
  /// and the pc itself counts. The pc also counts for the code to which a signal handler returns.
  /// If the code cannot be read, a call is assumed if something covers pc - 1, or if nothing covers
  /// the pc. `time` is by the jitdumps' clock.
  ///
  /// O(log n), a few dozen nanoseconds for code of files. Several threads may call it.
  ReturnSite return_site(Address pc, std::uint64_t time) const;

  /// The machine of its first ELF file; nothing if there is none, or it is none of Machine.
  std::optional<Machine> machine() const noexcept;
  /// False: Unwinder finds no callers in it, on any machine. It is of riscv32, or of big-endian arm
  /// or aarch64, whose files have the numbers of machines that are unwound.
  bool is_unwound() const noexcept;

  struct State;
  const State& state() const noexcept { return *state_; }

 private:
  explicit UnwindSpace(std::unique_ptr<const State> state) noexcept;
  std::unique_ptr<const State> state_;
};

/// Unwinds a thread's stack from its registers and a copy of the stack.
///
/// For each frame it first uses call frame information of the ELF file (.eh_frame, .debug_frame,
/// also from its debug file and .gnu_debugdata). Code without it (JIT code, a runtime's builtins,
/// assembler code) is unwound by the first of these that works: the code's own stack operations, if
/// it is a leaf; the chain of frame pointers, as long as it is plausible; unwinding information in
/// a jitdump, which comes before frame pointers if it says that the function keeps none; and, if
/// enabled, a guess. If one of them leads to an address without code, the next
/// is tried. Call frame information of a file is final.
///
/// Never reads outside of the sample and of code, never loops, and returns no frame outside of
/// executable memory except the first. Code that the sources have at that time counts as executable
/// if nothing is known to be mapped there. A frame costs 20 to 50 ns if its code was seen before,
/// else about a microsecond.
///
/// Use one Unwinder per thread. It holds 128 to 256 bytes for each code address that it has seen,
/// at most 64 MiB.
class PERFMAP_API Unwinder {
 public:
  struct Options {
    unsigned max_frames = 1024;
    /// If nothing else works, search the stack for a word that may be a return address.
    bool scan = false;
    /// Use jitdumps' unwinding information before frame pointers in every function: for runtimes
    /// whose code keeps its frame pointer for something else.
    bool jit_cfi_first = false;
  };

  Unwinder();
  explicit Unwinder(Options options);
  Unwinder(Unwinder&&) noexcept;
  Unwinder& operator=(Unwinder&&) noexcept;
  ~Unwinder();

  /// Appends the frames, the leaf first, and returns how they ended. For machines that it cannot
  /// unwind the first frame only; see can_unwind() and UnwindSpace::is_unwound().
  /// `registers`, if not null, gets those of each frame.
  StackEnd unwind(const UserSample& sample, const UnwindSpace& space,
                  std::vector<UnwoundFrame>& frames,
                  std::vector<FrameRegisters>* registers = nullptr);

  struct Statistics {
    std::uint64_t frames = 0;
    std::uint64_t rules = 0;  ///< computed because they were not known yet
  };
  const Statistics& statistics() const noexcept;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// Remembers what UnwindSpace::return_site() says of the code of files, for all spaces that share
/// them: the bytes before a pc do not change, and looking at them takes longer than finding the
/// frame. 96 KiB, and the modules. Use one per thread.
class PERFMAP_API ReturnSites {
 public:
  ReturnSites();
  ReturnSites(ReturnSites&&) noexcept;
  ReturnSites& operator=(ReturnSites&&) noexcept;
  ~ReturnSites();

  /// ReturnSite::is_return of that pc.
  bool is_return(const UnwindSpace& space, Address pc, std::uint64_t time);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// Completes truncated stacks with frames from other samples of the same thread: a caller with the
/// same return address at the same place of the stack, shortly before or after, most likely has the
/// same callers. These frames are guesses, and marked as such.
///
/// Holds 48 bytes for each distinct frame of a thread, at most 4 million of them; older ones are
/// removed. One thread at a time.
class PERFMAP_API StackStitcher {
 public:
  struct Options {
    /// Maximum distance in time to another sample. Nanoseconds.
    std::uint64_t max_distance = std::uint64_t{5} * 1000 * 1000 * 1000;
    unsigned max_frames = 1024;
  };
  StackStitcher();
  explicit StackStitcher(Options options);
  StackStitcher(StackStitcher&&) noexcept;
  StackStitcher& operator=(StackStitcher&&) noexcept;
  ~StackStitcher();

  /// Records the callers in a stack. `process` is any number that is unique to the program.
  /// O(frames).
  void learn(std::uint64_t process, pid_t tid, std::uint64_t time,
             const std::vector<UnwoundFrame>& frames, StackEnd end);
  /// Appends frames to a truncated stack, from the sample nearest in time, and returns how the
  /// stack then ends. O(log n) per frame.
  StackEnd repair(std::uint64_t process, pid_t tid, std::uint64_t time,
                  std::vector<UnwoundFrame>& frames) const;
  /// Removes everything before that time.
  void forget_before(std::uint64_t time);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace perfmap
