#include <algorithm>
#include <map>
#include <perfmap/loop_listing.hpp>

#include "pypylog_output.hpp"
#include "source_lines.hpp"
#include "table.hpp"

namespace perfmap::app {
namespace {

std::string plain(std::string_view text) { return one_line(text, false); }

/// The text of one loop: what is known of it, its operations, its guards.
class Annotation {
 public:
  Annotation(std::uint32_t loop, const LogSource& source, const LoopProfile& profile,
             OutputFile& out)
      : number_(loop),
        loop_(profile.loops().all()[loop]),
        source_(source),
        profile_(profile),
        out_(out) {}

  void write() {
    write_heading();
    const std::vector<ListedPlace> places = list_operations(loop_, source_.text());
    if (places.empty())
      out_.write("\nThe log has no operations of it (PYPYLOG=jit-log-opt:FILE).\n");
    const ListedPlace* before = nullptr;
    for (const ListedPlace& place : places) {
      if (before == nullptr || !is_same_line(before->place, place.place)) write_line(place.place);
      write_place(place);
      before = &place;
    }
    write_bridges();
  }

 private:
  static bool is_same_line(const PypyPlace& a, const PypyPlace& b) {
    return a.function == b.function && a.file == b.file && a.line == b.line;
  }

  void write_heading() {
    out_.write(plain(loop_.name) + "\n");
    const auto row = [&](std::string_view key, const std::string& value) {
      std::string line(key);
      line.resize(12, ' ');
      out_.write(line + value + "\n");
    };
    if (!loop_.type.empty()) row("type", plain(loop_.type) + (loop_.is_inner ? ", inner" : ""));
    if (loop_.owner != CompiledLoop::kNone) row("guard of", name_of(loop_.owner));
    if (loop_.code.size != 0) {
      row("code",
          "0x" + hex_text(loop_.code.begin) + ", " + std::to_string(loop_.code.size) + " bytes");
    }
    if (const auto ticks = ticks_of_loop(profile_, number_)) {
      row("ticks", std::to_string(*ticks) + ", " + percent(*ticks, profile_.ticks()));
    }
    if (const auto entered = times_entered(profile_, number_)) {
      row("entered", std::to_string(*entered));
    }
    if (const auto times = loop_.iterations()) row("iterations", std::to_string(*times));
  }

  std::string name_of(std::uint32_t loop) const { return plain(profile_.loops().all()[loop].name); }

  void write_line(const PypyPlace& place) {
    out_.write("\n");
    if (place.function.empty()) return;
    std::string text = plain(place.function);
    if (!place.file.empty()) {
      text += "  " + plain(place.file) + ":" + std::to_string(place.line);
      const std::string code = lines_.line(std::string(place.file), place.line);
      if (!code.empty()) text += "  " + plain(code);
    }
    out_.write(text + "\n");
  }

  void write_place(const ListedPlace& place) {
    if (!place.place.opcode.empty()) {
      out_.write(std::string(kMargin, ' ') + "  " + plain(place.place.opcode) + "\n");
    }
    for (const ListedOperation& operation : place.operations) {
      const std::string count = count_of(operation);
      const std::string margin(count.size() < kMargin ? kMargin - count.size() : 0, ' ');
      out_.write(margin + count + "    " + plain(operation.text) + "\n");
    }
  }

  /// How often a label was passed, or a bridge entered out of a guard.
  std::string count_of(const ListedOperation& operation) const {
    std::optional<std::uint64_t> count;
    if (operation.label != CompiledLoop::kNone) count = loop_.labels[operation.label].count;
    if (operation.guard != CompiledLoop::kNone) {
      const std::uint32_t bridge = loop_.guards[operation.guard].bridge;
      if (bridge != CompiledLoop::kNone) count = times_entered(profile_, bridge);
    }
    return count ? std::to_string(*count) : "";
  }

  void write_bridges() {
    const std::vector<FailedGuard> failed = failed_guards(profile_, number_);
    const std::size_t guards = loop_.guards.size();
    out_.write("\n" + std::to_string(guards) + (guards == 1 ? " guard, " : " guards, ") +
               std::to_string(failed.size()) + " with a bridge\n");
    if (failed.empty()) return;
    std::vector<TableRow> rows = {{"GUARD", "OPERATION", "ENTERED", "TICKS", "BRIDGE", "WHERE"}};
    for (const FailedGuard& one : failed) rows.push_back(bridge_row(one));
    write_rows(rows, {0, 1, 4, 5}, out_);
  }

  TableRow bridge_row(const FailedGuard& failed) const {
    const CompiledLoop::Guard& guard = loop_.guards[failed.guard];
    const CompiledLoop& bridge = profile_.loops().all()[guard.bridge];
    const auto ticks = ticks_of_loop(profile_, guard.bridge);
    return {"0x" + hex_text(guard.address),
            plain(guard.operation),
            failed.failures ? std::to_string(*failed.failures) : "-",
            ticks ? std::to_string(*ticks) : "-",
            plain(bridge.name),
            bridge.file.empty() ? "-" : plain(bridge.file) + ":" + std::to_string(bridge.line)};
  }

  static constexpr std::size_t kMargin = 10;  // of counts

  std::uint32_t number_;
  const CompiledLoop& loop_;
  const LogSource& source_;
  const LoopProfile& profile_;
  OutputFile& out_;
  SourceLines lines_;
};

}  // namespace

bool write_annotated(const std::string& name, const LogSource& source, const LoopProfile& profile,
                     OutputFile& out) {
  const std::uint32_t loop = profile.loops().find(name);
  if (loop == CompiledLoop::kNone) return false;
  Annotation(loop, source, profile, out).write();
  return true;
}

/// Loops whose name has what was asked for in it, or else the first that a table would have.
std::string names_instead(const std::string& name, const LoopProfile& profile) {
  constexpr std::size_t kMost = 3;
  std::vector<std::string> near;
  std::vector<std::string> first;
  for (const LoopRow& row : loop_rows(profile, LoopKey::loop)) {
    const CompiledLoop& loop = profile.loops().all()[row.loop];
    const std::string text = "'" + plain(short_name(loop)) + "'";
    if (first.size() < kMost) first.push_back(text);
    if (near.size() < kMost && loop.name.find(name) != std::string::npos) near.push_back(text);
  }
  const std::vector<std::string>& told = near.empty() ? first : near;
  std::string message = "the log has no loop '" + name + "'";
  if (told.empty()) return message + ", and no other";
  message += "; it has ";
  for (const std::string& one : told) message += (&one == told.data() ? "" : ", ") + one;
  return message + " (--format text lists them)";
}

}  // namespace perfmap::app
