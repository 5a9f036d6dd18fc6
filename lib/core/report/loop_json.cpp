#include "perfmap/loop_json.hpp"

#include <algorithm>

#include "perfmap/json.hpp"

namespace perfmap {
namespace {

/// Writes the document's parts in turn.
class LoopsJson {
 public:
  LoopsJson(const LoopProfile& profile, const LoopJsonOptions& options, OutputFile& out)
      : profile_(profile), options_(options), json_(out) {}

  void write() {
    json_.begin_object();
    json_.member("schema", "perfmap.pypylog/1");
    json_.member("tick_base", to_string(profile_.base()));
    json_.key("has_events");
    json_.boolean(profile_.has_events());
    json_.member("total_ticks", profile_.ticks());
    ticks("outside_ticks", profile_.outside());
    if (options_.samples) json_.member("total_samples", options_.samples->total);
    write_loops();
    if (options_.by != LoopKey::loop) write_groups();
    write_categories();
    json_.member("rest_ticks", profile_.rest());
    write_threads();
    write_problems();
    json_.end_object();
    json_.newline();
  }

 private:
  void known(std::string_view key, const std::optional<std::uint64_t>& value) {
    json_.key(key);
    value ? json_.number(*value) : json_.null();
  }
  void known_text(std::string_view key, std::string_view value) {
    if (!value.empty()) return json_.text_members(key, value);
    json_.key(key);
    json_.null();
  }
  /// Of what only events tell.
  void ticks(std::string_view key, std::uint64_t value) {
    known(key, profile_.has_events() ? std::optional(value) : std::nullopt);
  }
  void share(std::string_view key, std::uint64_t part, std::uint64_t whole) {
    json_.key(key);
    json_.decimal(scaled_ratio(part, whole, 6), 6);
  }
  void known_line(std::uint32_t line) {
    known("line", line == 0 ? std::nullopt : std::optional<std::uint64_t>(line));
  }

  void measures(const LoopRow& row) {
    known("ticks", row.ticks);
    json_.key("share");
    if (row.ticks) {
      json_.decimal(scaled_ratio(*row.ticks, profile_.ticks(), 6), 6);
    } else {
      json_.null();
    }
    known("entered", row.entered);
    json_.key("mean");
    if (row.ticks && row.entered.value_or(0) != 0) {
      json_.decimal(scaled_ratio(*row.ticks, *row.entered, 1), 1);
    } else {
      json_.null();
    }
    known("iterations", row.iterations);
    if (!options_.samples) return;
    json_.member("samples", row.samples);
    share("samples_share", row.samples, options_.samples->total);
  }

  void write_loops() {
    const std::vector<LoopRow> rows = loop_rows(profile_, LoopKey::loop, options_.samples);
    const auto shown = std::min<std::uint64_t>(
        rows.size(), options_.by == LoopKey::loop ? options_.max : UINT64_MAX);
    json_.key("loops");
    json_.begin_array();
    for (const LoopRow& row : std::span(rows).first(shown)) write_loop(row);
    json_.end_array();
    if (options_.by == LoopKey::loop) write_left_out(std::span(rows).subspan(shown));
  }

  void write_left_out(std::span<const LoopRow> rows) {
    const LoopRow sum = sum_of_rows(rows);
    json_.key("left_out");
    json_.begin_object();
    json_.member("rows", rows.size());
    json_.member("loops", sum.loops);
    measures(sum);
    json_.end_object();
  }

  void write_loop(const LoopRow& row) {
    const CompiledLoop& loop = profile_.loops().all()[row.loop];
    json_.begin_object();
    json_.name_members(loop.name);
    json_.member("kind", loop.kind == CompiledLoop::Kind::loop ? "loop" : "bridge");
    known_text("type", loop.type);
    measures(row);
    known_text("function", loop.function);
    known_text("file", loop.file);
    known_line(loop.line);
    write_code(loop);
    json_.key("is_inner");
    json_.boolean(loop.is_inner);
    known_text("owner", name_of(loop.owner));
    known_text("loop", name_of(loop.loop));
    json_.member("guards", loop.guards.size());
    write_failed_guards(row.loop);
    json_.end_object();
  }

