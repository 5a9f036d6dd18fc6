#include <perfmap/loop_json.hpp>
#include <perfmap/loop_page.hpp>
#include <perfmap/loop_samples.hpp>

#include "portable.hpp"
#include "pypylog_convert.hpp"
#include "pypylog_output.hpp"
#include "recording_input.hpp"

namespace perfmap::app {
namespace {

/// Bytes of the log that are wanted again, after the times.
bool wants_bytes(const PypylogOptions& options) {
  return !options.annotate.empty() || (options.format != "text" && options.format != "json");
}

Result<void> check_options(const PypylogOptions& options) {
  const auto refused = [](std::string why) {
    return Failure(Error{Errc::invalid_argument, std::move(why), 0, {}});
  };
  if (!options.annotate.empty() && options.format != "text") {
    return refused("--annotate prints text, not " + options.format + "; html has all loops");
  }
  if (options.log == "-" && options.recording == "-") {
    return refused("standard input is either the log or the recording");
  }
  if (!options.to.empty()) {
    const bool is_plain = options.annotate.empty() && options.format == "text" &&
                          options.by == LoopKey::loop && !options.from && !options.until;
    if (!is_plain) return refused("--to " + options.to + " writes all loops, and nothing else");
  }
  const bool is_table = options.format == "text" || options.format == "json";
  if (options.by != LoopKey::loop && !is_table) {
    return refused("--by is for text and json, not " + options.format);
  }
  return {};
}

/// What the options ask for, into `out`; false where that has no answer, which is told.
Result<void> write_answer(const PypylogOptions& options, LogSource& source,
                          const LoopProfile& profile, const std::optional<SampledLoops>& samples,
                          OutputFile& out, const Console& console) {
  if (!options.annotate.empty()) {
    if (write_annotated(options.annotate, source, profile, out)) return {};
    return Failure({Errc::not_found, names_instead(options.annotate, profile), 0, {}});
  }
  if (options.format == "json") {
    write_loops_json(profile, {options.by, options.top, samples}, out);
    return {};
  }
  if (options.format == "text") {
    write_loop_tables(options, profile, samples, out);
    return {};
  }
  if (options.format == "html") {
    const std::string exporter = std::string("perfmap ") + PERFMAP_VERSION;
    write_loop_page(profile, {source.name(), exporter, samples}, source.text(), out);
    return {};
  }
  return write_loop_stacks(options, source, profile, samples, out, console);
}

/// Processes that one of the others forked may run other code at the same addresses.
void note_other_processes(const PypylogOptions& options, const LoopSamples& samples,
                          const Console& console) {
  if (options.pid != 0) return;
  std::string others;
  for (const LoopSamples::Process& process : samples.processes) {
    if (process.pid == samples.pid) continue;
    others += (others.empty() ? "" : ", ") + std::to_string(process.pid);
  }
  if (others.empty()) return;
  console.warn(options.recording + ": the log is taken for that of process " +
               std::to_string(samples.pid) + "; others have samples there, too: " + others +
               " (--pid says whose log it is)");
}

/// Which samples of the recording fell into which loops, and what to say of that.
Result<std::optional<LoopSamples>> count_samples(const PypylogOptions& options,
                                                 const LoopProfile& profile,
                                                 const Console& console) {
  if (options.recording.empty()) return std::optional<LoopSamples>();
  const Step step(console, "counting samples of " + options.recording);
  const Result<Recording> recording = open_recording(options.recording);
  if (!recording) return Failure(recording.error());
  Diagnostics problems(1);
  Result<LoopSamples> samples = samples_of(*recording, profile, options.log, options.pid, problems);
  if (!samples) return Failure(std::move(samples.error()));
  if (samples->pid == 0) {
    console.warn(options.recording + ": no sample " +
                 (options.pid != 0 ? "of process " + std::to_string(options.pid) + " " : "") +
                 "is in the code of a loop of that log");
  } else {
    console.note(options.recording + ": " + std::to_string(samples->in_loops) + " of " +
                 std::to_string(samples->total) + " samples of process " +
                 std::to_string(samples->pid) + " are in loops" +
                 (samples->by_time ? "" : ", by the code that was there in the end"));
  }
  note_other_processes(options, *samples, console);
  if (problems.total() != 0) {
    console.warn(options.recording + ": " + std::to_string(problems.total()) + " damages");
  }
  return std::optional(*std::move(samples));
}

ExitCode print_profile(const PypylogOptions& options, const Console& console) {
  Result<LogSource> source = LogSource::open(options.log, wants_bytes(options));
  if (!source) return console.fail(source.error());
  const Result<void> other = source->check_output(options.output);
  if (!other) return console.fail(other.error());
  LoopProfile profile(profile_options(options));
  const Result<void> read = source->read(profile, console);
  if (!read) return console.fail(read.error());
  const Result<void> ticks = check_ticks(options, profile);
  if (!ticks) return console.fail(ticks.error());
  const auto counted = count_samples(options, profile, console);
  if (!counted) return console.fail(counted.error());
  std::optional<SampledLoops> samples;
  if (*counted) samples = {(*counted)->by_loop, (*counted)->total};
  Result<OutputFile> out = open_output(options.output);
  if (!out) return console.fail(out.error());
  out->protect_terminal();
  const Result<void> answered = write_answer(options, *source, profile, samples, *out, console);
  const Result<void> written = answered ? out->commit() : answered;
  if (!written) return console.fail(written.error());
  note_log(*source, profile, samples.has_value(), console);
  return ExitCode::ok;
}

}  // namespace

ExitCode run_pypylog(const PypylogOptions& options, const Console& console) {
  const Result<void> fits = check_options(options);
  if (!fits) return console.fail(fits.error());
  const auto refused = refuse_snapshot(options.log, "which holds no PYPYLOG: name the log itself");
  if (refused) return console.fail(*refused);
  if (options.to.empty()) return print_profile(options, console);
  return convert_loops({options.log, options.to, options.output, options.time_conversion,
                        options.recording, options.ticks, options.pid},
                       console);
}

}  // namespace perfmap::app
