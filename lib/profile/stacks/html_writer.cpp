#include <algorithm>
#include <vector>

#include "perfmap/text.hpp"
#include "stacks/code_class.hpp"
#include "stacks/flame_page.hpp"
#include "stacks/interning.hpp"
#include "stacks/writers.hpp"

namespace perfmap {
namespace {

/// JSON inside a page: a string must not end the enclosing element.
void write_page_string(OutputFile& out, std::string_view bytes) {
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
  out.write(text += '"');
}

/// A page that shows the stacks as a flame graph: flame_page.html with the stacks as JSON.
///
/// The tree has processes, their threads, and functions; each node has its parent, its function and
/// the number of samples that end there. Node 0 is the root, and its own parent.
class HtmlWriter : public StackWriter {
 public:
  explicit HtmlWriter(WriterInput input)
      : input_(std::move(input)), frames_(input_.table, input_.options.merge_tiers, false) {}

  void add(const StackSample& sample) override {
    if (samples_ == 0) first_time_ = sample.time;
    last_time_ = sample.time;
    ++samples_;
    std::uint32_t node = tree_.child(0, label(sample.process_comm, " (pid ", sample.pid));
    node = tree_.child(node, label(sample.comm, " (tid ", sample.tid));
    for (std::size_t i = sample.frames.size(); i-- > 0;) {
      node = tree_.child(node, frame_of(sample.frames[i]));
    }
    if (node >= counts_.size()) counts_.resize(tree_.size());
    ++counts_[node];
  }

  Result<void> finish() override {
    counts_.resize(tree_.size());
    OutputFile& out = input_.out;
    out.write(kBeforeBody);
    out.write("{\"schema\":\"perfmap.flame/1\"");
    member("title", input_.profile.title);
    member("command", input_.profile.command);
    member("host", input_.profile.hostname);
    member("exporter", input_.profile.exporter);
    out.write(",\"samples\":" + std::to_string(samples_));
    out.write(",\"duration\":" + std::to_string(last_time_ - first_time_));
    write_events();
    write_functions();
    write_nodes();
    out.write("}");
    out.write(kAfterBody);
    return {};
  }

 private:
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

  void write_nodes() {
    const auto nodes = static_cast<std::uint32_t>(tree_.size());
    numbers("parents", nodes, [&](std::uint32_t i) { return i == 0 ? 0 : tree_[i].parent; });
    numbers("frames", nodes, [&](std::uint32_t i) { return i == 0 ? 0 : tree_[i].frame; });
    numbers("counts", nodes, [&](std::uint32_t i) { return counts_[i]; });
  }

  WriterInput input_;
  ShownFrames frames_;
  std::vector<Lines> lines_;    // per frame
  std::vector<Doubts> doubts_;  // per frame, over all samples
  bool has_doubts_ = false;
  StringPool labels_;
  StackTree tree_;
  std::vector<std::uint64_t> counts_;  // samples that end at a node
  std::uint64_t samples_ = 0;
  std::uint64_t first_time_ = 0;
  std::uint64_t last_time_ = 0;
};

}  // namespace

std::unique_ptr<StackWriter> make_html_writer(WriterInput input) {
  return std::make_unique<HtmlWriter>(std::move(input));
}

}  // namespace perfmap
