#include "lint_report.hpp"

#include <perfmap/lint.hpp>
#include <perfmap/rules.hpp>

namespace perfmap::app {
namespace {

std::string plural(std::uint64_t count, const char* what) {
  return std::to_string(count) + " " + what + (count == 1 ? "" : "s");
}

}  // namespace

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
  if (rule == nullptr) return console.fail("there is no rule " + id + "; --rules lists them");
  console.out().write(std::string(rule->id) + " (" + std::string(to_string(rule->severity)) +
                      "): " + std::string(rule->summary) + "\n\n");
  console.out().write(std::string(explanation(*rule)) + "\n");
  return ExitCode::ok;
}

void print_statistics(const Console& console, const std::vector<Diagnostics>& all) {
  for (const Rule* rule : rule::all()) {
    std::uint64_t count = 0;
    for (const Diagnostics& one : all) count += one.count_of(*rule);
    if (count == 0) continue;
    std::string line = std::to_string(count);
    line.insert(0, line.size() < 8 ? 8 - line.size() : 0, ' ');
    line.append("  ").append(rule->id).append("  ").append(to_string(rule->severity));
    line.append(": ").append(rule->summary).append("\n");
    console.out().write(line);
  }
}

void print_findings(const Console& console, const std::string& format,
                    const std::vector<FileFindings>& files) {
  OutputFile& out = console.out();
  if (format == "json") return out.write(to_lint_json(files));
  if (format == "jsonl") return out.write(to_lint_jsonl(files));
  if (format == "sarif") return out.write(to_sarif(files, PERFMAP_VERSION));
  for (const FileFindings& file : files) {
    for (const Diagnostic& finding : file.findings->items()) {
      if (format == "gcc") {
        out.write(to_gcc(finding, file.file));
      } else if (format == "github") {
        out.write(to_github(finding, file.file));
      } else {
        out.write(to_pretty(finding, file.file, file.input, console.color_out()));
      }
    }
  }
}

void note_summary(const Console& console, const std::vector<Diagnostics>& all) {
  std::uint64_t counts[3] = {};
  std::uint64_t hidden = 0;
  for (const Diagnostics& one : all) {
    for (const Severity severity : {Severity::info, Severity::warning, Severity::error}) {
      counts[static_cast<std::size_t>(severity)] += one.total(severity);
    }
    hidden += one.total() - one.items().size();
  }
  std::string text = plural(counts[2], "error") + ", " + plural(counts[1], "warning") + ", " +
                     std::to_string(counts[0]) + " info";
  if (hidden != 0) {
    text += "; " + std::to_string(hidden) + " of them not shown (--max-findings 0 shows all)";
  }
  console.note(text);
}

}  // namespace perfmap::app
