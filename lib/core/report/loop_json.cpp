// SPDX-License-Identifier: MIT
#include "perfmap/json.hpp"
#include "perfmap/pypylog.hpp"
#include "perfmap/text.hpp"

namespace perfmap {
namespace {

using Count = std::optional<std::uint64_t>;

/// Writes the parts of the document in order.
class LoopsJson {
 public:
  LoopsJson(const LoopProfile& profile, const LoopJsonOptions& options, OutputFile& out)
      : profile_(profile), options_(options), json_(out) {}

  void write() {
    json_.begin_object();
    json_.member("schema", "perfmap.pypylog/1");
    json_.member("tick_base", to_string(profile_.base()));
    flag("has_events", profile_.has_events());
    json_.member("total_ticks", profile_.ticks());
    count("outside_ticks", of_events(profile_.outside()));
    if (options_.samples) json_.member("total_samples", options_.samples->total);
    const bool by_loop = options_.by == LoopKey::loop;
    write_rows("loops", LoopKey::loop, by_loop ? options_.max : UINT64_MAX, by_loop);
    if (!by_loop) {
      json_.begin_object("by");
      json_.member("key", to_string(options_.by));
      write_rows("rows", options_.by, options_.max, true);
      json_.end_object();
    }
    write_categories();
    json_.member("rest_ticks", profile_.rest());
    write_threads();
    write_problems();
    json_.end_object();
    json_.newline();
  }

 private:
  void flag(std::string_view key, bool value) { json_.boolean(key, value); }
  void count(std::string_view key, const Count& value) {
    json_.key(key);
    value ? json_.number(*value) : json_.null();
  }
  void text(std::string_view key, std::string_view value) {
    if (!value.empty()) return json_.text_members(key, value);
    json_.null(key);
  }
  void ratio(std::string_view key, const Count& part, std::uint64_t whole, unsigned decimals) {
    json_.key(key);
    part ? json_.decimal(scaled_ratio(*part, whole, decimals), decimals) : json_.null();
  }
  void line(std::uint32_t line) { count("line", line == 0 ? Count() : Count(line)); }
  /// For values that only events provide.
  Count of_events(std::uint64_t value) const {
    return profile_.has_events() ? Count(value) : Count();
  }
  /// An array of objects with the members that `write` writes.
  template <class Items, class Write>
  void objects(std::string_view key, const Items& items, Write write) {
    json_.list(key, items, [&](const auto& item) {
      json_.begin_object();
      write(item);
      json_.end_object();
    });
  }

  void measures(const LoopRow& row) {
    const std::uint64_t entered = row.entered.value_or(0);
    count("ticks", row.ticks);
    ratio("share", row.ticks, profile_.ticks(), 6);
    count("entered", row.entered);
    ratio("mean", entered != 0 ? row.ticks : Count(), entered, 1);
    count("iterations", row.iterations);
    if (!options_.samples) return;
    json_.member("samples", row.samples);
    ratio("samples_share", row.samples, options_.samples->total, 6);
  }

  void write_rows(std::string_view key, LoopKey by, std::uint64_t max, bool with_left_out) {
    const std::vector<LoopRow> rows = loop_rows(profile_, by, options_.samples);
    const auto shown = std::min<std::uint64_t>(rows.size(), max);
    objects(key, std::span(rows).first(shown), [&](const LoopRow& row) {
      const CompiledLoop& loop = profile_.loops().all()[row.loop];
      by == LoopKey::loop ? write_loop(loop, row) : write_group(loop, row, by);
    });
    if (!with_left_out) return;
    const auto left_out = std::span(rows).subspan(shown);
    const LoopRow sum = sum_of_rows(left_out);
    json_.begin_object("left_out");
    json_.member("rows", left_out.size());
    json_.member("loops", sum.loops);
    measures(sum);
    json_.end_object();
  }

  void write_loop(const CompiledLoop& loop, const LoopRow& row) {
    json_.name_members(loop.name);
    json_.member("kind", loop.kind == CompiledLoop::Kind::loop ? "loop" : "bridge");
    text("type", loop.type);
    measures(row);
    text("function", loop.function);
    text("file", loop.file);
    line(loop.line);
    json_.key("code");
    if (loop.code.size == 0) {
      json_.null();
    } else {
      json_.begin_object();
      json_.address("begin", loop.code.begin);
      json_.member("size", loop.code.size);
      json_.end_object();
    }
    flag("is_inner", loop.is_inner);
    text("owner", name_of(loop.owner));
    text("loop", name_of(loop.loop));
    json_.member("guards", loop.guards.size());
    objects("failed_guards", failed_guards(profile_, row.loop), [&](const FailedGuard& failed) {
      const CompiledLoop::Guard& guard = loop.guards[failed.guard];
      json_.address("address", guard.address);
      text("operation", guard.operation);
      count("failures", failed.failures);
      json_.text_members("bridge", name_of(guard.bridge));
    });
  }

  void write_group(const CompiledLoop& first, const LoopRow& row, LoopKey by) {
    if (by == LoopKey::function) text("function", first.function);
    text("file", first.file);
    if (by == LoopKey::function) line(first.first_line);
    json_.member("loops", row.loops);
    measures(row);
  }

  std::string_view name_of(std::uint32_t loop) const {
    return loop == CompiledLoop::kNone ? std::string_view() : profile_.loops().all()[loop].name;
  }

  void write_categories() {
    objects("categories", ranked_categories(profile_), [&](std::uint32_t number) {
      const LoopProfile::Category& category = profile_.categories()[number];
      json_.name_members(category.name);
      json_.member("ticks", category.ticks);
      ratio("share", category.ticks, profile_.ticks(), 6);
      json_.member("sections", category.sections);
    });
  }

  void write_threads() {
    objects("threads", profile_.threads(), [&](const LoopProfile::Thread& thread) {
      const bool is_numbered = thread.number != CompiledLoop::kNoThread;
      count("number", is_numbered ? Count(thread.number) : Count());
      json_.member("first", thread.first);
      json_.member("last", thread.last);
      json_.member("ticks", thread.ticks());
      count("outside_ticks", of_events(thread.outside));
      json_.member("rest_ticks", thread.rest);
    });
  }

  void write_problems() {
    objects("problems", profile_.problems().items(), [&](const Diagnostic& problem) {
      json_.member("rule", problem.rule->id);
      json_.member("line", problem.where.line);
      json_.member("offset", problem.where.offset);
      json_.member("message", problem.message);
    });
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
