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
#include <vector>

#include "perfmap/output_file.hpp"
#include "perfmap/profile/process_tracker.hpp"
#include "perfmap/profile/unwinder.hpp"
#include "perfmap/resolver.hpp"
#include "perfmap/types.hpp"

namespace perfmap {

/// The kind of a frame's code.
enum class FrameKind : std::uint8_t {
  unknown,  ///< nothing is mapped there, or a file that cannot be read
  native,   ///< code of an ELF file
  inlined,  ///< a source function that was inlined into the next frame
  jit,      ///< made by a runtime; also unnamed code in memory that only runtimes have
  kernel,
};
/// "unknown", "native", "inlined", "jit", "kernel".
PERFMAP_API std::string_view to_string(FrameKind kind) noexcept;

/// A function, without an address in it: a box of a flame graph. Equal functions are stored once,
/// with one number. Views live as long as the FrameTable.
struct FrameFunction {
  std::string_view name = {};  ///< empty: unknown
  /// The linker's name; for JIT code the runtime's.
  std::string_view system_name = {};
  /// Path of the ELF file, map or dump; "[kernel.kallsyms]", "[vdso]", "//anon".
  std::string_view module = {};
  std::string_view file = {};  ///< of the source
  std::string_view tier = {};  ///< of JIT code; see DecodedName::tier
  FrameKind kind = FrameKind::unknown;

  friend bool operator==(const FrameFunction&, const FrameFunction&) = default;
};

/// A place in a function: what is known about an address. Several frames of one address, the
/// innermost first, are inlined into each other. Offset and addresses are those of the frame's ip,
/// although the names of a caller are those of ip - 1.
struct FramePlace {
  std::uint32_t function = 0;  ///< for FrameTable::function()
  std::uint32_t mapping = 0;   ///< for FrameTable::mapping(); 0: none
  std::uint32_t line = 0;      ///< 0: unknown
  std::uint32_t column = 0;
  /// If not 0: the line in another, unknown file, whose function was inlined. `line` is then 0.
  std::uint32_t inlined_line = 0;
  std::uint64_t offset = 0;  ///< from the beginning of the function's code
  /// The address as perf script prints it: for a mapped file the offset in it, otherwise unchanged.
  Address map_address = 0;
  /// In the ELF file, before relocation; otherwise unchanged.
  Address vaddr = 0;
  /// With StackOptions::versions, for JIT code: where its module, a map or dump, names it. The
  /// offset of the map's line or of the dump's LOAD record. 0: not asked for, or no such code.
  std::uint64_t record = 0;
  Doubts doubts = {};  ///< of the name

  friend bool operator==(const FramePlace&, const FramePlace&) = default;
};

/// A mapping of a process's memory, as profiles list it.
struct FrameMapping {
  AddressRange range = {};
  std::uint64_t offset = 0;             ///< in the file
  std::string_view path = {};           ///< as FrameFunction::module
  std::string_view build_id = {};       ///< raw bytes
  FrameKind kind = FrameKind::unknown;  ///< native, jit, kernel or unknown

  friend bool operator==(const FrameMapping&, const FrameMapping&) = default;
};

/// An interning table of functions, places and mappings. Numbers count from 1; number 0 is an empty
/// object. Grows, and never removes anything. One thread at a time; existing objects never change.
class PERFMAP_API FrameTable {
 public:
  FrameTable();
  FrameTable(FrameTable&&) noexcept;
  FrameTable& operator=(FrameTable&&) noexcept;
  ~FrameTable();

  /// Returns the number of the equal object, which is added if there is none. Copies strings. O(1)
  /// on average.
  std::uint32_t add(const FrameFunction& function);
  std::uint32_t add(const FrameMapping& mapping);
  std::uint32_t add(const FramePlace& place);

  const FrameFunction& function(std::uint32_t number) const noexcept;
  const FrameMapping& mapping(std::uint32_t number) const noexcept;
  const FramePlace& place(std::uint32_t number) const noexcept;
  const FrameFunction& function_of(std::uint32_t place_number) const noexcept {
    return function(place(place_number).function);
  }

  std::size_t functions() const noexcept;  ///< one more than the highest number
  std::size_t mappings() const noexcept;
  std::size_t places() const noexcept;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// A frame of a stack.
struct StackFrame {
  Address ip = 0;           ///< as sampled: a caller's is its return address
  std::uint32_t place = 0;  ///< for FrameTable::place(); never 0
  FrameSource source = FrameSource::initial;
  bool is_return = false;  ///< the names are those of ip - 1
};

/// The reasons to doubt a frame: its name, and how it was found.
PERFMAP_API Doubts doubts_of(const StackFrame& frame, const FramePlace& place) noexcept;

/// A property of the recording that a sample is from, such as host=web-1. Raw bytes.
struct StackLabel {
  std::string_view key = {};
  std::string_view value = {};

