#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "perfmap/fork_policy.hpp"
#include "perfmap/types.hpp"
#include "perfmap/writer.hpp"

namespace perfmap {

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
  std::unique_ptr<State> state_;
};

}  // namespace perfmap
