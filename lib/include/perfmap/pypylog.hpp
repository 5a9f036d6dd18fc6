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

/// Logs of PyPy (PYPYLOG=…): which loops it compiled, where the time went, and their machine code.
/// docs/format-pypylog.md says what such a log holds.

namespace perfmap {

/// In which base a log's times are to be read.
enum class TickBase : std::uint8_t { automatic, hex, dec };

/// The digits of a time in a log, read in both bases: PyPy writes hexadecimal ones, its
/// documentation shows decimal ones, and digits alone do not tell. Where a number does not fit, the
/// reading is UINT64_MAX.
struct PypylogTick {
  std::uint64_t hex = 0;
  std::uint64_t dec = 0;  ///< of no meaning where the digits hold a letter

  /// The reading in that base; automatic is hex.
  constexpr std::uint64_t in(TickBase base) const noexcept {
    return base == TickBase::dec ? dec : hex;
  }
  friend bool operator==(const PypylogTick&, const PypylogTick&) = default;
};

/// "auto", "hex", "dec".
PERFMAP_API std::string_view to_string(TickBase base) noexcept;
PERFMAP_API std::optional<TickBase> parse_tick_base(std::string_view name) noexcept;
/// A number without prefix, in both bases; nothing where that is none. `has_letter` says whether it
/// holds one of a-f.
PERFMAP_API std::optional<PypylogTick> parse_tick(std::string_view digits,
                                                  bool& has_letter) noexcept;

/// Where PyPy says that it is in a program: "f;/tmp/t.py:8-10~#12 FOR_ITER", or, before PyPy 7.3,
/// "<code object f. file '/tmp/t.py'. line 8> #12 FOR_ITER". Views into that text.
struct PypyPlace {
  std::string_view function = {};  ///< all of the text where it is in no known form
  std::string_view file = {};
  std::uint32_t first_line = 0;  ///< where the function begins; 0: not said
  std::uint32_t line = 0;        ///< of the bytecode; where that is not said, first_line
  std::string_view opcode = {};  ///< "FOR_ITER"
};
/// O(text).
PERFMAP_API PypyPlace parse_pypy_place(std::string_view text) noexcept;

/// Some bytes of a log.
struct LogSpan {
  std::uint64_t offset = 0;
  std::uint64_t size = 0;
  bool empty() const noexcept { return size == 0; }
};

/// A loop or bridge, as far as its log tells of it.
struct CompiledLoop {
  enum class Kind : std::uint8_t { loop, bridge };
  static constexpr std::uint32_t kNone = UINT32_MAX;
  static constexpr std::uint32_t kNoThread = UINT32_MAX;

  struct Guard {
    Address address = 0;           ///< of its descriptor, by which everything names it
    std::string operation = {};    ///< "guard_true"
    std::uint32_t bridge = kNone;  ///< which of the loops() goes out of it
  };
  struct Label {
    std::uint64_t token = 0;                  ///< TargetToken(…)
    std::optional<std::uint64_t> count = {};  ///< times that it was passed
  };

  Kind kind = Kind::loop;
  std::uint64_t id = 0;  ///< the loop's number; the address of the bridge's guard; else 0
  /// As the log has it: "Loop 1 (f;/tmp/t.py:8-10~#12 FOR_ITER)", "bridge out of Guard 0x7f…".
  std::string name = {};
  std::string type = {};  ///< "loop", "entry bridge"; empty where the log has no operations of it
  std::string function = {}, file = {};  ///< of its first debug merge point, else of its name
  std::uint32_t first_line = 0, line = 0;
  /// All of its machine code: from where it is entered up to its end, failures' code included.
  /// Size 0: the log does not say.
  AddressRange code = {};
  /// Where the code of its operations ends and that of their failures begins. 0: not said.
  Address operations_end = 0;
  std::uint64_t placed = 0;   ///< offset in the log of the line that tells its addresses
  PypylogTick compiled = {};  ///< when the section began that tells its addresses, or operations
  /// What its jit-log-opt section holds, without the section lines.
  LogSpan operations = {};
  /// Of the "N# " before its lines, as PyPy with transactional memory writes it.
  std::uint32_t thread = kNoThread;
  std::vector<Guard> guards = {};
  std::vector<Label> labels = {};
  std::uint64_t jumps_to = 0;                 ///< the token that its last operation jumps to
  std::optional<std::uint64_t> entries = {};  ///< how often it was entered, by jit-backend-counts
  std::uint32_t owner = kNone;                ///< of a bridge: which loop or bridge has its guard
  std::uint32_t loop = kNone;  ///< of a bridge: the loop that it belongs to, over other bridges
  bool is_inner = false;       ///< a bridge that jumps back to its own loop

