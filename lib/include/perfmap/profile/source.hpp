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
#include <unordered_map>
#include <vector>

#include "perfmap/index.hpp"
#include "perfmap/input.hpp"
#include "perfmap/jit_paths.hpp"
#include "perfmap/jitdump.hpp"
#include "perfmap/json.hpp"
#include "perfmap/map.hpp"
#include "perfmap/profile/module.hpp"
#include "perfmap/profile/symbolizer.hpp"
#include "perfmap/pypylog.hpp"
#include "perfmap/resolver.hpp"
#include "perfmap/timeline.hpp"
#include "perfmap/types.hpp"

namespace perfmap {

class ModuleCache;
class Recording;
struct RecordedJitOptions;
struct RecordedKernel;

/// A source of names, as entered by a user: a path, "-" for standard input, a pid, or the directory
/// of a snapshot or a recording.
struct Source {
  enum class As {
    any,   ///< decimal digits are a pid, unless a file has that name
    path,  ///< never a pid
    pid,
    dump,  ///< the path of a jitdump
  };

  std::string text = {};
  As as = As::any;
  /// The name of a recording directory in messages and names of its files; empty: `text`.
  std::string shown = {};
  std::vector<pid_t> pids = {};  ///< of a recording directory: only these processes; empty: all
  std::optional<Error> failure = {};  ///< why it cannot be used: opening it fails with this
};

/// Receives messages for the user while sources are opened and used, because the library prints
/// nothing. All members are optional. Called in the thread that opens or uses the source.
class PERFMAP_API SourceObserver {
 public:
  virtual ~SourceObserver() = default;
  /// A part of a source is not used, because it was refused or is damaged.
  virtual void warn(const std::string& /*message*/) {}
  /// A process among the sources has changed.
  virtual void note(const std::string& /*message*/) {}
  /// A source cannot be opened because its files belong to another user; see
  /// SourceOptions::any_owner.
  virtual void foreign_owner() {}
  /// A jitdump was converted to a map, without what is malformed in its records.
  virtual void skipped(const Diagnostics& /*problems*/) {}
  /// One of several sources cannot be opened; the others are used.
  virtual void missing(const Error& /*error*/) {}
  /// A step that may take long begins. It ends when the returned pointer is released.
  virtual std::shared_ptr<void> step(const std::string& /*what*/) { return nullptr; }
};

/// How to open sources.
struct SourceOptions {
  std::string kind = {};       ///< "perf-map", "jitdump", "pypylog", "json"; empty: by content
  bool kind_is_given = true;   ///< false: it was derived from something else, and overrides nothing
  bool any_owner = false;      ///< files found through a pid may belong to any user
  bool stop_at_close = false;  ///< read a jitdump up to its CLOSE record only, as perf does
  bool needs_magic = true;   ///< false: kind "jitdump" also takes files that are not one, for lint
  bool takes_others = true;  ///< false: only maps and dumps, not files that can be converted to one
  bool takes_images = false;   ///< also .NET's list of images, which has no names
  std::uint32_t dump_pid = 0;  ///< pid for a jitdump that is made from a log, which has no pid
  /// Limit for the jitdumps that are made from JSON and logs, for all sources together.
  std::uint64_t max_made_bytes = JitdumpBytes::kMaxBytes;
  /// Of the maps; see Map::Options.
  std::function<void(std::uint64_t part, std::uint64_t whole)> progress = nullptr;
  std::string map_dir = {};  ///< directory with perf-PID.map and jit-PID.dump, or a snapshot
  Roots roots = {};
  FileWriters* writers = nullptr;      ///< borrowed; null: each dump is searched for separately
  SourceObserver* observer = nullptr;  ///< borrowed; null: nothing is reported

  SourceObserver& listener() const {
    static SourceObserver nobody;
    return observer != nullptr ? *observer : nobody;
  }
};

/// The bytes of a map, of a jitdump, or of a map as JSON.
struct OpenedInput {
  Input input;
  SourceKind kind = SourceKind::perf_map;
  bool growing = false;  ///< a process may still write to it
  /// original kind of a jitdump that was converted from JSON or a log
  std::optional<SourceKind> made_from = {};
  std::uint64_t written_bytes = 0;  ///< of the source before conversion
  std::uint64_t without_code = 0;   ///< LOADs of such a dump with zeros for code; see JitdumpBytes
  bool was_compressed = false;      ///< the bytes of the input are not those of the file
  bool was_repaired = false;        ///< it is a jitdump with a wrong magic number, which was fixed

