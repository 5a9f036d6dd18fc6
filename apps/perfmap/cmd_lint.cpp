// SPDX-License-Identifier: MIT
#include <algorithm>
#include <cctype>
#include <perfmap/diagnostic.hpp>
#include <perfmap/image_list.hpp>
#include <perfmap/jitdump.hpp>
#include <perfmap/lint.hpp>
#include <perfmap/map.hpp>
#include <perfmap/merge.hpp>
#include <perfmap/output_file.hpp>
#include <perfmap/profile/doctor.hpp>
#include <perfmap/profile/module.hpp>
#include <perfmap/profile/process_tracker.hpp>
#include <perfmap/profile/snapshot.hpp>
#include <perfmap/report.hpp>
#include <span>
#include <string>
#include <sys/stat.h>
#include <unistd.h>
#include <variant>
#include <vector>

#include "command_line.hpp"
#include "console.hpp"
#include "help_text.hpp"
#include "output.hpp"
#include "perfmap/text.hpp"
#include "recording.hpp"
#include "source.hpp"

namespace perfmap::app {
namespace {

/// A source of lint, by its content.
using LintSource = std::variant<Map, Jitdump, ImageList>;

/// A process among the sources, and its files.
struct ProcessSource {
  pid_t pid = 0;
  std::size_t first = 0;
  std::size_t count = 0;
  Error why_none;  ///< where there is no file
};
/// A recording directory among the sources, and its files.
struct RecordedSource {
  std::string directory;
  std::size_t first = 0;
  std::size_t count = 0;
};
struct LintSources {
  std::vector<LintSource> files;
  /// Of each file: the pids of its process, if it is in a snapshot.
  std::vector<std::vector<pid_t>> namespace_pids;
  std::vector<ProcessSource> processes;
  std::vector<RecordedSource> recordings;
  bool misses_any = false;  ///< some could not be opened, which was reported
};

Result<LintSource> lint_source_of(OpenedInput opened, const SourceOptions& options) {
  if (opened.kind == SourceKind::jitdump) return LintSource(dump_of(std::move(opened), options));
  if (opened.kind == SourceKind::image_list) return LintSource(ImageList(std::move(opened.input)));
  Result<Map> map = map_of(std::move(opened), options);
  if (!map) return failure(map);
  return LintSource(*std::move(map));
}

/// Whether files of a process are missing or refused. False if lint does not check their kind.
bool may_be_found(const Error& error) {
  return error.code != Errc::unsupported && error.code != Errc::bad_format;
}

Result<void> take(std::vector<OpenedInput> opened, const SourceOptions& options,
                  std::vector<LintSource>& files) {
  for (OpenedInput& input : opened) {
    Result<LintSource> one = lint_source_of(std::move(input), options);
    if (!one) return failure(one);
    files.push_back(*std::move(one));
  }
  return {};
}

/// The pids in all of its pid namespaces; none if the source is not a snapshot.
std::vector<pid_t> pids_of_snapshot(const Source& source) {
  if (is_stdin(source) || !Snapshot::is_at(source.text)) return {};
  const Result<Snapshot> snapshot = Snapshot::open(source.text);
  return snapshot ? snapshot->manifest().namespace_pids : std::vector<pid_t>();
}

/// Opens a source again after it was rewritten.
Result<LintSource> open_lint_file_again(const Input& was, const SourceOptions& options) {
  // Another process may have put a link or a FIFO in its place.
  const OpenPolicy policy{.follow_link = was.facts().was_link,
                          .regular_only = was.facts().is_regular};
  Result<Input> input = Input::open(was.name(), policy);
  if (!input) return failure(input);
  // Rewriting keeps the owner and who may read it. Below the root of a process, another file may be
  // one that the process may not read.
  constexpr std::uint32_t kReaders = S_IRUSR | S_IRGRP | S_IROTH;
  const bool is_other = input->facts().uid != was.facts().uid ||
                        ((input->facts().mode ^ was.facts().mode) & kReaders) != 0;
  if (is_other) return Failure(Error::of(Reason::replaced, was.name()));
  Result<OpenedInput> opened = as_opened(*std::move(input), options, false);
  if (!opened) return failure(opened);
  return lint_source_of(*std::move(opened), options);
}

/// Opens the map and the dumps of a process. It may have none that can be read.
Result<LintSources> open_lint_sources(const std::vector<Source>& sources,
                                      const SourceOptions& options, const Console& console) {
  const Result<void> checked = check_stdin(sources);
  if (!checked) return failure(checked);
  LintSources all;
  for (const Source& source : sources) {
    Result<std::vector<OpenedInput>> opened = open_inputs(source, options, console);
    const pid_t pid = pid_of_source(source);
    if (!opened && (pid == 0 || !may_be_found(opened.error()))) {
      console.fail(opened.error());
      all.misses_any = true;
      continue;
    }
    const std::size_t first = all.files.size();
    if (opened) {
      const Result<void> taken = take(*std::move(opened), options, all.files);
      if (!taken) {
        console.fail(taken.error());
        all.misses_any = true;
      }
    }
    all.namespace_pids.resize(all.files.size(),
                              pid == 0 ? pids_of_snapshot(source) : std::vector<pid_t>());
    if (pid == 0 && !is_stdin(source) && recording_in(source.text)) {
      all.recordings.push_back({source.text, first, all.files.size() - first});
    }
    if (pid == 0) continue;
    all.processes.push_back(
        {pid, first, all.files.size() - first, opened ? Error() : std::move(opened.error())});
  }
  return all;
}

const Input& input_of(const LintSource& source) {
  return std::visit([](const auto& one) -> const Input& { return one.input(); }, source);
}

/// The text that findings are about.
std::string_view text_of(const LintSource& source) {
  if (const Map* const map = std::get_if<Map>(&source)) return map->text();
  if (const ImageList* const list = std::get_if<ImageList>(&source)) return list->text();
  return std::get<Jitdump>(source).bytes();
}

/// The maps and dumps with their findings, for rules about several sources. Borrows both.
std::vector<LintedFile> linted(std::span<const LintSource> sources, std::span<Diagnostics> all) {
  std::vector<LintedFile> files;
  for (std::size_t i = 0; i < sources.size(); ++i) {
    const LintSource& source = sources[i];
    if (std::holds_alternative<ImageList>(source)) continue;
    files.push_back({std::get_if<Map>(&source), std::get_if<Jitdump>(&source), &all[i]});
  }
  return files;
}

struct FixOptions {
  bool fix = false;
  bool diff = false;
  bool force = false;
};

/// Whether a rule rewrites the text. PM061 does not: it changes the file's mode.
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

/// Lines that are not blank and not entries, such as comments.
std::uint64_t other_lines_of(const Map& map) {
  std::uint64_t lines = 0;
  for (std::string_view text = map.text(); !text.empty();) {
    const std::string_view line = text.substr(0, text.find('\n'));
    if (line.find_first_not_of(" \t\r") != line.npos) ++lines;
    text.remove_prefix(std::min(line.size() + 1, text.size()));
  }
  Diagnostics ignored(1);
  map.for_each(ignored, [&lines](const Entry&) { lines -= lines == 0 ? 0 : 1; });
  return lines;
}

/// After the fix these lines are gone, so they are reported now.
void note_left_out(const Console& console, std::uint64_t lines) {
  if (lines == 0) return;
  console.note("left out " + std::to_string(lines) +
               (lines == 1 ? " line that is not an entry" : " lines that are not entries"));
}

Result<void> commit_whole(OutputFile& out, const Input& input) {
  if (!input.was_truncated()) return out.commit();
  return Failure(Error::of(Reason::truncated, input.name()));
}

Result<void> rewrite(const Map& map, const Console& console) {
  Diagnostics problems(1);
  const Result<Index> index = fixed_index(map, problems);
  if (!index) return failure(index);
  const std::uint64_t left_out = other_lines_of(map);
  Result<OutputFile> out = OutputFile::replace(map.input());
  if (!out) return failure(out);
  write_portable(*index, *out);
  Result<void> written = commit_whole(*out, index->maps().front().input());
  if (written) note_left_out(console, left_out);
  return written;
}

Result<void> print_diff(const Map& map, const Console& console) {
  Diagnostics problems(1);
  const Result<Index> index = fixed_index(map, problems);
  if (!index) return failure(index);
  console.with_colors([&](OutputFile& out, bool color) {
    const std::string diff = unified_diff(map.text(), portable_text(*index), map.input().name());
    out.write(color ? colored_diff(diff) : diff);
  });
  return {};
}

Result<bool> fix_map(const Map& map, const Diagnostics& found, const FixOptions& options,
                     const Console& console) {
  const bool text = wants_new_text(found);
  const bool mode = found.count_of(rule::kWritableByOthers) != 0;
  if (options.diff) {
    if (!text) return false;
    const Result<void> printed = print_diff(map, console);
    if (!printed) return failure(printed);
    return true;
  }
  if (!text && !mode) return false;
  if (const auto why = objection_to_rewriting(map.input(), options.force)) {
    return Failure(Error::refused(*why));
  }
  Result<void> done = mode ? take_write_rights(map.input()) : Result<void>();
  if (done && text) done = rewrite(map, console);
  if (!done) return failure(done);
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
    return Failure(Error::refused(*why));
  }
  const std::string fixed = fixed_dump(dump);
  if (fixed == dump.bytes()) {
    console.note(dump.input().name() +
                 " is unchanged: rewriting it would change the meaning of its damaged bytes");
    return false;
  }
  Result<OutputFile> out = OutputFile::replace(dump.input());
  if (!out) return failure(out);
  out->write(fixed);
  const Result<void> written = commit_whole(*out, dump.input());
  if (!written) return failure(written);
  return true;
}

/// If a rule with a safe fix has findings, rewrites the map as `tidy` does, or the dump with its
/// safe fixes. With --diff, prints the changes instead: a unified diff for a map, a line for each
/// change for a dump. Returns whether there was something to fix.
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
  if (map != nullptr) return fix_map(*map, found, options, console);
  const Jitdump* const dump = std::get_if<Jitdump>(&source);
  return dump != nullptr ? fix_dump(*dump, found, options, console) : Result<bool>(false);
}