  /// Times that its labels were passed, by jit-backend-counts; without labels, its entries.
  PERFMAP_API std::optional<std::uint64_t> iterations() const noexcept;
};

/// What a jit-backend-dump section holds: bytes that were written to memory.
struct CodeBytes {
  Address address = 0;
  LogSpan hex = {};  ///< two digits a byte
};

/// All loops and bridges of a log, in the order in which it first mentions them.
class CompiledLoops {
 public:
  std::span<const CompiledLoop> all() const noexcept { return all_; }
  /// Only where they are kept.
  std::span<const CodeBytes> code_bytes() const noexcept { return code_; }
  /// The one that a user names: as a log has it ("Loop 1", "Loop 1 (f;…)", "bridge out of Guard
  /// 0x7f…"), or only by its number, address or function. Of several that are called alike the
  /// latest, of a function its first; kNone where there is none. O(loops).
  PERFMAP_API std::uint32_t find(std::string_view name) const;

 private:
  friend class LoopSections;
  std::vector<CompiledLoop> all_;
  std::vector<CodeBytes> code_;
};

/// A stretch of a thread's time in which nothing changed. Borrowed.
struct LoopSpan {
  std::uint32_t thread = CompiledLoop::kNoThread;
  std::uint64_t begin = 0;
  std::uint64_t ticks = 0;
  std::uint32_t loop = CompiledLoop::kNone;        ///< kNone: outside of any
  std::span<const std::uint32_t> categories = {};  ///< open sections, outermost first
};

/// The time that a log's sections and loops took, in ticks of the log.
///
/// A loop's time begins with the section line that opens a jit-profile-enter section naming it, and
/// ends where the next one, or a jit-profile-exit section, is opened: entering a loop leaves the
/// one before. An inner bridge is entered without leaving its loop, unless they are counted. Other
/// sections within, such as those of the garbage collector, are the loop's time.
///
/// A category's time is what its sections took without those inside them. Each thread is for
/// itself. A time that runs backwards counts as the latest before it. So of each thread, and of all
/// together, to the tick: loops + outside = categories + rest = last - first.
///
/// A section that does not end, ends with the one around it, or with the log. One that ends without
/// having begun is passed over: what the log does not say is not guessed. Of two loops with the
/// same number, as the logs of processes that share one have them, and of two bridges out of guards
/// with the same address, the later is meant by what comes later.
///
/// Memory is proportional to the depth of sections, of which 4096 are followed, and to the numbers
/// of loops, guards, labels, categories and threads (65 536 each of the latter two; what is more
/// counts as rest). One thread at a time.
class PERFMAP_API LoopProfile {
 public:
  struct Options {
    TickBase base = TickBase::automatic;
    bool count_inner_bridges = false;
    std::optional<PypylogTick> from = {};  ///< time before counts nowhere
    std::optional<PypylogTick> to = {};
    bool keep_code_bytes = false;  ///< for loops().code_bytes()
    /// Called for each span that is not empty, of each thread in order. Needs a base: where that is
    /// automatic it is never called.
    std::function<void(const LoopSpan&)> visit = {};
  };

  /// Of one loop. Ticks have no meaning unless has_events().
  struct Times {
    std::uint64_t ticks = 0;
    std::uint64_t entered = 0;  ///< number of its jit-profile-enter events
  };
  struct Category {
    std::string name;
    std::uint64_t ticks = 0;     ///< without sections inside
    std::uint64_t sections = 0;  ///< that began
  };
  struct Thread {
    std::uint32_t number = CompiledLoop::kNoThread;
    std::uint64_t first = 0, last = 0;  ///< the latest, where times run backwards
    std::uint64_t outside = 0;          ///< of any loop
    std::uint64_t rest = 0;             ///< outside of any section
    std::uint64_t ticks() const noexcept { return last - first; }
  };

  explicit LoopProfile(Options options);
  LoopProfile(LoopProfile&&) noexcept;
  LoopProfile& operator=(LoopProfile&&) noexcept;
  ~LoopProfile();

