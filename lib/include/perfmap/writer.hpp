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

namespace perfmap {

/// What becomes of a process's own map or dump in a forked child. In none of them does the child
/// write into its parent's file, and what the parent has buffered is written by the parent.
enum class ForkPolicy : std::uint8_t {
  /// CPython's default: the child's file starts empty, and is made when the child first opens it or
  /// writes.
  fresh,
  /// The child's file starts with what its parent had written when it forked, from the parent's
  /// descriptor, so that it does not matter whether that file still has a name. It appears whole,
  /// before fork(2) returns in the child; after a bare clone(2), which runs no handlers, at the
  /// child's first call. Where that fails, each call tries again and says why.
  inherit,
  /// Children of the process that configured this write nothing, successfully.
  off,
};

/// What a writer found at its path when it opened the file.
enum class MapStart : std::uint8_t {
  none,              ///< no file is open
  made,              ///< nothing, or an empty file
  emptied,           ///< the map of an earlier process of this pid, which is gone now
  inherited,         ///< nothing: the file begins with the parent's entries
  appended,          ///< entries that this process may have written; they stay
  appended_kept,     ///< an earlier process's entries; they stay, as was asked for
  appended_in_use,   ///< the same, but another writer has the file open, or nobody can tell
  appended_foreign,  ///< a file of another user; its entries stay
};

/// What becomes of a name that readers would trip over; see escape_map_name().
enum class NamePolicy : std::uint8_t {
  escape,  ///< it is written as escape_map_name() says
  refuse,  ///< nothing is written, the call fails with EILSEQ
};

struct WriterOptions {
  NamePolicy names = NamePolicy::escape;
  /// True for the map of a process in /tmp: links and everything but regular files are refused.
  bool own_map = false;
  /// 0: an entry whose write() returned is in the file, even if the process is killed next.
  /// Otherwise entries are kept until so many bytes are there, and written at once.
  std::size_t buffer_bytes = 0;
  /// Buffered: what is older than this is written at the next write(). 0: no such limit.
  std::uint64_t flush_after_ns = 0;
  /// The file grows no further than this, counting what it held when it was opened and what this
  /// writer added: a write() or copy() that would fails with EFBIG. 0: no limit.
  std::uint64_t max_bytes = 0;
  /// Called with its context by a write() at max_bytes, in its thread: not 0 says that there is
  /// room now, and the entry is tried once more. It may use the writer, say to close the process's
  /// own map and to move it away: the next write opens a new one. Other threads' writes fail
  /// meanwhile. Must not throw. After 0 it is not called again until the map is opened anew.
  int (*on_full)(void* context) = nullptr;
  void* on_full_context = nullptr;
  /// Entries are stored into a mapping of the file's end instead of being written with write(2): an
  /// entry whose write() returned is in the file, even if the process is killed next, for the price
  /// of a copy in memory. buffer_bytes counts as 0.
  ///
  /// Until it is closed the file ends in at most 64 KiB of filler, which max_bytes does not count:
  /// lines of "0 0 " and dots, at most 2 KiB each unless a longer entry is on its way, which
  /// readers take for symbols without size at address 0. close() cuts them off; of a writer that
  /// was killed they stay, until the next mapped writer opens the file. A map that is on its way
  /// has whole lines at any time.
  ///
  /// Only for files that nobody else writes to, whatever they promise:
  ///  * open() fails with EBUSY where a process, as far as /proc shows, has the file open for
  ///    writing, or where a writer of this library has locked it. What comes later and does not
  ///    look for locks is seen when the filler is used up: entries then go on with write(2), and
  ///    filler is left in the middle of the file.
  ///  * Whoever truncates the file kills this process with SIGBUS at the next write(). A reader
  ///    that maps the file, and looks at its filler while close() cuts it off, is in the same
  ///    danger: see TruncationGuard.
  ///  * After fork() the writer is closed in the child: EBADF. (A process's own map goes on
  ///    as its fork policy says; where it is in use, as by a child that has not let go of it, it is
  ///    written with write(2) instead.)
  ///
  /// Room on the disk is reserved beforehand, so that a full one is ENOSPC from write(), never
  /// SIGBUS. Where that cannot be had, entries are written with write(2): for what is no regular
  /// file, and on all file systems but ext2 to ext4, XFS and tmpfs.
  bool mapped = false;
};

/// Appends entries to a perf map: one write(2) of one whole line on a descriptor opened for
/// appending, so that several threads and several processes may share a file. Never truncates.
///
/// May be used from several threads at once. After fork() the child may go on: entries that the
/// parent had buffered stay the parent's.
///
/// A failed write is reported and leaves nothing behind, or, where another process has written
/// meanwhile, at most a line that was cut short. A failed flush keeps what it could not write.
/// Where the file size limit of the process is passed (EFBIG) the kernel also sends SIGXFSZ, as for
/// every write.
class PERFMAP_API MapWriter {
 public:
  static Result<MapWriter> open(const std::string& path, const WriterOptions& options = {});
  /// Writes to a descriptor, such as 1, which the caller keeps and may close at once. Where that is
  /// no pipe or terminal and not opened for appending, entries go where its position is.
  static Result<MapWriter> to_descriptor(int fd, std::string name,
                                         const WriterOptions& options = {});
  MapWriter(MapWriter&&) noexcept;
  MapWriter& operator=(MapWriter&&) noexcept;
  /// close(), with nobody left to tell of a failure.
  ~MapWriter();

