// SPDX-License-Identifier: MIT
#include <perfmap/jit_paths.hpp>
#include <perfmap/json.hpp>
#include <perfmap/profile/garbage.hpp>

#include "command_line.hpp"
#include "perfmap/text.hpp"
#include "source.hpp"

namespace perfmap::app {
namespace {

struct GcOptions {
  bool dry_run = false;
  bool any_owner = false;
  bool one_namespace = false;
  std::string format;
};

struct Totals {
  std::uint64_t removed = 0;
  std::uint64_t bytes = 0;
  std::uint64_t kept = 0;
  std::uint64_t failed = 0;
};

std::string reason(const GarbageFile& file) {
  const std::string pid = std::to_string(file.pid);
  const std::string user = std::to_string(file.user);
  switch (file.why) {
    case GarbageWhy::dead: return no_process(file.pid).message();
    case GarbageWhy::older: return "older than process " + pid;
    case GarbageWhy::alive: return "process " + pid + " is alive";
    case GarbageWhy::other_namespace:
      return "process " + user + " has the pid " + pid + " in its own PID namespace";
    case GarbageWhy::in_use: return "process " + user + " has it open or mapped";
    case GarbageWhy::foreign: return "belongs to another user (root can use --any-owner)";
    case GarbageWhy::hidden_processes:
      return "processes outside of this PID namespace cannot be seen (--one-namespace ignores "
             "them)";
  }
  return "";
}

/// Prints each file when it is done: as a line, or as a member of one JSON document.
class Report {
 public:
  Report(const GcOptions& options, const std::string& directory, const Console& console)
      : options_(options), directory_(directory), console_(console), json_(console.out()) {
    if (!is_json()) return;
    json_.begin_object();
    json_.member("schema", "perfmap.gc/1");
    json_.text_members("directory", directory_);
    json_.boolean("dry_run", options_.dry_run);
    json_.begin_array("files");
  }

  void add(const GarbageFile& file, const std::string& action) {
    if (!is_json()) {
      std::string size = std::to_string(file.size);
      size.insert(0, size.size() < 9 ? 9 - size.size() : 0, ' ');
      console_.out().write(action + " " + size + " " +
                           one_line(directory_, console_.out_is_terminal()) + "/" + file.name +
                           ": " + reason(file) + "\n");
      return;
    }
    json_.begin_object();
    json_.member("name", file.name);
    json_.member("kind", to_string(file.kind));
    number("pid", static_cast<std::uint64_t>(file.pid));
    number("size", file.size);
    json_.member("action", action.substr(0, action.find(' ')));
    json_.member("why", to_string(file.why));
    if (file.user != 0) number("user", static_cast<std::uint64_t>(file.user));
    json_.end_object();
  }

  void end(const Totals& totals) {
    if (is_json()) {
      json_.end_array();
      number("removed", totals.removed);
      number("bytes", totals.bytes);
      number("kept", totals.kept);
      number("failed", totals.failed);
      json_.end_object();
      json_.newline();
    }
    console_.note((options_.dry_run ? "would remove " : "removed ") +
                  counted(totals.removed, "file") + " of " + counted(totals.bytes, "byte") +
                  ", kept " + std::to_string(totals.kept));
  }

 private:
  bool is_json() const { return options_.format == "json"; }
  void number(std::string_view key, std::uint64_t value) { json_.member(key, value); }

  const GcOptions& options_;
  const std::string& directory_;
  const Console& console_;
  JsonWriter json_;
};

void deal_with(const GarbageFile& file, Garbage& garbage, const GcOptions& options, Report& report,
               Totals& totals, const Console& console) {
  const auto keep = [&] {
    ++totals.kept;
    report.add(file, "kept   ");
  };
  if (!file.may_go()) return keep();
  const Result<void> removed = options.dry_run ? Result<void>() : garbage.remove(file);
  // A new process has written to the file, or has the pid, since it was looked at.
  if (!removed && removed.error().code == Errc::refused) return keep();
  if (!removed) {
    ++totals.failed;
    report.add(file, "failed ");
    console.fail(removed.error());
    return;
  }
  ++totals.removed;
  totals.bytes += file.size;
  report.add(file, options.dry_run ? "garbage" : "removed");
}

ExitCode run_gc(const GcOptions& options, const Console& console) {
  const Step step(console, "looking at processes");
  const Roots roots = roots_from_environment();
  Result<Garbage> garbage = Garbage::find(
      {.roots = roots, .any_owner = options.any_owner, .one_namespace = options.one_namespace});
  if (!garbage) return console.fail(garbage.error());
  Totals totals;
  Report report(options, roots.tmp, console);
  for (const GarbageFile& file : garbage->files()) {
    deal_with(file, *garbage, options, report, totals, console);
  }
  report.end(totals);
  return totals.failed == 0 ? ExitCode::ok : ExitCode::failed;
}

}  // namespace

void declare_gc(CommandOptions& command) {
  GcOptions& options = command.runs(run_gc);
  command.flag("-n,--dry-run", options.dry_run, "Print what would be removed; remove nothing");
  command.flag("--any-owner", options.any_owner,
               "Remove files of other users, too, if you are root");
  command.flag("--one-namespace", options.one_namespace,
               "Assume that only processes of this PID namespace (container) use the directory");
  add_format(command, options.format, {"text", "json"});
}

}  // namespace perfmap::app
