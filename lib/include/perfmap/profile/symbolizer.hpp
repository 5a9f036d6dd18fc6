// SPDX-License-Identifier: MIT
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
  gone,         ///< the process is unknown, or ended before its file could be opened
  unmapped,     ///< nothing is mapped there
  no_source,    ///< no file is mapped, and the process has no perf map and no jitdump; data
  not_covered,  ///< it has a map or a jitdump without code there
  before_load,  ///< a jitdump has code there, but only after the given time
  no_symbol,    ///< the ELF file there has no function at the address
  unreadable,   ///< the file there cannot be opened, or a source was truncated
};
/// "gone", "unmapped", "no-source", "not-covered", "before-load", "no-symbol", "unreadable".
PERFMAP_API std::string_view to_string(NoName why) noexcept;

/// The name of an address of a process, and its origin. `entry` is valid until `sources` are
/// refreshed.
struct AddressName {
  Address address = 0;
  /// Empty: see `why`, unless there is an `entry`, which has the runtime's name.
  std::string name;
  /// Of the function, in the process's memory. Nothing if only debug information names it.
  std::optional<AddressRange> range;
  std::shared_ptr<const MappedFile> mapped;  ///< of the region; null if unmapped
  std::shared_ptr<const Module> module;      ///< the ELF file there; null for JIT code
  std::optional<Address> vaddr;              ///< the address in `module`, before relocation
  std::shared_ptr<JitSources> sources;       ///< the sources that have the JIT code
  std::optional<ResolvedName> entry;         ///< in `sources`
  /// According to Symbolizer::Detail; the innermost first, the last is the function that contains
  /// the code. Names are in the language of the source. Only for modules.
  std::vector<SourceFrame> frames;
  NoName why = NoName::gone;
  Doubts doubts = {};         ///< of the name
  bool is_inherited = false;  ///< the name is from a process that this one was forked from

  bool has_name() const noexcept { return !name.empty() || entry; }
};

/// Names the addresses of a tracker's processes. The ELF file that is mapped at an address names
/// it. In executable memory without a file, the process's jitdumps and perf map name it, and those
/// of the processes that it was forked from, in memory that it still has from them. The tracker
/// opens each module once.
///
/// One thread at a time; the tracker must outlive it.
class PERFMAP_API Symbolizer {
 public:
  enum class Detail : std::uint8_t {
    symbols,  ///< names
    lines,    ///< names, and one frame with file and line
    inlines,  ///< also a frame for each inlined function
  };
  struct Options {
    Detail detail = Detail::symbols;
    bool demangle = true;  ///< symbols, and names from runtimes; see demangle_code()
    unsigned threads = 1;  ///< for source lines
    /// Recordings do not contain all memory: if the process has no mapping at the address, or
    /// memory without a file that is not executable, use its sources anyway; see
    /// may_be_unrecorded_code().
    bool asks_unrecorded = false;
  };

  Symbolizer(ProcessTracker& tracker, Options options);

  /// Names addresses of the process that has `pid` at `when`. The queries' times are those of its
  /// jitdumps. Both spans have the same length. O(log n) for each symbol; for lines see DebugIndex.
  void find_all(pid_t pid, std::span<const Query> queries, std::span<AddressName> answers,
                std::uint64_t when = ProcessTracker::kNow);
  AddressName find(pid_t pid, const Query& query, std::uint64_t when = ProcessTracker::kNow);

  /// A process at an earlier time, for callers that keep the results of ProcessTracker::at() and
  /// jit().
  struct PastProcess {
    pid_t pid = 0;
    std::uint64_t when = ProcessTracker::kNow;  ///< for the processes that it was forked from
    std::shared_ptr<const AddressSpace> space;
    std::shared_ptr<JitSources> jit;
    /// The result of ProcessTracker::lineage(). Null: the tracker is used; if it does not know the
    /// process any more, only `jit` counts.
    std::shared_ptr<const JitLineage> lineage = nullptr;
  };
  /// Names addresses of that process, whether or not it still exists.
  void find_all(const PastProcess& moment, std::span<const Query> queries,
                std::span<AddressName> answers);

  /// Files that could not be opened so far, each once.
  std::span<const Error> failures() const noexcept { return failures_; }
  /// Except for Detail::symbols: paths of the ELF files without any debug information so far, each
  /// once. If lines cannot be read for another reason, failures() has it.
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
  std::unordered_set<const Module*> indexed_;              // whose debug_index() was used
  std::unordered_map<std::string, std::string> readable_;  // by linkage name
  std::vector<Error> failures_;
  std::unordered_set<std::string> failed_;  // messages of failures_
  std::vector<std::string> without_lines_;
};

}  // namespace perfmap
