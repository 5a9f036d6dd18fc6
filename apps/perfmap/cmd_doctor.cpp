// SPDX-License-Identifier: MIT
#include <algorithm>
#include <cerrno>
#include <perfmap/profile/doctor.hpp>
#include <perfmap/profile/module.hpp>
#include <perfmap/report.hpp>
#include <thread>
#include <unistd.h>

#include "command_line.hpp"
#include "recording.hpp"
#include "source.hpp"

namespace perfmap::app {
namespace {

struct Options {
  std::vector<Source> sources;  ///< one: a process, a snapshot of one, or a recording

  const Source& source() const { return sources.front(); }
  const std::string& subject() const { return source().text; }
  std::string format;
  std::string map_dir;
  std::string symfs;
  bool any_owner = false;
  bool list_runtimes = false;
};

Result<Diagnosis> examine(pid_t pid, const DoctorOptions& how, const Console& console) {
  const Step step(console, "examining process " + std::to_string(pid));
  return diagnose(pid, how);
}

ExitCode print(const Result<Diagnosis>& diagnosis, const Options& options, const Console& console) {
  if (!diagnosis) {
    return console.fail(with_rights_advice(diagnosis.error(), "doctor " + options.subject()));
  }
  if (options.format == "json") {
    write_doctor_json(console.out(), *diagnosis);
  } else {
    console.with_colors(
        [&diagnosis](OutputFile& out, bool color) { write_doctor_text(out, *diagnosis, color); });
  }
  return diagnosis->misses_names() ? ExitCode::findings : ExitCode::ok;
}

ExitCode run_process(pid_t pid, const Options& options, const Console& console) {
  const DoctorOptions how{.roots = roots_from_environment(), .reader = ::geteuid()};
  return print(examine(pid, how, console), options, console);
}

ExitCode run_snapshot(const Options& options, const Console& console) {
  const Result<Snapshot> snapshot = Snapshot::open(options.subject());
  if (!snapshot) return console.fail(snapshot.error());
  const DoctorOptions how{.roots = snapshot->roots(), .reader = ::geteuid(), .is_snapshot = true};
  return print(examine(snapshot->pid(), how, console), options, console);
}

ExitCode run_recording(const Options& options, const Console& console) {
  const Result<Recording> recording = open_recorded(options.subject(), console);
  if (!recording && recording.error().code == Errc::not_found) {
    return console.fail(recording.error().message() + " (pass a pid, a snapshot or a recording)");
  }
  if (!recording) return console.fail(recording.error());
  Result<RecordedJitOptions> jit = recorded_jit_options(
      {options.map_dir, options.symfs, options.any_owner, options.subject()}, console);
  if (!jit) return console.fail(jit.error());
  RecordedRefusals refused;
  const RecordingDiagnosis diagnosis = [&] {
    const Step step(console, "examining " + options.subject());
    return examine_recording(*recording, *std::move(jit), refused);
  }();
  if (recording->input().was_truncated()) {
    return console.fail(options.subject() + " was truncated while it was read");
  }
  if (options.format == "json") {
    write_recording_doctor_json(console.out(), diagnosis);
  } else {
    console.with_colors([&diagnosis](OutputFile& out, bool color) {
      write_recording_doctor_text(out, diagnosis, color);
    });
  }
  warn_unreadable(refused.others, console);
  warn_unreadable(diagnosis.failures, console);
  return diagnosis.misses_names() ? ExitCode::findings : ExitCode::ok;
}

ExitCode print_runtimes(const Options& options, const Console& console) {
  options.format == "json" ? write_runtimes_json(console.out())
                           : write_runtimes_text(console.out());
  return ExitCode::ok;
}

/// The first option that only recordings support; empty if none is given.
std::string_view option_of_recordings(const Options& options) {
  if (!options.map_dir.empty()) return "--map-dir";
  if (!options.symfs.empty()) return "--symfs";
  return options.any_owner ? "--any-owner" : "";
}

ExitCode run_doctor(const Options& options, const Console& console) {
  if (options.list_runtimes) {
    if (!options.sources.empty()) return console.fail("--runtimes takes no SOURCE");
    return print_runtimes(options, console);
  }
  const Result<void> number = check_number(options.sources, 1, 1);
  if (!number) return console.fail(number.error());
  if (options.source().as == Source::As::dump) {
    return console.fail(
        "doctor does not examine a jitdump: pass a pid, a snapshot or a recording "
        "(--map-dir DIR sets the directory of jitdumps)");
  }
  const pid_t pid = pid_of_source(options.source());
  const bool is_snapshot =
      pid == 0 && options.subject() != "-" && Snapshot::is_at(options.subject());
  if (pid == 0 && !is_snapshot) return run_recording(options, console);
  if (const std::string_view other = option_of_recordings(options); !other.empty()) {
    return console.fail(std::string(other) + " requires a recording");
  }
  return is_snapshot ? run_snapshot(options, console) : run_process(pid, options, console);
}

}  // namespace

void declare_doctor(CommandOptions& command) {
  Options& options = command.runs(run_doctor);
  add_sources(command, options.sources,
              {.help = "A pid, a snapshot, or a recording of perf record; '-' reads a recording "
                       "from standard input",
               .is_single = true,
               .recorded = SourceWords::Recorded::whole,
               .pid_help = "Examine this process",
               .map_help = "Examine this recording or snapshot; never a pid",
               .dump_help = "Not for doctor, which finds jitdumps itself (see --map-dir)",
               .source_help = "Examine this process, snapshot or recording",
               .input_help = "The same as --map"});
  add_format(command, options.format, {"text", "json"});
  command.value("--map-dir", options.map_dir, "DIR",
                "For a recording: look for perf-PID.map and jit-PID.dump of its processes in this "
                "directory or snapshot");
  command.value("--symfs", options.symfs, "DIR",
                "For a recording: look for the files of its processes below this directory, at "
                "their original paths");
  command.flag("--runtimes", options.list_runtimes,
               "List the runtimes, and how to start each so that its code has names");
  command.flag("--any-owner", options.any_owner,
               "For a recording: also use maps and dumps that belong to another user");
}

}  // namespace perfmap::app
