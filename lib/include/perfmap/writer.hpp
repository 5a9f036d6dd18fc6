// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <sys/types.h>

#include "perfmap/jitdump.hpp"
#include "perfmap/types.hpp"
#include "perfmap/writer_options.hpp"

namespace perfmap {

/// Appends entries to a perf map. Each entry is one write(2) of one whole line to a descriptor in
/// append mode, so that several threads and several processes may share a file. Never truncates.
///
/// Several threads may use it at once. After fork() the child may continue; entries that the parent
/// had buffered stay the parent's.
///
/// A failed write is reported and leaves nothing in the file, or at most a truncated line if
/// another process has written meanwhile. A failed flush keeps what it could not write. At the
/// process's file size limit it fails with EFBIG and raises no SIGXFSZ; a limit that is lowered
/// while the file is open is seen within 1 MiB.
class PERFMAP_API MapWriter {
 public:
  static Result<MapWriter> open(const std::string& path, const WriterOptions& options = {});
  /// Writes to a descriptor, such as 1, which the caller keeps and may close at once. Unless it is
  /// a pipe or terminal, or in append mode, entries are written at its file position.
  static Result<MapWriter> to_descriptor(int fd, std::string name,
                                         const WriterOptions& options = {});
  MapWriter(MapWriter&&) noexcept;
  MapWriter& operator=(MapWriter&&) noexcept;
  /// close(); a failure cannot be reported.
  ~MapWriter();

  /// O(name). Allocates nothing for names that need no escape.
  Result<void> write(Address start, std::uint64_t size, std::string_view name);
  /// Appends the whole map at `path` as it is now, and a newline if it ends without one. Fails with
  /// invalid_argument for the same file, and for files that are not regular.
  Result<void> copy(const std::string& path);
  /// Writes what is buffered.
  Result<void> flush();
  Result<void> close();
  std::string path() const;

