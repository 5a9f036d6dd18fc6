// SPDX-License-Identifier: MIT
#include <algorithm>
#include <string>

#include "perfmap/json.hpp"
#include "perfmap/profile/report.hpp"
#include "perfmap/text.hpp"
#include "report/seconds.hpp"
#include "stacks/writers.hpp"

namespace perfmap {

namespace {

using Event = ProfileReport::Event;

/// A value of a column: samples, or what a weighted event counts.
std::string amount(const Event& event, std::uint64_t value) {
  const bool is_weighted_time = event.is_time && !event.unit.empty();
  return is_weighted_time ? seconds(value) : std::to_string(value);
}

/// "600 samples of cpu-clock, 6.000 s, 1 process", or of merged stacks "…, 2 recordings".
std::string title_of(const Event& event, const StackProfile& profile) {
  std::string name;
  append_visible(name, event.name);
  std::string title = amount(event, event.total.samples);
  if (event.unit.empty()) {
    title = counted(event.total.samples, "sample");
  } else if (!event.is_time && event.unit != "count") {
    title += " ";
    append_visible(title, event.unit);
  }
  title += (event.unit == "count" ? " " : " of ") + name;
  if (event.unit.empty() && event.is_time) title += ", " + seconds(event.total.period);
  title += ", ";
  if (!profile.is_merged) return title + counted(event.processes, "process", "processes");
  append_visible(title, profile.title);
  return title;
}

std::string upper(std::string_view word) {
  std::string text(word);
  for (char& c : text) c = c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
  return text;
}

/// " [libc.so.6]", " [turbofan, interpreted]"; empty if the name says it.
std::string suffix_of(std::string_view name, std::string_view module, FrameKind kind,
                      const std::vector<std::string_view>& tiers) {
  std::string text;
  for (const std::string_view tier : tiers) text.append(text.empty() ? "" : ", ").append(tier);
  if (text.empty()) text = base_name(module);
  if (text.empty() && kind == FrameKind::jit) text = "jit";
  if (text.empty()) return text;
  if (text.front() != '[') text.insert(0, "[").append("]");
  return text == name || module == name ? "" : " " + text;
}

std::string suffix_of(const ReportRow& row, ReportBy by) {
  switch (by) {
    case ReportBy::module:
    case ReportBy::runtime:
    case ReportBy::thread:
    case ReportBy::process:
    case ReportBy::label: return "";
    case ReportBy::tier: return suffix_of(row.name, row.module, FrameKind::unknown, {});
    default: return suffix_of(row.name, row.module, row.kind, row.tiers);
  }
}

/// A function of a file is "name (a.c:12)", a line "name (/src/a.c:12)". A script's function often
/// has its file and line in its name.
std::string placed_name(std::string_view name, std::string_view file, std::uint32_t line,
                        ReportBy by) {
  std::string text(name);
  if (line == 0) return text;
  const std::string number = std::to_string(line);
  if (file.empty()) return text + " (line " + number + ")";
  const std::string place = std::string(file) + ":" + number;
  if (text.find(place + ":") != std::string::npos || text.ends_with(place)) return text;
  return text + " (" + (by == ReportBy::line ? place : std::string(base_name(place))) + ")";
}

/// The longest beginning of the text with at most `width` characters.
std::string_view fitting(std::string_view text, std::size_t width) {
  std::size_t end = 0;
  for (std::size_t count = 0; end < text.size(); ++end) {
    if ((text[end] & '\xc0') != '\x80' && count++ == width) break;
  }
  return text.substr(0, end);
}

constexpr std::string_view kBold = "\x1b[1m";
constexpr std::string_view kDim = "\x1b[2m";
constexpr std::string_view kRed = "\x1b[1;31m";
constexpr std::string_view kGreen = "\x1b[1;32m";
constexpr std::string_view kPlain = "\x1b[0m";

/// The colours of perf: red from 5 %, green from 0.5 %.
std::string_view color_of(std::uint64_t part, std::uint64_t whole) {
  const std::uint64_t tenths = scaled_ratio(part, whole, 3);
  return tenths >= 50 ? kRed : tenths >= 5 ? kGreen : std::string_view();
}

/// Lines of a table: numbers, then a name that may be wrapped.
class TextTable {
 public:
  TextTable(const ReportOutput& output, OutputFile& out) : output_(output), out_(out) {}

  struct Line {
    std::vector<std::string> numbers;
    std::string name;
    std::string suffix;
    std::string_view color;  ///< of the numbers
    std::size_t indent = 0;
  };

  void add(Line line) {
    widths_.resize(line.numbers.size());
    for (std::size_t i = 0; i < widths_.size(); ++i) {
      widths_[i] = std::max(widths_[i], line.numbers[i].size());
    }
    lines_.push_back(std::move(line));
  }

