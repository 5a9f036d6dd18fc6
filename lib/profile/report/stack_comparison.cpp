#include "perfmap/profile/stack_comparison.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "perfmap/json.hpp"
#include "report/function_identity.hpp"
#include "stacks/interning.hpp"
#include "stacks/writers.hpp"

namespace perfmap {
namespace {

/// A recording: its frames, and where its samples ended.
struct ComparedSide {
  ComparedSide(const FrameTable& sampled, StackProfile about)
      : table(&sampled), frames(sampled, true, false), profile(std::move(about)) {}

  std::uint64_t samples(std::uint32_t event, std::uint32_t node) const {
    const auto found = counts.find(event);
    if (found == counts.end() || node >= found->second.size()) return 0;
    return found->second[node];
  }

  const FrameTable* table;
  ShownFrames frames;
  std::vector<std::uint32_t> places;  // of `frames` in the common table; 0: not yet
  StackProfile profile;
  std::map<std::uint32_t, std::vector<std::uint64_t>> counts;  // by event and node
};

/// Without what differs between recordings of one program. `sampled` is the function as it was
/// sampled, `shown` without its tier. A script's function gets the name of its file.
FrameFunction common_function(const FrameFunction& shown, const FrameFunction& sampled,
                              std::string& text) {
  const FunctionIdentity identity =
      identity_of(shown.kind, shown.name, sampled.system_name, shown.module);
  FrameFunction function{.name = identity.name, .kind = shown.kind};
  if (shown.kind == FrameKind::inlined) function.kind = FrameKind::native;
  if (shown.kind != FrameKind::jit || shown.name.empty()) {
    function.module = file_name_of(shown.module);
  } else if (!identity.file.empty()) {
    text = identity.name.empty() ? "(anonymous)" : identity.name;
    text.append(" ").append(identity.file);
    function.name = text;
  }
  return function;
}

/// A distinct stack.
struct ComparedStack {
  std::string_view process_comm;
  std::string_view comm;
  std::vector<StackFrame> frames;  // the leaf first
  std::uint64_t before = 0;
  std::uint64_t after = 0;
};

}  // namespace

struct StackComparison::State {
  std::uint32_t place_of(ComparedSide& side, std::uint32_t sampled) {
    const std::uint32_t frame = side.frames.of_place(sampled);
    if (frame >= side.places.size()) side.places.resize(side.frames.size());
    std::uint32_t& place = side.places[frame];
    if (place == 0) {
      std::string text;
      const FrameFunction function =
          common_function(side.frames.function(frame), side.table->function_of(sampled), text);
      place = table.add({.function = table.add(function)});
    }
    return place;
  }

  template <class Visit>
  void visit(const Normalization& normalization, Visit visit) const {
    for (std::uint32_t node = 1; node < tree.size(); ++node) {
      ComparedStack stack;
      stack.before = sides[0].samples(normalization.old_event.number, node);
      stack.after = sides[1].samples(normalization.new_event.number, node);
      if (stack.before == 0 && stack.after == 0) continue;
      std::vector<std::uint32_t> path;
      for (std::uint32_t at = node; at != 0; at = tree[at].parent) path.push_back(tree[at].frame);
      // The first two levels are labels.
      stack.process_comm = labels[path.back()];
      stack.comm = labels[path[path.size() - 2]];
      for (std::size_t i = 0; i + 2 < path.size(); ++i) {
        StackFrame frame;
        frame.place = path[i];
        stack.frames.push_back(frame);
      }
      visit(stack);
    }
  }

  void write_lines(const Normalization& normalization, OutputFile& out) const;