 private:
  struct State;
  explicit MapWriter(std::unique_ptr<State> state);
  template <class Open>
  static Result<MapWriter> make(const std::string& name, const WriterOptions& options, Open open);
  std::unique_ptr<State> state_;
};

struct ProcessMapOptions {
  std::string directory = "/tmp";
  ForkPolicy fork = ForkPolicy::fresh;
  StaleMap stale = StaleMap::empty;
  /// own_map is always true here.
  WriterOptions writer = {};
};

/// The calling process's own map, DIRECTORY/perf-PID.map: the functions that CPython documents as
/// PyUnstable_PerfMapState_Init, PyUnstable_WritePerfMapEntry, PyUnstable_CopyPerfMapFile and
/// PyUnstable_PerfMapState_Fini. There is one per process. Several threads may call all functions.
/// They return 0, or a negative number as documented below, with errno set.
///
/// None of them is a cancellation point. None may be called from a signal handler or in the child
/// of vfork(2). Handlers of pthread_atfork(3) may call them, except prepare and parent handlers
/// that were registered before this library was loaded. fork(2) waits up to a tenth of a second for
/// a write that hangs, for example on a full pipe, then goes on.
///
/// A child may use it at any time, however it was created: by fork(2), by vfork(2) with exec(2), or
/// by clone(2) without handlers; see ForkPolicy. In a child of a bare clone(2) of a process with
/// threads, the lock of malloc() may be held for ever. There these functions do not call malloc(),
/// except for names that need an escape, for copy(), and for mapped maps.
///
/// In a library built without perf maps these functions do nothing and succeed.
class PERFMAP_API ProcessMap {
 public:
  /// Call it before the first init(), or after fini(); otherwise -1 and EBUSY. ENAMETOOLONG for a
  /// directory of 4000 bytes and more. A child may call it before its own first init(), but a child
  /// that inherits has its map open.
  static int configure(const ProcessMapOptions& options) noexcept;
  /// Changes this option, for future children, at any time.
  static int set_fork_policy(ForkPolicy policy) noexcept;
  /// Opens the map unless it is open. -1: it cannot be opened, or the parent's entries cannot be
  /// inherited (EBADF if the parent could open its map only for writing). -2: no fork handler.
  static int init() noexcept;
  /// What the open map began with; `none` if no map is open.
  static MapStart start() noexcept;
  /// Opens the map first if needed. -1: no part of this entry is in the file; errno is EILSEQ for a
  /// name that the policy refuses, EFBIG at the size limit, else the system's.
  static int write(Address start, std::uint64_t size, std::string_view name) noexcept;
  /// Appends another process's map at `path` as it is now. -1 and EINVAL for our own map, a file
  /// that is not regular, and nullptr; EISDIR for a directory; ELOOP for a link.
  static int copy(const char* path) noexcept;
  static int flush() noexcept;
  /// The policy that was configured last. It applies to future children.
  static ForkPolicy fork_policy() noexcept;
  /// What happened to this process's own map at its fork. `inherit`: the map begins with its
  /// parent's entries, or will as soon as that is possible. `off`: it writes nothing until
  /// configure(). `fresh` also in a process that was not forked since it first used the map.
  static ForkPolicy began_as() noexcept;
  /// Waits for writes in progress, flushes and closes. May be called any number of times. Also
  /// called at exit; later writes are not buffered.
  static int fini() noexcept;
};

/// Writes a jitdump, the file from which `perf inject --jit` names generated code. It has lines and
/// unwinding information, which a perf map cannot hold. Record with `perf record -k mono`.
///
/// A function is one writev(2): its DEBUG_INFO, its UNWINDING_INFO and, last, its LOAD, because
/// perf assigns the former two to the next LOAD. Several threads may use a writer at once: one lock
/// covers taking times and ordering records. code_index counts up from 1, or from the end of an
/// existing dump. Records are in the file when the call returns: nothing is buffered.
///
/// A failed call is reported and leaves no part of its records in the file. If an incomplete record
/// cannot be cut off, for example because another process has written after it, every later call
/// fails with EIO until it can be: everything after an incomplete record would be lost. The
/// process's file size limit is EFBIG, as for maps.
///
/// Only one writer at a time can have a dump, by an advisory lock (F_OFD_SETLK): another gets
/// EBUSY, also in the same process. A new file has mode 0600. Files are never truncated, and are
/// closed on exec. An existing file is handled by its contents:
///  * A dump of that pid, in this machine's byte order and with times in nanoseconds, is appended
///    to. An incomplete record at its end, and a CLOSE, are cut off first. Costs one pass over it.
///    Refused if another process that does not use this library has it open for writing, because
///    that process has its own position or buffer.
///  * An empty file gets a header.
///  * Anything else is bad_format, but see open_own().
///
/// In a child, however it was created, it never writes into its parent's dump, and does not end it.
/// A writer of open_own() continues there as JitdumpOptions::fork says: with a new dump, created
/// when the child first writes; with a dump that begins with the parent's records and has its own
/// marker; or without a dump, and load() succeeds with 0. Every other writer fails with EBADF. In a
/// child of a bare clone(2) of a process with threads it must not be used at all: it needs
/// malloc(), whose lock may be held there.
///
/// Source: Linux, tools/perf/Documentation/jitdump-specification.txt, and for the order of the
/// unwinding information tools/perf/util/genelf.c, from which that text differs.
class PERFMAP_API JitdumpWriter {
 public:
  /// Maximum number of bytes of code that a JitFunction may leave out.
  static constexpr std::uint64_t kMaxZeros = LoadRecord::kMaxZeros;

  /// DIRECTORY/jit-PID.dump of the calling process; perf requires this name. Sets `pid` and
  /// `own_dump`. A file of ours that was last written before this process began belongs to a former
  /// process with the same pid: it is unlinked, so that its readers may go on, and a new one is
  /// created. A file that this process began, for example before exec(2), is appended to. Any other
  /// file is in use by another engine in this process: EBUSY.
  static Result<JitdumpWriter> open_own(const std::string& directory = "/tmp",
                                        const JitdumpOptions& options = {});
  static Result<JitdumpWriter> open(const std::string& path, const JitdumpOptions& options = {});
  /// Writes a dump, including its header, to a descriptor such as 1, which the caller keeps and may
  /// close at once. There is no marker.
  static Result<JitdumpWriter> to_descriptor(int fd, std::string name,
                                             const JitdumpOptions& options = {});
  JitdumpWriter(JitdumpWriter&&) noexcept;
  JitdumpWriter& operator=(JitdumpWriter&&) noexcept;
  /// close(); a failure cannot be reported.
  ~JitdumpWriter();