  friend bool operator==(const StackLabel&, const StackLabel&) = default;
};

/// A sample and its stack, with names. Borrowed from its maker, until the next sample.
struct StackSample {
  std::uint64_t time = 0;  ///< nanoseconds of the recording's clock
  pid_t pid = 0;
  pid_t tid = 0;
  std::uint32_t cpu = UINT32_MAX;  ///< UINT32_MAX: not recorded
  std::uint64_t period = 1;
  std::uint32_t event = 0;             ///< position in StackProfile::events
  std::string_view comm = {};          ///< the thread's name at that time
  std::string_view process_comm = {};  ///< that of its process
  /// The first executable mapping of the process's main binary, for FrameTable::mapping(), even if
  /// no frame is in it; 0: unknown.
  std::uint32_t program = 0;
  StackEnd end = StackEnd::no_info;
  bool is_full_copy = false;  ///< the stack was larger than its copy
  bool was_stitched = false;
  /// The leaf first. Inlined frames come before the frame that contains them, with its ip.
  std::span<const StackFrame> frames = {};
  /// How many samples it stands for: `period` is their sum. Only of MergedStacks it is not 1.
  std::uint64_t count = 1;
  std::span<const StackLabel> labels = {};  ///< of MergedStacks
};

/// What is known about a profile before its first sample.
struct StackProfile {
  struct Event {
    std::string name = {};     ///< "cpu-clock"
    bool is_time = false;      ///< a sample's period is nanoseconds
    std::uint64_t period = 0;  ///< or, with `is_frequency`, samples per second; 0: unknown
    bool is_frequency = false;
    bool is_sampled = true;  ///< false: it only records mappings, and has no samples
    /// A sample counts as often as its period says, in a unit of its own, such as ticks of a log.
    /// For folded, speedscope and html, which then shows no times.
    bool is_weighted = false;
    std::string unit = {};  ///< of the weights, such as "bytes"; may be empty
    /// Samples have times. False for recordings without PERF_SAMPLE_TIME, whose samples have 0 or
    /// the time of another record; html then shows no times.
    bool has_times = true;
  };
  std::vector<Event> events = {};
  std::string title = {};    ///< the recording's file name
  std::string command = {};  ///< the recorded command; may be empty
  std::string hostname = {}, arch = {}, os_release = {};
  std::uint64_t wall_ns =
      0;  ///< CLOCK_REALTIME nanoseconds at clock_ns of the samples' clock; 0: unknown
  std::uint64_t clock_ns = 0;
  std::string exporter = {};  ///< "perfmap 1.2.3"
  /// For html, pprof and otlp, if samples have no times; 0: unknown.
  std::uint64_t duration_ns = 0;
  bool is_merged = false;  ///< the samples are those of MergedStacks
};

enum class StackFormat : std::uint8_t {
  folded,
  perf_script,
  speedscope,
  firefox,
  pprof,
  html,
  jsonl,
  chrome,
  otlp,
  otlp_json
};
/// "folded", "perf-script", "speedscope", "firefox", "pprof", "html", "jsonl", "chrome", "otlp",
/// "otlp-json".
PERFMAP_API std::string_view to_string(StackFormat format) noexcept;
PERFMAP_API std::optional<StackFormat> stack_format(std::string_view name) noexcept;
/// All names, in that order.
PERFMAP_API std::vector<std::string> stack_format_names();

/// Writes stacks in one format. Samples come in the order of their times. One thread at a time.
///
///   folded       "comm;root;…;leaf N", sorted by bytes. N is the number of samples, as in the
///                output of stackcollapse-perf.pl and inferno, or the sum of their weights. A ';'
///                in a name becomes ':'.
///   perf-script  the output of perf 6 for recordings with stacks, with the recorded CPU, if any:
///                `perf script --ns -F comm,pid,tid,time,period,event,ip,sym,symoff,dso`. A
///                doubtful frame is followed by a tab and "(?)", which readers of this text skip
///   speedscope   a sampled profile for each thread and event; weights are periods if those are
///                times or weights, otherwise 1. If they are times, samples without frames fill
///                the time in which a thread had no samples, and all threads begin together
///   firefox      version 66 of profiler.firefox.com's processed profile; a thread for each thread
///                and event
///   pprof        gzip; equal samples of a thread are merged. The first value is the number of
///                samples, the others are sums of periods by event. The first mapping is the main
///                binary of the first process. A sample with doubtful frames has the label "doubts"
///   html         one self-contained page: a flame graph
///   jsonl        docs/schema/perfmap.stack-1.json; of merged stacks perfmap.stack-count-1.json
///   chrome       Trace Event JSON for Perfetto and chrome://tracing: a slice for each function
///   call
///                that successive samples of a thread show, at its time of the recording's clock. A
///                sample of an event that is not a time is an instant
///   otlp         OpenTelemetry's ProfilesData, v1development of v1.11.0, as protobuf. Each process
///                is a resource, and each event that it has samples of a profile. Equal stacks of a
///                thread are one sample with the time of each. If all samples of an event have the
///                same period, each counts 1; otherwise their values are the periods. If samples
///                have no wall-clock times, their counts or periods are summed
///   otlp-json    the same as one line of JSON
///
/// A frame without a name is "[module]" with its file's name, or "[unknown]". Names are bytes: in
/// text formats, control bytes and invalid UTF-8 become \xNN; in JSON, invalid UTF-8 becomes
/// U+FFFD.
///
/// Memory: folded, pprof and html hold each distinct stack once, html also up to 40 MiB of counts
/// by time (more only for more than half a million distinct stacks), speedscope four to twelve
/// bytes per sample, firefox sixteen, otlp at most 28 and the samples of a process as they are
/// written, perf-script the text of each distinct place, jsonl nothing,
/// chrome the open slices of each thread. The output depends on the
/// input only: it is the same in every run.
///
/// Merged stacks have no times: see supports_merged().
class PERFMAP_API StackWriter {
 public:
  /// Whether a format has a place for the counts of MergedStacks: folded, pprof, html, jsonl, otlp
  /// and otlp-json. The others keep the order of samples.
  static bool supports_merged(StackFormat format) noexcept;

