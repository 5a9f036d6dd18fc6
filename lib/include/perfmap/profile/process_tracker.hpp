// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <sys/types.h>
#include <vector>

#include "perfmap/index.hpp"
#include "perfmap/jit_paths.hpp"
#include "perfmap/profile/module.hpp"
#include "perfmap/profile/process.hpp"
#include "perfmap/profile/snapshot.hpp"
#include "perfmap/resolver.hpp"
#include "perfmap/types.hpp"

namespace perfmap {

class JitSources;
struct JitLineage;
class Module;
class ProcSource;

/// PERF_RECORD_MMAP and MMAP2, munmap, mremap: from now on `range` contains `name`. Times here and
/// below are nanoseconds of any one clock. Source: Linux, include/uapi/linux/perf_event.h.
struct MmapEvent {
  pid_t pid = 0;
  std::uint64_t time = 0;
  AddressRange range;
  std::uint64_t offset = 0;
  /// As written by the kernel. MMAP has no access bits: it counts as executable unless the record
  /// has the bit PERF_RECORD_MISC_MMAP_DATA.
  std::string_view name;
  Access access;
  std::uint32_t device_major = 0;
  std::uint32_t device_minor = 0;
  std::uint64_t inode = 0;
  std::uint64_t inode_generation = 0;
  std::string_view build_id = {};  ///< raw bytes
};

/// A range was unmapped. perf does not record this; other sources do.
struct UnmapEvent {
  pid_t pid = 0;
  std::uint64_t time = 0;
  AddressRange range;
};

/// A new process, or, if pid and parent are equal, a new thread.
struct ForkEvent {
  pid_t pid = 0;
  pid_t tid = 0;
  pid_t parent = 0;
  std::uint64_t time = 0;
  pid_t parent_tid = 0;  ///< the thread that created it and gave it its name; 0: unknown
  /// The process existed before the recording, and the recorder reports its parent. It may have
  /// executed another program since. It has none of its parent's memory except its own mappings
  /// (PERF_RECORD_MISC_FORK_EXEC).
  bool lived_before = false;
};

/// A thread's new name. `exec`: the process executes another program (PERF_RECORD_MISC_COMM_EXEC).
struct CommEvent {
  pid_t pid = 0;
  pid_t tid = 0;
  std::uint64_t time = 0;
  std::string_view comm;
  bool exec = false;
};

/// The end of a thread; with the last thread, the end of the process.
struct ExitEvent {
  pid_t pid = 0;
  pid_t tid = 0;
  std::uint64_t time = 0;
};

enum class ProcessBegin : std::uint8_t {
  seen,      ///< first mentioned by an event
  forked,    ///< forked, with its parent's memory
  executed,  ///< exec, with the memory of the pid's former program until it maps something
  imported,  ///< found in /proc
};

/// One program in one process. Its key is (pid, generation): exec, exit and reuse of the pid end a
/// generation. Data of an ended generation is never used for a later one, with two exceptions: the
/// memory that a program has from its parent, and, after exec and before the first mapping, the
/// memory of the former program.
struct ProcessInfo {
  pid_t pid = 0;
  /// of that pid; from 1, and after forget_before() from a higher number
  std::uint32_t generation = 0;
  ProcessBegin began = ProcessBegin::seen;
  pid_t parent = 0;               ///< 0: unknown
  std::uint64_t since = 0;        ///< time of its start
  std::uint64_t until = 0;        ///< time of its end; ProcessTracker::kNow: still running
  std::uint64_t start_ticks = 0;  ///< field 22 of /proc/PID/stat; 0 if not read
  std::string comm;

  void take(const CommEvent& event) {
    if (event.exec) {
      began = ProcessBegin::executed;
      since = event.time;
    }
    if (event.pid == event.tid) comm = event.comm;
  }
};

/// The result of import().
enum class Imported : std::uint8_t {
  vanished,   ///< no such process, or not any more: its generation has ended
  unchanged,  ///< the same program with the same memory
  changed,    ///< the same program, other memory
  began,      ///< a new process or program
};

/// JIT code at an address; borrowed from its source until that is refreshed.
struct JitCode {
  std::string_view name;
  AddressRange range;
  /// Kind of the region. If it is unless_elf, and the file is an ELF file, use that file and not
  /// this name.
  JitRegionKind room = JitRegionKind::none;
  /// the sources that have it: those of the process or of a parent
  std::shared_ptr<JitSources> sources;
  Doubts doubts = {};
};

/// Tracks the mappings of processes over time, from the events of a recording and from /proc of
/// living processes. Starts empty. Address spaces that it returned outlive it.
///
/// Events come in the order of their times for each process; an event with an earlier time counts
/// at the time of the last one. Any sequence of events is valid: an event of an unknown process
/// begins it, and a fork into a living pid ends the process that had it. Memory is O(events), and
/// for forks and imports of the same files O(regions); see forget_before().
///
/// One thread at a time; several threads may run const members together if no other member runs.
/// All threads may use address spaces, even after the tracker is gone.
class PERFMAP_API ProcessTracker {
 public:
  /// Later than every event.
  static constexpr std::uint64_t kNow = UINT64_MAX;

