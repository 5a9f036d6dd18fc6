#include "lint_fix.hpp"

#include <algorithm>
#include <perfmap/dump_fix.hpp>
#include <perfmap/merge.hpp>
#include <perfmap/open_writers.hpp>
#include <perfmap/report.hpp>
#include <perfmap/rules.hpp>
#include <perfmap/unified_diff.hpp>

#include "portable.hpp"
#include "source.hpp"

namespace perfmap::app {
namespace {

/// Whether some rule other than PM061, which is about the file's mode, wants the text rewritten.
bool wants_new_text(const Diagnostics& found) {
  const auto rules = rule::all();
  return std::any_of(rules.begin(), rules.end(), [&](const Rule* rule) {
    return rule->fix == Fix::safe && rule->id != rule::kWritableByOthers.id &&
           found.count_of(*rule) != 0;
  });
}

Index index_of(const Map& map, Diagnostics& problems) {
  std::vector<Map> maps;
  maps.push_back(map);
  Index index(std::move(maps), Overlap::last, problems);
  index.compact();
  return index;
}

Result<Index> fixed_index(const Map& map, Diagnostics& problems) {
  Index index = index_of(map, problems);
  if (std::optional<Error> why = objection_to_emptying(index, problems)) {
    return Failure(*std::move(why));
  }
  return index;
}

/// They are gone then, so this is the last that is heard of them.
void note_left_out(const Console& console, const Diagnostics& problems) {
  const std::uint64_t lines = problems.total() - problems.count_of(rule::kAddressWrap);
  if (lines == 0) return;
  console.note("left out " + std::to_string(lines) +
               (lines == 1 ? " line that is no entry" : " lines that are no entries"));
}

Result<void> commit_whole(OutputFile& out, const Input& input) {
  if (!input.was_truncated()) return out.commit();
  return Failure({Errc::io, input.name() + " was truncated while it was read", 0, {}});
}

Result<void> rewrite(const Map& map, const Console& console) {
  Diagnostics problems(1);
  const Result<Index> index = fixed_index(map, problems);
  if (!index) return Failure(index.error());
  Result<OutputFile> out = OutputFile::replace(map.input());
  if (!out) return Failure(std::move(out.error()));
  write_portable(*index, *out);
  Result<void> written = commit_whole(*out, index->maps().front().input());
  if (written) note_left_out(console, problems);
  return written;
}

Result<void> print_diff(const Map& map, const Console& console) {
  Diagnostics problems(1);
  const Result<Index> index = fixed_index(map, problems);
  if (!index) return Failure(index.error());
  const std::string diff = unified_diff(map.text(), portable_text(*index), map.input().name());
  if (!console.out_is_terminal()) {
    console.out().write(diff);
    return {};
  }
  for (std::string_view rest = diff; !rest.empty();) {
    const std::string_view line = rest.substr(0, rest.find('\n'));
    console.out().write(printable(line) + "\n");
    rest.remove_prefix(std::min(rest.size(), line.size() + 1));
  }
  return {};
}

Result<bool> fix_map(const Map& map, const Diagnostics& found, const FixOptions& options,
                     const Console& console) {
  const bool text = wants_new_text(found);
  const bool mode = found.count_of(rule::kWritableByOthers) != 0;
  if (options.diff) {
    if (!text) return false;
    const Result<void> printed = print_diff(map, console);
    if (!printed) return Failure(printed.error());
    return true;
  }
  if (!text && !mode) return false;
  if (const auto why = objection_to_rewriting(map.input(), options.force)) {
    return Failure({Errc::refused, *why, 0, {}});
  }
  Result<void> done = mode ? take_write_rights(map.input()) : Result<void>();
  if (done && text) done = rewrite(map, console);
  if (!done) return Failure(std::move(done.error()));
  return true;
}

bool print_changes(const Jitdump& dump, const Console& console) {
  bool any = false;
  for_each_change(dump, [&](const DumpChange& change) {
    console.out().write(to_text(change, dump.input().name()));
    any = true;
  });
  return any;
}

Result<bool> fix_dump(const Jitdump& dump, const Diagnostics& found, const FixOptions& options,
                      const Console& console) {
  if (!wants_new_text(found)) return false;
  if (options.diff) return print_changes(dump, console);
  if (const auto why = objection_to_rewriting(dump.input(), options.force)) {
    return Failure({Errc::refused, *why, 0, {}});
  }
  const std::string fixed = fixed_dump(dump);
  if (fixed == dump.bytes()) {
    console.note(dump.input().name() + " stays as it is: its damaged bytes would read otherwise");
    return false;
  }
  Result<OutputFile> out = OutputFile::replace(dump.input());
  if (!out) return Failure(std::move(out.error()));
  out->write(fixed);
  const Result<void> written = commit_whole(*out, dump.input());
  if (!written) return Failure(written.error());
  return true;
}

}  // namespace

Result<bool> apply_fixes(const LintSource& source, const Diagnostics& found,
                         const FixOptions& options, const Console& console) {
  const Map* const map = std::get_if<Map>(&source);
  const bool has_fix =
      wants_new_text(found) || (map != nullptr && found.count_of(rule::kWritableByOthers) != 0);
  if (options.fix && !has_fix) {
    console.note(input_of(source).name() + " is unchanged: " +
                 (found.total() == 0 ? "it has no findings" : "no finding has an automatic fix"));
    return false;
  }
  return map != nullptr ? fix_map(*map, found, options, console)
                        : fix_dump(std::get<Jitdump>(source), found, options, console);
}

}  // namespace perfmap::app