std::vector<LintedFile> files_of(const ProcessSource& process, const LintSources& sources,
                                 std::vector<Diagnostics>& all) {
  return linted(std::span(sources.files).subspan(process.first, process.count),
                std::span(all).subspan(process.first, process.count));
}

/// Compares the files of each process with the process; see lint_process(). Findings about files
/// that were not read become sources without text, at the end. `wanted` only selects rules. Fails
/// if nothing is known about the files of a process.
void check_processes(LintSources& sources, std::vector<Diagnostics>& all, const Diagnostics& wanted,
                     const SourceOptions& options, const Console& console) {
  ModuleCache cache;
  const ProcessLintOptions how{roots_from_environment(), options.any_owner, open_through(cache)};
  for (const ProcessSource& process : sources.processes) {
    const Step step(console, "looking at process " + std::to_string(process.pid));
    const std::vector<LintedFile> files = files_of(process, sources, all);
    const Result<ProcessFindings> found = lint_process(process.pid, files, wanted, how);
    if (files.empty() && (!found || found->unread.empty())) {
      console.fail(process.why_none);
      sources.misses_any = true;
      continue;
    }
    if (!found || found->unseen) {
      const Error& why = found ? *found->unseen : found.error();
      console.warn("cannot check process " + std::to_string(process.pid) + ": " + why.message());
    }
    if (!found) continue;
    for (const UnreadFile& file : found->unread) {
      sources.files.emplace_back(Map(Input::from_text("", file.path)));
      all.push_back(file.problems);
    }
  }
}

