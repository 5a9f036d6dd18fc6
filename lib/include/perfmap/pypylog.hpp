// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "perfmap/diagnostic.hpp"
#include "perfmap/jitdump.hpp"
#include "perfmap/output_file.hpp"
#include "perfmap/timeline.hpp"
#include "perfmap/types.hpp"

/// Logs of PyPy (PYPYLOG=…): the loops that it compiled, their times, and their machine code.
/// docs/format-pypylog.md describes the format.

namespace perfmap {

/// The base of a log's times.
enum class TickBase : std::uint8_t { automatic, hex, dec };

/// The digits of a time in a log, read in both bases: PyPy writes hexadecimal digits, its
/// documentation shows decimal ones, and digits without letters are ambiguous. UINT64_MAX if the
/// number does not fit.
struct PypylogTick {
  std::uint64_t hex = 0;
  std::uint64_t dec = 0;  ///< meaningless if the digits contain a letter

  /// The value in that base; automatic means hex.
  constexpr std::uint64_t in(TickBase base) const noexcept {
    return base == TickBase::dec ? dec : hex;
  }
  friend bool operator==(const PypylogTick&, const PypylogTick&) = default;
};

/// "auto", "hex", "dec".
PERFMAP_API std::string_view to_string(TickBase base) noexcept;
PERFMAP_API std::optional<TickBase> parse_tick_base(std::string_view name) noexcept;
/// Parses a number without prefix in both bases; nothing if it is not a number. `has_letter`
/// receives whether it contains one of a-f.
PERFMAP_API std::optional<PypylogTick> parse_tick(std::string_view digits,
                                                  bool& has_letter) noexcept;

/// PyPy's text for a place in a program: "f;/tmp/t.py:8-10~#12 FOR_ITER", or, before PyPy 7.3,
/// "<code object f. file '/tmp/t.py'. line 8> #12 FOR_ITER". Views into that text.
struct PypyPlace {
  std::string_view function = {};  ///< the whole text if its form is unknown
  std::string_view file = {};
  std::uint32_t first_line = 0;  ///< first line of the function; 0: unknown
  std::uint32_t line = 0;        ///< of the bytecode; if unknown, first_line
  std::string_view opcode = {};  ///< "FOR_ITER"
};
/// O(text).
PERFMAP_API PypyPlace parse_pypy_place(std::string_view text) noexcept;

/// A range of bytes in a log.
struct LogSpan {
  std::uint64_t offset = 0;
  std::uint64_t size = 0;
  bool empty() const noexcept { return size == 0; }
};

/// A loop or bridge, as described by its log.
struct CompiledLoop {
  enum class Kind : std::uint8_t { loop, bridge };
  static constexpr std::uint32_t kNone = UINT32_MAX;
  static constexpr std::uint32_t kNoThread = UINT32_MAX;

  struct Guard {
    Address address = 0;           ///< of its descriptor, which identifies it everywhere
    std::string operation = {};    ///< "guard_true"
    std::uint32_t bridge = kNone;  ///< the bridge out of it, as a position in CompiledLoops::all()
  };
  struct Label {
    std::uint64_t token = 0;                  ///< TargetToken(…)
    std::optional<std::uint64_t> count = {};  ///< number of times it was passed
  };

  Kind kind = Kind::loop;
  std::uint64_t id = 0;  ///< the loop's number; the address of the bridge's guard; else 0
  /// As in the log: "Loop 1 (f;/tmp/t.py:8-10~#12 FOR_ITER)", "bridge out of Guard 0x7f…".
  std::string name = {};
  std::string type = {};  ///< "loop", "entry bridge"; empty if the log has no operations of it
  std::string function = {}, file = {};  ///< of its first debug merge point, else of its name
  std::uint32_t first_line = 0, line = 0;
  /// All of its machine code: from its entry to its end, including the code for failures. Size 0:
  /// unknown.
  AddressRange code = {};
  /// End of the operations' code and beginning of the failures' code. 0: unknown.
  Address operations_end = 0;
  std::uint64_t placed = 0;   ///< offset in the log of the line with its addresses
  PypylogTick compiled = {};  ///< begin of the section with its addresses, or operations
  /// The contents of its jit-log-opt section, without the section lines.
  LogSpan operations = {};
  /// From the "N# " before its lines, which PyPy with transactional memory writes.
  std::uint32_t thread = kNoThread;
  std::vector<Guard> guards = {};
  std::vector<Label> labels = {};
  std::uint64_t jumps_to = 0;                 ///< the token to which its last operation jumps
  std::optional<std::uint64_t> entries = {};  ///< number of entries, from jit-backend-counts
  std::uint32_t owner = kNone;  ///< of a bridge: the loop or bridge that has its guard
  std::uint32_t loop = kNone;  ///< of a bridge: the loop to which it belongs, through other bridges
  bool is_inner = false;       ///< a bridge that jumps back to its own loop

