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

/// PERF_RECORD_MMAP and MMAP2, munmap, mremap: from now on `range` shows what `name` names. Times
/// here and below are nanoseconds of any one clock. Source: Linux,
/// include/uapi/linux/perf_event.h.
struct MmapEvent {
  pid_t pid = 0;
  std::uint64_t time = 0;
  AddressRange range;
  std::uint64_t offset = 0;
  /// As the kernel writes it. MMAP tells no access: it is executable unless the record has the bit
  /// PERF_RECORD_MISC_MMAP_DATA.
  std::string_view name;
  Access access;
  std::uint32_t device_major = 0;
  std::uint32_t device_minor = 0;
  std::uint64_t inode = 0;
  std::uint64_t inode_generation = 0;
  std::string_view build_id = {};  ///< raw bytes
};

/// A range that shows nothing any more. perf records none of these; other sources do.
struct UnmapEvent {
  pid_t pid = 0;
  std::uint64_t time = 0;
  AddressRange range;
};

/// A process, or where pid and parent are the same, a thread.
struct ForkEvent {
  pid_t pid = 0;
  pid_t tid = 0;
  pid_t parent = 0;
  std::uint64_t time = 0;
  pid_t parent_tid = 0;  ///< the thread that made it, and that it has its name of; 0: not known
  /// The recorder found the process living and tells its parent. It may have run another program
  /// since, and has none of its parent's memory but what is mapped in it
  /// (PERF_RECORD_MISC_FORK_EXEC).
  bool lived_before = false;
};

/// A thread's new name. `exec`: the process runs another program (PERF_RECORD_MISC_COMM_EXEC).
struct CommEvent {
  pid_t pid = 0;
  pid_t tid = 0;
  std::uint64_t time = 0;
  std::string_view comm;
  bool exec = false;
};

/// The end of a thread, and with the last one of the process.
struct ExitEvent {
  pid_t pid = 0;
  pid_t tid = 0;
  std::uint64_t time = 0;
};

enum class ProcessBegin : std::uint8_t {
  seen,      ///< an event was about it
  forked,    ///< with its parent's memory
  executed,  ///< with that of the pid's former program, until it maps something itself
  imported,  ///< it was there when /proc was read
};

/// One program in one process. Its key is (pid, generation): exec, exit and reuse of the pid end a
/// generation. Nothing of an ended one is answered for a later one, but for the memory that a
/// program has from its parent, or, after exec and before it maps anything, from the former
/// program.
struct ProcessInfo {
  pid_t pid = 0;
  std::uint32_t generation = 0;  ///< of that pid; from 1
  ProcessBegin began = ProcessBegin::seen;
  pid_t parent = 0;               ///< 0 where not known
  std::uint64_t since = 0;        ///< time of its beginning
  std::uint64_t until = 0;        ///< time of its end; ProcessTracker::kNow: it goes on
  std::uint64_t start_ticks = 0;  ///< field 22 of /proc/PID/stat; 0 where that was not read
  std::string comm;
};

/// What import() found.
enum class Imported : std::uint8_t {
  vanished,   ///< no such process any more, or none ever: its generation has ended
  unchanged,  ///< the same program, its memory as it was
  changed,    ///< the same program, other memory
  began,      ///< a process, or a program, that was not there before
};

/// The code of a JIT at an address; borrowed from its source until that is refreshed.
struct JitCode {
  std::string_view name;
  AddressRange range;
  /// Of the region: where it is unless_elf, and the file is an ELF file, that file is the answer,
  /// whatever a map says.
  JitRegionKind room = JitRegionKind::none;
  std::shared_ptr<JitSources> sources;  ///< that know it: those of the process, or of a parent
  Doubts doubts = {};
};

/// Knows what was mapped where, when, in which process: by the events of a recording, and by what
/// /proc says of living processes. Begins empty; its end ends everything but the address spaces
/// that were handed out.
///
/// Events come in the order of their times for each process; one with an earlier time counts as if
/// it came at the last. Whatever they say makes sense: events of unknown processes begin them, and
/// a fork into a living pid ends who had it. Memory is O(events), and for forks and imports of the
/// same files O(regions); see forget_before().
///
/// One thread at a time, const members included in the rule that none runs beside one that is not;
/// address spaces may be used by all threads, whatever becomes of the tracker.
class PERFMAP_API ProcessTracker {
 public:
  /// Later than every event.
  static constexpr std::uint64_t kNow = UINT64_MAX;