/// Compares files with a recording of their processes; see lint_recording().
Result<void> check_recording(const std::string& path, std::span<const LintedFile> files,
                             const Console& console) {
  const Result<Recording> recording = open_recorded(path, console);
  if (!recording) return failure(recording);
  std::vector<std::size_t> others;
  {
    const Step step(console, "reading " + path);
    others = lint_recording(*recording, files);
  }
  if (recording->input().was_truncated()) return Failure(Error::of(Reason::truncated, path));
  for (const std::size_t other : others) {
    console.note(files[other].input().name() + " names no sample of " + path +
                 ": its process was not recorded");
  }
  return {};
}

/// Compares all files with the recording of --recording, or those of each recording directory with
/// the recording in it, which need not be readable.
Result<void> check_recordings(const std::string& given, const LintSources& sources,
                              std::vector<Diagnostics>& all, const Console& console) {
  if (!given.empty()) return check_recording(given, linted(sources.files, all), console);
  for (const RecordedSource& one : sources.recordings) {
    const Result<void> held =
        check_recording(one.directory,
                        linted(std::span(sources.files).subspan(one.first, one.count),
                               std::span(all).subspan(one.first, one.count)),
                        console);
    if (!held) console.warn(held.error().message());
  }
  return {};
}

void print_rules(const Console& console) {
  for (const Rule* rule : rule::all()) {
    const char* const fix = rule->fix == Fix::safe ? "  [fixable]" : "";
    std::string line(rule->id);
    line.append("  ").append(to_string(rule->severity));
    line.resize(std::max<std::size_t>(line.size(), 16), ' ');
    console.out().write(line.append(rule->summary).append(fix).append("\n"));
  }
}