  /// The bytes in memory that are not in the source.
  std::uint64_t made_bytes() const noexcept { return made_from ? input.text().size() : 0; }
  /// The kind of the source before conversion to a map or dump.
  SourceKind written_kind() const noexcept { return made_from.value_or(kind); }
};

/// The pid of a source, or 0.
PERFMAP_API pid_t pid_of_source(const Source& source);
PERFMAP_API bool is_stdin(const Source& source);
/// Fails if more than one is standard input.
PERFMAP_API Result<void> check_stdin(std::span<const Source> sources);

/// Opens a source. A file or standard input is expanded if it is compressed. For a process, or a
/// snapshot of one, returns its map and then its jitdumps, at least one file in total; for a
/// recording directory those of its processes, by pid. Trusts no file of a process; see
/// find_process_map(). Fails with a message that names the source: it cannot
/// be opened (not_found, refused, io), or its kind has no names (unsupported, bad_format).
PERFMAP_API Result<std::vector<OpenedInput>> open_source(const Source& source,
                                                         const SourceOptions& options);
/// The same for several, in their order; one of them may be standard input. Fails at the first that
/// cannot be opened. With `failures`, opens the others and appends an error for each that failed.
PERFMAP_API Result<std::vector<OpenedInput>> open_sources(std::span<const Source> sources,
                                                          const SourceOptions& options,
                                                          std::vector<Error>* failures = nullptr);
PERFMAP_API Result<std::vector<OpenedInput>> open_process_source(pid_t pid,
                                                                 const SourceOptions& options);
/// Refuses a stream that as_opened() would refuse, by its first bytes. It may be compressed.
PERFMAP_API StreamCheck check_source_start(std::string name, const SourceOptions& options);
/// The same for an input that is already open.
PERFMAP_API Result<OpenedInput> as_opened(Input input, const SourceOptions& options, bool growing);

/// Converts the bytes to a dump.
PERFMAP_API Jitdump dump_of(OpenedInput opened, const SourceOptions& options);

/// How a map was made.
struct Opening {
  SourceKind kind = SourceKind::perf_map;
  std::uint64_t bytes = 0;    ///< of the file, before conversion to a map
  ChangedNames changed = {};  ///< names that no perf map can hold
};

/// Joins the inputs into one map: entries of JSON; the code of a jitdump at `time`, of which the
/// observer gets the problems. `opening`, if not null, describes the first. Fails like
/// open_source().
PERFMAP_API Result<Map> map_of(std::vector<OpenedInput> opened, const SourceOptions& options,
                               Opening* opening = nullptr, std::uint64_t time = Timeline::kEnd);
PERFMAP_API Result<Map> map_of(OpenedInput opened, const SourceOptions& options,
                               Opening* opening = nullptr, std::uint64_t time = Timeline::kEnd);

/// The same, without the entries of a process's map that overlap code of its jitdumps: most of
/// them are that code. O(n log n).
PERFMAP_API Result<Map> distinct_code_of(std::vector<OpenedInput> opened,
                                         const SourceOptions& options);

/// Fails if `time` is set and the dump's times are ticks of the processor.
PERFMAP_API Result<void> check_time(const Jitdump& dump, std::uint64_t time);

/// Reads the loops and bridges of a PyPy log, with their code.
PERFMAP_API Result<LoopProfile> read_loops(const Input& log, TickBase ticks);

/// The file with the recording in a recording directory, as `perfmap record` makes it.
inline constexpr std::string_view kRecordingName = "perf.data";
/// The path of that file if `path` is a directory with one; else nothing. Follows no link in the
/// directory.
PERFMAP_API std::optional<std::string> recording_in(const std::string& path);
/// The file that describes such a directory.
inline constexpr std::string_view kRecordingManifestName = "recording.json";
/// The recording directory of a recording: `path` itself, or, for a file kRecordingName beside a
/// file kRecordingManifestName, their directory. Empty if there is none.
PERFMAP_API std::string recording_directory_of(const std::string& path);
/// The perf maps and jitdumps in a recording directory, by pid; of a process its map first. A
/// dump belongs to the process that recording.json says, or else to the one in its name or its
/// header. Follows no link in the directory. Fails with io; and with bad_format, unsupported or
/// too_large for a recording.json that cannot be used.
PERFMAP_API Result<std::vector<RecordedFile>> recorded_files_in(const std::string& directory);
/// The copies of ELF files in a recording directory: of those that its processes ran code of, as
/// they were when it was recorded. Several threads may use it.
class PERFMAP_API RecordedModules {
 public:
  /// `damaged`: see damaged().
  RecordedModules(std::string directory, std::vector<RecordedModule> files,
                  std::vector<Error> damaged = {});