  /// Writes a function and returns its code_index, for move(). With `map`, writes its line there
  /// next; if that fails, the record stays. O(bytes). EINVAL (invalid_argument) if a member of
  /// JitFunction is invalid; EOVERFLOW for records of 4 GiB and more.
  Result<std::uint64_t> load(const JitFunction& function, MapWriter* map = nullptr);
  /// Records that the code of `code_index` moved from one address to another, now. perf still
  /// resolves samples at the old address. invalid_argument for an index that this dump does not
  /// have.
  Result<void> move(std::uint64_t code_index, Address from, Address to, std::uint64_t size);
  /// Ends the dump and unmaps the marker. Later calls fail with EBADF.
  Result<void> close();

  std::string path() const;

 private:
  struct State;
  explicit JitdumpWriter(std::unique_ptr<State> state);
  template <class Open>
  static Result<JitdumpWriter> make(const std::string& name, const JitdumpOptions& options,
                                    Open open);
  std::unique_ptr<State> state_;
};

/// Writes a log of the loops of a tracing JIT, with times, in the format of PyPy's PYPYLOG: a
/// section for each entry to a loop or bridge, and for each return from it to the interpreter.
///
///     3# [2b3c] {jit-profile-enter
///     3# loop1
///     3# [2b3c] jit-profile-enter}
///
/// Ticks are hexadecimal. An event has one time: its section is opened and closed with the same
/// tick. Every line begins with the number of its thread (`3# `), as in PyPy's builds with several
/// threads: counted from 1 in the order of their first events. The number is always written,
/// because a second thread may come later. A log begins with a section jit-profile-clock, which
/// readers of such logs skip: `tsc`, `cntvct N Hz` or `CLOCK_MONOTONIC ns`. Its tick is read just
/// before the first event, and read again until it has a digit above 9, so that no reader takes the
/// log's ticks for decimal.
///
/// Names are written as escape_map_name() does, without its brackets (an empty result becomes `?`).
/// A `#` that would begin a comment, or follow what looks like a thread's number, becomes \x23; a
/// `[` that would begin a section becomes \x5b; names longer than kMaxPortableName are truncated. A
/// name in PyPy's own form, `Loop 1 (f;x.py:1~#12 FOR_ITER)`, does not change.
///
/// enter() and exit() store 16 bytes into a buffer of the calling thread, without a lock: at most
/// 25 ns with the counter; with CLOCK_MONOTONIC at most 15 ns more than reading that clock. The
/// thread that fills its buffer writes it: whole sections, up to 512 KiB per write(2), one thread
/// at a time. In total an event takes about 60 ns; the file system's share grows with the name. So
/// a thread's events are in order in the log, and those of several threads are interleaved in
/// blocks. A thread's buffer is also written when the thread ends.
///
/// A process that is killed loses at most the last buffer_events events of each thread; if it was
/// killed during a write(2), the log ends in an incomplete section. exit(3) writes the events of
/// its own thread; those of other threads are lost, unless the log is closed.
///
/// Sections that cannot be written are lost and counted by lost(). The call that wrote returns the
/// reason, and so do flush() and close() from then on; recording continues, and so does writing
/// once there is room again. The process's file size limit is EFBIG, as for maps. A pipe whose
/// reader has gone raises SIGPIPE, as for every write.
///
/// In a child, however it was created, nothing is written into the parent's log, and the events
/// that the parent's threads have buffered stay the parent's. A child has a log of its own if the
/// path contains `%d`, which stands for the pid:
///  * fresh: it begins with the child's first event.
///  * inherit: it begins with what the parent had recorded at the fork, and continues with the same
///    thread numbers, so that loops that were entered before the fork count in the child. It is
///    made at the child's first event, and appears complete; if that fails, the child's events are
///    refused with the reason.
///  * off: the child's events are dropped, and the calls succeed.
/// Without `%d` they are dropped under every policy. A child has all loops of its parent. In a
/// child of a bare clone(2) of a process with threads it must not be used at all: it needs
/// malloc(), whose lock may be held there.
///
/// Several threads may use it at once, except for construction, moving and destruction. It must not
/// be used from a signal handler, nor in the child of vfork(2).
///
/// Source: PyPy, rpython/translator/c/src/debug_print.c and rpython/tool/logparser.py, and the
/// sketch of a JIT-aware profiler in PyPy's documentation.
class PERFMAP_API JitlogWriter {
 public:
  /// Creates the log at `path`; each `%d` in it stands for the calling process's pid. The file has
  /// mode 0600 and is closed on exec. An existing log is emptied, as PyPy does; any other file that
  /// is not empty is bad_format. A log that a writer of this library has open, in any process, is
  /// EBUSY (writers hold a lock, F_OFD_SETLK). Devices and FIFOs are written without these checks.
  static Result<JitlogWriter> open(const std::string& path, const JitlogOptions& options = {});
  /// Writes to a descriptor, such as 2, which the caller keeps and may close at once.
  static Result<JitlogWriter> to_descriptor(int fd, std::string name,
                                            const JitlogOptions& options = {});
  JitlogWriter(JitlogWriter&&) noexcept;
  JitlogWriter& operator=(JitlogWriter&&) noexcept;
  /// close(); a failure cannot be reported.
  ~JitlogWriter();

