// SPDX-License-Identifier: MIT
#include <algorithm>
#include <array>
#include <charconv>
#include <tuple>
#include <utility>
#include <vector>

#include "perfmap/runtimes.hpp"
#include "perfmap/text.hpp"
#include "stacks/code_class.hpp"
#include "stacks/flame_page.hpp"
#include "stacks/interning.hpp"
#include "stacks/writers.hpp"

namespace perfmap {
namespace {

void write_page_string(OutputFile& out, std::string_view bytes) { out.write(page_string(bytes)); }

/// Samples of one node of the tree and one event, counted by slots of time. The slots begin with
/// 100 microseconds. They become twice as wide whenever there are too many counts, so memory and
/// the page's size have a limit, however many samples there are.
class SlotCounts {
 public:
  struct Count {
    std::uint64_t slot;
    std::uint32_t node;
    std::uint32_t event;
    std::uint64_t samples;
  };

  void add(std::uint64_t time, std::uint32_t node, std::uint32_t event, std::uint64_t samples) {
    counts_.push_back({time / width_, node, event, samples});
    if (counts_.size() >= max_kept_) shrink();
  }

  /// Sorted by slot, node and event, which are different in each.
  const std::vector<Count>& finish() {
    shrink();
    return counts_;
  }

  std::uint64_t width() const noexcept { return width_; }  ///< of a slot, in nanoseconds

 private:
  /// A page of so many counts has about 3 MB of them. More are kept only if a slot that has all
  /// samples has more, because each distinct stack needs one.
  static constexpr std::size_t kMaxWritten = std::size_t{1} << 18;

  void shrink() {
    merge();
    while (counts_.size() > kMaxWritten && counts_.back().slot != 0) {
      width_ *= 2;
      for (Count& count : counts_) count.slot /= 2;
      merge();
    }
    max_kept_ = std::max(4 * kMaxWritten, 2 * counts_.size());
  }

  void merge() {
    const auto key = [](const Count& count) {
      return std::tie(count.slot, count.node, count.event);
    };
    std::sort(counts_.begin(), counts_.end(),
              [&](const Count& a, const Count& b) { return key(a) < key(b); });
    std::size_t kept = 0;
    for (const Count& count : counts_) {
      if (kept != 0 && key(counts_[kept - 1]) == key(count)) {
        counts_[kept - 1].samples += count.samples;
      } else {
        counts_[kept++] = count;
      }
    }
    counts_.resize(kept);
  }

  std::vector<Count> counts_;
  std::size_t max_kept_ = 4 * kMaxWritten;
  std::uint64_t width_ = 100'000;
};

/// A page that shows the stacks as a flame graph: flame_page.html with the stacks as JSON.
///
/// The tree has processes, their threads, and functions; each node has its parent and its function.
/// Node 0 is the root, and its own parent. Each count says how many samples of an event ended at a
/// node in a slot of time.
class HtmlWriter : public StackWriter {
 public:
  explicit HtmlWriter(WriterInput input)
      : input_(std::move(input)),
        frames_(input_.table, input_.options.merge_tiers, false),
        has_times_(have_times(input_.profile)) {}

  void add(const StackSample& sample) override {
    const bool is_weighted = event_of(input_.profile, sample).is_weighted;
    const std::uint64_t weight = is_weighted ? sample.period : sample.count;
    const std::uint64_t time = has_times_ ? sample.time : 0;
    if (tree_.size() == 1) first_time_ = last_time_ = time;
    last_time_ = std::max(last_time_, time);
    if (!input_.baseline || sample.event == 1) samples_ += weight;
    std::uint32_t node = tree_.child(0, label(sample.process_comm, " (pid ", sample.pid));
    node = tree_.child(node, label(sample.comm, " (tid ", sample.tid));
    for (std::size_t i = sample.frames.size(); i-- > 0;) {
      node = tree_.child(node, frame_of(sample.frames[i]));
    }
    counts_.add(time - std::min(first_time_, time), node, sample.event, weight);
  }