  /// The copy with that build ID (raw bytes), or, if that is empty, of the file at that path; null
  /// if there is none.
  const RecordedModule* find(const std::string& path, const std::string& build_id) const;
  /// Its bytes, with the name of the original, which is `path` if recording.json does not say it.
  /// Follows no link.
  Result<Input> open(const RecordedModule& module, const std::string& path) const;
  /// Copies that are not used, because they do not have the size that recording.json says.
  std::span<const Error> damaged() const noexcept { return damaged_; }

 private:
  std::string directory_;
  std::vector<RecordedModule> files_;
  std::vector<Error> damaged_;
  std::unordered_map<std::string, std::size_t> by_build_id_, by_source_;
};
/// Those that recording.json lists, or without that file those that have build IDs in their names;
/// null if there are none. Fails as recorded_files_in().
PERFMAP_API Result<std::shared_ptr<const RecordedModules>> recorded_modules_in(
    const std::string& directory);
/// The maps and jitdumps that its recording.json says were not copied.
PERFMAP_API Result<std::vector<MissingFile>> missing_files_in(const std::string& directory);
/// The bytes of a recording, "-" for standard input, expanded if it is compressed; a pprof profile
/// is not expanded. Of a recording directory, its recording. Fails like open_source(), and for a
/// snapshot, which has no recording.
PERFMAP_API Result<Input> open_recording_input(const std::string& path);
PERFMAP_API Result<Recording> open_recording(const std::string& path);
/// Fails with refused if writing to the path would replace the file that `input` was read from,
/// such as a recording, which cannot be made again. Never for "-", standard output.
PERFMAP_API Result<void> check_other_file(const std::string& path, const Input& input);
/// Sets where the files of recorded processes are. Maps and dumps are in `map_dir`, which may be a
/// snapshot; if that is empty, in the recording directory of `recording`; and if it has none, at
/// the recording's own paths. Copies of ELF files are in the recording directory. Fails if a
/// snapshot or recording.json cannot be used.
PERFMAP_API Result<void> set_recorded_files(const std::string& recording,
                                            const std::string& map_dir,
                                            RecordedJitOptions& options);
/// Opens ELF files of recorded processes: the copies of the options, or else the files themselves,
/// which come first if there is a symfs. Checks the build-ids of the recording, or, if it has none,
/// those of the snapshot, which also contains its vdso. Borrows the cache.
PERFMAP_API ProcessTracker::OpenModule open_recorded_modules(ModuleCache& cache,
                                                             const Recording& recording,
                                                             const RecordedJitOptions& options);

/// For StackOptions::find_kallsyms: the text that names a recording's kernel frames. It is the file
/// given to open(); without one /proc/kallsyms, if this machine runs the kernel that was recorded
/// and has not booted since.
class PERFMAP_API KernelSource {
 public:
  /// A copy of /proc/kallsyms. Fails like Input::open(), and with bad_format.
  Result<void> open(const std::string& path);

  /// Empty if there are no names; why() then says why. Borrowed until this is gone.
  std::string_view text_of(const RecordedKernel& kernel);
  /// One clause; empty if text_of() was not called, or had names.
  const std::string& why() const noexcept { return why_; }

 private:
  std::optional<Input> text_;
  bool is_given_ = false;
  std::string why_;
};

/// Names of the kernel's functions, for a profiler's own samples. Threads may share it.
class PERFMAP_API KernelNames {
 public:
  struct Function {
    std::string_view name;
    std::string_view module;  ///< "[kernel.kallsyms]", "[nf_tables]"
    Address begin = 0;
  };

