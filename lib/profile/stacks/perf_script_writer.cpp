// SPDX-License-Identifier: MIT
#include <algorithm>
#include <array>
#include <charconv>
#include <cinttypes>
#include <cstdio>
#include <string>
#include <vector>

#include "perfmap/text.hpp"
#include "stacks/writers.hpp"

namespace perfmap {
namespace {

constexpr std::uint64_t kSecond = 1'000'000'000;

/// The output of perf 6 for recordings with stacks, with --ns -F +pid,+period,+dso,+symoff.
/// Source: Linux, tools/perf/builtin-script.c and util/evsel_fprintf.c.
class PerfScriptWriter : public StackWriter {
 public:
  explicit PerfScriptWriter(WriterInput input)
      : input_(std::move(input)), frames_(input_.table, input_.options.merge_tiers, false) {
    for (const StackProfile::Event& event : input_.profile.events) {
      event_width_ = std::max(event_width_, event.name.size());
    }
  }

  void add(const StackSample& sample) override {
    write_header(sample);
    for (std::size_t i = 0; i < sample.frames.size(); ++i) {
      const Text* const known = known_text(sample.frames[i]);
      if (known != nullptr && !known->is_inlined) {
        input_.out.write(known->text);
        continue;
      }
      // perf gives an inlined function the offset of the function that contains it.
      std::size_t holder = i;
      while (is_inlined(sample.frames[holder]) && holder + 1 < sample.frames.size() &&
             sample.frames[holder + 1].ip == sample.frames[i].ip) {
        ++holder;
      }
      const std::uint64_t offset = input_.table.place(sample.frames[holder].place).offset;
      if (known != nullptr && known->offset == offset) {
        input_.out.write(known->text);
      } else {
        write_frame(sample.frames[i], offset);
      }
    }
    input_.out.write("\n");
  }

  Result<void> finish() override { return {}; }

 private:
  struct Text {
    std::string text;
    std::uint64_t offset = 0;
    bool is_inlined = false;
  };

  template <class... Values>
  void print(std::size_t max, const char* format, Values... values) {
    const int count = std::snprintf(input_.out.room(max), max, format, values...);
    input_.out.wrote(std::min(static_cast<std::size_t>(count), max - 1));
  }

  bool is_inlined(const StackFrame& frame) const {
    return input_.table.function_of(frame.place).kind == FrameKind::inlined;
  }

  void write_text(std::string_view text) {
    if (is_plain_map_name(text)) return input_.out.write(text);
    input_.out.write(escaped(text));
  }

  void write_header(const StackSample& sample) {
    write_text(sample.comm);
    print(64, " %5d/%-5d ", sample.pid, sample.tid);
    if (sample.cpu != UINT32_MAX) print(32, "[%03" PRIu32 "] ", sample.cpu);
    print(64, "%5" PRIu64 ".%09" PRIu64 ": %10" PRIu64 " ", sample.time / kSecond,
          sample.time % kSecond, sample.period);
    const std::string& event = event_of(input_.profile, sample).name;
    if (event.size() < event_width_)
      input_.out.write(std::string(event_width_ - event.size(), ' '));
    write_text(event);
    input_.out.write(": \n");
  }

  /// perf's unwinder reports the return address minus one; the kernel's, the return address.
  static bool is_before(const StackFrame& frame) noexcept {
    return frame.is_return && frame.source != FrameSource::callchain &&
           frame.source != FrameSource::kernel;
  }

  /// The other inputs of a place's text, as a number from 0 to 5.
  static std::size_t kind_of(const StackFrame& frame) noexcept {
    const bool is_scanned = frame.source == FrameSource::scan;
    const bool is_stitched = frame.source == FrameSource::stitched;
    return (is_before(frame) ? 1 : 0) + (is_scanned ? 2 : is_stitched ? 4 : 0);
  }

  /// The text of a place is made once, because most samples share callers.
  const Text* known_text(const StackFrame& frame) const noexcept {
    const std::vector<Text>& texts = texts_[kind_of(frame)];
    const bool is_known = frame.place < texts.size() && !texts[frame.place].text.empty();
    return is_known ? &texts[frame.place] : nullptr;
  }

  void write_frame(const StackFrame& frame, std::uint64_t offset) {
    std::vector<Text>& texts = texts_[kind_of(frame)];
    if (frame.place >= texts.size()) texts.resize(input_.table.places());
    Text& text = texts[frame.place];
    text = {text_of(frame, offset), offset, is_inlined(frame)};
    input_.out.write(text.text);
  }

  static void append_hex(std::string& text, std::uint64_t number, std::size_t width = 0) {
    char digits[16];
    const char* const end = std::to_chars(digits, digits + sizeof digits, number, 16).ptr;
    const auto count = static_cast<std::size_t>(end - digits);
    if (count < width) text.append(width - count, ' ');
    text.append(digits, count);
  }

  std::string text_of(const StackFrame& frame, std::uint64_t offset) {
    const FramePlace& place = input_.table.place(frame.place);
    const FrameFunction& function = frames_.function(frames_.of_place(frame.place));
    const std::uint64_t before = is_before(frame) ? 1 : 0;
    std::string text = "\t";
    append_hex(text, place.map_address - before, 16);
    if (function.name.empty()) {
      text += " [unknown]";
    } else {
      text.append(" ").append(escaped(function.name)).append("+0x");
      append_hex(text, offset - (offset != 0 ? before : 0));
    }
    text += module_text(function, place) + mark_of(doubts_of(frame, place)) + "\n";
    const bool is_inlined = place.inlined_line != 0;
    const std::uint32_t line = is_inlined ? place.inlined_line : place.line;
    if (input_.options.lines && line != 0) {
      const auto file = is_inlined ? kInlinedFromAnotherFile : std::string_view(function.file);
      text += "  " + escaped(file) + ":" + std::to_string(line) + "\n";
    }
    return text;
  }

  /// After a tab: readers of this format ignore text after the module.
  std::string mark_of(Doubts doubts) const {
    if (!doubts.any()) return {};
    return "\t(?" + (input_.options.doubt_kinds ? to_string(doubts) : std::string()) + ")";
  }

  std::string module_text(const FrameFunction& function, const FramePlace& place) const {
    if (function.kind == FrameKind::inlined) return " (inlined)";
    std::string_view module = function.module;
    if (module.empty()) module = input_.table.mapping(place.mapping).path;
    return " (" + (module.empty() ? std::string("[unknown]") : escaped(module)) + ")";
  }

  WriterInput input_;
  ShownFrames frames_;
  std::array<std::vector<Text>, 6> texts_;  // by kind_of(), then by place
  std::size_t event_width_ = 0;
};

}  // namespace

std::unique_ptr<StackWriter> make_perf_script_writer(WriterInput input) {
  return std::make_unique<PerfScriptWriter>(std::move(input));
}

}  // namespace perfmap