ExitCode print_explanation(const Console& console, const std::string& id) {
  const Rule* const rule = rule::find(id);
  if (rule == nullptr) return console.fail("no rule " + id + "; --rules lists them");
  const std::size_t width = help_width(STDOUT_FILENO);
  const std::string title = std::string(rule->id) + " (" + std::string(to_string(rule->severity)) +
                            "): " + std::string(rule->summary);
  console.out().write(wrapped(title, width) + "\n" + wrapped(rule->explanation, width));
  return ExitCode::ok;
}

void write_statistics(OutputFile& out, const std::vector<Diagnostics>& all) {
  for (const Rule* rule : rule::all()) {
    std::uint64_t count = 0;
    for (const Diagnostics& one : all) count += one.count_of(*rule);
    if (count == 0) continue;
    std::string line = std::to_string(count);
    line.insert(0, line.size() < 8 ? 8 - line.size() : 0, ' ');
    line.append("  ").append(rule->id).append("  ").append(to_string(rule->severity));
    line.append(": ").append(rule->summary).append("\n");
    out.write(line);
  }
}

void write_findings(OutputFile& out, bool color, const std::string& format,
                    const std::vector<FileFindings>& files) {
  if (format == "json") return out.write(to_lint_json(files));
  if (format == "jsonl") return out.write(to_lint_jsonl(files));
  if (format == "sarif") return out.write(to_sarif(files, PERFMAP_VERSION, PERFMAP_DOCS_URI));
  for (const FileFindings& file : files) {
    for (const Diagnostic& finding : file.findings->items()) {
      out.write(format == "pretty" ? to_pretty(finding, file.file, file.input, color)
                : format == "gcc"  ? to_gcc(finding, file.file)
                                   : to_github(finding, file.file));
    }
  }
}

/// "3 errors, 1 warning; …": all findings, also those that were not printed.
void note_summary(const Console& console, const std::vector<Diagnostics>& all) {
  std::uint64_t counts[3] = {};
  std::uint64_t hidden = 0;
  for (const Diagnostics& one : all) {
    for (const Severity severity : {Severity::info, Severity::warning, Severity::error}) {
      counts[static_cast<std::size_t>(severity)] += one.total(severity);
    }
    hidden += one.total() - one.items().size();
  }
  std::string text = counted(counts[2], "error") + ", " + counted(counts[1], "warning") + ", " +
                     std::to_string(counts[0]) + " info";
  if (hidden != 0) {
    text += "; " + std::to_string(hidden) + " of them not shown (--max-findings 0 shows all)";
  }
  console.note(text);
}

/// Findings that --max-findings keeps, but a SARIF report does not.
void note_sarif_limit(const Console& console, const std::vector<Diagnostics>& all) {
  std::uint64_t kept = 0;
  for (const Diagnostics& one : all) kept += one.items().size();
  if (kept <= kMaxSarifResults) return;
  console.note("the SARIF report has no more than the " + std::to_string(kMaxSarifResults) +
               " worst findings, because GitHub refuses more: " +
               std::to_string(kept - kMaxSarifResults) + " are left out");
}

