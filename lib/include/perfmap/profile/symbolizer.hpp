#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <sys/types.h>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "perfmap/profile/debug_index.hpp"
#include "perfmap/profile/module.hpp"
#include "perfmap/profile/process.hpp"
#include "perfmap/profile/process_tracker.hpp"
#include "perfmap/resolver.hpp"
#include "perfmap/types.hpp"

namespace perfmap {

/// Why an address of a process has no name.
enum class NoName : std::uint8_t {
  gone,         ///< the process is not known, or ended before its file could be opened
  unmapped,     ///< nothing is mapped there
  no_source,    ///< no file names the region, and the process has no perf map and no jitdump; data
  not_covered,  ///< it has some, and none has code there
  before_load,  ///< a jitdump has, but only after the time asked for
  no_symbol,    ///< the ELF file there has no function at the address
  unreadable,   ///< the file there cannot be opened, or a source was cut off
};
/// "gone", "unmapped", "no-source", "not-covered", "before-load", "no-symbol", "unreadable".
PERFMAP_API std::string_view to_string(NoName why) noexcept;

/// What an address of a process is called, and by whom. `entry` is valid until `sources` are
/// refreshed.
struct AddressName {
  Address address = 0;
  /// Empty: see `why`, unless there is an `entry`, which has the name as the runtime wrote it.
  std::string name;
  /// Of the function, in the process's memory. Nothing where only debug information names it.
  std::optional<AddressRange> range;
  std::shared_ptr<const MappedFile> mapped;  ///< what the region shows; null where unmapped
  std::shared_ptr<const Module> module;      ///< the ELF file there; null for code of a JIT
  std::optional<Address> vaddr;              ///< the address in `module`, before relocation
  std::shared_ptr<JitSources> sources;       ///< that know the code of a JIT
  std::optional<ResolvedName> entry;         ///< in `sources`
  /// As asked by Symbolizer::Detail; the innermost first, the last is the function that has the
  /// code. Functions are in the language of their source. Of modules only.
  std::vector<SourceFrame> frames;
  NoName why = NoName::gone;
  Doubts doubts = {};         ///< of the name
  bool is_inherited = false;  ///< the name is of a process that this one was forked from

  bool has_name() const noexcept { return !name.empty() || entry; }
};

/// Names the addresses of a tracker's processes: by the ELF file that is mapped there; in
/// executable memory where none is, by the process's jitdumps and its perf map, and by those of the
/// process that it was forked from, in what it still has of that. Files of one module are opened
/// once, by the tracker.
///
/// One thread at a time; the tracker must outlive it.
class PERFMAP_API Symbolizer {
 public:
  enum class Detail : std::uint8_t {
    symbols,  ///< names
    lines,    ///< and one frame for the place in the source
    inlines,  ///< and a frame for each function that was inlined there
  };
  struct Options {
    Detail detail = Detail::symbols;
    bool demangle = true;  ///< symbols, and what runtimes write; see demangle_code()
    unsigned threads = 1;  ///< for source lines
    /// Recordings do not tell of all memory: where the process has nothing, or memory without a
    /// file that is not executable, its sources are asked all the same; see
    /// may_be_unrecorded_code().
    bool asks_unrecorded = false;
  };

  Symbolizer(ProcessTracker& tracker, Options options);

  /// Answers for the process that has `pid` at `when`. The queries' times are those of its
  /// jitdumps. Both spans have the same length. O(log n) for each symbol; for lines see DebugIndex.
  void find_all(pid_t pid, std::span<const Query> queries, std::span<AddressName> answers,
                std::uint64_t when = ProcessTracker::kNow);
  AddressName find(pid_t pid, const Query& query, std::uint64_t when = ProcessTracker::kNow);

  /// A process as it was, for those who kept it: what ProcessTracker::at() and jit() said.
  struct PastProcess {
    pid_t pid = 0;
    std::uint64_t when = ProcessTracker::kNow;  ///< for what it was forked from
    std::shared_ptr<const AddressSpace> space;
    std::shared_ptr<JitSources> jit;
    /// What ProcessTracker::lineage() said. Null: the tracker is asked, which may not know the
    /// process any more; then only `jit` counts.
    std::shared_ptr<const JitLineage> lineage = nullptr;
  };
  /// Answers for that, whatever has become of the process since.
  void find_all(const PastProcess& moment, std::span<const Query> queries,
                std::span<AddressName> answers);

  /// The files that could not be opened so far, each once.
  std::span<const Error> failures() const noexcept { return failures_; }
  /// Unless for Detail::symbols: paths of the ELF files without any debug information so far, each
  /// once. Of others whose lines cannot be had, failures() says why.
  std::span<const std::string> without_lines() const noexcept { return without_lines_; }

 private:
  struct Batch;
  void name(Batch& batch, const Query& query, AddressName& answer);
  bool name_by_module(Batch& batch, const Region& region, AddressName& answer);
  bool name_by_jit(Batch& batch, const Region* region, const Query& query, AddressName& answer);
  bool name_unrecorded(Batch& batch, const Region* region, const Query& query, AddressName& answer);
  void fail(Error error);
  void note_missing(const Module& module, const DebugIndex& index);
  void note_without_lines(const Module& module);
  void add_frames(std::span<AddressName> answers);
  void take_chain(std::vector<SourceFrame> chain, AddressName& answer);
  void name_frame(SourceFrame& frame);
  void add_frames_of(const Module& module, std::span<AddressName* const> asked);

  ProcessTracker& tracker_;
  Options options_;
  std::unordered_set<const Module*> indexed_;              // of which debug_index() was asked for
  std::unordered_map<std::string, std::string> readable_;  // by linkage name
  std::vector<Error> failures_;
  std::vector<std::string> without_lines_;
};

}  // namespace perfmap