  /// Opens the ELF file that a region shows: the door to a cache that all processes share, which
  /// knows what it has opened already. `process` is null where the process is gone, or was never
  /// alive here.
  using OpenModule = std::function<Result<std::shared_ptr<const Module>>(
      const Region& region, const ProcSource* process)>;
  /// Makes the process known, by import() or by events.
  using Create = std::function<Result<void>(ProcessTracker& tracker, pid_t pid)>;

  struct Options {
    Roots roots;                      ///< where living processes are, and their perf maps and dumps
    bool any_owner = false;           ///< of those maps and dumps; see find_process_map()
    Overlap overlap = Overlap::last;  ///< of those maps' entries
    OpenModule open_module;           ///< nothing: there are no modules
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

  /// Reads /proc/PID: what it says counts from `time` on. A process with another start time, or
  /// with another program than the one that was seen last, is another generation. Not readable is
  /// an error (io), and so is a directory of /proc that is none (refused); gone is an answer.
  Result<Imported> import(pid_t pid, std::uint64_t time);
  /// At CLOCK_MONOTONIC's time, which recordings made with `-k mono` have, too.
  Result<Imported> import(pid_t pid);

  /// Who has the pid now. Where nobody does, `create` is called once, and may make somebody known;
  /// its error is passed on. nullptr: still nobody. The answer lives until the next call that is
  /// not const.
  Result<const ProcessInfo*> find_pid(pid_t pid, const Create& create = {});
  /// Who had it at that time, or nullptr.
  const ProcessInfo* find(pid_t pid, std::uint64_t time = kNow) const noexcept;
  /// All that are alive, by pid.
  std::vector<ProcessInfo> living() const;

  /// The memory at that time of the process that had the pid then; nullptr where none had.
  /// Sequential times cost O(n + k log k) for k changes since the last answer, and nothing where
  /// there are none; any other time costs that of at most n + 64 changes more.
  std::shared_ptr<const AddressSpace> at(pid_t pid, std::uint64_t time = kNow);

  /// The module that a region of the process shows, as open_module gives it. Asked once for all
  /// regions and processes that show the same file, as long as one of them does; for a vdso, and
  /// where it failed, once for each program that asks. That a file is written in place meanwhile is
  /// not noticed. Fails with unsupported where there is no open_module.
  Result<std::shared_ptr<const Module>> module_of(pid_t pid, const Region& region);

  /// The process's own perf map and jitdumps: looked for at the first call, and taken in as far as
  /// they have grown at later ones; nothing is taken in where by now another process has the pid,
  /// or it runs another program than import() saw. nullptr where there are none, not even refused
  /// ones.
  Result<std::shared_ptr<JitSources>> refresh_jit(pid_t pid);
  /// Sources that the caller opened, of whoever has the pid now, who is begun if need be.
  void attach_jit(pid_t pid, std::shared_ptr<JitSources> sources);
  /// Of whoever had the pid then; nullptr where there are none.
  std::shared_ptr<JitSources> jit(pid_t pid, std::uint64_t time = kNow) const noexcept;
  /// Where the names of that memory come from, for Symbolizer::Moment: the process's own sources
  /// and those of the processes that it was forked from, also ones that are attached later. nullptr
  /// where none had the pid.
  std::shared_ptr<JitLineage> lineage(pid_t pid, std::uint64_t time = kNow) const noexcept;
  /// The program that a lineage is of; nullptr where it was forgotten.
  const ProcessInfo* info_of(const JitLineage& lineage) const noexcept;
  /// The code at an address, where the region there has room for such (see jit_region_kind()): by
  /// the process's own sources, or, in what it got by fork and still has, by those of its parents.
  /// Of a process that import() found alive these are the ones that live, too, as of refresh_jit().
  /// `source_time` is the time for the sources' clock, which jitdumps have of their own.
  std::optional<JitCode> find_jit_code(pid_t pid, Address address, std::uint64_t time = kNow,
                                       std::uint64_t source_time = kNow);

  /// Forgets processes that ended before `time`, and what living ones had mapped earlier. at() then
  /// answers for earlier times as for that one. O(regions).
  void forget_before(std::uint64_t time);