struct LintOptions {
  std::vector<Source> sources;
  SourceOptions opening;
  std::string format;
  std::string output = "-";
  std::vector<std::string> select;
  std::vector<std::string> ignore;
  std::string severity = "info";
  std::string fail_level = "warning";
  std::string reader = "all";
  std::size_t max_findings = 20;
  bool statistics = false;
  bool list_rules = false;
  std::string explain;
  std::string recording;
  FixOptions fix;
};

Severity severity_of(const std::string& name) {
  return name == "info" ? Severity::info : name == "warning" ? Severity::warning : Severity::error;
}

Reader reader_of(const std::string& name) {
  if (name == "perf") return Reader::perf;
  if (name == "bcc") return Reader::bcc;
  if (name == "blazesym") return Reader::blazesym;
  return name == "samply" ? Reader::samply : Reader::all;
}

/// Whether one of the ids is the rule's id or its beginning: PM1 selects all of PM1xx.
bool names_rule(const std::vector<std::string>& ids, const Rule& rule) {
  return std::any_of(ids.begin(), ids.end(),
                     [&](const std::string& id) { return rule.id.starts_with(id); });
}

Diagnostics make_collector(const LintOptions& options) {
  Diagnostics problems(options.max_findings);
  for (const Rule* rule : rule::all()) {
    const bool wanted = options.select.empty() || names_rule(options.select, *rule);
    const bool hurts =
        options.reader == "all" || intersects(rule->hurts, reader_of(options.reader));
    if (!wanted || !hurts || names_rule(options.ignore, *rule) ||
        rule->severity < severity_of(options.severity)) {
      problems.ignore(*rule);
    }
  }
  return problems;
}

bool reaches(const std::vector<Diagnostics>& all, const std::string& fail_level) {
  if (fail_level == "never") return false;
  return std::any_of(all.begin(), all.end(), [&](const Diagnostics& one) {
    for (const Severity severity : {Severity::info, Severity::warning, Severity::error}) {
      if (severity >= severity_of(fail_level) && one.total(severity) != 0) return true;
    }
    return false;
  });
}

Diagnostics findings_of(const LintSource& source, std::span<const pid_t> namespace_pids,
                        const LintOptions& options, const Console& console) {
  const Step step(console, "checking " + input_of(source).name());
  Diagnostics found = make_collector(options);
  if (const auto* const dump = std::get_if<Jitdump>(&source)) {
    lint(*dump, found, namespace_pids);
  } else if (const auto* const list = std::get_if<ImageList>(&source)) {
    lint(*list, found);
  } else {
    lint(std::get<Map>(source), found, options.opening.writers);
  }
  return found;
}

/// "fixed 3 findings in a.map (PM005, PM101)".
void note_fixed(const std::string& name, const Diagnostics& before, const Diagnostics& after,
                const Console& console) {
  std::uint64_t count = 0;
  std::string ids;
  for (const Rule* rule : rule::all()) {
    const std::uint64_t had = before.count_of(*rule);
    const std::uint64_t has = after.count_of(*rule);
    if (has >= had) continue;
    count += had - has;
    ids.append(ids.empty() ? "" : ", ").append(rule->id);
  }
  if (count != 0)
    console.note("fixed " + counted(count, "finding") + " in " + name + " (" + ids + ")");
}

/// Fixes the source, or prints how. A fixed file is read again, and only its remaining findings
/// count.
Result<void> fix_source(LintSource& source, std::span<const pid_t> namespace_pids,
                        Diagnostics& found, const LintOptions& options, const Console& console) {
  const Result<bool> fixed = apply_fixes(source, found, options.fix, console);
  if (!fixed) return failure(fixed);
  if (!options.fix.fix || !*fixed) return {};
  Result<LintSource> again = open_lint_file_again(input_of(source), options.opening);
  if (!again) return failure(again);
  source = *std::move(again);
  const Diagnostics before = std::move(found);
  found = findings_of(source, namespace_pids, options, console);
  note_fixed(input_of(source).name(), before, found, console);
  return {};
}