  /// Returns the number of a loop or bridge, for enter() and exit(): equal for names that are
  /// written equally. Call it when the loop is compiled. EILSEQ under NamePolicy::refuse. O(name).
  Result<JitlogLoop> loop(std::string_view name);

  /// The calling thread has entered the loop, from the interpreter or from another loop, which it
  /// thereby has left. Returns 0; EINVAL for a number that loop() has not returned, EBADF after
  /// close(), EPERM, ENOMEM; else the reason why events could not be written.
  int enter(JitlogLoop loop) noexcept;
  /// The thread has returned from the loop to the interpreter.
  int exit(JitlogLoop loop) noexcept;

  /// Writes what all threads have recorded so far.
  Result<void> flush();
  /// flush(), then ends the log.
  Result<void> close();
  /// Number of events that could not be written.
  std::uint64_t lost() const noexcept;
  /// Path of the log that the calling process writes, with the pid for `%d`.
  std::string path() const;

 private:
  struct State;
  explicit JitlogWriter(std::unique_ptr<State> state);
  template <class Open>
  static Result<JitlogWriter> make(const std::string& name, const JitlogOptions& options,
                                   Open open);
  std::unique_ptr<State> state_;
};

struct TrampolineOptions {
  /// Prefix of names: `prefix::qualified_name:file`; empty: `qualified_name:file`.
  std::string prefix = {};
  std::string jitdump_directory = "/tmp";
  /// C++ exceptions may pass through trampolines: every arena is registered with the C++ runtime.
  /// With libgcc before 13, every throw and every new arena then takes a lock. If another thread
  /// throws during a fork, that lock may stay held in the child for ever.
  bool exceptions = false;
};

/// One code object's slot in an arena. Lives as long as the code object, and no longer than the
/// arena. Several threads may use it at once, except for moving and destruction; meanwhile other
/// trampolines may be moved or destroyed.
class PERFMAP_API Trampoline {
 public:
  /// Belongs to no arena: calls the evaluator directly.
  Trampoline() noexcept;
  Trampoline(Trampoline&&) noexcept;
  Trampoline& operator=(Trampoline&&) noexcept;
  /// Frees the slot for a later code object; no thread may be running in this one. For its name see
  /// TrampolineArena.
  ~Trampoline();

  /// Calls evaluator(first, second, third) through the code object's own frame, or directly if
  /// there is none. Must not throw unless TrampolineOptions::exceptions. Costs at most 2.5 ns more
  /// than the direct call, except for the first call, which writes the name.
  void* call(void* first, void* second, void* third, Evaluator evaluator);
  /// The function that call() would call, for an interpreter that inlines the call in its own code;
  /// nullptr: the evaluator. Valid until deactivate(), activate() or a fork: get it before every
  /// call.
  TrampolineEntry entry() noexcept;
  /// Makes the trampoline now, also after an earlier failure; if another thread is making it, waits
  /// for that. Does nothing and succeeds if it is made already, or if the arena is not active.
  /// EDEADLK in a callback while one is being made, such as WriterOptions::on_full.
  Result<void> compile();

