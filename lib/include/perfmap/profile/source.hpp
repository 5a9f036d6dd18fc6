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
#include "perfmap/input.hpp"
#include "perfmap/jit_paths.hpp"
#include "perfmap/jitdump.hpp"
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

/// A source of names as a user writes it: a path, "-" for standard input, a pid, or the directory
/// of a snapshot.
struct Source {
  enum class As {
    any,   ///< decimal digits that name no file are a pid
    path,  ///< never a pid
    pid,
    dump,  ///< the path of a jitdump
  };

  std::string text = {};
  As as = As::any;
};

/// Is told what a user may want to know while sources are opened and asked: the library prints
/// nothing. Every member may be left as it is. Called in the thread that opens or asks.
class PERFMAP_API SourceObserver {
 public:
  virtual ~SourceObserver() = default;
  /// A part of a source is not used: it was refused, or is damaged.
  virtual void warn(const std::string& /*message*/) {}
  /// A process that is asked has changed.
  virtual void note(const std::string& /*message*/) {}
  /// A source cannot be opened because its files belong to another user; see
  /// SourceOptions::any_owner.
  virtual void foreign_owner() {}
  /// One of several sources is a process that does not exist; the others are used.
  virtual void missing(const Error& /*error*/) {}
  /// Something that may take long begins. It lasts as long as the answer is held.
  virtual std::shared_ptr<void> step(const std::string& /*what*/) { return nullptr; }
};

/// How sources are opened.
struct SourceOptions {
  std::string kind = {};       ///< "perf-map", "jitdump", "pypylog", "json"; empty: by content
  bool kind_is_given = true;   ///< false: it follows from something else, and overrides nothing
  bool any_owner = false;      ///< files found through a pid may belong to any user
  bool stop_at_close = false;  ///< read a jitdump up to its CLOSE record only, as perf does
  bool needs_magic = true;   ///< false: kind "jitdump" also takes files that are not one, for lint
  bool takes_others = true;  ///< false: maps and dumps only, nothing that one is made of
  std::uint32_t dump_pid = 0;  ///< pid of a jitdump that is made of a log, which names no process
  std::string map_dir = {};    ///< directory with perf-PID.map and jit-PID.dump, or a snapshot
  Roots roots = {};
  SourceObserver* observer = nullptr;  ///< borrowed; null: nothing is reported

  SourceObserver& listener() const {
    static SourceObserver nobody;
    return observer != nullptr ? *observer : nobody;
  }
};

/// The bytes of a map, of a jitdump, or of JSON of a map.
struct OpenedInput {
  Input input;
  SourceKind kind = SourceKind::perf_map;
  bool growing = false;                      ///< a process may still write to it
  std::optional<SourceKind> made_from = {};  ///< of a jitdump that was our JSON, or a log
  std::uint64_t without_code = 0;  ///< such a dump's LOADs with zeros for code; see JitdumpBytes
  bool was_compressed = false;     ///< the file has other bytes than the input
  bool was_mended = false;         ///< it is a jitdump whose magic number was wrong

  /// What the source was before a map or dump was made of it.
  SourceKind written_kind() const noexcept { return made_from.value_or(kind); }
};

/// The pid that a source means, or 0.
PERFMAP_API pid_t pid_of_source(const Source& source);
PERFMAP_API bool is_stdin(const Source& source);
/// Fails if more than one is standard input.
PERFMAP_API Result<void> check_stdin(std::span<const Source> sources);

/// Opens what a source stands for: a file or standard input, expanded if it is compressed; or, of a
/// process or a snapshot of one, its map and then its jitdumps, at least one of them. Nothing of a
/// process is trusted; see find_process_map(). Fails with a message that names the source: it
/// cannot be opened (not_found, refused, io), or is of a kind that has no names (unsupported,
/// bad_format).
PERFMAP_API Result<std::vector<OpenedInput>> open_source(const Source& source,
                                                         const SourceOptions& options);
/// The same for several, in their order; standard input may be among them once.
PERFMAP_API Result<std::vector<OpenedInput>> open_sources(std::span<const Source> sources,
                                                          const SourceOptions& options);
PERFMAP_API Result<std::vector<OpenedInput>> open_process_source(pid_t pid,
                                                                 const SourceOptions& options);
/// The same of an input that is open already.
PERFMAP_API Result<OpenedInput> as_opened(Input input, const SourceOptions& options, bool growing);

/// The dump that these bytes are.
PERFMAP_API Jitdump dump_of(OpenedInput opened, const SourceOptions& options);

/// How a map was made.
struct Opening {
  SourceKind kind = SourceKind::perf_map;
  std::uint64_t bytes = 0;          ///< of the file, not of the map that was made of it
  std::uint64_t changed_names = 0;  ///< names that no perf map can hold
};

