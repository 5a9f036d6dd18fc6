#include "perfmap/loop_page.hpp"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/text.hpp"
#include "perfmap/loop_listing.hpp"
#include "perfmap/loop_report.hpp"
#include "perfmap/output_file.hpp"
#include "perfmap/text.hpp"
#include "report/loop_page_frame.hpp"

namespace perfmap {

namespace {

/// An element that holds `inside`, which is HTML.
inline std::string page_element(std::string_view name, std::string_view inside,
                                std::string_view attributes = {}) {
  std::string text = "<";
  text.append(name).append(attributes).append(">").append(inside);
  return text.append("</").append(name).append(">");
}

/// A cell of a table: HTML, or a number, which stands at the right.
inline std::string page_cell(std::string_view inside) { return page_element("td", inside); }
inline std::string page_number(std::string_view digits) {
  return page_element("td", digits, " class=\"n\"");
}

/// `bytes` as text of an HTML page, or of an attribute in double quotes, as append_visible() shows
/// them.
std::string page_text(std::string_view bytes) {
  std::string visible;
  append_visible(visible, bytes);
  std::string text;
  text.reserve(visible.size());
  for (const char c : visible) {
    switch (c) {
      case '<': text += "&lt;"; break;
      case '>': text += "&gt;"; break;
      case '&': text += "&amp;"; break;
      case '"': text += "&quot;"; break;
      case '\'': text += "&#39;"; break;
      default: text += c;
    }
  }
  return text;
}

/// "12", or an en dash where nobody knows.
std::string page_count(const std::optional<std::uint64_t>& count);
/// "12.34 %".
std::string page_percent(std::uint64_t part, std::uint64_t whole);
/// A link to the section of a loop, as `text`, which is HTML.
std::string page_link(std::uint32_t loop, std::string_view text);
/// "f /tmp/t.py:10" as HTML.
std::string page_place(std::string_view function, std::string_view file, std::uint32_t line);

/// The part of the page that is about one loop: facts, operations, and bridges out of guards.
/// Without a log it says that operations are left out.
void write_loop_section(const LoopProfile& profile, std::uint32_t loop, std::string_view log,
                        OutputFile& out);

class LoopSection {
 public:
  LoopSection(const LoopProfile& profile, std::uint32_t number, OutputFile& out)
      : profile_(profile), number_(number), loop_(profile.loops().all()[number]), out_(out) {}

  void write(std::string_view log) {
    out_.write("<section id=\"loop-" + std::to_string(number_) + "\">");
    out_.write(page_element("h2", page_text(loop_.name)));
    write_facts();
    if (log.empty() && !loop_.operations.empty()) {
      out_.write("<p>Its operations are left out.</p>");
    }
    write_operations(list_operations(loop_, log));
    write_bridges();
    out_.write("</section>\n");
  }

 private:
  void write_operations(const std::vector<ListedPlace>& places) {
    const PypyPlace* before = nullptr;
    bool is_open = false;
    for (const ListedPlace& one : places) {
      if (before == nullptr || !is_same_line(*before, one.place)) {
        if (is_open) out_.write("</table>");
        out_.write(
            page_element("h3", page_place(one.place.function, one.place.file, one.place.line)));
        out_.write("<table class=\"code\">");
        is_open = true;
      }
      write_place(one);
      before = &one.place;
    }
    if (is_open) out_.write("</table>");
  }

  static bool is_same_line(const PypyPlace& a, const PypyPlace& b) {
    return a.function == b.function && a.file == b.file && a.line == b.line;
  }

  void fact(std::string_view term, const std::string& inside) {
    out_.write("<div>" + page_element("dt", term) + page_element("dd", inside) + "</div>");
  }

  void write_facts() {
    out_.write("<dl class=\"facts\">");
    if (!loop_.type.empty()) {
      fact("Type", page_text(loop_.type) + (loop_.is_inner ? ", inner" : ""));
    }
    if (loop_.owner != CompiledLoop::kNone) fact("Guard of", link_to(loop_.owner));
    if (const auto ticks = ticks_of_loop(profile_, number_)) {
      fact("Ticks", std::to_string(*ticks) + ", " + page_percent(*ticks, profile_.ticks()));
    }
    if (const auto entered = times_entered(profile_, number_)) {
      fact("Entered", std::to_string(*entered));
    }
    if (const auto times = loop_.iterations()) fact("Iterations", std::to_string(*times));
    if (loop_.code.size != 0) {
      fact("Code",
           "0x" + to_hex(loop_.code.begin) + ", " + std::to_string(loop_.code.size) + " bytes");
    }
    fact("Guards", std::to_string(loop_.guards.size()));
    out_.write("</dl>");
  }

