// SPDX-License-Identifier: MIT
#include <perfmap/jit_paths.hpp>
#include <perfmap/text.hpp>

#include "command_line.hpp"
#include "output.hpp"

namespace perfmap::app {
namespace {

struct CopyOptions {
  std::vector<Source> sources;  ///< one
  SourceOptions opening;
  AppendOptions append;
};

constexpr std::size_t kBuffer = std::size_t{256} << 10;

/// The changes that copying line by line would make.
struct Survey {
  ChangedNames changed = {};
  Diagnostics problems{1};
};

Survey survey(const Map& map, const Console& console) {
  const Step step(console, "checking");
  Survey found;
  map.for_each(found.problems, [&](const Entry& entry) {
    if (!is_plain_map_name(entry.name)) found.changed.add(entry.name);
  });
  return found;
}

/// Whether the engine's Copy can copy the bytes: if no line needs a change. It opens the map by its
/// path, so a map that was found by a pid is copied line by line instead.
bool may_copy_bytes(const Map& map, const Survey& found, bool is_typed) {
  return is_typed && map.input().facts().is_regular && !map.ends_in_part() &&
         found.changed.count == 0 && found.problems.total() == 0;
}

/// With `strict`, prints the position of each name that would be changed, and leaves the entry out.
Result<void> copy_entries(const Map& map, const AppendOptions& options, MapWriter& writer,
                          const Console& console) {
  const bool strict = options.strict;
  const bool is_shown = goes_to_terminal(options, console);
  Result<void> result;
  Diagnostics ignored(1);
  Map::LineReader reader(map);
  while (const auto entry = reader.next(ignored)) {
    if (strict && !is_plain_map_name(entry->name)) {
      console.line(map.input().name() + ":" + std::to_string(map.line_number(entry->offset)) +
                   ":1: " + refusal(entry->name));
      continue;
    }
    std::string shown;
    std::string_view name = entry->name;
    if (is_shown) name = shown = printable(name);
    const auto range = AddressRange::within_space(entry->range.begin, map.written_size(*entry));
    result = writer.write(range.begin, range.size, name);
    if (!result) return result;
  }
  return result;
}

/// Whether the file was truncated during the copy.
bool is_shorter_now(const Map& map) {
  const FileFacts& then = map.input().facts();
  if (!then.is_regular) return false;
  const Result<Input> now = Input::open(map.input().name(), {.regular_only = true});
  return now && now->facts().device == then.device && now->facts().inode == then.inode &&
         now->text().size() < map.input().text().size();
}

Result<void> append(const Map& map, const Survey& found, const CopyOptions& options,
                    MapWriter& writer, const Console& console) {
  const Step step(console, "copying");
  const bool is_typed = map.input().name() == options.sources.front().text;
  const bool by_bytes =
      may_copy_bytes(map, found, is_typed) && !goes_to_terminal(options.append, console);
  const Result<void> copied = by_bytes ? writer.copy(map.input().name())
                                       : copy_entries(map, options.append, writer, console);
  return copied ? writer.close() : copied;
}

bool is_same_file(const Map& map, const AppendOptions& options) {
  const std::string path = options.output == "-" ? "/dev/stdout"
                           : options.pid.empty()
                               ? options.output
                               : roots_from_environment().tmp + "/" + kMapName.of(options.pid);
  const Result<Input> target = Input::open(path, {.regular_only = true});
  const FileFacts& from = map.input().facts();
  return target && from.is_regular && target->facts().device == from.device &&
         target->facts().inode == from.inode;
}

ExitCode run_copy(const CopyOptions& options, const Console& console) {
  if (!has_target(options.append)) return console.fail(no_target());
  const Result<void> number = check_number(options.sources, 1, 1);
  if (!number) return console.fail(number.error());
  const Result<Map> map = open_map(options.sources.front(), options.opening, console);
  if (!map) return console.fail(map.error());
  const std::string& name = map->input().name();
  if (is_same_file(*map, options.append))
    return console.fail("cannot write to " + name + ": it is the input");
  const Survey found = survey(*map, console);
  const Result<AppendTarget> target = find_target(options.append, kMapName, console);
  if (!target) return console.fail(target.error());
  Result<MapWriter> writer = open_target(options.append, *target, NameOf::file, kBuffer);
  if (!writer) return console.fail(writer.error());
  const Result<void> copied = append(*map, found, options, *writer, console);
  if (!copied) return console.fail(copied.error());
  if (!is_whole(console, {&*map, 1})) return ExitCode::failed;
  if (is_shorter_now(*map)) return console.fail(name + " was truncated while it was read");
  const bool refused = options.append.strict && found.changed.count != 0;
  if (!refused) note_changed_names(console, found.changed);
  note_unfinished(console, {&*map, 1});
  note_skipped(console, found.problems);
  return refused ? ExitCode::failed : ExitCode::ok;
}

}  // namespace

void declare_copy(CommandOptions& command) {
  CopyOptions& options = command.runs(run_copy);
  add_sources(command, options.sources,
              {.help = "A perf map, a jitdump or JSON: a path, '-' or a pid", .is_single = true});
  add_source_options(command, options.opening);
  add_append_options(command, options.append);
}

}  // namespace perfmap::app
