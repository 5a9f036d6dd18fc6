// SPDX-License-Identifier: MIT
#include <algorithm>
#include <cmath>
#include <vector>

#include "stacks/interning.hpp"
#include "stacks/writers.hpp"

namespace perfmap {
namespace {

/// Nodes by parent: the children of a node are those in [begin(node), begin(node + 1)).
class Children {
 public:
  explicit Children(const StackTree& tree) : begins_(tree.size() + 1), nodes_(tree.size() - 1) {
    for (std::uint32_t node = 1; node < tree.size(); ++node) ++begins_[tree[node].parent + 1];
    for (std::size_t i = 1; i < begins_.size(); ++i) begins_[i] += begins_[i - 1];
    std::vector<std::uint32_t> next(begins_);
    for (std::uint32_t node = 1; node < tree.size(); ++node) {
      nodes_[next[tree[node].parent]++] = node;
    }
  }
  std::span<const std::uint32_t> of(std::uint32_t node) const {
    return std::span(nodes_).subspan(begins_[node], begins_[node + 1] - begins_[node]);
  }

 private:
  std::vector<std::uint32_t> begins_;
  std::vector<std::uint32_t> nodes_;
};

class FoldedWriter : public StackWriter {
 public:
  explicit FoldedWriter(WriterInput input)
      : input_(std::move(input)),
        frames_(input_.table, input_.options.merge_tiers, input_.options.lines) {}

  void add(const StackSample& sample) override {
    std::uint32_t node = tree_.child(0, labels_.add(thread_text(sample)));
    for (std::size_t i = sample.frames.size(); i-- > 0;) {
      node = tree_.child(node, label_of(sample.frames[i].place));
    }
    const bool is_old = input_.baseline && sample.event == 0;
    std::vector<std::uint64_t>& counts = is_old ? old_counts_ : counts_;
    if (node >= counts.size()) counts.resize(tree_.size());
    counts[node] += event_of(input_.profile, sample).is_weighted ? sample.period : sample.count;
  }

  Result<void> finish() override {
    counts_.resize(tree_.size());
    old_counts_.resize(tree_.size());
    write_lines();
    return {};
  }

 private:
  /// What to write below a node: the line of a child, or all lines that continue from it. The texts
  /// are distinct, and none is a prefix of another except a shorter number, so sorting them sorts
  /// the lines.
  struct Item {
    std::string text;
    std::uint32_t node;
    bool goes_on;
  };

  std::string thread_text(const StackSample& sample) const {
    std::string text = safe(sample.comm.empty() ? "[unknown]" : sample.comm);  // pprof has none
    if (input_.options.with_pid) {
      text += "-" + std::to_string(sample.pid) + "/" + std::to_string(sample.tid);
    }
    return text;
  }

  static std::string safe(std::string_view name) {
    std::string text = escaped(name);
    std::replace(text.begin(), text.end(), ';', ':');
    return text;
  }

  std::uint32_t label_of(std::uint32_t place) {
    const std::uint32_t frame = frames_.of_place(place);
    if (frame >= labels_of_frames_.size()) labels_of_frames_.resize(frame + 1);
    if (labels_of_frames_[frame] == 0) labels_of_frames_[frame] = labels_.add(frame_text(frame));
    return labels_of_frames_[frame];
  }

  std::string frame_text(std::uint32_t frame) const {
    const FrameFunction& function = frames_.function(frame);
    std::string text = safe(shown_name(function));
    if (frames_.line(frame) != 0) {
      text += " (" + safe(frames_.file(frame)) + ":" + std::to_string(frames_.line(frame)) + ")";
    }
    if (!input_.options.marks) return text;
    switch (function.kind) {
      case FrameKind::kernel: return text + "_[k]";
      case FrameKind::inlined: return text + "_[i]";
      case FrameKind::jit: return text + "_[j]";
      default: return text;
    }
  }

  /// " N", or " OLD NEW"; empty if nothing ended there.
  std::string numbers_of(std::uint32_t node) const {
    const std::uint64_t count = counts_[node];
    std::string numbers;
    std::uint64_t old_count = 0;
    if (input_.baseline) {
      // A larger number may not fit.
      constexpr double kMax = 4611686018427387904.0;
      const double scaled = static_cast<double>(old_counts_[node]) * input_.baseline->scale;
      old_count = static_cast<std::uint64_t>(std::llround(std::min(scaled, kMax)));
      numbers = " " + std::to_string(old_count);
    }
    if (count == 0 && old_count == 0) return "";
    return numbers + " " + std::to_string(count);
  }

  std::vector<Item> items_below(std::uint32_t node, const Children& children) const {
    std::vector<Item> items;
    for (const std::uint32_t child : children.of(node)) {
      const std::string label(labels_[tree_[child].frame]);
      if (const std::string numbers = numbers_of(child); !numbers.empty()) {
        items.push_back({label + numbers + "\n", child, false});
      }
      if (!children.of(child).empty()) items.push_back({label + ";", child, true});
    }
    // In descending order, because items are taken from the back.
    std::sort(items.begin(), items.end(),
              [](const Item& a, const Item& b) { return a.text > b.text; });
    return items;
  }

  void write_lines() {
    const Children children(tree_);
    struct Level {
      std::vector<Item> items;
      std::size_t prefix;
    };
    std::string prefix;
    std::vector<Level> levels;
    levels.push_back({items_below(0, children), 0});
    while (!levels.empty()) {
      prefix.resize(levels.back().prefix);
      if (levels.back().items.empty()) {
        levels.pop_back();
        continue;
      }
      const Item item = std::move(levels.back().items.back());
      levels.back().items.pop_back();
      if (item.goes_on) {
        prefix += item.text;
        levels.push_back({items_below(item.node, children), prefix.size()});
      } else {
        input_.out.write(prefix);
        input_.out.write(item.text);
      }
    }
  }

  WriterInput input_;
  ShownFrames frames_;
  StringPool labels_;
  std::vector<std::uint32_t> labels_of_frames_;  // 0: not made yet
  StackTree tree_;                               // of labels
  std::vector<std::uint64_t> counts_;            // samples that end at a node, or their weights
  std::vector<std::uint64_t> old_counts_;        // the same of the baseline
};

}  // namespace

std::unique_ptr<StackWriter> make_folded_writer(WriterInput input) {
  return std::make_unique<FoldedWriter>(std::move(input));
}

}  // namespace perfmap