  struct Options {
    /// Ignores tiers: one function has one frame for all of its tiers; see without_tier().
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
  /// Amortised O(frames), in addition to the output. Places must be those of the table.
  virtual void add(const StackSample& sample) = 0;
  /// Writes the rest; the caller flushes or commits the output. Call it once, at the end.
  virtual Result<void> finish() = 0;

 protected:
  StackWriter() = default;
};

/// How to name the JIT code of a pprof profile.
struct PprofNaming {
  /// Returns the map and the dumps of a process; called once for each. `pid` is 0 for samples
  /// without a label "pid". nullptr: none.
  std::function<std::shared_ptr<JitSources>(pid_t pid)> find = {};
  bool demangle = true;  ///< see demangle_code(); a function's system_name stays mangled
  /// Limit for an expanded profile: so many times its compressed size, but at least 64 MiB, and
  /// never more than `max_bytes`. The objects that are made of the profile in memory have the same
  /// limit, but those of a file larger than `max_bytes` / 8 may need 8 times its size.
  std::uint64_t max_times = 64;
  std::uint64_t max_bytes = std::uint64_t{1} << 30;
};

/// Statistics of the locations that are in samples.
struct PprofNamed {
  std::uint64_t locations = 0;  ///< all of them
  std::uint64_t jit = 0;        ///< those without a name, in memory that only runtimes have
  std::uint64_t named = 0;      ///< of these, those that were named
  std::uint64_t ambiguous = 0;  ///< split into several, because processes have different code there
  /// Of `jit`, those of samples without a pid, if `find` has nothing for pid 0.
  std::uint64_t without_process = 0;
};

/// Whether the bytes may be a pprof profile: gzip's magic, or a protobuf message with the fields of
/// a profile, and a valid first string in its string table. O(fields) of the outermost message.
PERFMAP_API bool may_be_pprof(std::string_view bytes) noexcept;

/// Whether the bytes, of which the last message may be cut off, may be the beginning of a profile
/// that is not compressed. O(fields) of the outermost message.
PERFMAP_API bool may_begin_pprof(std::string_view bytes) noexcept;

/// Writes the profile to `out`, compressed if it was. Locations without a function get names from
/// the process's map and dumps, as of their end. Such a location is in no mapping, in a mapping
/// without a file (anonymous memory, a memfd, a perf map), or in a file below /dev/shm. An address
/// that only occurs as a caller may be a return address: if it is the first byte of an entry, or
/// has no entry, the look-up uses the byte before.
///
/// All other fields keep their contents and places, including unknown ones; functions and strings
/// are added after them. A location for which two processes have different names is split: one for
/// each name.
///
/// Fails with bad_format or too_large. O(size) time and memory. Source: github.com/google/pprof,
/// proto/profile.proto.
PERFMAP_API Result<PprofNamed> name_pprof(std::string_view bytes, const PprofNaming& naming,
                                          OutputFile& out);

}  // namespace perfmap
