#include "perfmap/loop_page.hpp"

#include <algorithm>

#include "output/loop_page_frame.hpp"
#include "output/loop_section.hpp"
#include "output/page_text.hpp"

namespace perfmap {
namespace {

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
    constexpr std::uint64_t kMostTimes = 16;
    std::uint64_t left = log.size() * kMostTimes;
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