/// Rules about several sources run last, because fixes change their findings.
void check_together(const std::vector<LintSource>& sources, std::vector<Diagnostics>& all,
                    const Console& console) {
  if (sources.size() < 2) return;
  const Step step(console, "comparing");
  lint_together(linted(sources, all));
}

bool is_whole(const Console& console, const std::vector<LintSource>& sources) {
  return std::all_of(sources.begin(), sources.end(), [&](const LintSource& source) {
    return app::is_whole(console, input_of(source));
  });
}

/// Writes the findings, or their numbers, to standard output or to the file of -o.
Result<void> write_answer(const Console& console, const LintOptions& options,
                          const std::vector<LintSource>& sources,
                          const std::vector<Diagnostics>& all) {
  if (options.fix.diff && !options.statistics) return {};
  std::vector<FileFindings> files;
  for (std::size_t i = 0; i < sources.size(); ++i) {
    files.push_back({input_of(sources[i]).name(), text_of(sources[i]), &all[i],
                     std::get_if<Jitdump>(&sources[i])});
  }
  const auto write = [&](OutputFile& out, bool color) {
    if (options.statistics) return write_statistics(out, all);
    write_findings(out, color, options.format, files);
  };
  if (options.output == "-") {
    const bool has_colors = options.format == "pretty" && !options.statistics;
    has_colors ? console.with_colors(write) : write(console.out(), false);
    return {};
  }
  Result<OutputFile> out = open_output(options.output);
  if (!out) return failure(out);
  write(*out, false);
  return out->commit();
}

Result<void> check_output(const LintOptions& options, const std::vector<LintSource>& sources) {
  for (const LintSource& source : sources) {
    if (auto other = check_other_file(options.output, input_of(source)); !other) return other;
  }
  return {};
}

/// --rules and --explain, which use no sources.
ExitCode print_about_rules(const LintOptions& options, const Console& console) {
  const std::string name = options.list_rules ? "--rules" : "--explain";
  if (!options.sources.empty()) return console.fail(name + " takes no SOURCE");
  if (options.format != "pretty") return console.fail(name + " supports only --format pretty");
  if (!options.list_rules) return print_explanation(console, options.explain);
  print_rules(console);
  return ExitCode::ok;
}

ExitCode run_lint(const LintOptions& given, const Console& console) {
  FileWriters writers;
  LintOptions options = given;
  options.opening.writers = &writers;
  if (options.list_rules || !options.explain.empty()) return print_about_rules(options, console);
  const Result<void> number = check_number(options.sources, 1, SIZE_MAX);
  if (!number) return console.fail(number.error());
  if (options.statistics && options.format != "pretty" && options.format != "gcc") {
    return console.fail("--statistics supports only --format pretty and --format gcc");
  }
  if (options.fix.diff && (options.format != "pretty" || options.statistics)) {
    return console.fail(options.statistics ? "--diff does not support --statistics"
                                           : "--diff supports only --format pretty");
  }
  if (options.fix.force && !options.fix.fix) return console.fail("--force requires --fix");
  const std::string& output = options.output;
  if (options.fix.fix && (output.ends_with(".map") || output.ends_with(".dump"))) {
    return console.fail(
        "--fix changes the file itself, and -o is for the report: use 'perfmap tidy " +
        options.sources.front().text + " -o " + output + "'");
  }
  auto sources = open_lint_sources(options.sources, options.opening, console);
  if (!sources) return console.fail(sources.error());
  const Result<void> other = check_output(options, sources->files);
  if (!other) return console.fail(other.error());
  std::vector<Diagnostics> all;
  for (std::size_t i = 0; i < sources->files.size(); ++i) {
    LintSource& source = sources->files[i];
    const std::span<const pid_t> pids = sources->namespace_pids[i];
    all.push_back(findings_of(source, pids, options, console));
    if (!options.fix.fix && !options.fix.diff) continue;
    const Result<void> fixed = fix_source(source, pids, all.back(), options, console);
    if (!fixed) return console.fail(fixed.error());
  }
  check_together(sources->files, all, console);
  check_processes(*sources, all, make_collector(options), options.opening, console);
  if (sources->files.empty() && sources->misses_any) return ExitCode::failed;
  const Result<void> held = check_recordings(options.recording, *sources, all, console);
  if (!held) return console.fail(held.error());
  if (!is_whole(console, sources->files)) return ExitCode::failed;
  const Result<void> written = write_answer(console, options, sources->files, all);
  if (!written) return console.fail(written.error());
  if (!is_whole(console, sources->files)) return ExitCode::failed;
  note_summary(console, all);
  if (options.format == "sarif") note_sarif_limit(console, all);
  if (sources->misses_any) return ExitCode::failed;
  return reaches(all, options.fail_level) ? ExitCode::findings : ExitCode::ok;
}