  Result<void> finish() override {
    OutputFile& out = input_.out;
    out.write(kBeforeBody);
    out.write("{\"schema\":\"perfmap.flame/2\"");
    member("title", input_.profile.title);
    member("command", input_.profile.command);
    member("host", input_.profile.hostname);
    member("exporter", input_.profile.exporter);
    out.write(",\"samples\":" + std::to_string(samples_));
    member("start", seconds_text(first_time_));
    out.write(",\"duration\":" +
              std::to_string(has_times_ ? last_time_ - first_time_ : input_.profile.duration_ns));
    out.write(std::string(",\"has_times\":") + (has_times_ ? "true" : "false"));
    const auto& events = input_.profile.events;
    const auto& baseline = input_.baseline;
    if (baseline) {
      write_baseline(*baseline);
    } else if (!events.empty() && events[0].is_weighted) {
      member("unit", events[0].name);
    }
    write_events();
    write_functions();
    write_nodes();
    write_counts();
    if (input_.code) out.write(",\"code\":" + input_.code());
    out.write("}");
    out.write(kAfterBody);
    return {};
  }

 private:
  /// Whether all samples have times in nanoseconds. One event without them is enough for none: the
  /// page could not place its samples.
  static bool have_times(const StackProfile& profile) {
    return std::all_of(profile.events.begin(), profile.events.end(),
                       [](const StackProfile::Event& event) {
                         return (event.has_times && !event.is_weighted) || !event.is_sampled;
                       });
  }

  /// Range of source lines of a function in samples; 0: none known.
  struct Lines {
    std::uint32_t first = 0;
    std::uint32_t last = 0;
  };

  std::uint32_t frame_of(const StackFrame& sampled) {
    const FramePlace& place = input_.table.place(sampled.place);
    const std::uint32_t frame = frames_.of_place(sampled.place);
    if (frame >= lines_.size()) lines_.resize(frame + 1);
    if (frame >= doubts_.size()) doubts_.resize(frame + 1);
    const Doubts doubts = doubts_of(sampled, place);
    doubts_[frame].add(doubts);
    has_doubts_ = has_doubts_ || doubts.any();
    if (const std::uint32_t line = place.line; line != 0) {
      Lines& lines = lines_[frame];
      lines.first = lines.first == 0 ? line : std::min(lines.first, line);
      lines.last = std::max(lines.last, line);
    }
    return frame;
  }

  /// Labels are the frames of the first two levels.
  std::uint32_t label(std::string_view comm, std::string_view what, pid_t id) {
    if (id < 0) return labels_.add(comm);  // unknown
    return labels_.add(std::string(comm).append(what) + std::to_string(id) + ")");
  }

  void member(std::string_view key, std::string_view value) {
    input_.out.write(",\"" + std::string(key) + "\":");
    write_page_string(input_.out, value);
  }

  /// ,"KEY":[…] with the values that `write(i)` writes.
  template <class Write>
  void column(std::string_view key, std::size_t length, Write write) {
    input_.out.write(",\"" + std::string(key) + "\":[");
    for (std::uint32_t i = 0; i < length; ++i) {
      if (i != 0) input_.out.write(",");
      write(i);
    }
    input_.out.write("]");
  }
  template <class Value>
  void numbers(std::string_view key, std::size_t length, Value value) {
    column(key, length, [&](std::uint32_t i) { input_.out.write(std::to_string(value(i))); });
  }

  void write_baseline(const ComparedBaseline& baseline) {
    const auto number = [](double value) {
      std::array<char, 32> text{};
      return std::string(text.begin(), std::to_chars(text.begin(), text.end(), value).ptr);
    };
    input_.out.write(",\"baseline\":{\"scale\":" + number(baseline.scale) + ",\"values\":\"" +
                     std::string(baseline.values) + "\",\"unit\":" + number(baseline.unit) +
                     ",\"deviations\":" + number(baseline.deviations) +
                     ",\"run_to_run\":" + number(baseline.run_to_run) +
                     ",\"threshold_ppm\":" + std::to_string(baseline.threshold_ppm) +
                     ",\"samples\":" + std::to_string(baseline.samples) +
                     ",\"new_samples\":" + std::to_string(baseline.new_samples));
    if (baseline.total_change_ppm) {
      input_.out.write(",\"total_change_ppm\":" + std::to_string(*baseline.total_change_ppm));
    }
    member("title", baseline.title);
    input_.out.write("}");
  }

  void write_events() {
    column("events", input_.profile.events.size(),
           [&](std::uint32_t i) { write_page_string(input_.out, input_.profile.events[i].name); });
  }