  std::string_view name_of(std::uint32_t loop) const {
    return loop == CompiledLoop::kNone ? std::string_view() : profile_.loops().all()[loop].name;
  }

  void write_code(const CompiledLoop& loop) {
    json_.key("code");
    if (loop.code.size == 0) return json_.null();
    json_.begin_object();
    json_.key("begin");
    json_.address(loop.code.begin);
    json_.member("size", loop.code.size);
    json_.end_object();
  }

  void write_failed_guards(std::uint32_t number_of_loop) {
    const CompiledLoop& loop = profile_.loops().all()[number_of_loop];
    json_.key("failed_guards");
    json_.begin_array();
    for (const FailedGuard& failed : failed_guards(profile_, number_of_loop)) {
      const CompiledLoop::Guard& guard = loop.guards[failed.guard];
      json_.begin_object();
      json_.key("address");
      json_.address(guard.address);
      known_text("operation", guard.operation);
      known("failures", failed.failures);
      json_.text_members("bridge", name_of(guard.bridge));
      json_.end_object();
    }
    json_.end_array();
  }

  void write_groups() {
    const std::vector<LoopRow> rows = loop_rows(profile_, options_.by, options_.samples);
    const auto shown = std::min<std::uint64_t>(rows.size(), options_.max);
    json_.key("by");
    json_.begin_object();
    json_.member("key", to_string(options_.by));
    json_.key("rows");
    json_.begin_array();
    for (const LoopRow& row : std::span(rows).first(shown)) write_group(row);
    json_.end_array();
    write_left_out(std::span(rows).subspan(shown));
    json_.end_object();
  }

  void write_group(const LoopRow& row) {
    const CompiledLoop& loop = profile_.loops().all()[row.loop];
    json_.begin_object();
    if (options_.by == LoopKey::function) known_text("function", loop.function);
    known_text("file", loop.file);
    if (options_.by == LoopKey::function) known_line(loop.first_line);
    json_.member("loops", row.loops);
    measures(row);
    json_.end_object();
  }

  void write_categories() {
    json_.key("categories");
    json_.begin_array();
    for (const std::uint32_t i : ranked_categories(profile_)) {
      const LoopProfile::Category& category = profile_.categories()[i];
      json_.begin_object();
      json_.name_members(category.name);
      json_.member("ticks", category.ticks);
      share("share", category.ticks, profile_.ticks());
      json_.member("sections", category.sections);
      json_.end_object();
    }
    json_.end_array();
  }

  void write_threads() {
    json_.key("threads");
    json_.begin_array();
    for (const LoopProfile::Thread& thread : profile_.threads()) {
      json_.begin_object();
      const bool is_numbered = thread.number != PypylogEvent::kNoThread;
      known("number", is_numbered ? std::optional<std::uint64_t>(thread.number) : std::nullopt);
      json_.member("first", thread.first);
      json_.member("last", thread.last);
      json_.member("ticks", thread.ticks());
      ticks("outside_ticks", thread.outside);
      json_.member("rest_ticks", thread.rest);
      json_.end_object();
    }
    json_.end_array();
  }

  void write_problems() {
    json_.key("problems");
    json_.begin_array();
    for (const Diagnostic& problem : profile_.problems().items()) {
      json_.begin_object();
      json_.member("rule", problem.rule->id);
      json_.member("line", problem.where.line);
      json_.member("offset", problem.where.offset);
      json_.member("message", problem.message);
      json_.end_object();
    }
    json_.end_array();
    json_.member("problems_total", profile_.problems().total());
  }

  const LoopProfile& profile_;
  const LoopJsonOptions& options_;
  JsonWriter json_;
};

}  // namespace

void write_loops_json(const LoopProfile& profile, const LoopJsonOptions& options, OutputFile& out) {
  LoopsJson(profile, options, out).write();
}

}  // namespace perfmap