/// Ids are upper case; a user may type lower case.
std::string upper_case(std::string id) {
  std::transform(id.begin(), id.end(), id.begin(),
                 [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
  return id;
}

std::string check_rule_prefix(const std::string& text) {
  const auto rules = rule::all();
  const bool known = !text.empty() && std::any_of(rules.begin(), rules.end(), [&](const Rule* one) {
    return one->id.starts_with(text);
  });
  return known ? "" : "no rule begins with '" + text + "'";
}

constexpr std::array kSuffixes = {
    SuffixFormat{".sarif", "sarif"},
    SuffixFormat{".json", "json"},
    SuffixFormat{".jsonl", "jsonl"},
};

Result<void> choose_format_of(LintOptions& options, const Console& console) {
  return choose_format("--format", options.format, options.output, kSuffixes, "pretty", console);
}

void add_selection(CommandOptions& command, LintOptions& options) {
  command
      .values("--select", options.select, "IDS",
              "Apply only these rules; PM1 selects all rules that begin with PM1")
      .with_commas()
      .check(check_rule_prefix)
      .transform(upper_case);
  command.values("--ignore", options.ignore, "IDS", "Do not apply these rules")
      .with_commas()
      .check(check_rule_prefix)
      .transform(upper_case);
  command
      .value("--severity", options.severity, "LEVEL",
             "Report findings of this level or above (default: info)")
      .one_of({"info", "warning", "error"});
  command
      .value("--fail-level", options.fail_level, "LEVEL",
             "Exit with status 1 for findings of this level or above (default: warning)")
      .one_of({"info", "warning", "error", "never"});
  command
      .value("--reader", options.reader, "NAME",
             "Report only findings that affect this reader (default: all)")
      .one_of({"perf", "bcc", "blazesym", "samply", "all"});
  command
      .value("--max-findings", options.max_findings, "N",
             "Print at most N findings of each rule; 0: all (default: 20)")
      .check(check_count);
}

}  // namespace

void declare_lint(CommandOptions& command) {
  LintOptions& options = command.runs(run_lint, choose_format_of);
  options.opening.takes_others = false;
  options.opening.needs_magic = false;
  options.opening.takes_images = true;
  add_sources(command, options.sources,
              {.help = "Maps and jitdumps: paths, '-' or pids",
               .recorded = SourceWords::Recorded::each_file});
  add_source_options(command, options.opening);
  add_output_format(command, "--format", options.format,
                    {"pretty", "gcc", "json", "jsonl", "sarif", "github"}, kSuffixes, "pretty");
  const Option output = add_output(command, options.output);
  add_selection(command, options);
  command.value("--recording", options.recording, kFile,
                "Also compare the files with this recording (perf.data) of their processes");
  command.flag("--statistics", options.statistics,
               "Print only the number of findings of each rule");
  const Option fix =
      command.flag("--fix", options.fix.fix,
                   "Fix the file: rewrite a map as tidy does, or change records of a dump");
  command
      .flag("--diff", options.fix.diff,
            "Print what --fix would do: a unified diff, or a dump's changes")
      .excludes(fix)
      .excludes(output);
  command.flag("--force", options.fix.force,
               "Fix even while a process has the file open for writing");
  command.flag("--rules", options.list_rules, "List all rules").excludes(output);
  command.value("--explain", options.explain, "ID", "Explain a rule")
      .transform(upper_case)
      .excludes(output);
}

}  // namespace perfmap::app