  std::string link_to(std::uint32_t loop) const {
    return page_link(loop, page_text(short_name(profile_.loops().all()[loop])));
  }

  std::uint32_t bridge_of(const ListedOperation& operation) const {
    if (operation.guard == CompiledLoop::kNone) return CompiledLoop::kNone;
    return loop_.guards[operation.guard].bridge;
  }

  void write_place(const ListedPlace& place) {
    if (!place.place.opcode.empty()) {
      out_.write(page_element("tr", page_cell("") + page_cell(page_text(place.place.opcode)),
                              " class=\"op\""));
    }
    for (const ListedOperation& operation : place.operations) {
      const std::uint32_t bridge = bridge_of(operation);
      std::optional<std::uint64_t> count;
      std::string text = page_text(operation.text);
      if (operation.label != CompiledLoop::kNone) count = loop_.labels[operation.label].count;
      if (bridge != CompiledLoop::kNone) {
        count = times_entered(profile_, bridge);
        text += " → " + link_to(bridge);
      }
      out_.write(
          page_element("tr", page_number(count ? std::to_string(*count) : "") + page_cell(text)));
    }
  }

  void write_bridges() {
    const std::vector<FailedGuard> failed = failed_guards(profile_, number_);
    if (failed.empty()) return;
    out_.write(
        "<h3>Bridges</h3><table><tr><th>Guard<th>Operation<th class=\"n\">Entered"
        "<th>Bridge<th>Where</tr>");
    for (const FailedGuard& one : failed) {
      const CompiledLoop::Guard& guard = loop_.guards[one.guard];
      const CompiledLoop& bridge = profile_.loops().all()[guard.bridge];
      out_.write(page_element(
          "tr", page_cell("0x" + to_hex(guard.address)) + page_cell(page_text(guard.operation)) +
                    page_number(page_count(one.failures)) + page_cell(link_to(guard.bridge)) +
                    page_cell(page_place(bridge.function, bridge.file, bridge.line))));
    }
    out_.write("</table>");
  }

  const LoopProfile& profile_;
  std::uint32_t number_;
  const CompiledLoop& loop_;
  OutputFile& out_;
};

std::string page_count(const std::optional<std::uint64_t>& count) {
  return count ? std::to_string(*count) : "–";
}

std::string page_percent(std::uint64_t part, std::uint64_t whole) {
  if (whole == 0) return "–";
  const std::uint64_t hundredths = scaled_ratio(part, whole, 4);
  const std::string rest = std::to_string(hundredths % 100);
  return std::to_string(hundredths / 100) + (rest.size() < 2 ? ".0" : ".") + rest + " %";
}

std::string page_link(std::uint32_t loop, std::string_view text) {
  return page_element("a", text, " href=\"#loop-" + std::to_string(loop) + "\"");
}

std::string page_place(std::string_view function, std::string_view file, std::uint32_t line) {
  std::string text = page_text(function);
  if (!file.empty()) text += " " + page_text(file);
  if (line != 0) text += ":" + std::to_string(line);
  return text;
}

void write_loop_section(const LoopProfile& profile, std::uint32_t loop, std::string_view log,
                        OutputFile& out) {
  LoopSection(profile, loop, out).write(log);
}

class LoopPage {
 public:
  LoopPage(const LoopProfile& profile, const LoopPageOptions& options, OutputFile& out)
      : profile_(profile),
        samples_(options.samples),
        rows_(loop_rows(profile, LoopKey::loop, samples_)),
        out_(out) {}

  void write(const LoopPageOptions& options, std::string_view log) {
    const LoopPageFrame frame = loop_page_frame();
    out_.write(frame.before_body);
    const std::string title = page_text(options.title);
    out_.write("<title>" + title + " – loops</title>\n</head>\n<body>\n");
    out_.write(page_element("h1", title) + "\n");
    write_facts(options);
    if (!rows_.empty()) write_loops();
    write_categories();
    write_sections(log);
    out_.write("</body>");
    out_.write(frame.after_body);
  }

 private:
  void fact(std::string_view term, const std::string& inside) {
    out_.write("<div>" + page_element("dt", term) + page_element("dd", inside) + "</div>");
  }

