#include "output/loop_section.hpp"

#include "base/hex.hpp"
#include "output/page_text.hpp"
#include "perfmap/loop_listing.hpp"

namespace perfmap {
namespace {

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

}  // namespace

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

}  // namespace perfmap
