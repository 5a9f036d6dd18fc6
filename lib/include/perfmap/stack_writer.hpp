#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "perfmap/export.hpp"
#include "perfmap/output_file.hpp"
#include "perfmap/result.hpp"
#include "perfmap/stack_sample.hpp"

namespace perfmap {

/// What a profile is about, as far as it is known before its first sample.
struct StackProfile {
  struct Event {
    std::string name = {};     ///< "cpu-clock"
    bool is_time = false;      ///< a sample's period is nanoseconds
    std::uint64_t period = 0;  ///< or, with `is_frequency`, samples a second; 0: not known
    bool is_frequency = false;
    bool is_sampled = true;  ///< false: it only brings what was mapped, and never samples
    /// A sample stands for as many as its period says, in a unit of its own, such as ticks of a
    /// log. For folded and speedscope.
    bool is_weighted = false;
  };
  std::vector<Event> events = {};
  std::string title = {};    ///< the recording's file name
  std::string command = {};  ///< that was recorded; may be empty
  std::string hostname = {}, arch = {}, os_release = {};
  std::uint64_t wall_ns =
      0;  ///< CLOCK_REALTIME nanoseconds at clock_ns of the samples' clock; 0: not known
  std::uint64_t clock_ns = 0;
  std::string exporter = {};  ///< "perfmap 1.2.3"
};

enum class StackFormat : std::uint8_t {
  folded,
  perf_script,
  speedscope,
  firefox,
  pprof,
  html,
  jsonl
};
/// "folded", "perf-script", "speedscope", "firefox", "pprof", "html", "jsonl".
PERFMAP_API std::string_view to_string(StackFormat format) noexcept;
PERFMAP_API std::optional<StackFormat> stack_format(std::string_view name) noexcept;

/// Writes stacks in one format. Samples come in the order of their times. One thread at a time.
///
///   folded       "comm;root;…;leaf N", sorted by bytes. N is the number of samples, as in what
///                stackcollapse-perf.pl and inferno make of perf script, or the sum of their
///                weights. A ';' in a name becomes ':'.
///   perf-script  as `perf script --ns -F comm,pid,tid,time,period,event,ip,sym,symoff,dso` of perf
///                6 prints recordings with stacks, with the CPU where that was recorded. After a
///                doubtful frame there are a tab and "(?)", which readers of this text skip
///   speedscope   a sampled profile for each thread and event; weights are periods where those are
///                times or weights, otherwise 1
///   firefox      version 66 of profiler.firefox.com's processed profile; a thread for each thread
///                and event
///   pprof        gzip; samples of a thread that are equal are one. The first value is the number
///                of samples, the others are sums of periods by event. The first mapping is the
///                main binary of the first process. A sample with doubtful frames has the label
///                "doubts"
///   html         one page without any other file: a flame graph
///   jsonl        docs/schema/perfmap.stack-1.json
///
/// A frame without a name is "[module]" by its file's name, or "[unknown]". Names are bytes: where
/// the format is text, control bytes and what is not UTF-8 become \xNN; in JSON the latter is
/// U+FFFD.
///
/// folded, pprof and html hold each distinct stack once, speedscope four to twelve bytes a sample,
/// firefox sixteen, perf-script the text of each distinct place, jsonl nothing. What is written
/// depends on nothing but what came in: it is the same at every run.
class PERFMAP_API StackWriter {
 public:
  struct Options {
    /// Functions alone make up a stack: no frame of a tier beside that of another; see
    /// without_tier().
    bool merge_tiers = false;
    /// folded: kernel, inlined and JIT frames have the marks _[k], _[i], _[j].
    bool marks = true;
    bool with_pid = false;  ///< folded: the first frame is "comm-PID/TID"
    /// folded and perf-script show file:line, and speedscope's frames have lines.
    bool lines = false;
    /// perf-script: the mark of a doubtful frame has the kinds of doubt, "(?scanned-frame)".
    bool doubt_kinds = false;
  };

  /// Borrows the output and the table.
  static std::unique_ptr<StackWriter> make(StackFormat format, OutputFile& out,
                                           const FrameTable& table, StackProfile profile,
                                           Options options);
  virtual ~StackWriter();
  /// Amortised O(frames), besides what is written. Places have to be those of the table.
  virtual void add(const StackSample& sample) = 0;
  /// Writes what is left; the caller flushes or commits the output. Once, at the end.
  virtual Result<void> finish() = 0;

 protected:
  StackWriter() = default;
};

}  // namespace perfmap
