#include <algorithm>

#include "pypylog_output.hpp"
#include "table.hpp"

namespace perfmap::app {
namespace {

std::string count_text(const std::optional<std::uint64_t>& count) {
  return count ? std::to_string(*count) : "-";
}

/// As one word of a line.
std::string plain(std::string_view text) { return text.empty() ? "-" : one_line(text, false); }

std::string place_text(std::string_view function, std::string_view file, std::uint32_t line) {
  std::string text(function);
  if (!file.empty()) text.append(text.empty() ? "" : " ").append(file);
  if (line != 0) text += ":" + std::to_string(line);
  return plain(text);
}

/// The table of loops, or of groups of them. Columns of what nobody counted are left out.
class LoopTable {
 public:
  LoopTable(const PypylogOptions& options, const LoopProfile& profile,
            const std::optional<SampledLoops>& samples)
      : options_(options), profile_(profile), samples_(samples) {}

  void write(OutputFile& out) {
    std::vector<LoopRow> rows = loop_rows(profile_, options_.by, samples_);
    has_iterations_ = sum_of_rows(rows).iterations.has_value();
    const auto shown = std::min<std::uint64_t>(rows.size(), options_.top);
    std::vector<TableRow> table = {heading()};
    for (const LoopRow& row : std::span(rows).first(shown)) table.push_back(cells_of(row));
    const auto left_out = std::span(rows).subspan(shown);
    if (!left_out.empty()) {
      table.push_back(with_texts(measures(sum_of_rows(left_out)),
                                 "and " + std::to_string(left_out.size()) + " more"));
    }
    if (profile_.has_events() || samples_) table.push_back(outside(sum_of_rows(rows)));
    const std::size_t texts = table.front().size() - text_columns();
    write_rows(table, {texts, texts + 1, texts + 2}, out);
  }

 private:
  std::size_t text_columns() const { return options_.by == LoopKey::loop ? 3 : 1; }

  TableRow heading() const {
    TableRow row = {"SHARE", "TICKS", "ENTERED", "MEAN"};
    if (has_iterations_) row.emplace_back("ITERATIONS");
    if (samples_) row.insert(row.end(), {"SAMPLES", "OF SAMPLES"});
    switch (options_.by) {
      case LoopKey::loop: row.insert(row.end(), {"LOOP", "WHERE", "GUARD THAT FAILED MOST"}); break;
      case LoopKey::function: row.insert(row.end(), {"LOOPS", "FUNCTION"}); break;
      case LoopKey::file: row.insert(row.end(), {"LOOPS", "FILE"}); break;
    }
    return row;
  }

  TableRow measures(const LoopRow& row) const {
    const bool has_mean = row.ticks && row.entered.value_or(0) != 0;
    TableRow cells = {row.ticks ? percent(*row.ticks, profile_.ticks()) : "-",
                      count_text(row.ticks), count_text(row.entered),
                      has_mean ? std::to_string(*row.ticks / *row.entered) : "-"};
    if (has_iterations_) cells.push_back(count_text(row.iterations));
    if (samples_) {
      cells.push_back(std::to_string(row.samples));
      cells.push_back(percent(row.samples, samples_->total));
    }
    if (options_.by != LoopKey::loop) {
      cells.push_back(row.loops == 0 ? "-" : std::to_string(row.loops));
    }
    return cells;
  }

  TableRow with_texts(TableRow cells, const std::string& first) const {
    cells.push_back(first);
    cells.resize(cells.size() + text_columns() - 1);
    return cells;
  }

  TableRow cells_of(const LoopRow& row) const {
    TableRow cells = measures(row);
    const CompiledLoop& loop = profile_.loops().all()[row.loop];
    if (options_.by == LoopKey::loop) {
      cells.push_back(plain(short_name(loop)));
      cells.push_back(place_text(loop.function, loop.file, loop.line));
      cells.push_back(worst_guard(row.loop));
    } else {
      cells.push_back(options_.by == LoopKey::file
                          ? plain(loop.file)
                          : place_text(loop.function, loop.file, loop.first_line));
    }
    return cells;
  }

  /// Where no guard failed, or nobody counted, nothing did most.
  std::string worst_guard(std::uint32_t loop) const {
    const std::vector<FailedGuard> failed = failed_guards(profile_, loop);
    if (failed.empty() || failed.front().failures.value_or(0) == 0) return "-";
    const CompiledLoop::Guard& guard = profile_.loops().all()[loop].guards[failed.front().guard];
    const std::uint64_t times = *failed.front().failures;
    return plain(guard.operation) + " 0x" + hex_text(guard.address) + ", " + std::to_string(times) +
           (times == 1 ? " time" : " times");
  }

  TableRow outside(const LoopRow& all) const {
    LoopRow row;
    if (profile_.has_events()) row.ticks = profile_.outside();
    if (samples_) row.samples = samples_->total - std::min(samples_->total, all.samples);
    return with_texts(measures(row), "outside of any loop");
  }

  const PypylogOptions& options_;
  const LoopProfile& profile_;
  const std::optional<SampledLoops>& samples_;
  bool has_iterations_ = false;
};

void write_categories(const LoopProfile& profile, OutputFile& out) {
  std::vector<TableRow> table = {{"SHARE", "TICKS", "SECTIONS", "CATEGORY"}};
  const auto add = [&](std::uint64_t ticks, std::string sections, std::string name) {
    table.push_back({percent(ticks, profile.ticks()), std::to_string(ticks), std::move(sections),
                     std::move(name)});
  };
  for (const std::uint32_t i : ranked_categories(profile)) {
    const LoopProfile::Category& category = profile.categories()[i];
    add(category.ticks, std::to_string(category.sections), plain(category.name));
  }
  add(profile.rest(), "-", "interpret");
  add(profile.ticks(), "-", "all");
  write_rows(table, {3}, out);
}

void write_threads(const LoopProfile& profile, OutputFile& out) {
  std::vector<TableRow> table = {{"THREAD", "TICKS", "OUTSIDE", "INTERPRET"}};
  for (const LoopProfile::Thread& thread : profile.threads()) {
    const bool is_numbered = thread.number != PypylogEvent::kNoThread;
    table.push_back(
        {is_numbered ? std::to_string(thread.number) : "-", std::to_string(thread.ticks()),
         profile.has_events() ? std::to_string(thread.outside) : "-", std::to_string(thread.rest)});
  }
  write_rows(table, {}, out);
}

}  // namespace

void write_loop_tables(const PypylogOptions& options, const LoopProfile& profile,
                       const std::optional<SampledLoops>& samples, OutputFile& out) {
  if (!profile.loops().all().empty()) {
    LoopTable(options, profile, samples).write(out);
    out.write("\n");
  }
  write_categories(profile, out);
  if (profile.threads().size() < 2) return;
  out.write("\n");
  write_threads(profile, out);
}

}  // namespace perfmap::app
