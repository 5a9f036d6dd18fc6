// SPDX-License-Identifier: MIT
#include "annotate/annotation_page.hpp"

#include <algorithm>
#include <set>
#include <utility>

#include "annotate/heat.hpp"
#include "annotate/listed_text.hpp"
#include "base/html.hpp"
#include "perfmap/profile/annotate.hpp"
#include "perfmap/text.hpp"
#include "stacks/writers.hpp"

namespace perfmap {
namespace {

std::string cell(std::string_view content) { return html_element("td", content); }
std::string number(std::string_view digits) { return html_element("td", digits, " class=\"n\""); }
/// Empty if the number is 0.
std::string count(std::uint64_t value) { return number(value == 0 ? "" : std::to_string(value)); }

std::string link(const std::string& to, std::string_view content) {
  return html_element("a", content, " href=\"#" + to + "\"");
}

constexpr std::size_t kMaxLine = 1000;  // bytes of source text

using LineKey = std::pair<std::uint32_t, std::uint32_t>;  // file, line
LineKey key_of(const LineSamples& line) { return {line.file, line.line}; }

/// What must be known of the rows with instructions before they are written.
struct ListedRows {
  std::set<LineKey> lines;                                       ///< that rows belong to
  std::vector<std::pair<std::uint64_t, std::uint64_t>> hottest;  ///< samples and offset
};

ListedRows look_ahead(const CodeVersion& version, const Disassembler* disassembler) {
  constexpr std::size_t kMaxHottest = 5;
  ListedRows found;
  list_code(version, disassembler, [&](const ListingRow& row) {
    if (row.place != nullptr) found.lines.emplace(row.place->file, row.place->line);
    if (row.self == 0) return;
    const auto colder = std::ranges::find_if(
        found.hottest, [&](const auto& other) { return other.first < row.self; });
    found.hottest.emplace(colder, row.self, row.offset);
    if (found.hottest.size() > kMaxHottest) found.hottest.pop_back();
  });
  return found;
}

/// Writes the part of the page for one version. Its identifiers begin with `id_`.
class VersionSection {
 public:
  VersionSection(std::string id, const CodeVersion& version, const Disassembler* disassembler,
                 const AnnotationPageOptions& options, SourceText& source, OutputFile& out)
      : id_(std::move(id)),
        version_(version),
        disassembler_(disassembler),
        options_(options),
        source_(source),
        out_(out) {}

  /// `samples` are those of all functions. `idle_rows` is how many instructions without samples the
  /// page may still have.
  void write(bool has_heading, std::uint64_t samples, std::uint64_t& idle_rows) {
    out_.write("<section id=\"" + id_ + "\">");
    if (has_heading) out_.write(html_element("h2", html_text(version_.name)));
    write_facts(samples);
    if (!version_.no_code.empty()) {
      out_.write(html_element("p", "No code: " + html_text(version_.no_code) + ".") + "\n");
    }
    if (options_.instructions) rows_ = look_ahead(version_, disassembler_);
    if (options_.lines) lines_ = list_lines(version_, source_);
    write_hottest();
    out_.write("<div class=\"listings\">\n");
    if (options_.lines) write_lines();
    if (options_.instructions) write_code(idle_rows);
    out_.write("</div></section>\n");
  }

 private:
  void fact(std::string_view term, const std::string& content) {
    out_.write("<div>" + html_element("dt", term) + html_element("dd", content) + "</div>");
  }

  void write_facts(std::uint64_t samples) {
    out_.write("<dl class=\"facts\">");
    fact("Samples", std::to_string(version_.self));
    fact("Share of all", html_percent(version_.self, samples));
    fact("With its callees", std::to_string(version_.total));
    if (!version_.tier.empty()) fact("Tier", html_text(version_.tier));
    if (!version_.inlined_into.empty()) fact("Inlined into", html_text(version_.inlined_into));
    fact("Module", html_text(version_.module));
    fact("Address", "0x" + to_hex(version_.range.begin));
    if (version_.range.size != 0) fact("Size", counted(version_.range.size, "byte"));
    if (version_.since) fact("From", seconds_text(*version_.since) + " s");
    if (version_.until) fact("Until", seconds_text(*version_.until) + " s");
    out_.write("</dl>\n");
  }

  void write_hottest() {
    if (rows_.hottest.empty()) return;
    std::string links;
    for (const auto& [self, offset] : rows_.hottest) {
      links += " " + html_element("span", link(row_id(offset), "+0x" + to_hex(offset)) + " " +
                                              html_percent(self, version_.self));
    }
    out_.write(html_element("p", "Hottest:" + links, " class=\"hottest\"") + "\n");
  }

