#include "pypylog_convert.hpp"

#include <algorithm>
#include <perfmap/expanded_input.hpp>
#include <perfmap/loop_samples.hpp>
#include <unistd.h>

#include "convert_dump.hpp"
#include "log_source.hpp"
#include "portable.hpp"
#include "recording_input.hpp"

namespace perfmap::app {
namespace {

Result<Input> open_log(const std::string& path) {
  Result<Input> log = path == "-" ? Input::from_descriptor(STDIN_FILENO, "-") : Input::open(path);
  if (log) log = expanded(*std::move(log));
  if (!log || log->text().empty()) return log;
  const SourceKind kind = detect_kind(log->text());
  if (kind == SourceKind::pypylog) return log;
  return Failure(unsupported(log->name(), kind));
}

/// A log has addresses only if it was asked for them.
void note_without_addresses(const Input& log, const CompiledLoops& loops, const Console& console) {
  const auto all = loops.all();
  if (std::any_of(all.begin(), all.end(), [](auto& loop) { return loop.code.size != 0; })) return;
  console.note(log.name() + " tells no address of machine code: PYPYLOG=jit-backend:FILE does");
}

ExitCode commit(OutputFile& out, const Input& log, const Console& console) {
  if (!is_whole(console, log)) return ExitCode::failed;
  const Result<void> written = out.commit();
  return written ? ExitCode::ok : console.fail(written.error());
}

ExitCode write_map(const LoopCodeOptions& options, const Input& log, const LoopProfile& profile,
                   const Console& console) {
  const Result<MapText> map = map_of_loops(profile.loops());
  if (!map) return console.fail(map.error());
  Result<OutputFile> out = open_output(options.output);
  if (!out) return console.fail(out.error());
  out->write(map->text);
  const ExitCode code = commit(*out, log, console);
  if (code != ExitCode::ok) return code;
  if (map->changed_names != 0) {
    console.note("changed " + std::to_string(map->changed_names) +
                 (map->changed_names == 1 ? " name" : " names") + " that no perf map can hold");
  }
  note_without_addresses(log, profile.loops(), console);
  return code;
}

/// What the options say of the dump, and where they do not, the recording.
Result<LoopDumpOptions> dump_options(const LoopCodeOptions& options, const LoopProfile& profile,
                                     const Console& console) {
  LoopDumpOptions dump;
  dump.pid =
      options.pid != 0 ? static_cast<std::uint32_t>(options.pid) : pid_of_dump(options.output);
  dump.conversion = options.time_conv;
  dump.base = profile.base();
  if (options.recording.empty()) return dump;
  const Result<Recording> recording = open_recording(options.recording);
  if (!recording) return Failure(recording.error());
  const Result<void> other = check_other_file(options.output, recording->input());
  if (!other) return Failure(other.error());
  Diagnostics problems(1);
  const Step step(console, "reading " + options.recording);
  const Result<LoopSamples> samples =
      samples_of(*recording, profile, options.log, options.pid, problems);
  if (!samples) return Failure(samples.error());
  if (dump.pid == 0) dump.pid = static_cast<std::uint32_t>(samples->pid);
  if (!dump.conversion) dump.conversion = samples->conversion;
  return dump;
}

ExitCode write_dump(const LoopCodeOptions& options, const Input& log, const LoopProfile& profile,
                    const Console& console) {
  if (options.output == "-" && console.out_is_terminal()) {
    return console.fail("a jitdump is nothing for a terminal: name a file with -o");
  }
  const Result<LoopDumpOptions> how = dump_options(options, profile, console);
  if (!how) return console.fail(how.error());
  const Result<DumpBytes> dump = dump_of_loops(profile.loops(), log.text(), *how);
  if (!dump) return console.fail(log.name() + ": " + dump.error().message);
  Result<OutputFile> out = open_output(options.output);
  if (!out) return console.fail(out.error());
  out->write(dump->bytes);
  const ExitCode code = commit(*out, log, console);
  if (code != ExitCode::ok) return code;
  if (!how->conversion) {
    console.note(
        "the log's ticks cannot be told as times without --time-conv or a recording with "
        "TIME_CONV: all times are 0");
  }
  note_without_code(console, dump->without_code);
  note_without_addresses(log, profile.loops(), console);
  return code;
}

}  // namespace

/// The log of a process whose PYPYLOG had %d in it is called by its pid.
static bool names(const std::string& log, pid_t pid) {
  const std::string_view name = std::string_view(log).substr(log.rfind('/') + 1);
  const std::string digits = std::to_string(pid);
  const std::size_t at = name.find(digits);
  if (at == std::string_view::npos) return false;
  const auto is_digit = [&](std::size_t i) {
    return i < name.size() && name[i] >= '0' && name[i] <= '9';
  };
  return !(at != 0 && is_digit(at - 1)) && !is_digit(at + digits.size());
}

Result<LoopSamples> samples_of(const Recording& recording, const LoopProfile& profile,
                               const std::string& log, pid_t pid, Diagnostics& problems) {
  Result<LoopSamples> samples =
      count_loop_samples(recording, profile.loops(), profile.base(), problems, pid);
  if (!samples || pid != 0) return samples;
  for (const LoopSamples::Process& process : samples->processes) {
    if (process.pid == samples->pid || !names(log, process.pid)) continue;
    Diagnostics again(0);
    return count_loop_samples(recording, profile.loops(), profile.base(), again, process.pid);
  }
  return samples;
}

ExitCode convert_loops(const LoopCodeOptions& options, const Console& console) {
  const Result<Input> log = open_log(options.log);
  if (!log) return console.fail(log.error());
  const Result<void> other = check_other_file(options.output, *log);
  if (!other) return console.fail(other.error());
  const Result<LoopProfile> profile = [&] {
    const Step step(console, "reading " + log->name());
    return read_loops(*log, options.ticks);
  }();
  if (!profile) return console.fail(profile.error());
  return options.to == "jitdump" ? write_dump(options, *log, *profile, console)
                                 : write_map(options, *log, *profile, console);
}

}  // namespace perfmap::app