  void write_functions() {
    StringPool strings;
    const auto string_of = [&](std::string_view FrameFunction::*field) {
      return [this, &strings, field](std::uint32_t i) {
        return strings.add(frames_.function(i).*field);
      };
    };
    column("names", frames_.size(), [&](std::uint32_t i) {
      write_page_string(input_.out, shown_name(frames_.function(i)));
    });
    numbers("modules", frames_.size(), string_of(&FrameFunction::module));
    numbers("files", frames_.size(), string_of(&FrameFunction::file));
    numbers("first_lines", frames_.size(), [&](std::uint32_t i) { return lines_[i].first; });
    numbers("last_lines", frames_.size(), [&](std::uint32_t i) { return lines_[i].last; });
    numbers("tiers", frames_.size(), string_of(&FrameFunction::tier));
    write_merged_names(strings);
    numbers("classes", frames_.size(), [&](std::uint32_t i) {
      return static_cast<unsigned>(code_class(frames_.function(i)));
    });
    if (has_doubts_) {
      numbers("doubts", frames_.size(),
              [&](std::uint32_t i) { return strings.add(to_string(doubts_[i])); });
    }
    column("strings", strings.size(),
           [&](std::uint32_t i) { write_page_string(input_.out, strings[i]); });
    column("labels", labels_.size(),
           [&](std::uint32_t i) { write_page_string(input_.out, labels_[i]); });
  }

  /// The names without tiers, of functions whose names have one; 0: the same name.
  void write_merged_names(StringPool& strings) {
    std::vector<std::uint32_t> merged(frames_.size());
    bool any = false;
    for (std::uint32_t i = 0; i < merged.size(); ++i) {
      const FrameFunction& function = frames_.function(i);
      if (function.kind != FrameKind::jit || function.tier.empty()) continue;
      const std::string name = without_tier(function.name);
      if (name == function.name) continue;
      merged[i] = strings.add(name);
      any = true;
    }
    if (any) numbers("merged", merged.size(), [&](std::uint32_t i) { return merged[i]; });
  }

  void write_nodes() {
    const auto nodes = static_cast<std::uint32_t>(tree_.size());
    // Mostly 1, so that the page is smaller than with the parents' numbers.
    numbers("parent_distances", nodes,
            [&](std::uint32_t i) { return i == 0 ? 0 : i - tree_[i].parent; });
    numbers("frames", nodes, [&](std::uint32_t i) { return i == 0 ? 0 : tree_[i].frame; });
  }

  void write_counts() {
    const auto& counts = counts_.finish();
    input_.out.write(",\"slot\":" + std::to_string(counts_.width()));
    std::uint64_t slot = 0;
    numbers("slots", counts.size(),
            [&](std::uint32_t i) { return counts[i].slot - std::exchange(slot, counts[i].slot); });
    numbers("nodes", counts.size(), [&](std::uint32_t i) { return counts[i].node; });
    if (input_.profile.events.size() > 1) {
      numbers("events_of", counts.size(), [&](std::uint32_t i) { return counts[i].event; });
    }
    numbers("counts", counts.size(), [&](std::uint32_t i) { return counts[i].samples; });
  }

  WriterInput input_;
  ShownFrames frames_;
  bool has_times_;
  std::vector<Lines> lines_;    // per frame
  std::vector<Doubts> doubts_;  // per frame, over all samples
  bool has_doubts_ = false;
  StringPool labels_;
  StackTree tree_;
  SlotCounts counts_;
  std::uint64_t samples_ = 0;
  std::uint64_t first_time_ = 0;
  std::uint64_t last_time_ = 0;
};

}  // namespace

std::string page_string(std::string_view bytes) {
  std::string visible;
  append_visible(visible, bytes);
  std::string text = "\"";
  for (const char c : visible) {
    switch (c) {
      case '"':
      case '\\': text.append(1, '\\').append(1, c); break;
      case '<': text += "\\u003c"; break;
      case '>': text += "\\u003e"; break;
      case '&': text += "\\u0026"; break;
      default: text += c;
    }
  }
  return text += '"';
}

std::unique_ptr<StackWriter> make_html_writer(WriterInput input) {
  return std::make_unique<HtmlWriter>(std::move(input));
}

}  // namespace perfmap