  std::string row_id(std::uint64_t offset) const { return id_ + "-" + to_hex(offset); }
  /// The rows of a source line in the table of instructions, and in that of lines.
  std::string code_id(LineKey line) const { return line_id("-c", line); }
  std::string source_id(LineKey line) const { return line_id("-s", line); }
  std::string line_id(const char* table, LineKey line) const {
    return id_ + table + std::to_string(line.first) + "-" + std::to_string(line.second);
  }

  /// The attribute of a row that has the class of its heat.
  std::string heat(std::uint64_t self) const {
    const std::uint64_t hundredths = scaled_ratio(self, version_.self, 4);
    const auto level = std::ranges::upper_bound(kHeat, hundredths) - kHeat.begin();
    return level == 0 ? "" : " class=\"h" + std::to_string(level) + "\"";
  }

  std::string counts(std::uint64_t self, std::uint64_t total) const {
    return number(self == 0 ? "" : html_percent(self, version_.self)) + count(self) + count(total);
  }

  void begin_table(std::string_view label, std::string_view position, std::string_view text) {
    // With a tab index, keys scroll it.
    out_.write("<div class=\"wide\" role=\"region\" tabindex=\"0\" aria-label=\"" +
               std::string(label) + "\"><table class=\"code\">\n<thead><tr>");
    for (const std::string_view name : {"Percent", "Self", "Total"}) {
      out_.write(html_element("th", name, " scope=\"col\" class=\"n\""));
    }
    out_.write(html_element("th", position, " scope=\"col\" class=\"n\"") +
               html_element("th", text, " scope=\"col\"") + "</tr></thead><tbody>\n");
  }
  void end_table() { out_.write("</tbody></table></div>\n"); }
  void write_row(const std::string& cells, const std::string& attributes = "") {
    out_.write(html_element("tr", cells, attributes) + "\n");
  }
  /// A row of one text.
  void write_wide_row(const std::string& content, const std::string& attributes) {
    write_row("<td colspan=\"3\"></td>" + html_element("td", content, " colspan=\"2\""),
              attributes);
  }

  /// The lines of each file, with those between them if they are few.
  void write_lines() {
    if (lines_.empty()) {
      out_.write("<p class=\"none\">No source lines are known.</p>\n");
      return;
    }
    begin_table("Source lines", "Line", "Source");
    constexpr std::uint32_t kGap = 4;
    const LineSamples* last = nullptr;
    std::uint64_t known = 0;
    for (const LineSamples& line : lines_) {
      const std::string& file = version_.files[line.file];
      const bool is_new_file = last == nullptr || last->file != line.file;
      const bool is_near = !is_new_file && line.line - last->line <= kGap;
      if (is_new_file) {
        write_wide_row(html_text(title_of(file, source_)), " class=\"place\"");
      } else if (!is_near) {
        write_wide_row("…", " class=\"place\"");
      }
      for (std::uint32_t n = is_near ? last->line + 1 : line.line; n < line.line; ++n) {
        if (source_.line(file, n)) write_line({line.file, n, 0, 0});
      }
      write_line(line);
      known += line.self;
      last = &line;
    }
    if (known != version_.self) {
      const std::uint64_t rest = version_.self - known;
      write_row(counts(rest, 0) + number("–") + cell("(no line)"), heat(rest));
    }
    end_table();
  }

  void write_line(const LineSamples& line) {
    const LineKey key = key_of(line);
    const std::string digits = std::to_string(line.line);
    const auto text = source_.line_without_tabs(version_.files[line.file], line.line);
    write_row(counts(line.self, line.total) +
                  number(rows_.lines.contains(key) ? link(code_id(key), digits) : digits) +
                  cell(text ? html_text(cut_line(*text, kMaxLine)) : ""),
              heat(line.self) + " id=\"" + source_id(key) + "\"");
  }

  void write_code(std::uint64_t& idle_rows) {
    begin_table("Instructions", "Offset", "Instruction");
    std::uint64_t left_out = 0;
    const SourcePlace* last = nullptr;
    list_code(version_, disassembler_, [&](const ListingRow& row) {
      const bool is_idle = row.self == 0 && row.total == 0;
      if (is_idle && idle_rows == 0) {
        ++left_out;
        return;
      }
      idle_rows -= is_idle ? 1 : 0;
      const bool is_new =
          row.place != nullptr &&
          (last == nullptr || last->file != row.place->file || last->line != row.place->line);
      if (options_.lines && is_new) write_place(*row.place);
      if (row.place != nullptr) last = row.place;
      write_row(counts(row.self, row.total) + number(to_hex(row.offset)) + cell(text_of(row)),
                heat(row.self) + " id=\"" + row_id(row.offset) + "\"");
    });
    if (left_out != 0) {
      write_wide_row(counted(left_out, "instruction") +
                         " without samples left out: the page would be too large",
                     " class=\"place\"");
    }
    end_table();
  }

  /// Lines without samples and text are not listed.
  bool is_listed(LineKey key) const {
    const auto at = std::ranges::lower_bound(lines_, key, {}, key_of);
    return at != lines_.end() && key_of(*at) == key;
  }