  void write() {
    for (const Line& line : lines_) write_line(line);
  }

 private:
  void write_line(const Line& line) {
    std::string text;
    for (std::size_t i = 0; i < widths_.size(); ++i) {
      text.append(widths_[i] - line.numbers[i].size(), ' ').append(line.numbers[i]).append("  ");
    }
    const std::size_t begin = text.size() + line.indent;
    paint(line.color, text);
    out_.write(std::string(line.indent, ' '));
    write_name(line, begin);
    out_.write("\n");
  }

  /// Continues in the next line, below its first character, if the name is too long.
  void write_name(const Line& line, std::size_t begin) {
    std::string name, suffix;
    append_visible(name, line.name);
    append_visible(suffix, line.suffix);
    constexpr std::size_t kLeast = 20;
    const bool wraps = output_.width >= begin + kLeast;
    std::size_t left = wraps ? output_.width - begin : SIZE_MAX;
    const auto put = [&](std::string_view text, std::string_view color) {
      while (!text.empty()) {
        const std::string_view part = fitting(text, left);
        paint(color, part);
        text.remove_prefix(part.size());
        left -= wraps ? character_count(part) : 0;
        if (text.empty()) return;
        out_.write("\n" + std::string(begin, ' '));
        left = output_.width - begin;
      }
    };
    put(name, line.numbers.front().find_first_of("0123456789") == std::string::npos ? kBold : "");
    put(suffix, kDim);
  }

  void paint(std::string_view color, std::string_view text) {
    if (!output_.color || color.empty()) {
      out_.write(text);
    } else {
      out_.write(std::string(color).append(text).append(kPlain));
    }
  }

  const ReportOutput& output_;
  OutputFile& out_;
  std::vector<Line> lines_;
  std::vector<std::size_t> widths_;
};

void write_event_text(const ProfileReport& report, const Event& event, const ReportOutput& output,
                      OutputFile& out) {
  const std::vector<ReportRow> rows = report.rows(event.number, output.order);
  TextTable table(output, out);
  const std::string by(to_string(report.options().by));
  const std::string& label = report.options().label;
  table.add({{"SELF", "SELF%", "TOTAL", "TOTAL%"},
             label.empty() ? upper(by) : upper(by) + " " + label,
             "",
             kBold});
  const std::size_t shown = std::min(rows.size(), output.top);
  const bool by_total = output.order == ProfileReport::Order::total;
  const std::uint64_t all = event.total.samples;
  for (const ReportRow& row : std::span(rows).first(shown)) {
    const std::uint64_t self = row.self.samples;
    const std::uint64_t total = row.total.samples;
    table.add({{amount(event, self), percent_text(self, all, 2), amount(event, total),
                percent_text(total, all, 2)},
               placed_name(row.name, row.file, row.line, report.options().by),
               suffix_of(row, report.options().by),
               color_of(by_total ? total : self, all)});
  }
  table.write();
  if (const std::size_t more = rows.size() - shown; more != 0) {
    const std::string many = by == "process" ? "processes" : by + "s";
    out.write("... " + std::to_string(more) + " more " + (more == 1 ? by : many) + "\n");
  }
}

/// Which nodes of a tree the text has.
class ShownNodes {
 public:
  explicit ShownNodes(const std::vector<ReportTreeNode>& nodes, std::size_t top)
      : is_shown_(nodes.size()) {
    constexpr std::uint64_t kMinShare = 5;  // per mille
    constexpr std::uint32_t kMaxDepth = 32;
    const std::uint64_t all = nodes.front().total.samples;
    for (std::size_t i = 0; i < nodes.size(); ++i) {
      const bool is_large = scaled_ratio(nodes[i].total.samples, all, 3) >= kMinShare;
      const bool has_parent = i == 0 || is_shown_[nodes[i].parent];
      const bool is_wanted = is_large && has_parent && nodes[i].depth <= kMaxDepth;
      is_shown_[i] = is_wanted && count_ < top;
      count_ += is_shown_[i] ? 1 : 0;
      is_full_ = is_full_ || (is_wanted && !is_shown_[i]);
    }
  }
  bool has(std::size_t node) const { return is_shown_[node]; }
  std::size_t count() const noexcept { return count_; }
  /// Whether `top` nodes are shown, and would not be all.
  bool is_full() const noexcept { return is_full_; }