  /// Number of times its labels were passed, from jit-backend-counts; without labels, its entries.
  PERFMAP_API std::optional<std::uint64_t> iterations() const noexcept;
};

/// The contents of a jit-backend-dump section: bytes that were written to memory.
struct CodeBytes {
  Address address = 0;
  LogSpan hex = {};  ///< two digits per byte
};

/// All loops and bridges of a log, in the order in which the log first mentions them.
class CompiledLoops {
 public:
  std::span<const CompiledLoop> all() const noexcept { return all_; }
  /// Only if LoopProfile::Options::keep_code_bytes is set.
  std::span<const CodeBytes> code_bytes() const noexcept { return code_; }
  /// Finds a loop by a name from a user: as in a log ("Loop 1", "Loop 1 (f;…)", "bridge out of
  /// Guard 0x7f…"), or only its number, address or function. If several have the same name, the
  /// latest; for a function, its first; kNone if there is none. O(loops).
  PERFMAP_API std::uint32_t find(std::string_view name) const;

 private:
  friend class LoopSections;
  std::vector<CompiledLoop> all_;
  std::vector<CodeBytes> code_;
};

/// A period of a thread's time without changes. Borrowed.
struct LoopSpan {
  std::uint32_t thread = CompiledLoop::kNoThread;
  std::uint64_t begin = 0;
  std::uint64_t ticks = 0;
  std::uint32_t loop = CompiledLoop::kNone;        ///< kNone: outside of all loops
  std::span<const std::uint32_t> categories = {};  ///< open sections, outermost first
};

/// The time of a log's sections and loops, in ticks of the log.
///
/// A loop's time begins with the line that opens a jit-profile-enter section with its name. It ends
/// where the next such section, or a jit-profile-exit section, is opened: entering a loop leaves
/// the one before. An inner bridge is entered without leaving its loop, unless inner bridges are
/// counted. The time of other sections inside, such as those of the garbage collector, belongs to
/// the loop.
///
/// A category's time is that of its sections without the sections inside them. Threads are
/// separate. A time that is less than an earlier one counts as that earlier one. So for each
/// thread, and in total, this is exact: loops + outside = categories + rest = last - first.
///
/// A section without an end ends with the section around it, or with the log. An end without a
/// begin is ignored, because the log does not contain its time. If two loops have the same number,
/// as in a log that several processes write, or two bridges have guards with the same address,
/// later lines refer to the later one.
///
/// Memory is proportional to the depth of sections, at most 4096, and to the numbers of loops,
/// guards, labels, categories and threads (at most 65 536 categories and as many threads; more
/// count as rest). One thread at a time.
class PERFMAP_API LoopProfile {
 public:
  struct Options {
    TickBase base = TickBase::automatic;
    bool count_inner_bridges = false;
    std::optional<PypylogTick> from = {};  ///< earlier time is not counted
    std::optional<PypylogTick> to = {};
    bool keep_code_bytes = false;  ///< for loops().code_bytes()
    /// Called for each span that is not empty, in order for each thread. Requires a base: with
    /// automatic it is never called.
    std::function<void(const LoopSpan&)> visit = {};
  };

  /// Of one loop. Ticks are valid only if has_events().
  struct Times {
    std::uint64_t ticks = 0;
    std::uint64_t entered = 0;  ///< number of its jit-profile-enter events
  };
  struct Category {
    std::string name;
    std::uint64_t ticks = 0;     ///< without the sections inside
    std::uint64_t sections = 0;  ///< number of sections that began
  };
  struct Thread {
    std::uint32_t number = CompiledLoop::kNoThread;
    std::uint64_t first = 0, last = 0;  ///< the latest, if times decrease
    std::uint64_t outside = 0;          ///< outside of all loops
    std::uint64_t rest = 0;             ///< outside of all sections
    std::uint64_t ticks() const noexcept { return last - first; }
  };

  explicit LoopProfile(Options options);
  LoopProfile(LoopProfile&&) noexcept;
  LoopProfile& operator=(LoopProfile&&) noexcept;
  ~LoopProfile();

  /// Adds the next bytes of the log, cut at line ends. Only the last line of the log may lack its
  /// newline: then it counts if it closes a section, and is otherwise incomplete.
  void add(std::string_view lines);
  /// Whether a line so far opened or closed a section: a file without one is not a log.
  bool has_sections() const noexcept;
  /// Call it once, at the end of the log. All functions below are valid afterwards.
  void finish();

