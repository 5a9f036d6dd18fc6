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

/// A reason to doubt an answer. Values are bits, so that an answer may have several.
enum class Doubt : std::uint16_t {
  damaged_record = 1,  ///< the record or line that names the code contradicts itself
  clamped_range = 2,   ///< its size was cut to what the file, or the address space, has room for
  reused_address = 4,  ///< of entries without times, several name the address: the last one counts
  guessed_owner = 8,   ///< whether the file is the process's own could not be told for sure
  guessed_call = 16,  ///< a caller whose code is not known: its address may be of the next function
  scanned_frame = 32,   ///< the frame was found by a scan of the stack
  stitched_frame = 64,  ///< the frame was taken from another sample of the thread
  /// The name is the parent's, and the child may have mapped the memory again since the fork.
  remapped_memory = 128,
  /// No executable mapping is known at the address, and the source has no time for the name.
  unrecorded_memory = 256,
};

/// Reasons to doubt an answer; none of them, at first.
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
/// The kinds in the order of their bits: 0 to kDoubtCount - 1.
constexpr Doubt doubt_at(unsigned position) noexcept { return static_cast<Doubt>(1U << position); }

/// "damaged-record", "clamped-range", "reused-address", "guessed-owner", "guessed-call",
/// "scanned-frame", "stitched-frame", "remapped-memory", "unrecorded-memory".
PERFMAP_API std::string_view to_string(Doubt one) noexcept;
/// One sentence without a period: what the doubt is about, and what to do.
PERFMAP_API std::string_view explain(Doubt one) noexcept;
/// The kinds, separated by commas, as in "damaged-record,clamped-range".
PERFMAP_API std::string to_string(Doubts doubts);

/// Why an address has no name.
enum class Unresolved : std::uint8_t {
  not_covered,  ///< no source has code there
  before_load,  ///< a jitdump has, but only after the time asked for
  unreadable,   ///< a source has, and was cut off since
};
/// "not-covered", "before-load", "unreadable".
PERFMAP_API std::string_view to_string(Unresolved why) noexcept;

/// What an address was called.
struct ResolvedName {
  std::string_view name;     ///< borrowed from the source; see Input
  AddressRange range;        ///< all of the code, where it lay then
  std::size_t source = 0;    ///< position among the maps, or maps().size() + that among the dumps
  std::uint64_t offset = 0;  ///< of the map's line, or of the LOAD record, in the source
  Address address_at_load = 0;  ///< where the code at the address was when it was loaded
  Doubts doubts = {};

  friend bool operator==(const ResolvedName&, const ResolvedName&) = default;
};

/// What is doubtful about an entry of a map by itself: its size was cut, or its line looks damaged,
/// as where two writes met on one. O(name).
PERFMAP_API Doubts doubts_of(const Map& map, const Entry& entry) noexcept;

/// A name, or why there is none.
struct Resolution {
  std::optional<ResolvedName> found;
  Unresolved why = Unresolved::not_covered;  ///< where nothing was found
};

/// An address at a time; see Timeline for times.
struct Query {
  Address address = 0;
  std::uint64_t time = Timeline::kEnd;
};

/// Names addresses by several sources together: jitdumps, which know what was where at what time,
/// and perf maps, which know what was there at the end. A jitdump is asked before every map, and no
/// map where one knows that code came there only later; of
/// several jitdumps the later ones before the earlier; the maps share one index.
///
/// Const members may be used from several threads, but for lines().
class PERFMAP_API Resolver {
 public:
  /// Times O(n log n) in the lines and records. `problems` gets what makes no sense in the maps,
  /// `record_problems` what makes none in the dumps.
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
  /// The same for many; both spans have the same length. Faster than one by one where there are
  /// only maps, most of all when the addresses ascend.
  void find_all(std::span<const Query> queries, std::span<Resolution> answers) const;

  /// Takes in what was appended to the sources, as far as each can: replaced where one was, else
  /// appended. Of several failures the first; the other sources are refreshed all the same. Names
  /// found before stay valid only where it answers unchanged. See Index::refresh() and
  /// Timeline::refresh().
  Result<Growth> refresh(Diagnostics& problems, Diagnostics& record_problems);

  /// The source lines of the function that was found, at the addresses it had at its LOAD: for
  /// line_at() with ResolvedName::address_at_load. Empty for maps. The lines of the function asked
  /// for last are kept; the view lives until the next call. One thread at a time.
  const std::vector<CodeLine>& lines(const ResolvedName& name);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// Names the unresolved JIT frames in the text of `perf script`, line by line.
///
/// Touched are frames whose symbol is [unknown] and whose dso is [unknown], //anon, [anon:…], a
/// memfd, a file below /dev/shm, "[JIT] tid N" or /tmp/perf-N.map; every other byte passes
/// unchanged. The process is N of the dso, which of memory that was inherited is the parent; else,
/// or where that has no name, the PID of a `PID/TID` header, else what `process_of` says of the
/// header's tid, and that tid itself where it says nothing. Headers may lack any field; a sample
/// may be one line. Of memfds and files perf prints an address only where there is no call chain,
/// else an offset in the file, which names nothing.
///
/// Where a header has a time, that is the time at which is asked; it stands for its last nanosecond
/// as parse_seconds() says.
///
/// A caller's address is a return address: where it is the first byte of an entry, or nobody's, it
/// is looked up at address - 1.
class PERFMAP_API PerfScriptFilter {
 public:
  /// What is at an address of process `pid` (0: unknown).
  struct Name {
    std::string_view name;
    Address begin = 0;
  };
  /// Answers false where nobody knows. The view lives until the next call.
  using Find = std::function<bool(pid_t pid, const Query& query, Name& name)>;
  using ProcessOf = std::function<pid_t(pid_t tid)>;

  PerfScriptFilter(Find find, ProcessOf process_of)
      : find_(std::move(find)), process_of_(std::move(process_of)) {}

  /// Appends `line`, which has no newline, to `out`, renamed where that is called for.
  void filter(std::string_view line, std::string& out);
  /// How many such frames kept their [unknown], because nobody knew a name.
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
  std::unordered_map<pid_t, pid_t> processes_;  // of threads that were asked for
  pid_t pid_ = 0;
  pid_t tid_ = 0;
  std::uint64_t time_ = Timeline::kEnd;
  bool header_expected_ = true;
  bool leaf_next_ = true;
  bool offsets_ = true;
  std::uint64_t unnamed_ = 0;
};

}  // namespace perfmap
