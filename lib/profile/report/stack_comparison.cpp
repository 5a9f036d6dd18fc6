// SPDX-License-Identifier: MIT
#include "perfmap/profile/stack_comparison.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "perfmap/json.hpp"
#include "perfmap/text.hpp"
#include "report/function_matches.hpp"
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

  /// The number of the frame. Tiers of a function are one.
  std::uint32_t frame_of(std::uint32_t place) {
    const std::uint32_t frame = frames.of_place(place);
    if (frame == places.size()) places.push_back(place);
    return frame;
  }
  FunctionMatches::Function function(std::uint32_t frame) const {
    const FrameFunction& shown = frames.function(frame);
    const FrameFunction& sampled = table->function_of(places[frame]);
    return {shown.kind, shown.name, sampled.system_name, shown.module};
  }

  const FrameTable* table;
  ShownFrames frames;
  std::vector<std::uint32_t> places;  // by frame, its first one
  StackProfile profile;
  std::map<std::uint32_t, std::vector<std::uint64_t>> counts;  // by event and node
};

/// Without what differs between recordings of one program; borrows `match`. A script's function
/// gets the name of its file, and its position if others have its name.
FrameFunction common_function(const FunctionMatches::Function& shown,
                              const FunctionMatches::Match& match, std::string& text) {
  const FunctionIdentity& identity = match.identity;
  FrameFunction function{.name = identity.name, .kind = shown.kind};
  if (shown.kind == FrameKind::inlined) function.kind = FrameKind::native;
  if (shown.kind != FrameKind::jit || shown.shown.empty()) {
    function.module = base_name(shown.module);
  } else if (!identity.file.empty()) {
    text = identity.name.empty() ? "(anonymous)" : identity.name;
    text.append(" ").append(identity.file);
    if (match.line != 0) text += ":" + std::to_string(match.line);
    if (match.column != 0) text += ":" + std::to_string(match.column);
    if (match.functions > 1) text += " (" + counted(match.functions, "function") + ")";
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

using MatchSide = FunctionMatches::Side;

/// A frame of a side, as a label of a tree.
constexpr std::uint32_t label_of(MatchSide side, std::uint32_t frame) noexcept {
  return 2 * frame + static_cast<std::uint32_t>(side);
}
constexpr MatchSide side_of(std::uint32_t label) noexcept {
  return static_cast<MatchSide>(label % 2);
}
constexpr std::uint32_t frame_of(std::uint32_t label) noexcept { return label / 2; }

/// The stacks of both recordings, by functions that both have.
struct CommonStacks {
  FrameTable table = {};
  StackTree tree = {};                                    // of labels of threads, then of places
  std::array<std::vector<std::uint64_t>, 2> counts = {};  // by side and node
};

}  // namespace

struct StackComparison::State {
  std::uint64_t samples(MatchSide side, const Normalization& normalization,
                        std::uint32_t node) const {
    const bool is_old = side == MatchSide::before;
    const auto& event = is_old ? normalization.old_event : normalization.new_event;
    return sides[static_cast<std::size_t>(side)].samples(event.number, node);
  }

  FunctionMatches::Function function(std::uint32_t label) const {
    return sides[static_cast<std::size_t>(side_of(label))].function(frame_of(label));
  }

  FunctionMatches matches(const Normalization& normalization) const;
  CommonStacks common(const Normalization& normalization) const;

  template <class Visit>
  void visit(const CommonStacks& stacks, Visit visit) const {
    for (std::uint32_t node = 1; node < stacks.tree.size(); ++node) {
      ComparedStack stack;
      stack.before = stacks.counts[0][node];
      stack.after = stacks.counts[1][node];
      if (stack.before == 0 && stack.after == 0) continue;
      std::vector<std::uint32_t> path;
      for (std::uint32_t at = node; at != 0; at = stacks.tree[at].parent) {
        path.push_back(stacks.tree[at].frame);
      }
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

  void write_lines(const CommonStacks& stacks, const Normalization& normalization,
                   OutputFile& out) const;

  std::array<ComparedSide, 2> sides;
  StringPool labels = {};
  StackTree tree = {};  // of labels of threads, then of frames of a side
};

/// Each function with the samples that have it anywhere in their stacks.
FunctionMatches StackComparison::State::matches(const Normalization& normalization) const {
  std::array<std::vector<std::uint64_t>, 2> totals;
  for (const MatchSide side : {MatchSide::before, MatchSide::after}) {
    auto& all = totals[static_cast<std::size_t>(side)];
    all.resize(sides[static_cast<std::size_t>(side)].places.size());
    std::vector<std::uint32_t> last(all.size());  // the node that counted last
    for (std::uint32_t node = 1; node < tree.size(); ++node) {
      const std::uint64_t count = samples(side, normalization, node);
      if (count == 0) continue;
      // The last two have labels of threads.
      for (std::uint32_t at = node; tree[tree[at].parent].parent != 0; at = tree[at].parent) {
        const std::uint32_t frame = frame_of(tree[at].frame);
        if (std::exchange(last[frame], node) != node) all[frame] += count;
      }
    }
  }
  FunctionMatches matches;
  for (const MatchSide side : {MatchSide::before, MatchSide::after}) {
    const auto& all = totals[static_cast<std::size_t>(side)];
    const ComparedSide& one = sides[static_cast<std::size_t>(side)];
    for (std::uint32_t frame = 0; frame < all.size(); ++frame) {
      if (all[frame] != 0) matches.add(side, one.function(frame), all[frame]);
    }
  }
  matches.match();
  return matches;
}

CommonStacks StackComparison::State::common(const Normalization& normalization) const {
  const FunctionMatches found = matches(normalization);
  CommonStacks stacks;
  std::array<std::vector<std::uint32_t>, 2> places;  // by frame; 0: not yet
  for (std::size_t i = 0; i < places.size(); ++i) places[i].resize(sides[i].places.size());
  const auto place_of = [&](std::uint32_t label) {
    std::uint32_t& place = places[static_cast<std::size_t>(side_of(label))][frame_of(label)];
    if (place != 0) return place;
    std::string text;
    const auto one = function(label);
    const FunctionMatches::Match match = found.of(side_of(label), one);
    const FrameFunction common = common_function(one, match, text);
    return place = stacks.table.add({.function = stacks.table.add(common)});
  };
  std::vector<std::uint32_t> nodes(tree.size());  // the common ones
  for (std::uint32_t node = 1; node < tree.size(); ++node) {
    const StackNode& one = tree[node];
    const bool is_thread = one.parent == 0 || tree[one.parent].parent == 0;
    nodes[node] = stacks.tree.child(nodes[one.parent], is_thread ? one.frame : place_of(one.frame));
  }
  for (const MatchSide side : {MatchSide::before, MatchSide::after}) {
    auto& counts = stacks.counts[static_cast<std::size_t>(side)];
    counts.resize(stacks.tree.size());
    for (std::uint32_t node = 1; node < tree.size(); ++node) {
      counts[nodes[node]] += samples(side, normalization, node);
    }
  }
  return stacks;
}

StackComparison::StackComparison(const FrameTable& before_table, StackProfile before,
                                 const FrameTable& after_table, StackProfile after)
    : state_(new State{{ComparedSide(before_table, std::move(before)),
                        ComparedSide(after_table, std::move(after))}}) {}
StackComparison::~StackComparison() = default;

void StackComparison::add(Side which, const StackSample& sample, std::uint64_t count) {
  State& state = *state_;
  const auto number = static_cast<std::size_t>(which);
  ComparedSide& side = state.sides[number];
  // pprof profiles need not name threads.
  const auto label = [&state](std::string_view comm) {
    return state.labels.add(comm.empty() ? "[unknown]" : comm);
  };
  std::uint32_t node = state.tree.child(0, label(sample.process_comm));
  node = state.tree.child(node, label(sample.comm));
  for (std::size_t i = sample.frames.size(); i-- > 0;) {
    node = state.tree.child(
        node, label_of(static_cast<MatchSide>(number), side.frame_of(sample.frames[i].place)));
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

void StackComparison::State::write_lines(const CommonStacks& stacks,
                                         const Normalization& normalization,
                                         OutputFile& out) const {
  JsonWriter json(out);
  visit(stacks, [&](const ComparedStack& stack) {
    json.begin_object();
    json.member("schema", "perfmap.stack-comparison/1");
    json.text_members("comm", stack.comm);
    json.member("old_samples", stack.before);
    json.member("new_samples", stack.after);
    json.integer("change_ppm", normalization.change_ppm(stack.before, stack.after));
    json.member("change", to_string(normalization.change(stack.before, stack.after)));
    json.list("frames", stack.frames, [&](const StackFrame& frame) {
      const FrameFunction& function = stacks.table.function_of(frame.place);
      json.begin_object();
      json.name_members(shown_name(function));
      json.member("kind", to_string(function.kind));
      if (!function.module.empty()) json.text_members("module", function.module);
      json.end_object();
    });
    json.end_object();
    json.newline();
  });
}

Result<void> StackComparison::write(StackFormat format, const Normalization& normalization,
                                    std::string_view exporter, OutputFile& out) const {
  if (!supports(format)) {
    return Failure(
        Error::invalid(std::string(to_string(format)) + " has no place for two counts of a stack"));
  }
  const CommonStacks stacks = state_->common(normalization);
  if (format == StackFormat::jsonl) {
    state_->write_lines(stacks, normalization, out);
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
                                  .values = to_string(normalization.rule.values),
                                  .unit = normalization.rule.unit,
                                  .deviations = normalization.rule.deviations,
                                  .run_to_run = normalization.rule.run_to_run,
                                  .threshold_ppm = normalization.rule.threshold_ppm,
                                  .samples = normalization.old_event.total.samples,
                                  .new_samples = normalization.new_event.total.samples,
                                  .total_change_ppm = normalization.total_change_ppm};
  const auto make = format == StackFormat::html ? make_html_writer : make_folded_writer;
  const auto writer = make({out, stacks.table, std::move(profile), {}, baseline});
  state_->visit(stacks, [&](const ComparedStack& stack) {
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