  /// O(name). Allocates nothing for names that are written as they are.
  Result<void> write(Address start, std::uint64_t size, std::string_view name);
  /// Appends all of the map at `path` as it is now, and a newline if it ends without one. This very
  /// file, and what is no regular file, are invalid_argument.
  Result<void> copy(const std::string& path);
  /// Writes what is buffered.
  Result<void> flush();
  Result<void> close();

 private:
  struct State;
  explicit MapWriter(std::unique_ptr<State> state);
  template <class Open>
  static Result<MapWriter> make(const std::string& name, const WriterOptions& options, Open open);
  Result<void> result(std::string_view what, int sys_errno) const;
  std::unique_ptr<State> state_;
};

/// What becomes of entries that an earlier process of the same pid left in a process's own map.
enum class StaleMap : std::uint8_t {
  /// They go when the map is opened: if the file is ours, was last written more than a second
  /// before this process began, and no writer of this library has it open (they hold a lock, see
  /// F_OFD_SETLK). Else they stay, and MapStart says why.
  empty,
  keep,  ///< they stay
};

struct ProcessMapOptions {
  std::string directory = "/tmp";
  ForkPolicy fork = ForkPolicy::fresh;
  StaleMap stale = StaleMap::empty;
  /// own_map is always true here.
  WriterOptions writer = {};
};

/// The calling process's own map, DIRECTORY/perf-PID.map: what CPython documents for
/// PyUnstable_PerfMapState_Init, PyUnstable_WritePerfMapEntry, PyUnstable_CopyPerfMapFile and
/// PyUnstable_PerfMapState_Fini. There is one per process; all functions may be called from several
/// threads, answer 0 or a negative code as said there, and set errno with it.
///
/// None is a cancellation point, or may be called from a signal handler or in the child of
/// vfork(2). Handlers of pthread_atfork(3) may use it, but for the parent's and the preparing ones
/// that were registered before this library was loaded. fork(2) waits up to a tenth of a second for
/// a write that hangs, say on a full pipe, then goes on; such a writer is closed in the child.
///
/// A child may use it however it was made, at whatever moment, by fork(2), vfork(2) with exec(2),
/// or clone(2) without handlers: see ForkPolicy. In a child of a bare clone(2) of a process with
/// threads the lock of malloc() may be taken for ever; nothing here calls that there, but for names
/// that have to be escaped, copy(), and maps that are mapped.
///
/// A library built without perf maps does nothing here, successfully.
class PERFMAP_API ProcessMap {
 public:
  /// Before the first init(), or after fini(): else -1 and EBUSY; ENAMETOOLONG for a directory of
  /// 4000 bytes and more. A child counts anew, but one that inherits has its map open.
  static int configure(const ProcessMapOptions& options) noexcept;
  /// Changes that one option, for children to come, at any time.
  static int set_fork_policy(ForkPolicy policy) noexcept;
  /// Opens the map unless it is open. -1: it cannot be opened, or the parent's entries cannot be
  /// inherited: of a parent whose map could only be opened for writing, EBADF; -2: no fork handler.
  static int init() noexcept;
  /// What the map that is open began with; `none` where none is.
  static MapStart start() noexcept;
  /// Opens the map first where needed. -1: nothing of this entry is in the file; errno is EILSEQ
  /// for a name that the policy refuses, EFBIG at the size cap, else the system's.
  static int write(Address start, std::uint64_t size, std::string_view name) noexcept;
  /// Appends the map at `path`, another process's, as it is now. -1 and EINVAL for our own map,
  /// what is no regular file, and nullptr; EISDIR for a directory; ELOOP for a link.
  static int copy(const char* path) noexcept;
  static int flush() noexcept;
  /// The policy in force: what was configured last. It is for children yet to come.
  static ForkPolicy fork_policy() noexcept;
  /// What became of this process's own map when it was forked: `inherit` where the map begins with
  /// its parent's entries, or will as soon as that can be done; `off` where it writes nothing until
  /// configure(). `fresh` also in a process that was not forked since it first used the map.
  static ForkPolicy began_as() noexcept;
  /// Waits for writes in flight, writes what is buffered, closes. Any number of times. Done at
  /// exit, too; who writes later still, writes without a buffer.
  static int fini() noexcept;
};

struct JitdumpOptions {
  /// Whose code it is. 0: of an existing dump the one its header names, else N where the file is
  /// called jit-N.dump, else the calling process.
  pid_t pid = 0;
  /// The first page is mapped for execution until close(), which `perf record` notes, and by which
  /// `perf inject --jit` finds the file. Without it a recording does not know of the dump.
  bool marker = true;
  /// close() ends the dump with a CLOSE record. perf reads nothing behind one, so that reopening
  /// takes it back.
  bool close_record = true;
  /// True for a dump in /tmp: links, all but regular files, and files of other users are refused.
  bool own_dump = false;
  /// open() waits up to 30 s while another writer has the dump, instead of failing with EBUSY.
  bool wait = false;
  NamePolicy names = NamePolicy::escape;  ///< as for maps, so that both hold the same name
  /// Each function is named in the process's own map, too: see ProcessMap.
  bool process_map = false;
  /// As in WriterOptions.
  std::uint64_t max_bytes = 0;
  /// What becomes of a dump of open_own() in a child. Records that a child inherits become its own:
  /// they carry its pid, by which perf goes, and keep their times, code indices, lines and
  /// unwinding information. Where they are to be read as the recording's, perf has them from the
  /// parent's dump as well, as a child starts with its parent's mappings.
  ForkPolicy fork = ForkPolicy::fresh;
};

/// How a profiler unwinds through a function: .eh_frame and .eh_frame_hdr as in an ELF file. perf
/// puts the frame at the first multiple of 8 behind the code, the header right behind the frame:
/// the header's pointers, which are relative, have to count on that.
struct JitUnwinding {
  std::string_view eh_frame;
  std::string_view eh_frame_hdr;
  /// Bytes behind the code, from the first multiple of 8 on, that hold both in the process, or are
  /// left free for them: perf lays the mapping of the function over them, so no other function may
  /// be there. 0: there are none, and perf cannot use the frame. Otherwise not less than both.
  std::uint64_t mapped_size = 0;
};

/// A function that was made. Everything is only looked at during the call.
struct JitFunction {
  Address start = 0;
  std::uint64_t size = 0;
  std::string_view name;
  /// `size` bytes; or empty, where they are unknown or of no interest: then zeros are written, up
  /// to kMaxZeros of them, because perf takes that many bytes from the end of the record whatever
  /// they are.
  std::string_view code = {};
  /// By ascending address, none outside [start, start + size]: each holds up to the next one, the
  /// last up to the end. `file_repeats` is ignored: not every perf knows it.
  std::span<const LineRecord> lines = {};
  JitUnwinding unwinding = {};
  /// CLOCK_MONOTONIC nanoseconds; 0: now. Code has to be there from then on, and a sample taken
  /// before does not get this name: write a function before it runs.
  std::uint64_t time = 0;
};

/// Writes a jitdump, the file by which `perf inject --jit` names generated code, with the lines and
/// the unwinding information that a perf map has no room for. Record with `perf record -k mono`.
///
/// A function is one writev(2): its DEBUG_INFO, its UNWINDING_INFO and, last, its LOAD, for perf
/// gives the former two to whichever LOAD comes next. May be used from several threads at once.
/// code_index counts up from 1, or from where an existing dump ends; times are taken, and records
/// ordered, under one lock. Records are in the file when the call returns: nothing is buffered.
///
/// A failed call is reported and leaves nothing of its records behind. Where half a record cannot
/// be cut off, because another process has written behind it, say, every later call fails with EIO
/// until it can: whatever follows half a record is lost with it. Where the file size limit of the
/// process is passed (EFBIG) the kernel also sends SIGXFSZ, as for every write.
///
/// One writer at a time has a dump, by an advisory lock (F_OFD_SETLK): another one gets EBUSY, in
/// the same process, too. A file is made with mode 0600, never truncated, and closed on exec. What
/// is there already:
///  * a dump of that pid, in this machine's byte order and with times in nanoseconds, is appended
///    to; half a record at its end, and a CLOSE, are cut off first. Costs one reading of it;
///    A process that has it open for writing, and is no writer of ours, has a position or a buffer
///    of its own: refused;
///  * an empty file gets a header;
///  * anything else is bad_format, but see open_own().
///
/// In a child, however it was made, it never writes into its parent's dump, and does not end it. A
/// writer of open_own() goes on there with the child's own dump, as JitdumpOptions::fork says: one
/// that is made when the child first writes, one that begins with the parent's records and has its
/// own marker, or none, where load() succeeds and answers 0. Every other writer fails with EBADF.
/// In a child of a bare clone(2) of a process with threads it must not be used at all: like most
/// of C++ it needs malloc(), whose lock may be taken there.
///
/// Source: Linux, tools/perf/Documentation/jitdump-specification.txt, and for the order of the
/// unwinding information tools/perf/util/genelf.c, from which that text differs.
class PERFMAP_API JitdumpWriter {
 public:
  /// How many bytes of code may be left out of a JitFunction.
  static constexpr std::uint64_t kMaxZeros = JitdumpBytes::kMaxZeros;