  /// Those of a copy of /proc/kallsyms. O(n log n), some 20 MB for 200 000 symbols. Fails like
  /// KernelSource::open(), and with refused if the addresses were hidden from the user who copied
  /// them.
  static Result<KernelNames> open(const std::string& path);
  /// Those of this machine's kernel, for what was sampled since it has booted, with the modules
  /// that are loaded now. Fails with io, and with refused.
  static Result<KernelNames> of_running();

  KernelNames(KernelNames&&) noexcept;
  KernelNames& operator=(KernelNames&&) noexcept;
  ~KernelNames();

  /// O(log n). Nothing if the address is below all functions. The views live as long as this.
  std::optional<Function> find(Address address) const;

 private:
  struct State;
  explicit KernelNames(std::unique_ptr<State> state);
  static Result<KernelNames> of(Result<Input> text);

  std::unique_ptr<State> state_;
};

/// "a jitdump", "JSON", "gzip data".
PERFMAP_API std::string with_article(SourceKind kind);
/// As in SourceOptions::kind.
PERFMAP_API std::string_view kind_id(SourceKind kind) noexcept;
/// "N is a jitdump, which this command does not take".
PERFMAP_API Error unsupported_source(const std::string& name, SourceKind kind);
/// "DIR is a snapshot, " and the reason why it is refused; nothing if the path is not a snapshot.
PERFMAP_API std::optional<Error> refuse_snapshot(const std::string& path, const std::string& why);
/// The same for a recording directory, and for an archive of one.
PERFMAP_API std::optional<Error> refuse_recording(const std::string& path, const std::string& why);

/// Opened sources, separated for a Resolver or JitSources.
struct SourceFiles {
  std::vector<Map> maps;
  std::vector<Jitdump> dumps;
};
PERFMAP_API Result<SourceFiles> source_files(std::vector<OpenedInput> opened,
                                             const SourceOptions& options);

struct NameSourceOptions {
  SourceOptions opening = {};
  Overlap overlap = Overlap::last;
  Symbolizer::Options symbols = {};
  std::string symfs = {};  ///< ELF files are searched below it; empty: at the process's paths
  std::uint64_t time = Timeline::kEnd;  ///< time of the later queries; see check_time()
  /// Called if a process is among the sources. Returns a function that downloads debug files.
  std::function<Result<FetchDebugFile>()> open_servers = {};
};

/// The result of all sources for an address. Borrowed from them until the next query.
struct SourceAnswer {
  std::string_view why;   ///< the reason, if there is no name
  std::string_view file;  ///< path of the file that has the name, or should have it; empty: none
  const ResolvedName* entry = nullptr;  ///< of a map or dump, if it has the name
  Resolver* resolver = nullptr;         ///< of `entry`
  const AddressName* name = nullptr;    ///< the result from a process; null: files were used
  Doubts doubts = {};
};

/// Files and processes, living or in snapshots, as one source. Precedence: code of an ELF file that
/// a process has mapped is named by that file; elsewhere jitdumps come before maps, and later
/// sources before earlier ones. For a process that does not exist any more, the files that it left
/// are used.
///
/// One thread at a time. Holds what it opened until its destruction, and reads changes of a living
/// process at each query except the first.
class PERFMAP_API NameSources {
 public:
  /// Uses the sources that can be opened and notifies the observer of each other one. Fails if none
  /// can be opened.
  static Result<NameSources> open(std::span<const Source> sources,
                                  const NameSourceOptions& options);
  NameSources(NameSources&&) noexcept;
  NameSources& operator=(NameSources&&) noexcept;
  ~NameSources();

  /// The maps, if there are only maps and index() was not called: for find_by_scan().
  const std::vector<Map>* only_maps() const noexcept;
  /// Whether a source could not be opened.
  bool misses_source() const noexcept;
  /// Whether the times of any dump are ticks of the processor.
  bool has_ticks() const noexcept;

  /// Call it once, before the first find_all(). For the diagnostics see Resolver.
  void index(Diagnostics& problems, Diagnostics& record_problems);
  /// Both spans have the same length.
  void find_all(std::span<const Query> queries, std::span<SourceAnswer> answers);

  /// The resolver of the files among the sources; null if there are none.
  const Resolver* files() const noexcept;
  /// The symbolizers of the processes, for their failures.
  std::vector<const Symbolizer*> symbolizers() const;

 private:
  struct State;
  explicit NameSources(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace perfmap
