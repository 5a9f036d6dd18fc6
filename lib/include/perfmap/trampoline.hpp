#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "perfmap/types.hpp"

namespace perfmap {

/// An interpreter's function that runs a code object. What it really takes and returns may be any
/// type that is passed like a pointer, and it may take fewer.
using Evaluator = void* (*)(void*, void*, void*);
/// Machine code of one code object: calls `evaluator` with the three arguments.
using TrampolineEntry = void* (*)(void*, void*, void*, Evaluator evaluator);

/// Where the names of trampolines go. Bits.
enum class TrampolineBackend : std::uint32_t {
  map = 1,      ///< the process's own map: see ProcessMap
  jitdump = 2,  ///< DIRECTORY/jit-PID.dump, with unwinding information and the first line
  both = 3,
};

struct TrampolineOptions {
  /// Of names, which are `prefix::qualified_name:file`; empty: `qualified_name:file`.
  std::string prefix = {};
  std::string jitdump_directory = "/tmp";
  /// C++ exceptions may pass through trampolines: the C++ runtime is told of every arena. With
  /// libgcc before 13 every throw, and every new arena, then takes a lock, which a fork while
  /// another thread throws may leave taken in the child for ever.
  bool exceptions = false;
};

/// What a code object is called. Only looked at during the call.
struct CodeDescription {
  std::string_view qualified_name;
  std::string_view file = {};   ///< empty: left out of the name
  std::int32_t first_line = 0;  ///< 0: unknown; only the jitdump has room for it
};

struct TrampolineState {
  bool active = false;
  TrampolineBackend backend = TrampolineBackend::map;  ///< where active
  std::uint64_t compiled = 0;    ///< trampolines made and named so far, in parents, too
  std::uint64_t failed = 0;      ///< times that one could not be made or named
  int last_errno = 0;            ///< why, the last time
  std::size_t mapped_bytes = 0;  ///< arenas, those of parents included
};

/// One code object's place in an arena. Lives as long as the code object, and no longer than the
/// arena. May be used from several threads at once, but for moving and destruction: those that
/// concern other trampolines may go on meanwhile.
class PERFMAP_API Trampoline {
 public:
  /// Of no arena: calls the evaluator directly.
  Trampoline() noexcept;
  Trampoline(Trampoline&&) noexcept;
  Trampoline& operator=(Trampoline&&) noexcept;
  /// Gives the place to a later code object; nobody may be running in this one. See TrampolineArena
  /// about its name.
  ~Trampoline();

  /// evaluator(first, second, third), through the code object's own frame, or, where there is none,
  /// directly. Must not throw unless TrampolineOptions::exceptions. Costs two nanoseconds and a
  /// half at most more than the direct call, but for the first time, when the name is written.
  void* call(void* first, void* second, void* third, Evaluator evaluator);
  /// What call() would call, for an interpreter that keeps the call in its own code; nullptr: the
  /// evaluator. Good until deactivate(), activate() or a fork: ask before every call.
  TrampolineEntry entry() noexcept;
  /// Makes it now, also where that has failed before; where another thread is at it, waits for
  /// that. Nothing to do, successfully, where it is made, or the arena is not active. EDEADLK
  /// within what is called back while one is made, such as WriterOptions::on_full.
  Result<void> compile();

 private:
  friend class TrampolineArena;
  struct Code;
  explicit Trampoline(std::unique_ptr<Code> code);
  std::unique_ptr<Code> code_;
};

/// Gives every code object of an interpreter a native frame of its own, by which profilers that see
/// native frames name the interpreter's functions, in the order of their calls. An interpreter
/// calls `trampoline.call(a, b, c, evaluator)` where it would call `evaluator(a, b, c)`:
///
///   auto arena = perfmap::TrampolineArena::make({.prefix = "lox"});  // lives as long as all code
///   code.trampoline = arena->add({"Point.norm", "/srv/points.lox", 12});
///   arena->activate(perfmap::TrampolineBackend::map);
///   …
///   code.trampoline.call(vm, frame, nullptr, run_frame);
///
/// `perf record -g` goes from frame to frame by frame pointers: compile the evaluator, and what it
/// calls, with -fno-omit-frame-pointer, or no function of the interpreter appears. Without, take
/// the jitdump and `perf record -k mono --call-graph dwarf`, then `perf inject --jit`.
///
/// A trampoline is made and named at its first call while the arena is active: once, whichever
/// threads come together there (those that come second meanwhile call the evaluator directly). Its
/// name is in the map (or its buffer) or dump before it runs. Where that fails, for want of memory,
/// executable memory or disk, calls go to the evaluator, until the next activate(), for whichever
/// backend, or compile(); state() counts it.
///
/// Memory comes in arenas of 64 KiB, 512 trampolines each, filled while writable and only then made
/// executable: no page is ever both, none is written again. On x86-64 and aarch64 trampolines set
/// up a frame pointer and begin with the mark that branch protection asks for.
///
/// The place of a destroyed Trampoline is used again, when the newest arena is full, by who was
/// destroyed first. A map then has two lines for one address. Readers by which the later line wins,
/// perfmap's for one, say the new name for samples of both; perf may say either. A jitdump has
/// times, and both are right.
///
/// After fork() the child goes on, as the process's own map does (ForkPolicy):
///  * fresh: the child makes trampolines anew, in arenas of its own, when they are next called: its
///    map and dump name those that it uses. perf looks for names in memory from before the fork in
///    the parent's map; what was being called during the fork keeps its name there.
///  * inherit: the parent's trampolines stay, and their names are in the child's map and dump.
///    Further ones come from arenas of the child's own.
///  * off: the parent's stay, and perf finds their names in the parent's map. Code objects that
///    had none are called directly, until ProcessMap::configure().
///
/// What counts is the policy that was in force at the fork. The dump keeps the policy that was in
/// force when it was created; the map's may change later.
///
/// All but construction, moving and destruction may be done by several threads at once, add() and
/// the destruction of single trampolines included; not from a signal handler, which may only call
/// what is made. Takes no lock that a fork in another thread could leave locked for the child (but
/// see TrampolineOptions::exceptions); but making a trampoline needs malloc(), so that the child of
/// a bare clone(2) of a process with threads should not.
class PERFMAP_API TrampolineArena {
 public:
  /// Not active at first. ENOTSUP (unsupported) on machines whose code we do not know: an
  /// interpreter then calls its evaluators directly, as after any other error.
  static Result<TrampolineArena> make(const TrampolineOptions& options = {});
  TrampolineArena(TrampolineArena&&) noexcept;
  TrampolineArena& operator=(TrampolineArena&&) noexcept;
  /// Unmaps all trampolines and ends the dump; every Trampoline has to be gone.
  ~TrampolineArena();

  /// From now on calls go through trampolines. Opens the map or creates the dump where needed:
  /// fails as ProcessMap::init() and JitdumpWriter::open_own() do, and then calls go on as before;
  /// of both, the map stays open. With another backend than before, trampolines that are there are
  /// named there, too, when next called; with the same one, what has failed is tried again. A dump
  /// stays open until the arena is destroyed.
  Result<void> activate(TrampolineBackend backend);
  /// From now on evaluators are called directly. Trampolines that are running return.
  void deactivate() noexcept;
  TrampolineState state() const noexcept;

  /// A trampoline for a code object, not made yet.
  Trampoline add(const CodeDescription& code);

 private:
  struct State;
  explicit TrampolineArena(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace perfmap
