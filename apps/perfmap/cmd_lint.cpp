#include <algorithm>
#include <cctype>
#include <perfmap/lint.hpp>
#include <perfmap/rules.hpp>

#include "command_line.hpp"
#include "lint_fix.hpp"
#include "lint_process.hpp"
#include "lint_recording.hpp"
#include "lint_report.hpp"
#include "lint_source.hpp"
#include "source.hpp"

namespace perfmap::app {
namespace {

struct Options {
  std::vector<std::string> sources;
  SourceOptions opening;
  std::string format;
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

/// Whether one of the ids is the rule's or the beginning of it: PM1 stands for all of PM1xx.
bool names_rule(const std::vector<std::string>& ids, const Rule& rule) {
  return std::any_of(ids.begin(), ids.end(),
                     [&](const std::string& id) { return rule.id.starts_with(id); });
}

Diagnostics make_collector(const Options& options) {
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
                        const Options& options, const Console& console) {
  const Step step(console, "checking " + input_of(source).name());
  Diagnostics found = make_collector(options);
  if (const auto* const dump = std::get_if<Jitdump>(&source)) {
    lint(*dump, found, namespace_pids);
  } else {
    lint(std::get<Map>(source), found);
  }
  return found;
}

/// Fixes the source, or prints how; what is left counts: the file is read again as it is then.
Result<void> fix_source(LintSource& source, std::span<const pid_t> namespace_pids,
                        Diagnostics& found, const Options& options, const Console& console) {
  const Result<bool> fixed = apply_fixes(source, found, options.fix, console);
  if (!fixed) return Failure(fixed.error());
  if (!options.fix.fix || !*fixed) return {};
  Result<LintSource> again = open_lint_file_again(input_of(source), options.opening);
  if (!again) return Failure(std::move(again.error()));
  source = *std::move(again);
  found = findings_of(source, namespace_pids, options, console);
  return {};
}

/// What the sources say about each other comes last: fixes may change it.
void check_together(const std::vector<LintSource>& sources, std::vector<Diagnostics>& all,
                    const Console& console) {
  if (sources.size() < 2) return;
  const Step step(console, "comparing");
  std::vector<LintedFile> files;
  for (std::size_t i = 0; i < sources.size(); ++i) files.push_back(linted(sources[i], all[i]));
  lint_together(files);
}

bool is_whole(const Console& console, const std::vector<LintSource>& sources) {
  return std::all_of(sources.begin(), sources.end(), [&](const LintSource& source) {
    return app::is_whole(console, input_of(source));
  });
}

void print_answer(const Console& console, const Options& options,
                  const std::vector<LintSource>& sources, const std::vector<Diagnostics>& all) {
  std::vector<FileFindings> files;
  for (std::size_t i = 0; i < sources.size(); ++i) {
    files.push_back({input_of(sources[i]).name(), text_of(sources[i]), &all[i]});
  }
  if (options.statistics) {
    print_statistics(console, all);
  } else if (!options.fix.diff) {
    print_findings(console, options.format, files);
  }
}

ExitCode run(const Options& options, const Console& console) {
  if (options.list_rules) return print_rules(console), ExitCode::ok;
  if (!options.explain.empty()) return print_explanation(console, options.explain);
  if (options.sources.empty()) return console.fail("expected a source: a path, '-' or a pid");
  if (options.statistics && options.format != "pretty" && options.format != "gcc") {
    return console.fail("--statistics prints text, not " + options.format);
  }
  auto sources = open_lint_sources(options.sources, options.opening, console);
  if (!sources) return console.fail(sources.error());
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
  const Result<void> checked =
      check_processes(*sources, all, make_collector(options), options.opening, console);
  if (!checked) return console.fail(checked.error());
  if (!options.recording.empty()) {
    const Result<void> held = check_recording(options.recording, *sources, all, console);
    if (!held) return console.fail(held.error());
  }
  if (!is_whole(console, sources->files)) return ExitCode::failed;
  print_answer(console, options, sources->files, all);
  if (!is_whole(console, sources->files)) return ExitCode::failed;
  note_summary(console, all);
  return reaches(all, options.fail_level) ? ExitCode::findings : ExitCode::ok;
}

/// Ids are upper case; what a user types need not be.
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

void add_selection(CommandOptions& command, Options& options) {
  command.values("--select", options.select, "IDS", "Only these rules: ids or their beginnings")
      .with_commas()
      .check(check_rule_prefix)
      .transform(upper_case);
  command.values("--ignore", options.ignore, "IDS", "Not these rules")
      .with_commas()
      .check(check_rule_prefix)
      .transform(upper_case);
  command.value("--severity", options.severity, "LEVEL", "Nothing below this (default: info)")
      .one_of({"info", "warning", "error"});
  command
      .value("--fail-level", options.fail_level, "LEVEL",
             "Exit with 1 from this level on (default: warning)")
      .one_of({"info", "warning", "error", "never"});
  command.value("--reader", options.reader, "NAME", "Only what hurts this reader (default: all)")
      .one_of({"perf", "bcc", "blazesym", "samply", "all"});
  command
      .value("--max-findings", options.max_findings, "N",
             "Show so many of each rule, 0 for all (default: 20)")
      .check(check_count);
}

}  // namespace

void declare_lint(CommandOptions& command) {
  Options& options = command.runs(run);
  options.opening.takes_others = false;
  options.opening.needs_magic = false;
  command.positional("source", options.sources, kSource, "Maps and jitdumps: paths, '-' or pids");
  add_source_options(command, options.opening);
  add_format(command, options.format, {"pretty", "gcc", "json", "jsonl", "sarif", "github"});
  add_selection(command, options);
  command.value("--recording", options.recording, kFile,
                "Also hold the files against this recording (perf.data) of their processes");
  command.flag("--statistics", options.statistics, "Count findings by rule instead");
  const Option fix =
      command.flag("--fix", options.fix.fix, "Rewrite the map as tidy does, or the dump");
  command
      .flag("--diff", options.fix.diff,
            "Print what --fix would do: a unified diff, or a dump's changes")
      .excludes(fix);
  command.flag("--force", options.fix.force,
               "Fix even while a process has the file open for writing");
  command.flag("--rules", options.list_rules, "List all rules");
  command.value("--explain", options.explain, "ID", "Explain a rule").transform(upper_case);
}

}  // namespace perfmap::app