  /// Whether inner bridges have their own times.
  bool counts_inner_bridges() const noexcept { return results().counts_inner_bridges; }
  /// The base of the times: hex or dec.
  TickBase base() const noexcept { return results().base; }
  /// Whether there is a jit-profile-enter or -exit section: without one, loops have no times.
  bool has_events() const noexcept { return results().has_events; }
  const CompiledLoops& loops() const noexcept { return results().loops; }
  /// By position in loops().all().
  std::span<const Times> times() const noexcept { return results().times; }
  /// In order of appearance, like threads().
  std::span<const Category> categories() const noexcept { return results().categories; }
  std::span<const Thread> threads() const noexcept { return results().threads; }
  /// Of all threads.
  std::uint64_t ticks() const noexcept { return results().ticks; }
  std::uint64_t outside() const noexcept { return results().outside; }
  std::uint64_t rest() const noexcept { return results().rest; }
  /// PL…
  const Diagnostics& problems() const noexcept { return results().problems; }

 private:
  struct Results {
    bool counts_inner_bridges = false;
    bool has_events = false;
    TickBase base = TickBase::automatic;
    CompiledLoops loops;
    std::vector<Times> times;
    std::vector<Category> categories;
    std::vector<Thread> threads;
    std::uint64_t ticks = 0, outside = 0, rest = 0;
    Diagnostics problems{8};
  };
  struct State;

  const Results& results() const noexcept;

