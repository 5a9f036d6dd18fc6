// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <sys/types.h>
#include <vector>

#include "perfmap/output_file.hpp"
#include "perfmap/profile/stack_writer.hpp"
#include "perfmap/types.hpp"

namespace perfmap {

/// What a row of a report counts.
enum class ReportBy : std::uint8_t {
  function,  ///< see ReportRow
  module,    ///< ELF file, perf map, jitdump, kernel
  thread,
  process,
  tier,     ///< compiler tier of JIT code; other code by its kind
  line,     ///< source line of a function
  runtime,  ///< runtime that made the code; other code by its kind
  label,    ///< value of a label of merged stacks
};
/// "function", "module", "thread", "process", "tier", "line", "runtime", "label".
PERFMAP_API std::string_view to_string(ReportBy by) noexcept;
PERFMAP_API std::optional<ReportBy> report_by(std::string_view name) noexcept;
/// All names, in that order.
PERFMAP_API std::vector<std::string> report_by_names();

/// Samples, and the sum of their periods. Sums end at the maximum.
struct ReportCounts {
  std::uint64_t samples = 0;
  std::uint64_t period = 0;

  PERFMAP_API void add(const ReportCounts& other) noexcept;
  friend bool operator==(const ReportCounts&, const ReportCounts&) = default;
};

/// A row of a report. Views live as long as the report.
///
/// A function is identified by its name and its module. JIT code has no module in its identity,
/// because each process has a perf map of its own: a function of a script is one row for all
/// processes that ran it. Neither addresses nor, with `merge_tiers`, compiler tiers matter. An
/// inlined function is the same as its other code.
struct ReportRow {
  std::uint32_t number = 0;    ///< for ProfileReport::callers() and callees()
  std::string_view name = {};  ///< function, module, thread, value of the label, …; never empty
  /// Of a function: the linker's or the runtime's name of it, of one of its tiers; may be empty.
  std::string_view system_name = {};
  std::string_view module = {};  ///< path; empty: unknown, or several perf maps or dumps
  std::string_view file = {};    ///< of the source; empty: unknown
  /// 0: unknown. Of a function, the line with most samples of its own; of JIT code without lines,
  /// where its runtime's name says that it begins.
  std::uint32_t line = 0;
  bool is_line_of_samples = false;  ///< not that of a runtime's name
  FrameKind kind = FrameKind::unknown;
  std::vector<std::string_view> tiers = {};  ///< of JIT code, the one with most samples first
  pid_t pid = 0;                             ///< of a thread or process
  pid_t tid = 0;
  ReportCounts self = {};   ///< samples in the row's own code: it is the leaf
  ReportCounts total = {};  ///< samples with it anywhere in the stack; each counts once
};

/// A node of a tree of callers or callees. Node 0 is the function itself.
struct ReportTreeNode {
  std::uint32_t parent = 0;  ///< position in the list; lower than its own
  std::uint32_t depth = 0;   ///< 0: the function itself
  std::string_view name = {};
  std::string_view module = {};
  std::string_view file = {};  ///< of the source; empty: unknown
  std::uint32_t line = 0;      ///< 0: unknown; of a function, where its name says that it begins
  FrameKind kind = FrameKind::unknown;
  ReportCounts total = {};
  /// The part of `total` that goes on to no further node: the stack begins or ends here.
  ReportCounts self = {};
};

/// Counts the samples of a profile by function, or by another key; separately for each event.
///
/// A sample without frames counts for its event, its process and its thread, and for no function.
/// Memory is proportional to the distinct keys and, with `keeps_stacks`, to the distinct stacks of
/// keys. One thread at a time.
class PERFMAP_API ProfileReport {
 public:
  struct Options {
    ReportBy by = ReportBy::function;
    std::string label = {};     ///< the key of ReportBy::label
    bool merge_tiers = true;    ///< all tiers of a function are one row; see without_tier()
    bool keeps_stacks = false;  ///< for callers() and callees()
    bool inlines = true;        ///< false: leaves out frames of inlined functions
  };

  /// Borrows the table.
  ProfileReport(const FrameTable& table, StackProfile profile, const Options& options);
  ProfileReport(ProfileReport&&) noexcept;
  ProfileReport& operator=(ProfileReport&&) noexcept;
  ~ProfileReport();

  /// Adds a sample that stands for `count` samples with these frames, whose periods have the sum
  /// sample.period. If the event is weighted, the period counts as the samples. Places must be
  /// those of the table. Amortised O(frames).
  void add(const StackSample& sample, std::uint64_t count = 1);

  const Options& options() const noexcept;
  const StackProfile& profile() const noexcept;

  /// The samples of an event. An event without samples is not listed.
  struct Event {
    std::uint32_t number = 0;  ///< position in StackProfile::events
    std::string_view name = {};
    bool is_time = false;        ///< periods are nanoseconds
    std::string_view unit = {};  ///< of a weighted event
    ReportCounts total = {};
    std::uint64_t processes = 0;    ///< of merged stacks, the distinct names of processes
    std::string_view program = {};  ///< name of the processes with most samples; may be empty
    std::uint64_t duration_ns = 0;  ///< from the first to the last sample; 0: samples have no times
  };
  /// In the order of StackProfile::events.
  std::vector<Event> events() const;

  enum class Order : std::uint8_t { self, total };
  /// The rows of an event, the largest first; equal ones by name and module. O(n log n).
  std::vector<ReportRow> rows(std::uint32_t event, Order order = Order::self) const;

  /// The numbers of the rows that a user may mean: those with exactly this name, else the
  /// functions of scripts that have it, with any file and line, else those whose name contains it,
  /// else those of which it is the printed row, such as "name (file:1) [module]".
  /// The name may be as append_visible() prints it. O(rows).
  std::vector<std::uint32_t> find(std::string_view name) const;
  std::string_view name(std::uint32_t row) const noexcept;

  /// Who calls these functions, and what they call. A sample counts once, at the outermost call of
  /// any of them. Parents come before children, siblings by descending totals; empty if no sample
  /// of the event has them. O(frames of all distinct stacks).
  std::vector<ReportTreeNode> callers(std::uint32_t event,
                                      std::span<const std::uint32_t> rows) const;
  std::vector<ReportTreeNode> callees(std::uint32_t event,
                                      std::span<const std::uint32_t> rows) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// How to write a report.
struct ReportOutput {
  ProfileReport::Order order = ProfileReport::Order::self;
  std::size_t top = SIZE_MAX;  ///< rows of each event
  /// Functions whose callers and callees to print, by row; empty: none.
  std::vector<std::uint32_t> callers = {}, callees = {};
  bool color = false;     ///< text only
  std::size_t width = 0;  ///< of text: longer names continue in the next line; 0: unlimited
};

/// Tables for people. Bytes of names that a terminal may interpret become \xNN. A tree leaves out
/// nodes with less than half a percent of the function's samples, and those more than 32 levels
/// deep.
PERFMAP_API void write_report_text(const ProfileReport& report, const ReportOutput& output,
                                   OutputFile& out);
/// docs/schema/perfmap.report-1.json
PERFMAP_API void write_report_json(const ProfileReport& report, const ReportOutput& output,
                                   OutputFile& out);
/// RFC 4180, with a line of headings; without trees. Control bytes and invalid UTF-8 in names
/// become \xNN.
PERFMAP_API void write_report_csv(const ProfileReport& report, const ReportOutput& output,
                                  OutputFile& out);

}  // namespace perfmap