  /// Opens the ELF file of a region, usually from a cache that all processes share. `process` is
  /// null if the process is gone, or was never alive on this machine.
  using OpenModule = std::function<Result<std::shared_ptr<const Module>>(
      const Region& region, const ProcSource* process)>;
  /// Adds a process, by import() or by events.
  using Create = std::function<Result<void>(ProcessTracker& tracker, pid_t pid)>;

  struct Options {
    Roots roots;                      ///< of living processes, and of their perf maps and dumps
    bool any_owner = false;           ///< for those maps and dumps; see find_process_map()
    Overlap overlap = Overlap::last;  ///< of those maps' entries
    OpenModule open_module;           ///< empty: there are no modules
  };

  ProcessTracker();
  explicit ProcessTracker(Options options);
  ProcessTracker(ProcessTracker&&) noexcept;
  ProcessTracker& operator=(ProcessTracker&&) noexcept;
  ~ProcessTracker();

  void on_mmap(const MmapEvent& event);
  void on_unmap(const UnmapEvent& event);
  void on_fork(const ForkEvent& event);
  void on_comm(const CommEvent& event);
  void on_exit(const ExitEvent& event);

  /// Reads /proc/PID; the result counts from `time` on. A process with another start time or
  /// program than the last one is a new generation. An unreadable process is an error (io), and so
  /// is a /proc/PID that is not a directory (refused); a process that is gone is not an error.
  Result<Imported> import(pid_t pid, std::uint64_t time);
  /// The same at the present time of CLOCK_MONOTONIC, which recordings made with `-k mono` also
  /// use.
  Result<Imported> import(pid_t pid);

  /// The process that has the pid now. If there is none, calls `create` once, which may add it, and
  /// passes on its error. nullptr: still none. Valid until the next non-const call.
  Result<const ProcessInfo*> find_pid(pid_t pid, const Create& create = {});
  /// The process that had it at that time, or nullptr.
  const ProcessInfo* find(pid_t pid, std::uint64_t time = kNow) const noexcept;
  /// All that are alive, by pid.
  std::vector<ProcessInfo> living() const;

  /// The memory, at that time, of the process that had the pid then; nullptr if none. After the
  /// last change O(1): the result shares all its nodes with the tracker, which then copies O(log n)
  /// of them for its next change. An earlier time costs O(log n) for each of the changes since the
  /// last result if times ascend, else for at most n + 64 changes.
  std::shared_ptr<const AddressSpace> at(pid_t pid, std::uint64_t time = kNow);

  /// The module of a region of the process, from open_module. Called once for all regions and
  /// processes with the same file, as long as one of them exists; for a vdso, and after a failure,
  /// once for each program, if it is alive. Does not notice if a file is written in place
  /// meanwhile. Fails with unsupported without open_module.
  Result<std::shared_ptr<const Module>> module_of(pid_t pid, const Region& region);

  /// The process's own perf map and jitdumps. The first call searches for them, later calls read
  /// what was appended; nothing is read if the pid now belongs to another process, or if the
  /// process runs another program than at import(). nullptr if there are none, not even refused
  /// ones.
  Result<std::shared_ptr<JitSources>> refresh_jit(pid_t pid);
  /// Sources that the caller opened, for the process that has the pid now; begins a process if
  /// needed.
  void attach_jit(pid_t pid, std::shared_ptr<JitSources> sources);
  /// The sources of the process that had the pid then; nullptr if there are none.
  std::shared_ptr<JitSources> jit(pid_t pid, std::uint64_t time = kNow) const noexcept;
  /// The sources of names for that memory, for Symbolizer::PastProcess: the process's own and those
  /// of the processes that it was forked from, including sources attached later. nullptr if no
  /// process had the pid.
  std::shared_ptr<JitLineage> lineage(pid_t pid, std::uint64_t time = kNow) const noexcept;
  /// The program of a lineage; nullptr if it was forgotten.
  const ProcessInfo* info_of(const JitLineage& lineage) const noexcept;
  /// The JIT code at an address, if the region there may contain such code (see jit_region_kind()).
  /// Uses the process's own sources, or, in memory that it has by fork, those of its parents. For a
  /// process that import() found, parents that live count too, since refresh_jit(). `source_time`
  /// is the time of the sources' clock: jitdumps have their own.
  std::optional<JitCode> find_jit_code(pid_t pid, Address address, std::uint64_t time = kNow,
                                       std::uint64_t source_time = kNow);

  /// Forgets processes that ended before `time`, and earlier mappings of the others. at() then
  /// returns for earlier times the same as for `time`. Called every second or so, it keeps the
  /// memory proportional to what is alive. O(processes), and for each of them O(changes).
  void forget_before(std::uint64_t time);