  /// Objects shared by all address spaces; for regions that parse_memory_map() makes.
  MappedFiles& files() noexcept;
  const Options& options() const noexcept;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// The perf map and the jitdumps of one program in one process, read together.
///
/// One thread at a time.
class PERFMAP_API JitSources {
 public:
  struct Options {
    Roots roots;
    bool any_owner = false;
    Overlap overlap = Overlap::last;
    /// What the pid's former program, or former process, had. Of a file that was its already, only
    /// what was written since counts, unless it was written anew.
    std::shared_ptr<const JitSources> former = nullptr;
  };

  /// Those that are the process's own, as find_process_map() and find_process_dumps() find them,
  /// and whose last change is not older than the process. May find none. Nothing where the process
  /// is gone.
  static Result<std::optional<JitSources>> find(const ProcSource& process, Options options);
  /// Those of the caller; refresh() looks for no others. `doubts` are of all their names.
  JitSources(std::vector<Map> maps, std::vector<Jitdump> dumps, Overlap overlap = Overlap::last,
             Doubts doubts = {});
  JitSources(JitSources&&) noexcept;
  JitSources& operator=(JitSources&&) noexcept;
  ~JitSources();

  bool empty() const noexcept;
  /// Names every address, whatever is mapped there, and what a former program left included.
  const Resolver& resolver() const noexcept;
  Resolver& resolver() noexcept;
  /// Files that are there and not believed: not those owners', older than the process, links.
  std::span<const Error> refused() const noexcept;

  /// As Resolver::find(), without what a former program left, and with the doubts of the sources.
  Resolution find(const Query& query) const noexcept;

  /// Takes in what was appended, and files that are new. Where `process` is gone, or null, files
  /// that find() found stay as they are. See Resolver::refresh() for what becomes invalid.
  Result<Growth> refresh(const ProcSource* process);

 private:
  struct State;
  explicit JitSources(std::unique_ptr<State> state) noexcept;
  std::unique_ptr<State> state_;
};

/// The living processes that a process was forked from, the nearest first, as far as they still run
/// the program that it is a copy of; sixteen at most. A fork keeps the auxiliary vector, and an
/// exec has the kernel draw its addresses anew.
PERFMAP_API std::vector<ProcSource> living_parents(const ProcSource& process, const Roots& roots);

/// Sources of a process that `pid` was forked from, for memory that it has from there: those of the
/// nearest one first. ProcessTracker::refresh_jit() finds them by itself, where they are.
PERFMAP_API void attach_parent_jit(ProcessTracker& tracker, pid_t pid, pid_t parent,
                                   std::shared_ptr<JitSources> sources);

/// For ProcessTracker::Options::open_module: what regions show, by way of a cache that all
/// processes, trackers and threads share. The cache must outlive the answer and its copies.
///
/// A file that the cache knows is recognized by what stat(2) says of it, and not opened; it is
/// found as ProcSource::open_region() finds files, and believed as there. Debug files are looked
/// for below the process's root, and on the host; see ModuleFiles. A vdso is read from the
/// process's memory, and is the same module for all processes that have the same bytes.
///
/// Of a process that is gone, and of a file that may not be looked at, the cache may still know the
/// build-id that the region tells. Fails as ProcSource::open_region() and ModuleCache::open() do,
/// and with not_found where the process is gone. Copies may be used from several threads.
PERFMAP_API ProcessTracker::OpenModule open_through(ModuleCache& cache);

/// Tells the build-id that the file at a path had, raw; empty where that is not known.
using ExpectedBuildId = std::function<std::string(const std::string& path)>;

/// That of this machine's vdso, raw; empty where it has none, or none that can be read. For
/// recordings of this machine that tell no build-id of theirs.
PERFMAP_API std::string own_vdso_build_id();

/// The same for processes of another machine, or that have gone: files are looked for below `root`
/// by the paths that the processes knew; no link leads out of it. Empty: on this machine. A file
/// whose build-id is not the one that the region, `expected`, or the living process's own file
/// tells, is refused. A vdso is our own, where that has the build-id that is told.
PERFMAP_API ProcessTracker::OpenModule open_below(ModuleCache& cache, std::string root,
                                                  ExpectedBuildId expected = {});

/// The same for a snapshot: by the build-ids that it has; its vdso is in it. What `expected` tells,
/// as a recording of the process does, counts before the snapshot.
PERFMAP_API ProcessTracker::OpenModule open_of_snapshot(ModuleCache& cache,
                                                        std::shared_ptr<const Snapshot> snapshot,
                                                        std::string root = {},
                                                        ExpectedBuildId expected = {});

}  // namespace perfmap
