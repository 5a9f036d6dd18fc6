// SPDX-License-Identifier: MIT
#include "output.hpp"

#include <algorithm>
#include <perfmap/jit_paths.hpp>
#include <perfmap/json.hpp>
#include <perfmap/merge.hpp>
#include <perfmap/report.hpp>
#include <perfmap/text.hpp>
#include <sys/stat.h>
#include <unistd.h>

#include "command_line.hpp"
#include "perfmap/text.hpp"

namespace perfmap::app {
namespace {

void note_stats(const Console& console, const PortableStats& stats) {
  note_changed_names(console, stats.changed);
  if (stats.huge_sizes != 0) {
    console.note(counted(stats.huge_sizes, "entry has", "entries have") +
                 " a size of 4 GiB or more, which some readers truncate");
  }
  if (stats.address_zero != 0) {
    console.note(counted(stats.address_zero, "entry is", "entries are") +
                 " at address 0, which some readers drop");
  }
}

}  // namespace

Result<OutputFile> open_output(const std::string& path) {
  Result<OutputFile> out = path == "-" ? OutputFile::to_descriptor(STDOUT_FILENO, "standard output")
                                       : OutputFile::replace(path);
  if (out) out->protect_terminal();
  return out;
}

std::optional<Error> objection_to_emptying(const Index& index, const Diagnostics& problems) {
  if (index.entry_count() != 0 || problems.total() == 0) return std::nullopt;
  const std::string& name = index.maps().front().input().name();
  return Error::bad_format("cannot rewrite " + name + ": it has no valid entry");
}

ExitCode commit_whole(OutputFile& out, const Input& input, const Console& console) {
  if (!is_whole(console, input)) return ExitCode::failed;
  const Result<void> written = out.commit();
  return written ? ExitCode::ok : console.fail(written.error());
}

ExitCode write_merged(Index& index, const Diagnostics& problems, bool as_json, OutputFile& out,
                      const Console& console) {
  PortableStats stats;
  {
    const Step step(console, "writing", out);
    index.compact();
    if (as_json) {
      write_effective_json(index, out, problems);
    } else {
      stats = write_portable(index, out);
    }
  }
  if (!is_whole(console, index.maps())) return ExitCode::failed;
  const Result<void> written = out.commit();
  if (!written) return console.fail(written.error());
  note_stats(console, stats);
  note_unfinished(console, index.maps());
  note_skipped(console, problems);
  return ExitCode::ok;
}

void add_append_options(CommandOptions& command, AppendOptions& options) {
  const Option pid =
      command
          .value("--to-pid", options.pid, "PID",
                 "Append to the map of this process in /tmp; the process does not have to exist")
          .check(check_pid);
  add_output(command, options.output, "Append to this file").excludes(pid);
  command.flag("--strict", options.strict,
               "Refuse names that some readers do not accept, instead of changing them");
}

bool has_target(const AppendOptions& options) {
  return !options.pid.empty() || !options.output.empty();
}

Error no_target() { return Error::invalid("expected --to-pid PID or -o FILE"); }

namespace {

std::string target_path(const AppendOptions& options, const JitFileName& of_process) {
  return options.pid.empty() ? options.output
                             : roots_from_environment().tmp + "/" + of_process.of(options.pid);
}

/// The target exists and is not a map: neither it nor lines after it could be read.
std::optional<Error> other_kind(const std::string& path) {
  const Result<Input> target = Input::open(path, {.regular_only = true});
  if (!target) return std::nullopt;
  const SourceKind kind = detect_kind(target->text());
  if (kind == SourceKind::perf_map) return std::nullopt;
  return Error::unsupported("cannot append to " + target->name() + ": it is " + with_article(kind) +
                            ", not a perf map");
}

}  // namespace

Result<AppendTarget> find_target(const AppendOptions& options, const JitFileName& of_process,
                                 const Console& console) {
  if (options.pid.empty() == options.output.empty()) return Failure(no_target());
  if (options.output == "-") return AppendTarget();
  AppendTarget target;
  target.path = target_path(options, of_process);
  const bool is_typed = options.pid.empty();
  if (of_process.begin == kMapName.begin) {
    if (const auto other = other_kind(target.path)) return Failure(*other);
  }
  Result<OutputPlace> place = OutputPlace::find(
      target.path, is_typed ? OutputPlace::Last::followed : OutputPlace::Last::kept);
  if (!place) return failure(place);
  if (!is_typed) {
    const struct stat* const file = place->existing();
    if (file != nullptr && S_ISLNK(file->st_mode)) {
      return Failure(Error::cannot("open", target.path, Reason::symbolic_link));
    }
    if (const Result<void> checked = place->check_existing(); !checked) return failure(checked);
  } else {
    Result<std::string> path = place->path_for_appending();
    if (!path) return failure(path);
    console.show_as(*path, target.path);
    target.path = *std::move(path);
  }
  target.place = *std::move(place);
  return target;
}

Result<MapWriter> open_target(const AppendOptions& options, const AppendTarget& target,
                              NameOf names_of, std::size_t buffer_bytes) {
  WriterOptions writer;
  writer.names_of = names_of;
  writer.buffer_bytes = buffer_bytes;
  writer.names = options.strict ? NamePolicy::refuse : NamePolicy::escape;
  writer.own_map = !options.pid.empty();
  if (!target.place) return MapWriter::to_descriptor(STDOUT_FILENO, "standard output", writer);
  return MapWriter::open(target.path, writer);
}

namespace {

/// "'a' to '[a]'": the name before and after; "'a\x01' (escaped)".
std::string change_of(std::string_view before, const std::string& after, std::size_t max) {
  const auto shown = [max](std::string_view name) {
    return "'" + std::string(name.substr(0, max)) + (name.size() > max ? "…'" : "'");
  };
  if (before.size() > kMaxPortableName) return shown(before) + " (cut)";
  // Messages show the bytes of the name in the same way.
  const bool is_escaped = printable(before) == printable(after);
  return shown(before) + (is_escaped ? " (escaped)" : " to " + shown(after));
}

void note_changes(const Console& console, const ChangedNames& changed, std::string_view why,
                  std::string (*after)(std::string_view name), std::string_view detail) {
  constexpr std::size_t kMaxShort = 60;
  if (changed.count == 0) return;
  const std::string_view name = changed.first.front();
  const bool lists = console.verbose() && changed.count > 1;
  std::string note = "changed " + counted(changed.count, "name") + std::string(why);
  if (!lists) {
    note += changed.count == 1 ? ": " : ", such as ";
    note.append(change_of(name, after(name), kMaxShort)).append(detail);
    if (changed.count > 1) note += " (--verbose lists them)";
    return console.note(note);
  }
  console.note(note + ":");
  for (const std::string& one : changed.first) {
    console.note("  " + change_of(one, after(one), kMaxPortableName));
  }
  if (const std::uint64_t more = changed.count - changed.first.size(); more != 0) {
    console.note("  and " + counted(more, "more name"));
  }
}

std::string portable_name(std::string_view name) {
  std::string after;
  append_portable_map_name(after, name);
  return after;
}

}  // namespace

void note_changed_names(const Console& console, const ChangedNames& changed) {
  constexpr std::size_t kMinBytes = 3;
  const bool is_short = changed.count != 0 && changed.first.front().size() < kMinBytes;
  note_changes(console, changed, " for portability", portable_name,
               is_short ? " (perf drops names under three bytes)" : "");
}

void note_unwritable_names(const Console& console, const ChangedNames& changed) {
  note_changes(console, changed, " that a perf map cannot contain", escape_map_name, "");
}

bool goes_to_terminal(const AppendOptions& options, const Console& console) {
  return options.output == "-" && console.out_is_terminal();
}

namespace {

constexpr std::size_t kExcerpt = 80;

/// Where an excerpt that shows the byte `at` begins: at a character.
std::size_t begin_of_excerpt(std::string_view name, std::size_t at) {
  std::size_t begin = at < kExcerpt / 2 ? 0 : at - kExcerpt / 2;
  while (begin < at && (name[begin] & '\xc0') == '\x80') ++begin;
  return begin;
}

std::string excerpt(std::string_view name, std::size_t begin) {
  return (begin == 0 ? "" : "…") + std::string(name.substr(begin, kExcerpt)) +
         (name.size() - begin > kExcerpt ? "…" : "");
}

/// In single quotes literally; in double quotes with escapes, which a name never has literally, so
/// that bytes and the characters that stand for them look different.
std::string spelled(const std::string& name) {
  return printable(name) == name ? "'" + name + "'" : quoted(name);
}

}  // namespace

std::string refusal(std::string_view name) {
  const std::string written = escape_map_name(name);
  const auto differ = std::mismatch(name.begin(), name.end(), written.begin(), written.end());
  const std::size_t begin =
      begin_of_excerpt(name, static_cast<std::size_t>(differ.first - name.begin()));
  return "the name " + spelled(excerpt(name, begin)) + " would be written as " +
         spelled(excerpt(written, begin));
}

}  // namespace perfmap::app