  /// The objects that all address spaces share; for regions from parse_memory_map().
  MappedFiles& files() noexcept;
  const Options& options() const noexcept;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// The perf map and the jitdumps of one program in one process.
///
/// One thread at a time.
class PERFMAP_API JitSources {
 public:
  struct Options {
    Roots roots;
    bool any_owner = false;
    Overlap overlap = Overlap::last;
    /// Sources of the pid's former program or process. Of their files, only what was written later
    /// counts, unless the file was rewritten.
    std::shared_ptr<const JitSources> former = nullptr;
  };

  /// The process's own sources: as found by find_process_map() and find_process_dumps(), and last
  /// changed after the process began. May be empty. Nothing if the process is gone.
  static Result<std::optional<JitSources>> find(const ProcSource& process, Options options);
  /// The caller's sources; refresh() searches for no others. `doubts` apply to all their names.
  JitSources(std::vector<Map> maps, std::vector<Jitdump> dumps, Overlap overlap = Overlap::last,
             Doubts doubts = {});
  JitSources(JitSources&&) noexcept;
  /// Lines and records that were skipped, because they are malformed.
  const Diagnostics& problems() const noexcept;
  JitSources& operator=(JitSources&&) noexcept;
  ~JitSources();

  bool empty() const noexcept;
  /// Names all addresses, without regard to mappings, and includes what a former program left.
  const Resolver& resolver() const noexcept;
  Resolver& resolver() noexcept;
  /// Files that were not used: of other owners, older than the process, links.
  std::span<const Error> refused() const noexcept;

  /// Like Resolver::find(), without what a former program left, and with the doubts of the sources.
  Resolution find(const Query& query) const noexcept;

  /// Reads what was appended, and new files. If `process` is gone or null, searches for no files.
  /// See Resolver::refresh() for what becomes invalid.
  Result<Growth> refresh(const ProcSource* process);

 private:
  struct State;
  explicit JitSources(std::unique_ptr<State> state) noexcept;
  std::unique_ptr<State> state_;
};

/// The living processes that a process was forked from, the nearest first, at most sixteen, as long
/// as they run the program that it is a copy of. This is detected from the auxiliary vector: fork
/// keeps it, and exec randomizes its addresses.
PERFMAP_API std::vector<ProcSource> living_parents(const ProcSource& process, const Roots& roots);

/// Attaches sources of a process that `pid` was forked from, for memory that it has from there; the
/// nearest parent's come first. ProcessTracker::refresh_jit() finds them itself if they exist.
PERFMAP_API void attach_parent_jit(ProcessTracker& tracker, pid_t pid, pid_t parent,
                                   std::shared_ptr<JitSources> sources);

/// For ProcessTracker::Options::open_module: opens the files of regions with a cache that all
/// processes, trackers and threads share. The cache must outlive the result and its copies.
///
/// A file in the cache is recognized by its stat(2), and not opened again; files are found and
/// trusted as by ProcSource::open_region(). Debug files are searched below the process's root, and
/// on the host; see ModuleFiles. A vdso is read from the process's memory, and is one module for
/// all processes with the same bytes.
///
/// If the process is gone, or the file may not be read, the cache may still have the region's
/// build-id. Fails like ProcSource::open_region() and ModuleCache::open(), and with not_found if
/// the process is gone. Several threads may use copies.
PERFMAP_API ProcessTracker::OpenModule open_through(ModuleCache& cache);

/// Returns the build-id that the file at a path had, raw; empty if unknown.
using ExpectedBuildId = std::function<std::string(const std::string& path)>;

/// The build-id of this machine's vdso, raw; empty if it has none, or if it cannot be read. For
/// recordings of this machine without a build-id for the vdso.
PERFMAP_API std::string own_vdso_build_id();

/// Like open_through(), for processes of another machine, or that are gone: files are searched
/// below `root` by the paths that the processes used; no link leads out of it. Empty: on this
/// machine. Refuses a file whose build-id differs from that of the region, of `expected`, or of the
/// living process's own file. The vdso is this machine's, if it has the expected build-id.
PERFMAP_API ProcessTracker::OpenModule open_below(ModuleCache& cache, std::string root,
                                                  ExpectedBuildId expected = {});

/// Like open_through() for processes that live, and for those that have ended by path on this
/// machine: for profilers that follow events. A file found by path must have the region's build-id,
/// or, if an event had none, its inode. If an event had neither (PERF_RECORD_MMAP), the file that
/// is there now counts, as with open_below(). Several threads may use copies.
PERFMAP_API ProcessTracker::OpenModule open_here(ModuleCache& cache);

/// Like open_below(), for a snapshot: uses its build-ids and its vdso. A build-id from `expected`,
/// for example from a recording of the process, takes precedence over the snapshot's.
PERFMAP_API ProcessTracker::OpenModule open_of_snapshot(ModuleCache& cache,
                                                        std::shared_ptr<const Snapshot> snapshot,
                                                        std::string root = {},
                                                        ExpectedBuildId expected = {});

}  // namespace perfmap