  std::array<ComparedSide, 2> sides;
  FrameTable table = {};
  StringPool labels = {};
  StackTree tree = {};  // of labels, then of places
};

StackComparison::StackComparison(const FrameTable& before_table, StackProfile before,
                                 const FrameTable& after_table, StackProfile after)
    : state_(new State{{ComparedSide(before_table, std::move(before)),
                        ComparedSide(after_table, std::move(after))}}) {}
StackComparison::~StackComparison() = default;

void StackComparison::add(Side which, const StackSample& sample, std::uint64_t count) {
  State& state = *state_;
  ComparedSide& side = state.sides[static_cast<std::size_t>(which)];
  // pprof profiles need not name threads.
  const auto label = [&state](std::string_view comm) {
    return state.labels.add(comm.empty() ? "[unknown]" : comm);
  };
  std::uint32_t node = state.tree.child(0, label(sample.process_comm));
  node = state.tree.child(node, label(sample.comm));
  for (std::size_t i = sample.frames.size(); i-- > 0;) {
    node = state.tree.child(node, state.place_of(side, sample.frames[i].place));
  }
  const auto unlisted = static_cast<std::uint32_t>(side.profile.events.size());
  auto& counts = side.counts[std::min(sample.event, unlisted)];
  if (node >= counts.size()) counts.resize(state.tree.size());
  counts[node] += event_of(side.profile, sample).is_weighted ? sample.period : count;
}

bool StackComparison::supports(StackFormat format) noexcept {
  return format == StackFormat::folded || format == StackFormat::html ||
         format == StackFormat::jsonl;
}

void StackComparison::State::write_lines(const Normalization& normalization,
                                         OutputFile& out) const {
  JsonWriter json(out);
  visit(normalization, [&](const ComparedStack& stack) {
    json.begin_object();
    json.member("schema", "perfmap.stack-comparison/1");
    json.text_members("comm", stack.comm);
    json.member("old_samples", stack.before);
    json.member("new_samples", stack.after);
    json.key("change_ppm");
    json.integer(normalization.change_ppm(stack.before, stack.after));
    json.member("change", to_string(normalization.change(stack.before, stack.after)));
    json.key("frames");
    json.begin_array();
    for (const StackFrame& frame : stack.frames) {
      const FrameFunction& function = table.function_of(frame.place);
      json.begin_object();
      json.name_members(shown_name(function));
      json.member("kind", to_string(function.kind));
      if (!function.module.empty()) json.text_members("module", function.module);
      json.end_object();
    }
    json.end_array();
    json.end_object();
    json.newline();
  });
}

Result<void> StackComparison::write(StackFormat format, const Normalization& normalization,
                                    std::string_view exporter, OutputFile& out) const {
  if (!supports(format)) {
    return Failure(Error{Errc::invalid_argument,
                         std::string(to_string(format)) + " has no place for two counts of a stack",
                         0,
                         {}});
  }
  if (format == StackFormat::jsonl) {
    state_->write_lines(normalization, out);
    return {};
  }
  const auto event_like = [](const ProfileReport::Event& event) {
    return StackProfile::Event{.name = std::string(event.name), .is_weighted = true};
  };
  StackProfile profile = state_->sides[1].profile;
  profile.events = {event_like(normalization.old_event), event_like(normalization.new_event)};
  profile.duration_ns = 0;
  profile.exporter = exporter;
  const ComparedBaseline baseline{.title = state_->sides[0].profile.title,
                                  .scale = 1 / normalization.factor,
                                  .deviations = normalization.rule.deviations,
                                  .run_to_run = normalization.rule.run_to_run,
                                  .threshold_ppm = normalization.rule.threshold_ppm,
                                  .samples = normalization.old_event.total.samples,
                                  .new_samples = normalization.new_event.total.samples};
  const auto make = format == StackFormat::html ? make_html_writer : make_folded_writer;
  const auto writer = make({out, state_->table, std::move(profile), {}, baseline});
  state_->visit(normalization, [&](const ComparedStack& stack) {
    StackSample sample;
    sample.pid = sample.tid = -1;  // unknown: the recordings have other processes
    sample.process_comm = stack.process_comm;
    sample.comm = stack.comm;
    sample.frames = stack.frames;
    for (const auto& [event, samples] : {std::pair(0U, stack.before), std::pair(1U, stack.after)}) {
      sample.event = event;
      sample.period = samples;
      if (samples != 0) writer->add(sample);
    }
  });
  return writer->finish();
}

}  // namespace perfmap
