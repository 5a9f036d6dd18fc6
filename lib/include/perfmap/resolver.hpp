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

#include "perfmap/diagnostic.hpp"
#include "perfmap/index.hpp"
#include "perfmap/jitdump.hpp"
#include "perfmap/map.hpp"
#include "perfmap/timeline.hpp"
#include "perfmap/types.hpp"

namespace perfmap {

/// A reason to doubt a result. Values are bits, because a result may have several.
enum class Doubt : std::uint16_t {
  damaged_record = 1,   ///< the record or line that names the code contradicts itself
  clamped_range = 2,    ///< its size was cut to the end of the file or of the address space
  reused_address = 4,   ///< several entries without times name the address: the last counts
  guessed_owner = 8,    ///< the file may not belong to the process
  guessed_call = 16,    ///< a caller without known code: its address may be in the next function
  scanned_frame = 32,   ///< the frame was found by a scan of the stack
  stitched_frame = 64,  ///< the frame was taken from another sample of the thread
  /// The name comes from the parent, and the child may have mapped the memory again since the fork.
  remapped_memory = 128,
  /// No executable mapping is known at the address, and the source has no time for the name.
  unrecorded_memory = 256,
};

/// Reasons to doubt a result. Default: none.
struct Doubts {
  std::uint16_t bits = 0;

  constexpr bool any() const noexcept { return bits != 0; }
  constexpr bool has(Doubt one) const noexcept {
    return (bits & static_cast<std::uint16_t>(one)) != 0;
  }
  constexpr void add(Doubt one) noexcept { bits |= static_cast<std::uint16_t>(one); }
  constexpr void add(Doubts others) noexcept { bits |= others.bits; }

  friend constexpr bool operator==(Doubts, Doubts) = default;
};

inline constexpr unsigned kDoubtCount = 9;
/// The kinds in the order of their bits; `position` is 0 to kDoubtCount - 1.
constexpr Doubt doubt_at(unsigned position) noexcept { return static_cast<Doubt>(1U << position); }

/// "damaged-record", "clamped-range", "reused-address", "guessed-owner", "guessed-call",
/// "scanned-frame", "stitched-frame", "remapped-memory", "unrecorded-memory".
PERFMAP_API std::string_view to_string(Doubt one) noexcept;
/// One sentence without a period: what the doubt means, and what to do.
PERFMAP_API std::string_view explain(Doubt one) noexcept;
/// The kinds, separated by commas, as in "damaged-record,clamped-range".
PERFMAP_API std::string to_string(Doubts doubts);

/// Why an address has no name.
enum class Unresolved : std::uint8_t {
  not_covered,  ///< no source has code there
  before_load,  ///< a jitdump has code there, but only after the given time
  unreadable,   ///< a source has code there, but was truncated since
};
/// "not-covered", "before-load", "unreadable".
PERFMAP_API std::string_view to_string(Unresolved why) noexcept;

/// The name of an address.
struct ResolvedName {
  std::string_view name;   ///< borrowed from the source; see Input
  AddressRange range;      ///< all of the code, at its address at that time
  std::size_t source = 0;  ///< position among the maps, or maps().size() + position among the dumps
  std::uint64_t offset = 0;     ///< in the source: of the map's line, or of the LOAD record
  Address address_at_load = 0;  ///< the same place in the code, as an address at its LOAD
  Doubts doubts = {};

  friend bool operator==(const ResolvedName&, const ResolvedName&) = default;
};

/// Reasons to doubt an entry of a map by itself: its size was cut, or its line looks damaged, for
/// example because two writes were mixed in it. O(name).
PERFMAP_API Doubts doubts_of(const Map& map, const Entry& entry) noexcept;

/// A name, or why there is none.
struct Resolution {
  std::optional<ResolvedName> found;
  Unresolved why = Unresolved::not_covered;  ///< if there is no name
};

/// An address at a time; for times see Timeline.
struct Query {
  Address address = 0;
  std::uint64_t time = Timeline::kEnd;
};

/// Names addresses from several sources: jitdumps, which have times, and perf maps, which only have
/// the state at their end. Jitdumps are searched before maps, and later jitdumps before earlier
/// ones. If a jitdump has code at the address only after the given time, no map is searched. All
/// maps share one index.
///
/// Several threads may use const members, except lines().
class PERFMAP_API Resolver {
 public:
  /// O(n log n) in the lines and records. Malformed lines go to `problems`, damaged records to
  /// `record_problems`.
  Resolver(std::vector<Map> maps, std::vector<Jitdump> dumps, Overlap overlap,
           Diagnostics& problems, Diagnostics& record_problems);
  Resolver(Resolver&&) noexcept;
  Resolver& operator=(Resolver&&) noexcept;
  ~Resolver();