 private:
  friend class TrampolineArena;
  struct Code;
  explicit Trampoline(std::unique_ptr<Code> code);
  std::unique_ptr<Code> code_;
};

/// Gives every code object of an interpreter its own native frame, so that profilers that only see
/// native frames can name the interpreter's functions, in the order of their calls. An interpreter
/// calls `trampoline.call(a, b, c, evaluator)` instead of `evaluator(a, b, c)`:
///
///   auto arena = perfmap::TrampolineArena::make({.prefix = "lox"});  // lives as long as all code
///   code.trampoline = arena->add({"Point.norm", "/srv/points.lox", 12});
///   arena->activate(perfmap::TrampolineBackend::map);
///   …
///   code.trampoline.call(vm, frame, nullptr, run_frame);
///
/// `perf record -g` follows frame pointers: compile the evaluator, and the functions that it calls,
/// with -fno-omit-frame-pointer, or no function of the interpreter appears. Otherwise use the
/// jitdump and `perf record -k mono --call-graph dwarf`, then `perf inject --jit`.
///
/// A trampoline is made and named at its first call while the arena is active. It is made only
/// once; other threads that call it meanwhile call the evaluator directly. Its name is in the map
/// (or its buffer) or dump before it runs. If that fails, for lack of memory, executable memory or
/// disk space, calls go to the evaluator until compile(), or the next activate() of any backend;
/// state() counts the failure.
///
/// Memory is allocated in arenas of 64 KiB with 512 trampolines each. An arena is filled while
/// writable and then made executable: no page is ever both, and none is written again. On x86-64
/// and aarch64 trampolines set up a frame pointer and begin with the instruction that branch
/// protection requires.
///
/// Slots of destroyed Trampolines are reused when the newest arena is full, the oldest first. A map
/// then has two lines for one address. Readers in which the later line wins, such as perfmap,
/// report the new name for samples of both; perf may report either. A jitdump has times, so both
/// names are right.
///
/// After fork() the child continues as the process's own map does (ForkPolicy):
///  * fresh: the child makes trampolines anew, in arenas of its own, at their next calls. Its map
///    and dump name those that it uses. perf looks up names in memory from before the fork in the
///    parent's map; calls that were active during the fork keep their names there.
///  * inherit: the parent's trampolines stay, and the child's map and dump contain their names. New
///    ones come from the child's own arenas.
///  * off: the parent's trampolines stay, and perf finds their names in the parent's map. Code
///    objects without one are called directly, until ProcessMap::configure().
///
/// The policy at the time of the fork counts. The dump keeps the policy from when it was created;
/// the map's policy may change later.
///
/// Several threads may use it at once, also for add() and for destroying single trampolines, but
/// not for construction, moving and destruction of the arena. A signal handler may only call
/// trampolines that are made. Takes no lock that a fork in another thread could leave locked in the
/// child (but see TrampolineOptions::exceptions). Making a trampoline needs malloc(), so the child
/// of a bare clone(2) of a process with threads must not do it.
class PERFMAP_API TrampolineArena {
 public:
  /// Not active at first. ENOTSUP (unsupported) on machines other than x86-64 and aarch64: the
  /// interpreter then calls its evaluators directly, as after any other error.
  static Result<TrampolineArena> make(const TrampolineOptions& options = {});
  TrampolineArena(TrampolineArena&&) noexcept;
  TrampolineArena& operator=(TrampolineArena&&) noexcept;
  /// Unmaps all trampolines and ends the dump. All Trampolines must be destroyed before.
  ~TrampolineArena();

  /// From now on calls go through trampolines. Opens the map or creates the dump if needed. If that
  /// fails, as ProcessMap::init() and JitdumpWriter::open_own() do, calls go on as before; of both,
  /// the map stays open. With another backend than before, existing trampolines are also named
  /// there at their next call; with the same one, failed ones are tried again. A dump stays open
  /// until the arena is destroyed.
  Result<void> activate(TrampolineBackend backend);
  /// From now on evaluators are called directly. Running trampolines return normally.
  void deactivate() noexcept;
  TrampolineState state() const noexcept;

  /// Returns a trampoline for a code object. It is not made yet.
  Trampoline add(const CodeDescription& code);

 private:
  friend class Trampoline;
  struct State;
  explicit TrampolineArena(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace perfmap