 private:
  std::vector<bool> is_shown_;
  std::size_t count_ = 0;
  bool is_full_ = false;
};

void write_tree_text(const std::vector<ReportTreeNode>& nodes, const std::string& title,
                     ReportBy by, const Event& event, const ReportOutput& output, OutputFile& out) {
  out.write(title);
  if (nodes.empty()) {
    out.write(": no samples\n");
    return;
  }
  const std::uint64_t all = event.total.samples;
  const std::uint64_t root = nodes.front().total.samples;
  out.write(": " + amount(event, root) + " (" + percent_text(root, all, 2) + ")\n");
  TextTable table(output, out);
  table.add({{"TOTAL", "TOTAL%", "SHARE"}, upper(to_string(by)), "", kBold});
  const ShownNodes shown(nodes, output.top);
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    if (!shown.has(i)) continue;
    const ReportTreeNode& node = nodes[i];
    const std::uint64_t total = node.total.samples;
    table.add({{amount(event, total), percent_text(total, all, 2), percent_text(total, root, 2)},
               placed_name(node.name, node.file, node.line, by),
               suffix_of(node.name, node.module, node.kind, {}),
               color_of(total, root),
               2 * std::size_t{node.depth}});
  }
  table.write();
  if (const std::size_t more = nodes.size() - shown.count(); more != 0) {
    out.write("... " + std::to_string(more) + " more" +
              (shown.is_full() ? "" : " in small or deep branches") + "\n");
  }
}

void write_trees_text(const ProfileReport& report, const Event& event, const ReportOutput& output,
                      OutputFile& out) {
  const ReportBy by = report.options().by;
  const auto title = [&](std::string_view what, const std::vector<std::uint32_t>& rows) {
    std::string text = std::string(what) + " of ";
    append_visible(text, report.name(rows.front()));
    return text;
  };
  if (!output.callers.empty()) {
    write_tree_text(report.callers(event.number, output.callers), title("callers", output.callers),
                    by, event, output, out);
  }
  if (!output.callers.empty() && !output.callees.empty()) out.write("\n");
  if (!output.callees.empty()) {
    write_tree_text(report.callees(event.number, output.callees), title("callees", output.callees),
                    by, event, output, out);
  }
}

/// Shares have six decimals, truncated.
constexpr unsigned kShareDecimals = 6;

void write_counts_json(std::string_view name, const ReportCounts& counts, const ReportCounts& all,
                       JsonWriter& json) {
  json.member(name, counts.samples);
  json.decimal(std::string(name) + "_share",
               scaled_ratio(counts.samples, all.samples, kShareDecimals), kShareDecimals);
  json.member(std::string(name) + "_period", counts.period);
}

void write_row_json(const ReportRow& row, const ReportCounts& all, JsonWriter& json) {
  json.begin_object();
  json.name_members(row.name);
  json.member("kind", to_string(row.kind));
  if (!row.module.empty()) json.text_members("module", row.module);
  if (!row.tiers.empty()) {
    json.begin_array("tiers");
    for (const std::string_view tier : row.tiers) json.string(tier);
    json.end_array();
  }
  if (!row.file.empty()) json.text_members("file", row.file);
  if (row.line != 0) json.member("line", std::uint64_t{row.line});
  write_counts_json("self", row.self, all, json);
  write_counts_json("total", row.total, all, json);
  json.end_object();
}

/// Whether a row is code, with its kind.
bool is_code(ReportBy by) {
  return by != ReportBy::thread && by != ReportBy::process && by != ReportBy::label;
}

/// A thread, a process, or the value of a label.
void write_samples_json(const ReportRow& row, ReportBy by, const ReportCounts& all,
                        JsonWriter& json) {
  json.begin_object();
  json.name_members(row.name);
  if (by != ReportBy::label) json.integer("pid", row.pid);
  if (by == ReportBy::thread) json.integer("tid", row.tid);
  write_counts_json("self", row.self, all, json);
  write_counts_json("total", row.total, all, json);
  json.end_object();
}

void write_tree_json(std::string_view key, const std::vector<ReportTreeNode>& nodes,
                     const ReportCounts& all, JsonWriter& json) {
  json.begin_array(key);
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    const ReportTreeNode& node = nodes[i];
    json.newline();
    json.begin_object();
    json.name_members(node.name);
    json.member("kind", to_string(node.kind));
    if (!node.module.empty()) json.text_members("module", node.module);
    if (!node.file.empty()) json.text_members("file", node.file);
    if (node.line != 0) json.member("line", std::uint64_t{node.line});
    json.member("depth", std::uint64_t{node.depth});
    if (i != 0) json.member("parent", std::uint64_t{node.parent});
    write_counts_json("self", node.self, all, json);
    write_counts_json("total", node.total, all, json);
    json.end_object();
  }
  json.end_array();
}

