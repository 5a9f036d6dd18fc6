// SPDX-License-Identifier: MIT
#include "report/loop_page.hpp"

#include <algorithm>

#include "base/html.hpp"
#include "perfmap/pypylog.hpp"
#include "perfmap/text.hpp"

namespace perfmap {
namespace {

using Count = std::optional<std::uint64_t>;

/// A table cell with HTML, or with a right-aligned number.
std::string cell(std::string_view inside) { return html_element("td", inside); }
std::string number(std::string_view digits) { return html_element("td", digits, " class=\"n\""); }
std::string number(std::uint64_t value) { return number(std::to_string(value)); }
/// An en dash if the number is unknown.
std::string number(const Count& count) { return count ? number(*count) : number("–"); }

/// "f /tmp/t.py:10" as HTML.
std::string place_text(std::string_view function, std::string_view file, std::uint32_t line) {
  std::string text = html_text(function);
  if (!file.empty()) text += " " + html_text(file);
  if (line != 0) text += ":" + std::to_string(line);
  return text;
}

class LoopPage {
 public:
  LoopPage(const LoopProfile& profile, const LoopPageOptions& options, std::string_view log,
           OutputFile& out)
      : profile_(profile),
        samples_(options.samples),
        rows_(loop_rows(profile, LoopKey::loop, samples_)),
        log_(log),
        out_(out) {}

  void write(const LoopPageOptions& options) {
    out_.write(kBeforeBody);
    const std::string title = html_text(options.title);
    out_.write("<title>" + title + " – loops</title>\n</head>\n<body>\n");
    out_.write(html_element("h1", title) + "\n");
    write_facts(options);
    if (!rows_.empty()) write_loops();
    write_categories();
    write_sections();
    out_.write("</body>");
    out_.write(kAfterBody);
  }

 private:
  const CompiledLoop& loop(std::uint32_t number) const { return profile_.loops().all()[number]; }

  /// A link to the section of a loop.
  std::string link_to(std::uint32_t number, std::string_view name) const {
    return html_element("a", html_text(name), " href=\"#loop-" + std::to_string(number) + "\"");
  }
  std::string link_to(std::uint32_t number) const {
    return link_to(number, short_name(loop(number)));
  }

  void fact(std::string_view term, const std::string& inside) {
    out_.write("<div>" + html_element("dt", term) + html_element("dd", inside) + "</div>");
  }
  void fact(std::string_view term, std::uint64_t count) { fact(term, std::to_string(count)); }

  void write_facts(const LoopPageOptions& options) {
    out_.write("<dl class=\"facts\">");
    fact("Ticks", profile_.ticks());
    if (profile_.has_events()) {
      fact("Outside of loops", html_percent(profile_.outside(), profile_.ticks()));
    }
    fact("Loops and bridges", rows_.size());
    if (samples_) fact("Samples", samples_->total);
    fact("Ticks are read as", profile_.base() == TickBase::hex ? "hexadecimal" : "decimal");
    if (!options.exporter.empty()) fact("Made by", html_text(options.exporter));
    out_.write("</dl>\n");
    if (!profile_.has_events() && !rows_.empty()) {
      out_.write("<p>The log has no jit-profile events: loops have no ticks.</p>\n");
    }
  }

  /// A percentage and a bar of that length.
  static std::string share(std::uint64_t part, std::uint64_t whole) {
    const auto thousandths = std::min<std::uint64_t>(scaled_ratio(part, whole, 3), 1000);
    return number(html_percent(part, whole) + "<meter max=\"1000\" value=\"" +
                  std::to_string(thousandths) + "\"></meter>");
  }

  void write_loops() {
    out_.write("<div class=\"wide\"><table><tr>");
    if (profile_.has_events()) out_.write("<th class=\"n\">Share<th class=\"n\">Ticks");
    if (samples_) out_.write("<th class=\"n\">Share of samples<th class=\"n\">Samples");
    out_.write(
        "<th class=\"n\">Entered<th class=\"n\">Iterations<th>Loop<th>Where<th>Guard that "
        "failed most</tr>\n");
    for (const LoopRow& row : rows_) out_.write(html_element("tr", cells_of(row)) + "\n");
    out_.write("</table></div>\n");
  }

  std::string cells_of(const LoopRow& row) const {
    const CompiledLoop& one = loop(row.loop);
    std::string cells;
    if (profile_.has_events()) {
      cells += row.ticks ? share(*row.ticks, profile_.ticks()) : number("–");
      cells += number(row.ticks);
    }
    if (samples_) cells += share(row.samples, samples_->total) + number(row.samples);
    cells += number(row.entered) + number(row.iterations) + cell(link_to(row.loop));
    cells += cell(place_text(one.function, one.file, one.line));
    const auto worst = worst_guard(profile_, row.loop);
    if (!worst) return cells + cell("");
    const CompiledLoop::Guard& guard = one.guards[worst->guard];
    return cells + cell(html_text(guard.operation) + ", " + std::to_string(*worst->failures) +
                        " → " + link_to(guard.bridge, loop(guard.bridge).name));
  }

