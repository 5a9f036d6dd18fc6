// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <sys/types.h>

#include "perfmap/address.hpp"
#include "perfmap/jit_format.hpp"

/// What the writers are asked for. See writer.hpp for the writers.

namespace perfmap {

/// What a forked child does with the process's own map or dump. Under no policy does the child
/// write into its parent's file, and the parent writes what it has buffered itself.
enum class ForkPolicy : std::uint8_t {
  /// CPython's default: the child's file starts empty. It is created when the child first opens it
  /// or writes.
  fresh,
  /// The child's file starts with what its parent had written at the fork, copied from the parent's
  /// descriptor, so that it does not matter whether that file still has a name. It is made at the
  /// child's first entry, and appears complete; a child that never writes copies nothing. If that
  /// fails, calls report the reason and try again; with a full disk once a second.
  inherit,
  /// Children of the process that configured this write nothing, and their calls succeed.
  off,
};

/// What a writer found at its path when it opened the file.
enum class MapStart : std::uint8_t {
  none,             ///< no file is open
  made,             ///< nothing, or an empty file
  emptied,          ///< the map of an earlier process with this pid, which has ended
  inherited,        ///< nothing: the file begins with the parent's entries
  appended,         ///< entries that may be this process's own; they stay
  appended_kept,    ///< an earlier process's entries; they stay, as configured
  appended_in_use,  ///< the same; another writer has the file open, or that is unknown
};

/// What happens to a name that some readers cannot read; see escape_map_name().
enum class NamePolicy : std::uint8_t {
  escape,  ///< escape_map_name() converts it
  refuse,  ///< nothing is written, the call fails with EILSEQ
};

struct WriterOptions {
  NamePolicy names = NamePolicy::escape;
  /// `file` for entries that are copied from a map or another file of a runtime.
  NameOf names_of = NameOf::runtime;
  /// True for the map of a process in /tmp: refuses links, all files that are not regular, and
  /// files of other users (EPERM).
  bool own_map = false;
  /// 0: an entry is in the file when write() returns, even if the process is killed next. Otherwise
  /// entries are buffered until they have so many bytes, and written at once.
  std::size_t buffer_bytes = 0;
  /// With a buffer: write() flushes entries that are older than this. 0: no limit.
  std::uint64_t flush_after_ns = 0;
  /// Maximum size of the file, which includes its contents when it was opened. A write() or copy()
  /// that would exceed it fails with EFBIG. 0: no limit.
  std::uint64_t max_bytes = 0;
  /// Called with its context by a write() that reaches max_bytes, in its thread. A result other
  /// than 0 means that there is room now, and the entry is tried once more. It may use the writer,
  /// for example to close the process's own map and rename it: the next write opens a new one.
  /// Meanwhile writes of other threads fail. Must not throw. After a result of 0 it is not called
  /// again until the map is opened anew.
  int (*on_full)(void* context) = nullptr;
  void* on_full_context = nullptr;
  /// Stores entries into a mapping of the file's end instead of calling write(2): an entry is in
  /// the file when write() returns, even if the process is killed next, at the cost of a copy in
  /// memory. buffer_bytes counts as 0.
  ///
  /// Until it is closed the file ends in at most 64 KiB of filler, which max_bytes does not count.
  /// Filler is lines of "0 0 " and dots, which readers take for symbols without size at address 0.
  /// They have at most 2 KiB each, except while a longer entry is being written. close() removes
  /// them; if the writer was killed they stay until the next mapped writer opens the file. At any
  /// time the file consists of whole lines.
  ///
  /// Only for files that no other process writes to:
  ///  * open() fails with EBUSY if a process, as far as /proc shows, has the file open for writing,
  ///    or if a writer of this library has locked it. A process that opens it later and ignores
  ///    locks is detected when the filler is used up: entries then go on with write(2), and filler
  ///    remains in the middle of the file.
  ///  * If a process truncates the file, the next write() kills this process with SIGBUS; with a
  ///    TruncationGuard it fails with EIO, and later ones use write(2). A reader that maps the file
  ///    and reads its filler while close() removes it is in the same danger.
  ///  * After fork() the writer is closed in the child: EBADF. (A process's own map goes on as its
  ///    fork policy says; if it is in use, for example by a child that still has it, it is written
  ///    with write(2) instead.)
  ///
  /// Disk space is reserved in advance, so that a full disk is ENOSPC from write(), never SIGBUS.
  /// If it cannot be reserved, entries are written with write(2): for files that are not regular,
  /// and on all file systems except ext2 to ext4, XFS and tmpfs.
  bool mapped = false;
};

/// What happens to entries that an earlier process with the same pid left in a process's own map.
enum class StaleMap : std::uint8_t {
  /// Removes them when the map is opened, if the file is ours, was last written more than a second
  /// before this process began, and no writer of this library has it open (writers hold a lock, see
  /// F_OFD_SETLK). Otherwise they stay, and MapStart reports why.
  empty,
  keep,  ///< they stay
};

struct JitdumpOptions {
  /// The process that the code belongs to. 0: for an existing dump the one in its header, else N if
  /// the file is named jit-N.dump, else the calling process.
  pid_t pid = 0;
  /// Maps the first page for execution until close(). `perf record` records this mapping, and `perf
  /// inject --jit` finds the file by it. Without it a recording has no reference to the dump.
  bool marker = true;
  /// close() ends the dump with a CLOSE record. perf reads nothing after it, so reopening the dump
  /// removes it.
  bool close_record = true;
  /// True for a dump in /tmp: refuses links, files that are not regular, and files of other users.
  bool own_dump = false;
  /// open() waits up to 30 s while another writer has the dump, instead of failing with EBUSY.
  bool wait = false;
  NamePolicy names = NamePolicy::escape;  ///< as for maps, so that both contain the same name
  NameOf names_of = NameOf::runtime;      ///< likewise
  /// Also names each function in the process's own map: see ProcessMap.
  bool process_map = false;
  /// As in WriterOptions.
  std::uint64_t max_bytes = 0;
  /// What a child does with a dump of open_own(). Records that a child inherits become its own:
  /// they carry its pid, which perf uses, and keep their times, code indices, lines and unwinding
  /// information. For samples of a recording, perf also finds them in the parent's dump, because a
  /// child starts with its parent's mappings.
  ForkPolicy fork = ForkPolicy::fresh;
};

/// How a profiler unwinds through a function: .eh_frame and .eh_frame_hdr as in an ELF file. perf
/// puts the frame at the first multiple of 8 after the code, and the header directly after the
/// frame. The header's relative pointers must match this layout.
struct JitUnwinding {
  std::string_view eh_frame;
  std::string_view eh_frame_hdr;
  /// Number of bytes after the code, from the first multiple of 8 on, that contain both in the
  /// process, or are reserved for them. perf lays the mapping of the function over them, so no
  /// other function may be there. 0: there are none, and perf cannot use the frame. Otherwise at
  /// least the size of both.
  std::uint64_t mapped_size = 0;
};

/// A new function. Read only during the call.
struct JitFunction {
  Address start = 0;
  std::uint64_t size = 0;
  std::string_view name;
  /// `size` bytes; or empty if they are unknown or not needed: then zeros are written, up to
  /// LoadRecord::kMaxZeros, because perf always takes that many bytes from the end of the record.
  std::string_view code = {};
  /// By ascending address, all within [start, start + size]. Each is valid up to the next one, the
  /// last up to the end. `file_repeats` is ignored, because old versions of perf do not support it.
  std::span<const LineRecord> lines = {};
  JitUnwinding unwinding = {};
  /// CLOCK_MONOTONIC nanoseconds; 0: now. The code must exist from then on. Samples taken before do
  /// not get this name, so write a function before it runs.
  std::uint64_t time = 0;
};

/// The unit of a log's ticks.
enum class JitlogClock : std::uint8_t {
  /// The processor's counter: rdtsc on x86 (as in PyPy), cntvct_el0 on aarch64; elsewhere ENOTSUP.
  counter,
  monotonic,  ///< CLOCK_MONOTONIC nanoseconds, as with `perf record -k mono`
};

/// The number, from 1, that JitlogWriter::loop() gave a loop or bridge.
using JitlogLoop = std::uint32_t;

struct JitlogOptions {
  JitlogClock clock = JitlogClock::counter;
  NamePolicy names = NamePolicy::escape;
  /// True for a log in /tmp: refuses links, files that are not regular, files with more than one
  /// name, and files of other users.
  bool own_log = false;
  /// Lines carry no thread number. Only the first thread that records may then record: others get
  /// EPERM.
  bool one_thread = false;
  /// How many events a thread buffers before it writes them. 1: an event is in the file once
  /// recorded; 0: kUsualBuffer. 16 bytes each.
  std::uint32_t buffer_events = 0;
  static constexpr std::uint32_t kUsualBuffer = 4096;
  static constexpr std::uint32_t kMaxBuffer = std::uint32_t{1} << 24;
  /// What happens to the log in a child: see JitlogWriter.
  ForkPolicy fork = ForkPolicy::fresh;
};

/// An interpreter's function that runs a code object. Its real parameters and result may have any
/// types that are passed like pointers, and it may have fewer parameters.
using Evaluator = void* (*)(void*, void*, void*);
/// Machine code of one code object: calls `evaluator` with the three arguments.
using TrampolineEntry = void* (*)(void*, void*, void*, Evaluator evaluator);

/// Destinations of trampolines' names. Bits.
enum class TrampolineBackend : std::uint32_t {
  map = 1,      ///< the process's own map: see ProcessMap
  jitdump = 2,  ///< DIRECTORY/jit-PID.dump, with unwinding information and the first line
  both = 3,
};

/// The name of a code object. Read only during the call.
struct CodeDescription {
  std::string_view qualified_name;
  std::string_view file = {};   ///< empty: left out of the name
  std::int32_t first_line = 0;  ///< 0: unknown; only the jitdump can hold it
};

struct TrampolineState {
  bool active = false;
  TrampolineBackend backend = TrampolineBackend::map;  ///< if active
  std::uint64_t compiled = 0;    ///< trampolines made and named, including those of parents
  std::uint64_t failed = 0;      ///< how often one could not be made or named
  int last_errno = 0;            ///< errno of the last such failure
  std::size_t mapped_bytes = 0;  ///< arenas, including those of parents
};

}  // namespace perfmap
