// SPDX-License-Identifier: MIT
#include <algorithm>
#include <climits>
#include <cstdlib>
#include <perfmap/profile/inject.hpp>
#include <perfmap/profile/module.hpp>

#include "command_line.hpp"
#include "output.hpp"
#include "perfmap/text.hpp"
#include "recording.hpp"
#include "source.hpp"

namespace perfmap::app {
namespace {

struct Options {
  std::string recording;
  std::string output;
  std::string elf_dir;
  std::vector<std::string> dumps;
  std::string map_dir;
  std::string symfs;
  bool any_owner = false;
};

/// Beside OUT, with its name, because other recordings may have the same pids.
Result<std::string> elf_prefix(const Options& options) {
  const std::size_t slash = options.output.rfind('/');
  std::string directory = options.elf_dir;
  if (directory.empty()) {
    directory = slash == std::string::npos ? "." : options.output.substr(0, slash + 1);
  }
  char* const real = ::realpath(directory.c_str(), nullptr);
  if (real == nullptr) return Failure(system_error("cannot open", directory, errno));
  std::string prefix(real);
  std::free(real);
  if (prefix != "/") prefix += '/';
  return prefix + options.output.substr(slash + 1) + ".";
}

Result<InjectOptions> options_of(const Options& options, const Recording& recording,
                                 RecordedRefusals& refused, ModuleCache& cache,
                                 const Console& console) {
  InjectOptions inject;
  Result<std::string> prefix = elf_prefix(options);
  if (!prefix) return failure(prefix);
  inject.elf_prefix = *std::move(prefix);
  Result<RecordedJitOptions> jit = recorded_jit_options(
      {options.map_dir, options.symfs, options.any_owner, options.recording}, console);
  if (!jit) return failure(jit);
  inject.open_module = open_recorded_modules(cache, recording, *jit);
  inject.open_dump = open_recorded_dump(recording, *std::move(jit), refused);
  for (const std::string& path : options.dumps) {
    const Error no_dump = Error::of(Reason::not_of_kind, path, "a jitdump");
    const StreamCheck check = [no_dump](std::string_view begin) -> Result<StreamStart> {
      const bool is_dump = detect_kind(begin) == SourceKind::jitdump;
      return is_dump ? Result<StreamStart>(StreamStart::accepted) : Failure(no_dump);
    };
    OpenPolicy policy;
    policy.check_start = &check;
    Result<Input> input = Input::open(path, policy);
    if (!input) return failure(input);
    if (auto other = check_other_file(options.output, *input); !other) return failure(other);
    inject.dumps.emplace_back(*std::move(input));
    if (!inject.dumps.back().header()) return Failure(no_dump);
  }
  return inject;
}

void say(const InjectReport& report, const Console& console) {
  warn_unreadable(report.failures, console);
  for (const InjectedDump& dump : report.dumps) {
    console.note("mapped the code of " + dump.path + " for process " + std::to_string(dump.pid) +
                 ": " + counted(dump.counts.functions - dump.in_elf_files, "function") + " in " +
                 dump.elf);
    if (!dump.is_recorded) {
      console.warn("the recording has no process " + std::to_string(dump.pid) +
                   ", so the code of " + dump.path + " names none of its samples");
    }
    if (!dump.is_timed) {
      console.warn(
          "the recording and " + dump.path +
          " have different clocks (record with perf record -k mono), so all code of the dump was "
          "mapped at the same time, and code that was later overwritten has the later names");
    }
    if (dump.in_elf_files != 0) {
      console.note("left out " + counted(dump.in_elf_files, "function") +
                   " of the dump: their addresses are in a mapped ELF file, which names them");
    }
    if (dump.doubts.has(Doubt::guessed_owner)) {
      console.note(dump.path + ": guessed-owner: " + std::string(explain(Doubt::guessed_owner)));
    }
    if (dump.counts.without_code != 0) {
      console.note("the dump has no code bytes for " +
                   counted(dump.counts.without_code, "function"));
    }
  }
  if (report.dumps.empty() && report.failures.empty()) {
    console.warn("no process in the recording had mapped a jitdump, so no names were added");
  }
  if (report.lost_bytes != 0) {
    console.warn(counted(report.lost_bytes, "byte") +
                 " of the recording are malformed and left out");
  }
}

/// The dump exists and is not damaged, but was refused.
bool was_refused(const InjectReport& report) {
  return std::any_of(report.failures.begin(), report.failures.end(),
                     [](const Error& error) { return error.code == Errc::refused; });
}

ExitCode run_inject(const Options& options, const Console& console) {
  if (options.output == "-") {
    return console.fail("cannot write a recording to standard output: name a file with -o");
  }
  Result<Recording> recording = open_recorded(options.recording, console);
  if (!recording) return console.fail(recording.error());
  const Result<void> other = check_other_file(options.output, recording->input());
  if (!other) return console.fail(other.error());
  RecordedRefusals refused;
  ModuleCache cache;
  const Result<InjectOptions> inject = options_of(options, *recording, refused, cache, console);
  if (!inject) return console.fail(inject.error());
  Result<OutputFile> out = open_output(options.output);
  if (!out) return console.fail(out.error());
  out->make_private();  // as the recording is, which has stacks and registers
  Diagnostics problems(1);
  const Step step(console, "writing " + options.output);
  const Result<InjectReport> report = inject_jit(*recording, *inject, *out, problems);
  if (!report) return console.fail(report.error());
  const bool has_nothing = report->dumps.empty() && !report->failures.empty();
  const Result<void> written = has_nothing ? Result<void>() : out->commit();
  if (!written) return console.fail(written.error());
  say(*report, console);
  advise_on_foreign(refused, console);
  if (has_nothing) {
    return console.fail(
        "did not write " + options.output +
        ": no jitdump of the recording's processes could be used (-j FILE names one)");
  }
  return was_refused(*report) ? ExitCode::failed : ExitCode::ok;
}

}  // namespace

void declare_inject(CommandOptions& command) {
  Options& options = command.runs(run_inject);
  command.positional("recording", options.recording, kFile, "A recording of perf record, or '-'")
      .required();
  add_output(command, options.output, "The recording to write").required();
  command
      .values("-j,--jitdump", options.dumps, kFile,
              "Use this jitdump instead of those that the recording names, for each process that "
              "had mapped a file with its name, or else for the process in its header")
      .with_commas();
  command.value("--map-dir", options.map_dir, "DIR",
                "Look for the jitdumps of processes in this directory or snapshot");
  command.value("--symfs", options.symfs, "DIR",
                "Look for the files of processes below this directory, at their original paths");
  command.value(
      "--elf-dir", options.elf_dir, "DIR",
      "Write the ELF files to this directory (default: the directory of the new recording)");
  command.flag("--any-owner", options.any_owner, "Also use dumps that belong to another user");
}

}  // namespace perfmap::app