  void write_facts(const LoopPageOptions& options) {
    out_.write("<dl class=\"facts\">");
    fact("Ticks", std::to_string(profile_.ticks()));
    if (profile_.has_events()) {
      fact("Outside of loops", page_percent(profile_.outside(), profile_.ticks()));
    }
    fact("Loops and bridges", std::to_string(rows_.size()));
    if (samples_) fact("Samples", std::to_string(samples_->total));
    fact("Numbers read as", profile_.base() == TickBase::hex ? "hexadecimal" : "decimal");
    if (!options.exporter.empty()) fact("Made by", page_text(options.exporter));
    out_.write("</dl>\n");
    if (!profile_.has_events() && !rows_.empty()) {
      out_.write("<p>The log has no jit-profile events: loops have no ticks.</p>\n");
    }
  }

  /// Sections of many threads may lie over each other, and each is gone over for its own loop.
  void write_sections(std::string_view log) {
    constexpr std::uint64_t kMaxTimes = 16;
    std::uint64_t left = log.size() * kMaxTimes;
    for (const LoopRow& row : rows_) {
      const std::uint64_t size = profile_.loops().all()[row.loop].operations.size;
      write_loop_section(profile_, row.loop, size <= left ? log : std::string_view(), out_);
      left -= std::min(left, size);
    }
  }

  /// A share and a bar that is as long.
  static std::string share(std::uint64_t part, std::uint64_t whole) {
    const std::uint64_t thousandths = scaled_ratio(part, whole, 3);
    return page_number(page_percent(part, whole) + "<meter max=\"1000\" value=\"" +
                       std::to_string(std::min<std::uint64_t>(thousandths, 1000)) + "\"></meter>");
  }

  void write_loops() {
    out_.write("<div class=\"wide\"><table><tr>");
    if (profile_.has_events()) out_.write("<th class=\"n\">Share<th class=\"n\">Ticks");
    if (samples_) out_.write("<th class=\"n\">Of samples<th class=\"n\">Samples");
    out_.write(
        "<th class=\"n\">Entered<th class=\"n\">Iterations<th>Loop<th>Where<th>Guard that "
        "failed most</tr>\n");
    for (const LoopRow& row : rows_) out_.write(page_element("tr", cells_of(row)) + "\n");
    out_.write("</table></div>\n");
  }

  std::string cells_of(const LoopRow& row) const {
    const CompiledLoop& loop = profile_.loops().all()[row.loop];
    std::string cells;
    if (profile_.has_events()) {
      cells += row.ticks ? share(*row.ticks, profile_.ticks()) : page_number("–");
      cells += page_number(page_count(row.ticks));
    }
    if (samples_) {
      cells += share(row.samples, samples_->total) + page_number(std::to_string(row.samples));
    }
    cells += page_number(page_count(row.entered)) + page_number(page_count(row.iterations));
    cells += page_cell(page_link(row.loop, page_text(short_name(loop))));
    cells += page_cell(page_place(loop.function, loop.file, loop.line));
    return cells + page_cell(worst_guard(row.loop));
  }

  std::string worst_guard(std::uint32_t number) const {
    const std::vector<FailedGuard> failed = failed_guards(profile_, number);
    if (failed.empty() || failed.front().failures.value_or(0) == 0) return {};
    const auto& guard = profile_.loops().all()[number].guards[failed.front().guard];
    const std::string_view bridge = profile_.loops().all()[guard.bridge].name;
    return page_text(guard.operation) + ", " + std::to_string(*failed.front().failures) + " → " +
           page_link(guard.bridge, page_text(bridge));
  }

  void write_categories() {
    out_.write(
        "<div class=\"wide\"><table><tr><th class=\"n\">Share<th class=\"n\">Ticks"
        "<th class=\"n\">Sections<th>Category</tr>\n");
    const auto row = [&](std::uint64_t ticks, const std::string& sections,
                         const std::string& name) {
      out_.write(page_element("tr", share(ticks, profile_.ticks()) +
                                        page_number(std::to_string(ticks)) + page_number(sections) +
                                        page_cell(name)) +
                 "\n");
    };
    for (const std::uint32_t i : ranked_categories(profile_)) {
      const LoopProfile::Category& category = profile_.categories()[i];
      row(category.ticks, std::to_string(category.sections), page_text(category.name));
    }
    row(profile_.rest(), "–", "interpret");
    out_.write("</table></div>\n");
  }

  const LoopProfile& profile_;
  const std::optional<SampledLoops>& samples_;
  std::vector<LoopRow> rows_;
  OutputFile& out_;
};

}  // namespace

void write_loop_page(const LoopProfile& profile, const LoopPageOptions& options,
                     std::string_view log, OutputFile& out) {
  LoopPage(profile, options, out).write(options, log);
}

}  // namespace perfmap