  /// The log's next bytes, cut anywhere between lines. Only its last line may lack the newline:
  /// then it counts if it closes a section, and otherwise is not finished yet.
  void add(std::string_view lines);
  /// Whether a line so far opened or closed a section: what has none is no log.
  bool has_sections() const noexcept;
  /// At the end of the log, once. Everything below is for afterwards.
  void finish();

  /// Whether inner bridges have times of their own.
  bool counts_inner_bridges() const noexcept { return results().counts_inner_bridges; }
  /// The base that times were read in: hex or dec.
  TickBase base() const noexcept { return results().base; }
  /// Whether there is a jit-profile-enter or -exit section, by which loops have times.
  bool has_events() const noexcept { return results().has_events; }
  const CompiledLoops& loops() const noexcept { return results().loops; }
  /// As loops().all(), by the same numbers.
  std::span<const Times> times() const noexcept { return results().times; }
  /// In order of appearance, as threads().
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

/// Feeds a whole input, from the beginning to where it ends now. A regular file is read through its
/// descriptor, a window at a time.
PERFMAP_API void read_pypylog(const class Input& input, LoopProfile& profile);

/// What the rows of a table of loops are.
enum class LoopKey : std::uint8_t { loop, function, file };
/// "loop", "function", "file".
PERFMAP_API std::string_view to_string(LoopKey key) noexcept;
PERFMAP_API std::optional<LoopKey> parse_loop_key(std::string_view name) noexcept;

/// How many samples of a recording fell into the code of each loop, by its number in
/// CompiledLoops::all(), and of all samples. Borrowed.
struct SampledLoops {
  std::span<const std::uint64_t> by_loop = {};
  std::uint64_t total = 0;
};

/// A loop or bridge, or all those of a function or file. Nothing where the log does not say.
struct LoopRow {
  std::uint32_t loop = CompiledLoop::kNone;  ///< the only one, or the first of several
  std::uint64_t loops = 0;                   ///< how many they are
  /// Those of an inner bridge are its loop's, unless LoopProfile::counts_inner_bridges().
  std::optional<std::uint64_t> ticks = {};
  /// By events, or else by jit-backend-counts.
  std::optional<std::uint64_t> entered = {};
  std::optional<std::uint64_t> iterations = {};
  std::uint64_t samples = 0;
};

/// The row of one loop or bridge.
PERFMAP_API LoopRow loop_row(const LoopProfile& profile, std::uint32_t loop,
                             const std::optional<SampledLoops>& samples = {});

/// The loops of a log in the order in which one wants to see them: most time first; where the log
/// has no times, most samples; where nobody took samples, most iterations. Equals stay in the order
/// of the log. O(n log n) in the number of loops.
PERFMAP_API std::vector<LoopRow> loop_rows(const LoopProfile& profile, LoopKey key,
                                           const std::optional<SampledLoops>& samples = {});

/// The sum of some of these rows.
PERFMAP_API LoopRow sum_of_rows(std::span<const LoopRow> rows);

/// A guard out of which a bridge leads, and how often that was entered.
struct FailedGuard {
  std::uint32_t guard = 0;  ///< in CompiledLoop::guards
  std::optional<std::uint64_t> failures = {};
};
/// The guards of a loop that have bridges, most failures first. How often the others failed no log
/// tells: a failure is counted where it enters a bridge.
PERFMAP_API std::vector<FailedGuard> failed_guards(const LoopProfile& profile, std::uint32_t loop);
/// The first of them; nothing where no failure was counted.
PERFMAP_API std::optional<FailedGuard> worst_guard(const LoopProfile& profile, std::uint32_t loop);

/// "Loop 1" of "Loop 1 (f;/tmp/t.py:8-10~#12 FOR_ITER)": what is enough to name it, where the place
/// stands beside it. A view into the loop's name.
PERFMAP_API std::string_view short_name(const CompiledLoop& loop) noexcept;

/// The categories of a log by their numbers, most time first.
PERFMAP_API std::vector<std::uint32_t> ranked_categories(const LoopProfile& profile);

/// `part` / `whole` with that many decimals, cut off, as a whole number: scaled_ratio(2, 3, 2) is
/// 66. 0 where there is no whole; for what does not fit, the highest there is. At most 19 decimals.
PERFMAP_API std::uint64_t scaled_ratio(std::uint64_t part, std::uint64_t whole,
                                       unsigned decimals) noexcept;

/// A line of a loop's operations, without the colours and the thread's number that the log may have
/// before it: "+384: guard_value(i5, 4, descr=<Guard0x7f…>) [p0, …]". A view into the log.
struct ListedOperation {
  std::string_view text = {};
  std::uint32_t guard = CompiledLoop::kNone;  ///< in CompiledLoop::guards
  std::uint32_t label = CompiledLoop::kNone;  ///< in CompiledLoop::labels
};

/// Operations that were made for one bytecode; those before the first that the log names come with
/// a place that is empty. A bytecode may have none: everything it did was known when the loop was
/// made.
struct ListedPlace {
  PypyPlace place = {};
  bool begins_line = false;  ///< the place before is in another line of the program, or none
  std::vector<ListedOperation> operations = {};
};

/// The operations of a loop in their order, by its jit-log-opt section. `log` is the whole log, as
/// it was when the loop was read from it; where it is shorter, there are fewer. Lines of other
/// sections and threads within are passed by. O(bytes of the section).
PERFMAP_API std::vector<ListedPlace> list_operations(const CompiledLoop& loop,
                                                     std::string_view log);
/// How often an operation of that loop was passed, if it is a label, or the bridge out of it was
/// entered; nothing where the log does not say.
PERFMAP_API std::optional<std::uint64_t> times_passed(const LoopProfile& profile,
                                                      std::uint32_t loop,
                                                      const ListedOperation& operation);

struct LoopJsonOptions {
  LoopKey by = LoopKey::loop;      ///< with function or file there are sums under "by", too
  std::uint64_t max = UINT64_MAX;  ///< rows; "left_out" sums what is more
  std::optional<SampledLoops> samples = {};
};
/// A log's times as JSON: perfmap.pypylog/1, docs/schema/perfmap.pypylog-1.json. Ticks of loops are
/// null where no event tells them.
PERFMAP_API void write_loops_json(const LoopProfile& profile, const LoopJsonOptions& options,
                                  OutputFile& out);

struct LoopPageOptions {
  std::string title = {};
  std::string exporter = {};  ///< "perfmap 1.2.3"
  std::optional<SampledLoops> samples = {};
};
/// A log's loops as one page without any other file: a table of them, the categories, and of each
/// loop its operations by the lines of the program, with counts and links from guards to their
/// bridges. `log` is the whole log; see list_operations().
///
/// The page has no script. Names are text in it, whatever they hold, as append_visible() shows
/// them.
PERFMAP_API void write_loop_page(const LoopProfile& profile, const LoopPageOptions& options,
                                 std::string_view log, OutputFile& out);

/// What a log of PyPy does not say of its dump.
struct LoopDumpOptions {
  std::uint32_t pid = 0;
  /// Makes times of the log's ticks, where these are the processor's time stamp counter. Without it
  /// all times are 0, and later code is told by the order of the records.
  std::optional<TimeConversion> conversion = {};
  TickBase base = TickBase::hex;  ///< of the ticks; automatic is hex
  bool bare = false;              ///< LOADs alone, without code: who wants names needs no more
};

/// The machine code of a log's loops and bridges as a jitdump: a LOAD for each one whose addresses
/// the log tells, in the order in which it does, named as the log names them. The code_index is one
/// more than the position in loops.all().
///
/// Code is what the log's jit-backend-dump sections say, as it was in the end, or when other code
/// took its place: guards that got a bridge jump there. `loops` must have kept it, and `log` is the
/// text that they were made of. Where bytes are missing there are zeros; see JitdumpBytes.
///
/// Before a LOAD comes a DEBUG_INFO where the operations tell their offsets and have debug merge
/// points: the lines of the program. What comes before them, and the code of failing guards behind
/// all operations, is of the line where the function begins.
///
/// Fails with too_large as dump_of_map() does. O(n log n + bytes of the log that belong to loops).
PERFMAP_API Result<JitdumpBytes> dump_of_loops(const CompiledLoops& loops, std::string_view log,
                                               const LoopDumpOptions& options);

/// The same as a perf map: a line for each piece of memory that belonged to some loop or bridge in
/// the end, by address, without overlaps. Fails as dump_of_loops() does, which names alone
/// can make happen. O(n log n).
PERFMAP_API Result<MapText> map_of_loops(const CompiledLoops& loops);

}  // namespace perfmap