  void write_categories() {
    out_.write(
        "<div class=\"wide\"><table><tr><th class=\"n\">Share<th class=\"n\">Ticks"
        "<th class=\"n\">Sections<th>Category</tr>\n");
    const auto row = [&](std::uint64_t ticks, const Count& sections, std::string_view name) {
      out_.write(html_element("tr", share(ticks, profile_.ticks()) + number(ticks) +
                                        number(sections) + cell(html_text(name))) +
                 "\n");
    };
    for (const std::uint32_t i : ranked_categories(profile_)) {
      const LoopProfile::Category& category = profile_.categories()[i];
      row(category.ticks, category.sections, category.name);
    }
    row(profile_.rest(), {}, "not in any section");
    out_.write("</table></div>\n");
  }

  /// Sections of different threads may overlap in the log, so each is read again for its own loop.
  void write_sections() {
    constexpr std::uint64_t kMaxTimes = 16;
    std::uint64_t left = log_.size() * kMaxTimes;
    for (const LoopRow& row : rows_) {
      const std::uint64_t size = loop(row.loop).operations.size;
      write_section(row, size <= left ? log_ : std::string_view());
      left -= std::min(left, size);
    }
  }

  /// The section for one loop: facts, operations, and bridges from its guards.
  void write_section(const LoopRow& row, std::string_view log) {
    const CompiledLoop& one = loop(row.loop);
    out_.write("<section id=\"loop-" + std::to_string(row.loop) + "\">");
    out_.write(html_element("h2", html_text(one.name)));
    write_facts(one, row);
    if (log.empty() && !one.operations.empty()) {
      out_.write(
          "<p>The operations of this loop are left out, because the page would be too large.</p>");
    }
    write_operations(one, row.loop, log);
    write_bridges(one, row.loop);
    out_.write("</section>\n");
  }

  void write_facts(const CompiledLoop& one, const LoopRow& row) {
    out_.write("<dl class=\"facts\">");
    if (!one.type.empty()) fact("Type", html_text(one.type) + (one.is_inner ? ", inner" : ""));
    if (one.owner != CompiledLoop::kNone) fact("Guard in loop", link_to(one.owner));
    if (row.ticks) {
      fact("Ticks", std::to_string(*row.ticks) + ", " + html_percent(*row.ticks, profile_.ticks()));
    }
    if (row.entered) fact("Entered", *row.entered);
    if (row.iterations) fact("Iterations", *row.iterations);
    if (one.code.size != 0) {
      fact("Code", "0x" + to_hex(one.code.begin) + ", " + std::to_string(one.code.size) + " bytes");
    }
    fact("Guards", one.guards.size());
    out_.write("</dl>");
  }

  void write_operations(const CompiledLoop& one, std::uint32_t index, std::string_view log) {
    bool is_open = false;
    for (const auto& [place, begins_line, operations] : list_operations(one, log)) {
      if (begins_line) {
        if (std::exchange(is_open, true)) out_.write("</table>");
        out_.write(html_element("h3", place_text(place.function, place.file, place.line)));
        out_.write("<table class=\"code\">");
      }
      if (!place.opcode.empty()) {
        out_.write(html_element("tr", cell("") + cell(html_text(place.opcode)), " class=\"op\""));
      }
      for (const ListedOperation& operation : operations) {
        const Count count = times_passed(profile_, index, operation);
        std::string text = html_text(operation.text);
        const bool is_guard = operation.guard != CompiledLoop::kNone;
        const std::uint32_t bridge =
            is_guard ? one.guards[operation.guard].bridge : operation.guard;
        if (bridge != CompiledLoop::kNone) text += " → " + link_to(bridge);
        out_.write(html_element("tr", number(count ? std::to_string(*count) : "") + cell(text)));
      }
    }
    if (is_open) out_.write("</table>");
  }

  void write_bridges(const CompiledLoop& one, std::uint32_t index) {
    const std::vector<FailedGuard> failed = failed_guards(profile_, index);
    if (failed.empty()) return;
    out_.write(
        "<h3>Bridges</h3><table><tr><th>Guard<th>Operation<th class=\"n\">Entered"
        "<th>Bridge<th>Where</tr>");
    for (const auto& [number_of_guard, failures] : failed) {
      const CompiledLoop::Guard& guard = one.guards[number_of_guard];
      const CompiledLoop& bridge = loop(guard.bridge);
      out_.write(
          html_element("tr", cell("0x" + to_hex(guard.address)) + cell(html_text(guard.operation)) +
                                 number(failures) + cell(link_to(guard.bridge)) +
                                 cell(place_text(bridge.function, bridge.file, bridge.line))));
    }
    out_.write("</table>");
  }

  const LoopProfile& profile_;
  const std::optional<SampledLoops>& samples_;
  std::vector<LoopRow> rows_;
  std::string_view log_;
  OutputFile& out_;
};

}  // namespace

void write_loop_page(const LoopProfile& profile, const LoopPageOptions& options,
                     std::string_view log, OutputFile& out) {
  LoopPage(profile, options, log, out).write(options);
}

}  // namespace perfmap
