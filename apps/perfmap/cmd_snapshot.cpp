// SPDX-License-Identifier: MIT
#include <algorithm>
#include <perfmap/jit_paths.hpp>
#include <perfmap/profile/snapshot.hpp>

#include "command_line.hpp"
#include "perfmap/text.hpp"
#include "source.hpp"

namespace perfmap::app {
namespace {

struct Options {
  std::vector<pid_t> pids;  ///< one

  pid_t pid() const { return pids.front(); }
  std::string directory;
  SnapshotOptions taking;
};

void print_summary(const Options& options, const TakenSnapshot& taken, const Console& console) {
  const SnapshotManifest& manifest = taken.manifest;
  for (const SnapshotFile& file : manifest.files) {
    std::string line = options.directory + "/" + file.path + ": " + counted(file.size, "byte") +
                       " of " + file.source;
    if (file.cut != 0) line += ", without the last " + counted(file.cut, "byte");
    console.note(line);
  }
  for (const std::string& why : manifest.left_out) console.warn("left out: " + why);
  const bool has_names =
      std::any_of(manifest.files.begin(), manifest.files.end(), [](const SnapshotFile& file) {
        return file.kind == SnapshotFile::Kind::map || file.kind == SnapshotFile::Kind::dump;
      });
  if (!has_names) console.warn("no perf map or jitdump of process " + std::to_string(manifest.pid));
  const auto known = std::count_if(manifest.modules.begin(), manifest.modules.end(),
                                   [](const auto& one) { return !one.build_id.empty(); });
  console.note("took a snapshot of process " + std::to_string(manifest.pid) + " (" + manifest.comm +
               "): " + counted(taken.regions, "region") + " of memory, " +
               counted(manifest.modules.size(), "ELF file") + ", " +
               counted(static_cast<std::uint64_t>(known), "build ID"));
  if (taken.end == SnapshotEnd::ended) {
    console.warn("the process ended while its files were copied: their ends may be missing");
  } else if (taken.end == SnapshotEnd::executed) {
    console.warn("the process ran another program while its files were copied");
  }
}

ExitCode run_snapshot(const Options& options, const Console& console) {
  if (const auto one = check_process(options.pids); !one) return console.fail(one.error());
  if (options.directory == "-")
    return console.fail("a snapshot is a directory: it cannot be written to standard output");
  const Step step(console, "copying");
  const std::string name = "process " + std::to_string(options.pid());
  const Roots roots = roots_from_environment();
  const auto process = ProcSource::open(options.pid(), roots);
  if (!process) return console.fail(process.error());
  if (!*process) return console.fail(no_process(options.pid()));
  const auto taken = take_snapshot(**process, roots, options.directory, options.taking);
  if (!taken) {
    return console.fail(with_rights_advice(
        taken.error(), "snapshot " + std::to_string(options.pid()) + " -o " + options.directory));
  }
  if (!*taken) return console.fail(name + " ended while its files were copied");
  print_summary(options, **taken, console);
  return ExitCode::ok;
}

}  // namespace

void declare_snapshot(CommandOptions& command) {
  Options& options = command.runs(run_snapshot);
  add_process(command, options.pids);
  command
      .value("-o,--output", options.directory, "DIR",
             "Write the snapshot to this directory, which must be new or empty")
      .required();
  command.flag("--any-owner", options.taking.any_owner,
               "Also use maps and dumps that belong to another user");
  command.flag("--with-command-line", options.taking.with_command_line,
               "Also copy the command line, which may contain passwords");
}

}  // namespace perfmap::app