  /// DIRECTORY/jit-PID.dump of the calling process; the name is what perf goes by. `pid` and
  /// `own_dump` are set here. A file of ours that was last written before this process began is a
  /// former process's of the same pid: it is unlinked, so that whoever reads it may go on, and a
  /// new one is made. One that this process began, before exec(2), say, is appended to. Any other
  /// one is being written by another engine in this process: EBUSY.
  static Result<JitdumpWriter> open_own(const std::string& directory = "/tmp",
                                        const JitdumpOptions& options = {});
  static Result<JitdumpWriter> open(const std::string& path, const JitdumpOptions& options = {});
  /// Writes a dump, from its header on, to a descriptor such as 1, which the caller keeps and may
  /// close at once. There is no marker.
  static Result<JitdumpWriter> to_descriptor(int fd, std::string name,
                                             const JitdumpOptions& options = {});
  JitdumpWriter(JitdumpWriter&&) noexcept;
  JitdumpWriter& operator=(JitdumpWriter&&) noexcept;
  /// close(), with nobody left to tell of a failure.
  ~JitdumpWriter();

  /// Writes a function and answers with its code_index, for move(). With `map`, its line goes there
  /// next; should that fail, the record stays. O(bytes). EINVAL (invalid_argument) for what the
  /// members of JitFunction rule out; EOVERFLOW for records of 4 GiB and more.
  Result<std::uint64_t> load(const JitFunction& function, MapWriter* map = nullptr);
  /// The code of `code_index` went from one address to another, now. perf keeps resolving samples
  /// at the old one.
  Result<void> move(std::uint64_t code_index, Address from, Address to, std::uint64_t size);
  /// Ends the dump and takes the marker away. Later calls fail with EBADF.
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

/// What the ticks of a log count.
enum class JitlogClock : std::uint8_t {
  /// The processor's: rdtsc on x86 (PyPy's unit), cntvct_el0 on aarch64; elsewhere ENOTSUP.
  counter,
  monotonic,  ///< CLOCK_MONOTONIC nanoseconds, which `perf record -k mono` has, too
};

/// A loop or bridge of a log, as JitlogWriter::loop() numbers it, from 1.
using JitlogLoop = std::uint32_t;

struct JitlogOptions {
  JitlogClock clock = JitlogClock::counter;
  NamePolicy names = NamePolicy::escape;
  /// True for a log in /tmp: links, all but regular files, files with another name, too, and files
  /// of other users are refused.
  bool own_log = false;
  /// Lines carry no thread number. The first thread that records is then the only one that may:
  /// others get EPERM.
  bool one_thread = false;
  /// How many events a thread keeps before it writes them. 1: one that was recorded is in the file;
  /// 0: kUsualBuffer. 16 bytes each.
  std::uint32_t buffer_events = 0;
  /// What becomes of a log in a child: see JitlogWriter.
  ForkPolicy fork = ForkPolicy::fresh;
};

/// Writes a log of what a tracing JIT does when, in the format of PyPy's PYPYLOG: a section
/// whenever a loop or a bridge is entered, or left for no other one.
///
///     3# [2b3c] {jit-profile-enter
///     3# loop1
///     3# [2b3c] jit-profile-enter}
///
/// Ticks are hexadecimal. An event has one time: a section is opened and closed by the same tick,
/// and none is made up. Every line begins with the number of its thread (`3# `), as those of PyPy's
/// builds with several threads do: counted from 1 in the order of their first events, and always
/// there, because whether a second thread will come cannot be known when the first one is written.
/// A log begins with a section jit-profile-clock, which readers of such logs pass over: `tsc`,
/// `cntvct N Hz` or `CLOCK_MONOTONIC ns`. Its tick is read just before the first event, and read
/// again until it has a digit above 9, so that nobody takes the log's ticks for decimal.
///
/// Names are written as escape_map_name() does, without its brackets (nothing is left of a name:
/// `?`); a `#` that would begin a comment, or follow what looks like a thread's number, becomes
/// \x23, and a `[` that would begin a section \x5b; what is longer than kMaxPortableName is cut
/// there. A name in PyPy's own form, `Loop 1 (f;x.py:1~#12 FOR_ITER)`, stays as it is.
///
/// enter() and exit() store 16 bytes into a buffer of the calling thread, without a lock: at most
/// 25 ns by the counter, by CLOCK_MONOTONIC at most 15 ns more than reading it takes. Whoever fills
/// its buffer writes it: whole sections, up to 512 KiB with one write(2), one thread at a time;
/// with all that an event takes about 60 ns, of which the file system's part grows with the name.
/// So a thread's events are in order in the log, and those of several threads are interleaved in
/// blocks. A thread's buffer is written when the thread ends, too.
///
/// A process that is killed loses at most buffer_events events of each thread, the last ones, and
/// leaves, where that happened in the middle of a write(2), half a section at the end of the log.
/// exit(3) writes what its own thread has; of others the events are lost, unless the log is closed.
///
/// What cannot be written is lost, counted by lost(): whole sections. The call that wrote answers
/// with the reason, and so do flush() and close() from then on; recording goes on, and so does
/// writing, where there is room again. Where the process's limit of file sizes would be passed
/// (EFBIG) nothing is written, and the kernel has no reason to send SIGXFSZ. A pipe whose reader
/// has gone raises SIGPIPE, as for every write.
///
/// In a child, however it was made, nothing is written into the parent's log, and what the parent's
/// threads have buffered is the parent's. A child has a log of its own where the path holds `%d`,
/// which stands for the pid:
///  * fresh: it begins with the child's first event.
///  * inherit: it begins with what the parent had recorded when it forked, and goes on with the
///  same
///    thread numbers, so that loops that were entered before the fork count in the child. It
///    appears whole before fork(2) returns there (after a bare clone(2), at the child's first
///    event); where that fails, the child's events are refused with the reason.
///  * off: the child's events are dropped, successfully.
/// Without `%d` they are dropped under every policy. A child has all loops that its parent had. In
/// a child of a bare clone(2) of a process with threads it must not be used at all: like most of
/// C++ it needs malloc(), whose lock may be taken there.
///
/// All but construction, moving and destruction may be done by several threads at once, but not
/// from a signal handler, nor in the child of vfork(2).
///
/// Source: PyPy, rpython/translator/c/src/debug_print.c and rpython/tool/logparser.py, and the
/// sketch of a JIT-aware profiler in PyPy's documentation.
class PERFMAP_API JitlogWriter {
 public:
  static constexpr std::uint32_t kUsualBuffer = 4096;
  /// The most that buffer_events may be.
  static constexpr std::uint32_t kMaxBuffer = std::uint32_t{1} << 24;