  void write_place(const SourcePlace& place) {
    const LineKey key{place.file, place.line};
    const std::string& file = version_.files[place.file];
    const std::string where = html_text(base_name(file)) + ":" + std::to_string(place.line);
    std::string text = is_listed(key) ? link(source_id(key), where) : where;
    if (const auto line = source_.line_without_tabs(file, place.line)) {
      text += "  " + html_text(cut_line(*line, kMaxLine));
    }
    const bool is_first = rows_.lines.erase(key) != 0;
    write_wide_row(text, " class=\"place\"" + (is_first ? " id=\"" + code_id(key) + "\"" : ""));
  }

  std::string text_of(const ListingRow& row) const {
    if (row.text.empty()) return "–";
    std::string text = html_text(row.text);
    if (row.target && version_.range.contains(*row.target)) {
      const std::uint64_t offset = *row.target - version_.range.begin;
      text += " " + link(row_id(offset), "+0x" + to_hex(offset));
    }
    return text;
  }

  std::string id_;
  const CodeVersion& version_;
  const Disassembler* disassembler_;
  const AnnotationPageOptions& options_;
  SourceText& source_;
  OutputFile& out_;
  ListedRows rows_;
  std::vector<LineSamples> lines_;  ///< by file and line
};

void write_head(const Annotation& found, const AnnotationPageOptions& options, OutputFile& out) {
  const auto fact = [&](std::string_view term, const std::string& content) {
    out.write("<div>" + html_element("dt", term) + html_element("dd", content) + "</div>");
  };
  const std::string name = html_text(found.function.name);
  out.write("<title>" + name + " – samples of its code</title>\n</head>\n<body>\n");
  out.write(html_element("h1", name) + "\n<dl class=\"facts\">");
  fact("Recording", html_text(options.recording));
  fact("Samples of all functions", std::to_string(found.samples));
  if (found.versions.size() != 1) {
    fact("In this function", std::to_string(found.function.self) + ", " +
                                 html_percent(found.function.self, found.samples));
    fact("With its callees", std::to_string(found.function.total));
    fact("Versions", std::to_string(found.versions.size()));
  }
  out.write("</dl>\n");
  std::string legend = "Share of the samples of a version, from:";
  for (std::size_t i = 0; i < kHeat.size(); ++i) {
    const std::uint64_t share = kHeat[i];
    legend += " " + html_element("span",
                                 share < 100 ? "0." + std::to_string(share / 10) + " %"
                                             : std::to_string(share / 100) + " %",
                                 " class=\"h" + std::to_string(i + 1) + "\"");
  }
  out.write(html_element("p", legend, " class=\"legend\"") + "\n");
}

std::string id_of(std::size_t version) { return "v" + std::to_string(version + 1); }

/// A table of links to the versions.
void write_versions(const Annotation& found, OutputFile& out) {
  out.write("<div class=\"wide list\"><table>\n<thead><tr>");
  for (const char* const name : {"Share of all", "Self", "Total", "Size"}) {
    out.write(html_element("th", name, " scope=\"col\" class=\"n\""));
  }
  for (const char* const name : {"Version", "Tier", "From", "Until"}) {
    out.write(html_element("th", name, " scope=\"col\""));
  }
  out.write("</tr></thead><tbody>\n");
  const auto time = [](const std::optional<std::uint64_t>& ns) {
    return cell(ns ? seconds_text(*ns) + " s" : "");
  };
  for (std::size_t i = 0; i < found.versions.size(); ++i) {
    const CodeVersion& version = found.versions[i];
    const std::string where =
        html_text(base_name(version.module)) + ", 0x" + to_hex(version.range.begin);
    out.write(html_element("tr", number(html_percent(version.self, found.samples)) +
                                     count(version.self) + count(version.total) +
                                     count(version.range.size) + cell(link(id_of(i), where)) +
                                     cell(html_text(version.tier)) + time(version.since) +
                                     time(version.until)) +
              "\n");
  }
  out.write("</tbody></table></div>\n");
}

}  // namespace

void write_annotation_page(const Annotation& found, const AnnotationPageOptions& options,
                           SourceText& source, OutputFile& out) {
  out.write(kBeforeBody);
  write_head(found, options, out);
  if (found.versions.size() > 1) write_versions(found, out);
  const bool has_headings =
      found.versions.size() != 1 || found.versions[0].name != found.function.name;
  std::uint64_t idle_rows = options.max_idle_rows;
  for (std::size_t i = 0; i < found.versions.size(); ++i) {
    VersionSection(id_of(i), found.versions[i], found.disassemblers[i].get(), options, source, out)
        .write(has_headings, found.samples, idle_rows);
  }
  out.write("</body>");
  out.write(kAfterBody);
}

}  // namespace perfmap