/// The map that all of these are or describe, as one: entries of JSON; what a jitdump had at that
/// time. `opening`, if there is one, is of the first. Fails as open_source() does.
PERFMAP_API Result<Map> map_of(std::vector<OpenedInput> opened, const SourceOptions& options,
                               Opening* opening = nullptr, std::uint64_t time = Timeline::kEnd);
PERFMAP_API Result<Map> map_of(OpenedInput opened, const SourceOptions& options,
                               Opening* opening = nullptr, std::uint64_t time = Timeline::kEnd);

/// Fails if a time is asked for, and those of the dump are ticks of the processor.
PERFMAP_API Result<void> check_time(const Jitdump& dump, std::uint64_t time);

/// What a log of PyPy says of its loops and bridges, with their code.
PERFMAP_API Result<LoopProfile> read_loops(const Input& log, TickBase ticks);

/// The bytes of a recording, "-" for standard input, expanded if it is compressed; a pprof profile
/// stays as it is. Fails as open_source() does, and for a snapshot, which holds no recording.
PERFMAP_API Result<Input> open_recording_input(const std::string& path);
PERFMAP_API Result<Recording> open_recording(const std::string& path);
/// The maps and dumps of recorded processes are in this directory, which may be a snapshot; empty:
/// where the recording says. Fails if a snapshot cannot be read.
PERFMAP_API Result<void> set_map_dir(const std::string& directory, RecordedJitOptions& options);
/// ELF files of recorded processes: by the build ids of the recording and, if it has none, of the
/// snapshot, which has a vdso of its own. Borrows the cache.
PERFMAP_API ProcessTracker::OpenModule open_recorded_modules(ModuleCache& cache,
                                                             const Recording& recording,
                                                             const RecordedJitOptions& options);

/// "a jitdump", "JSON", "gzip data".
PERFMAP_API std::string with_article(SourceKind kind);
/// As SourceOptions::kind has them.
PERFMAP_API std::string_view kind_id(SourceKind kind) noexcept;
/// "N is a jitdump, which this command does not take".
PERFMAP_API Error unsupported_source(const std::string& name, SourceKind kind);
/// "DIR is a snapshot, " and why it is not taken; nothing if the path is no snapshot.
PERFMAP_API std::optional<Error> refuse_snapshot(const std::string& path, const std::string& why);
/// "no process 42".
PERFMAP_API Error no_process(pid_t pid);

/// Opened sources sorted for a Resolver or JitSources.
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
  std::string symfs = {};  ///< ELF files are looked for below it; empty: where the process has them
  std::uint64_t time = Timeline::kEnd;  ///< that will be asked for; see check_time()
  /// Called if there is a process among the sources: what fetches debug files that are not here.
  std::function<Result<FetchDebugFile>()> open_servers = {};
};

/// What several sources together say of an address. Borrowed from them until they are asked again.
struct SourceAnswer {
  std::string_view why;   ///< the reason, if there is no name
  std::string_view file;  ///< the path of what has the name, or would have it; empty: nothing
  const ResolvedName* entry = nullptr;  ///< of a map or dump, if one has the name
  Resolver* resolver = nullptr;         ///< that has the entry
  const AddressName* name = nullptr;    ///< what a process says; null: files were asked
  Doubts doubts = {};
};

/// Files and living or packed up processes, asked together. Which of them wins: what an ELF file
/// has mapped in a process, that file names; elsewhere a jitdump comes before a map, and of two
/// sources the later one. A process that exists no more answers by the files that it left.
///
/// One thread at a time. Holds what it opened until it is gone, and looks at a living process again
/// with each question but the first.
class PERFMAP_API NameSources {
 public:
  /// One of several sources may be a process that does not exist; the observer hears of it.
  static Result<NameSources> open(std::span<const Source> sources,
                                  const NameSourceOptions& options);
  NameSources(NameSources&&) noexcept;
  NameSources& operator=(NameSources&&) noexcept;
  ~NameSources();

  /// The maps, if there is nothing else, and index() was not called: for find_by_scan().
  const std::vector<Map>* only_maps() const noexcept;
  /// Whether a process did not exist.
  bool misses_process() const noexcept;
  /// Whether the times of some dump are ticks of the processor.
  bool has_ticks() const noexcept;

  /// Call it once, before the first find_all(). The diagnostics are those of Resolver.
  void index(Diagnostics& problems, Diagnostics& record_problems);
  /// Both spans have the same length.
  void find_all(std::span<const Query> queries, std::span<SourceAnswer> answers);

  /// What names the files among the sources; null if there are none.
  const Resolver* files() const noexcept;
  /// What names the processes, for what they could not open.
  std::vector<const Symbolizer*> symbolizers() const;

 private:
  struct State;
  explicit NameSources(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace perfmap