  std::unique_ptr<State> state_;
};

/// Adds a whole input, from its beginning to its present end. A regular file is read through its
/// descriptor, in windows. After each of them, calls `progress` with the number of bytes read.
PERFMAP_API void read_pypylog(const class Input& input, LoopProfile& profile,
                              const std::function<void(std::uint64_t)>& progress = {});

/// The key of a row in a table of loops.
enum class LoopKey : std::uint8_t { loop, function, file };
/// "loop", "function", "file".
PERFMAP_API std::string_view to_string(LoopKey key) noexcept;
PERFMAP_API std::optional<LoopKey> parse_loop_key(std::string_view name) noexcept;

/// The number of samples of a recording in the code of each loop, by position in
/// CompiledLoops::all(), and of all samples. Borrowed.
struct SampledLoops {
  std::span<const std::uint64_t> by_loop = {};
  std::uint64_t total = 0;
};

/// A loop or bridge, or all those of a function or file. Values that are not in the log are empty.
struct LoopRow {
  std::uint32_t loop = CompiledLoop::kNone;  ///< the only one, or the first of several
  std::uint64_t loops = 0;                   ///< number of loops and bridges
  /// Those of an inner bridge count for its loop, unless LoopProfile::counts_inner_bridges().
  std::optional<std::uint64_t> ticks = {};
  /// From events, or else from jit-backend-counts.
  std::optional<std::uint64_t> entered = {};
  std::optional<std::uint64_t> iterations = {};
  std::uint64_t samples = 0;
};

/// The row of one loop or bridge.
PERFMAP_API LoopRow loop_row(const LoopProfile& profile, std::uint32_t loop,
                             const std::optional<SampledLoops>& samples = {});

/// The loops of a log by importance: most time first; if the log has no times, most samples;
/// without samples, most iterations. Equal rows keep the order of the log. O(n log n) in the number
/// of loops.
PERFMAP_API std::vector<LoopRow> loop_rows(const LoopProfile& profile, LoopKey key,
                                           const std::optional<SampledLoops>& samples = {});

/// The sum of these rows.
PERFMAP_API LoopRow sum_of_rows(std::span<const LoopRow> rows);

/// A guard with a bridge, and the number of times that the bridge was entered.
struct FailedGuard {
  std::uint32_t guard = 0;  ///< in CompiledLoop::guards
  std::optional<std::uint64_t> failures = {};
};
/// The guards of a loop that have bridges, most failures first. Failures of other guards are
/// unknown, because a log counts a failure only when it enters a bridge.
PERFMAP_API std::vector<FailedGuard> failed_guards(const LoopProfile& profile, std::uint32_t loop);
/// The first of them; nothing if no failure was counted.
PERFMAP_API std::optional<FailedGuard> worst_guard(const LoopProfile& profile, std::uint32_t loop);

/// "Loop 1" of "Loop 1 (f;/tmp/t.py:8-10~#12 FOR_ITER)": the name without the place. A view into
/// the loop's name.
PERFMAP_API std::string_view short_name(const CompiledLoop& loop) noexcept;

/// The categories of a log by position, most time first.
PERFMAP_API std::vector<std::uint32_t> ranked_categories(const LoopProfile& profile);

/// A line of a loop's operations, without colours and thread number: "+384: guard_value(i5, 4,
/// descr=<Guard0x7f…>) [p0, …]". A view into the log.
struct ListedOperation {
  std::string_view text = {};
  std::uint32_t guard = CompiledLoop::kNone;  ///< in CompiledLoop::guards
  std::uint32_t label = CompiledLoop::kNone;  ///< in CompiledLoop::labels
};

/// The operations of one bytecode. Those before the first bytecode in the log have an empty place.
/// A bytecode may have no operations, if its results were known when the loop was compiled.
struct ListedPlace {
  PypyPlace place = {};
  bool begins_line = false;  ///< the place before is in another line, or there is none
  std::vector<ListedOperation> operations = {};
};

/// The operations of a loop in their order, from its jit-log-opt section. `log` is the whole log,
/// as it was when the loop was read; if it is shorter, there are fewer operations. Skips lines of
/// other sections and threads inside. O(bytes of the section).
PERFMAP_API std::vector<ListedPlace> list_operations(const CompiledLoop& loop,
                                                     std::string_view log);
/// The number of times that an operation of that loop was passed, if it is a label, or that the
/// bridge out of it was entered; nothing if that is not in the log.
PERFMAP_API std::optional<std::uint64_t> times_passed(const LoopProfile& profile,
                                                      std::uint32_t loop,
                                                      const ListedOperation& operation);

struct LoopJsonOptions {
  LoopKey by = LoopKey::loop;      ///< for function or file, "by" has their sums
  std::uint64_t max = UINT64_MAX;  ///< maximum number of rows; "left_out" has the sum of the others
  std::optional<SampledLoops> samples = {};
};
/// A log's times as JSON: perfmap.pypylog/1, docs/schema/perfmap.pypylog-1.json. Ticks of loops are
/// null if there are no events.
PERFMAP_API void write_loops_json(const LoopProfile& profile, const LoopJsonOptions& options,
                                  OutputFile& out);

struct LoopPageOptions {
  std::string title = {};
  std::string exporter = {};  ///< "perfmap 1.2.3"
  std::optional<SampledLoops> samples = {};
};
/// A log's loops as one self-contained page: a table of them, the categories, and for each loop its
/// operations by the lines of the program, with counts and links from guards to their bridges.
/// `log` is the whole log; see list_operations().
///
/// The page has no script. Names are text in it, with any contents, as append_visible() shows them.
PERFMAP_API void write_loop_page(const LoopProfile& profile, const LoopPageOptions& options,
                                 std::string_view log, OutputFile& out);

/// Facts for a dump that are not in a log of PyPy.
struct LoopDumpOptions {
  std::uint32_t pid = 0;
  /// Converts the log's ticks to times, if they are the processor's time stamp counter. Empty: all
  /// times are 0, and the order of the records shows which code is later.
  std::optional<TimeConversion> conversion = {};
  TickBase base = TickBase::hex;  ///< the base of the ticks; automatic means hex
  bool bare = false;              ///< LOADs only, without code: enough for names
  std::uint64_t max_bytes = JitdumpBytes::kMaxBytes;
};

/// The machine code of a log's loops and bridges as a jitdump: a LOAD for each one with addresses
/// in the log, in the order of the log, with the log's name. The code_index is the position in
/// loops.all() plus 1.
///
/// The code comes from the log's jit-backend-dump sections, in its last state, or in its state when
/// other code replaced it: guards that got a bridge jump there. `loops` must have kept it, and
/// `log` must be the text from which they were made. Missing bytes are zeros; see JitdumpBytes.
///
/// A LOAD has a DEBUG_INFO before it, with the lines of the program, if the operations have offsets
/// and debug merge points. Code before those, and the code for failing guards after all operations,
/// belongs to the first line of the function.
///
/// Fails with too_large like dump_of_map(). O(n log n + bytes of the log that belong to loops).
PERFMAP_API Result<JitdumpBytes> dump_of_loops(const CompiledLoops& loops, std::string_view log,
                                               const LoopDumpOptions& options);

/// The same as a perf map: a line for each part of memory that belongs to a loop or bridge at the
/// end, by address, without overlaps. Fails like dump_of_loops(), but only because of names. O(n
/// log n).
PERFMAP_API Result<MapText> map_of_loops(const CompiledLoops& loops);

}  // namespace perfmap