  /// Begins the log at `path`, each `%d` in which stands for the calling process's pid. Made with
  /// mode 0600, closed on exec. A log that is there is emptied, as PyPy does; anything else but an
  /// empty file is bad_format, and a log that a writer of this library has open, anywhere, is EBUSY
  /// (they hold a lock, F_OFD_SETLK). Devices and FIFOs are written as they are.
  static Result<JitlogWriter> open(const std::string& path, const JitlogOptions& options = {});
  /// Writes to a descriptor, such as 2, which the caller keeps and may close at once.
  static Result<JitlogWriter> to_descriptor(int fd, std::string name,
                                            const JitlogOptions& options = {});
  JitlogWriter(JitlogWriter&&) noexcept;
  JitlogWriter& operator=(JitlogWriter&&) noexcept;
  /// close(), with nobody left to tell of a failure.
  ~JitlogWriter();

  /// The number of a loop or bridge, for enter() and exit(): the same for a name that is written in
  /// the same way. To be asked when it is made. EILSEQ under NamePolicy::refuse. O(name).
  Result<JitlogLoop> loop(std::string_view name);

  /// The calling thread has entered the loop, wherever it was before: from the interpreter, or from
  /// another loop, which it thereby has left. 0; EINVAL for a number that loop() has not given,
  /// EBADF after close(), EPERM, ENOMEM; else why events could not be written.
  int enter(JitlogLoop loop) noexcept;
  /// It has left the loop, for the interpreter.
  int exit(JitlogLoop loop) noexcept;

  /// Writes what all threads have recorded so far.
  Result<void> flush();
  /// The same, and ends the log.
  Result<void> close();
  /// How many events could not be written.
  std::uint64_t lost() const noexcept;
  /// With the pid for `%d`: of the log that the calling process writes.
  std::string path() const;

 private:
  struct State;
  explicit JitlogWriter(std::unique_ptr<State> state);
  template <class Open>
  static Result<JitlogWriter> make(const std::string& name, const JitlogOptions& options,
                                   Open open);
  Result<void> result(int sys_errno) const;
  std::unique_ptr<State> state_;
};

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
  friend class Trampoline;
  struct State;
  explicit TrampolineArena(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace perfmap