  std::span<const Map> maps() const noexcept;
  std::span<const Timeline> timelines() const noexcept;
  /// The input of a ResolvedName's source.
  const Input& input(std::size_t source) const noexcept;

  /// O(log n) for each dump and for the index; see Timeline::find() and Index::find().
  Resolution find(const Query& query) const noexcept;
  /// find() for many addresses; both spans have the same length. If there are only maps, it is
  /// faster than single look-ups, most of all for ascending addresses.
  void find_all(std::span<const Query> queries, std::span<Resolution> answers) const;

  /// Reads what was appended to all sources. Returns Growth::replaced if a source was replaced,
  /// else Growth::appended if one grew. If several sources fail, returns the first error, and still
  /// refreshes the others. Earlier names stay valid only if the result is Growth::unchanged. See
  /// Index::refresh() and Timeline::refresh().
  Result<Growth> refresh(Diagnostics& problems, Diagnostics& record_problems);

  /// The source lines of the function that was found, at its addresses at its LOAD: search them
  /// with line_at() and ResolvedName::address_at_load. Empty for maps. See SourceLines; the
  /// reference is valid until the next call. One thread at a time.
  const std::vector<CodeLine>& lines(const ResolvedName& name);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// Names the unresolved JIT frames in the text of `perf script`, line by line.
///
/// Changes frames whose symbol is [unknown] and whose dso is [unknown], //anon, [anon:…], a memfd,
/// a file below /dev/shm, "[JIT] tid N" or /tmp/perf-N.map; every other byte passes unchanged.
///
/// The process is N of the dso; for inherited memory, N is the parent. Without N, or if that
/// process has no name for the address, it is the PID of a `PID/TID` header, else the result of
/// `process_of` for the header's tid, else that tid itself. Headers may lack any field; a sample
/// may be one line.
///
/// For memfds and files perf prints an address only if there is no call chain; otherwise it prints
/// an offset in the file, which cannot be named.
///
/// The time of the look-up is the time in the header, if it has one: its last nanosecond, see
/// parse_seconds().
///
/// A caller's address is a return address: if it is the first byte of an entry, or has no entry,
/// the look-up uses address - 1.
class PERFMAP_API PerfScriptFilter {
 public:
  /// The name at an address of process `pid` (0: unknown).
  struct Name {
    std::string_view name;
    Address begin = 0;
  };
  /// Returns false if there is no name. The view is valid until the next call.
  using Find = std::function<bool(pid_t pid, const Query& query, Name& name)>;
  using ProcessOf = std::function<pid_t(pid_t tid)>;

  PerfScriptFilter(Find find, ProcessOf process_of)
      : find_(std::move(find)), process_of_(std::move(process_of)) {}

  /// Appends `line`, which has no newline, to `out`, and names its frame if necessary.
  void filter(std::string_view line, std::string& out);
  /// Number of such frames that kept their [unknown].
  std::uint64_t unnamed() const noexcept { return unnamed_; }

 private:
  bool is_frame(std::string_view line) const;
  void read_header(std::string_view line);
  void end_sample();
  pid_t process();
  bool find_frame(pid_t pid, Address address, Name& name);
  bool rename(std::string_view line, bool own_line, std::string& out);

  Find find_;
  ProcessOf process_of_;
  std::unordered_map<pid_t, pid_t> processes_;  // by thread
  pid_t pid_ = 0;
  pid_t tid_ = 0;
  std::uint64_t time_ = Timeline::kEnd;
  bool header_expected_ = true;
  bool leaf_next_ = true;
  bool offsets_ = true;
  std::uint64_t unnamed_ = 0;
};

}  // namespace perfmap