void write_event_json(const ProfileReport& report, const Event& event, const ReportOutput& output,
                      JsonWriter& json) {
  json.begin_object();
  json.name_members(event.name);
  json.member("unit", event.unit.empty() ? "samples" : event.unit);
  json.member("samples", event.total.samples);
  json.member("period", event.total.period);
  json.boolean("period_is_nanoseconds", event.is_time);
  json.member("processes", event.processes);
  const std::vector<ReportRow> rows = report.rows(event.number, output.order);
  const std::size_t shown = std::min(rows.size(), output.top);
  json.member("more_rows", std::uint64_t{rows.size() - shown});
  json.begin_array("rows");
  const ReportBy by = report.options().by;
  for (const ReportRow& row : std::span(rows).first(shown)) {
    json.newline();
    if (is_code(by)) {
      write_row_json(row, event.total, json);
    } else {
      write_samples_json(row, by, event.total, json);
    }
  }
  json.end_array();
  if (!output.callers.empty()) {
    write_tree_json("callers", report.callers(event.number, output.callers), event.total, json);
  }
  if (!output.callees.empty()) {
    write_tree_json("callees", report.callees(event.number, output.callees), event.total, json);
  }
  json.end_object();
}

/// A field of a line: quoted if it has to be. A spreadsheet takes a text that begins with one of
/// these for a formula, and formulas can run programs.
std::string csv_field(std::string_view text) {
  std::string field = escaped(text);
  if (field.find_first_of("=+-@\t") == 0) field.insert(0, 1, '\'');
  if (field.find_first_of("\",\r\n") == std::string::npos) return field;
  std::string quoted_field = "\"";
  for (const char c : field) quoted_field.append(c == '"' ? 2 : 1, c);
  return quoted_field + "\"";
}

std::string csv_share(std::uint64_t part, std::uint64_t whole) {
  const std::string digits = std::to_string(scaled_ratio(part, whole, kShareDecimals));
  const std::string padded = digits.size() > kShareDecimals
                                 ? digits
                                 : std::string(kShareDecimals + 1 - digits.size(), '0') + digits;
  return padded.substr(0, padded.size() - kShareDecimals) + "." +
         padded.substr(padded.size() - kShareDecimals);
}

/// A terminal would show the carriage return of RFC 4180.
void end_csv_line(OutputFile& out) { out.write(out.is_terminal() ? "\n" : "\r\n"); }

void write_row_csv(const ReportRow& row, const Event& event, ReportBy by, OutputFile& out) {
  std::string tiers;
  for (const std::string_view tier : row.tiers) tiers.append(tiers.empty() ? "" : " ").append(tier);
  const bool is_thread = by == ReportBy::thread;
  const bool is_process = by == ReportBy::process;
  const std::string fields[] = {csv_field(event.name),
                                std::to_string(row.self.samples),
                                csv_share(row.self.samples, event.total.samples),
                                std::to_string(row.total.samples),
                                csv_share(row.total.samples, event.total.samples),
                                std::to_string(row.self.period),
                                std::to_string(row.total.period),
                                csv_field(row.name),
                                csv_field(row.module),
                                is_code(by) ? std::string(to_string(row.kind)) : "",
                                csv_field(tiers),
                                csv_field(row.file),
                                row.line == 0 ? "" : std::to_string(row.line),
                                is_thread || is_process ? std::to_string(row.pid) : "",
                                is_thread ? std::to_string(row.tid) : ""};
  std::string line;
  for (const std::string& field : fields) line += (line.empty() ? "" : ",") + field;
  out.write(line);
  end_csv_line(out);
}

}  // namespace

void write_report_text(const ProfileReport& report, const ReportOutput& output, OutputFile& out) {
  bool is_first = true;
  for (const Event& event : report.events()) {
    if (!is_first) out.write("\n");
    is_first = false;
    out.write(title_of(event, report.profile()) + "\n");
    if (output.callers.empty() && output.callees.empty()) {
      write_event_text(report, event, output, out);
    } else {
      write_trees_text(report, event, output, out);
    }
  }
}

void write_report_json(const ProfileReport& report, const ReportOutput& output, OutputFile& out) {
  JsonWriter json(out);
  json.begin_object();
  json.member("schema", "perfmap.report/1");
  json.text_members("source", report.profile().title);
  json.member("by", to_string(report.options().by));
  if (!report.options().label.empty()) json.text_members("label", report.options().label);
  json.member("order", output.order == ProfileReport::Order::self ? "self" : "total");
  json.list("events", report.events(),
            [&](const Event& event) { write_event_json(report, event, output, json); });
  json.end_object();
  json.newline();
}

void write_report_csv(const ProfileReport& report, const ReportOutput& output, OutputFile& out) {
  out.write(
      "event,self,self_share,total,total_share,self_period,total_period,name,module,kind,tiers,"
      "file,line,pid,tid");
  end_csv_line(out);
  for (const Event& event : report.events()) {
    const std::vector<ReportRow> rows = report.rows(event.number, output.order);
    const std::size_t shown = std::min(rows.size(), output.top);
    for (const ReportRow& row : std::span(rows).first(shown)) {
      write_row_csv(row, event, report.options().by, out);
    }
  }
}

}  // namespace perfmap
