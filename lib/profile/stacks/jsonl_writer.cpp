// SPDX-License-Identifier: MIT
#include "base/hex_bytes.hpp"
#include "perfmap/json.hpp"
#include "perfmap/text.hpp"
#include "stacks/writers.hpp"

namespace perfmap {
namespace {

/// One JSON object per line; docs/schema/perfmap.stack-1.json, and perfmap.stack-count-1.json of
/// merged stacks.
class JsonlWriter : public StackWriter {
 public:
  explicit JsonlWriter(WriterInput input)
      : input_(std::move(input)),
        json_(input_.out),
        frames_(input_.table, input_.options.merge_tiers, false) {}

  void add(const StackSample& sample) override {
    if (input_.profile.is_merged) return add_merged(sample);
    json_.begin_object();
    json_.member("time", seconds_text(sample.time));
    json_.member("pid", static_cast<std::uint64_t>(sample.pid));
    json_.member("tid", static_cast<std::uint64_t>(sample.tid));
    json_.member("comm", sample.comm);
    json_.member("event", event_of(input_.profile, sample).name);
    json_.member("period", sample.period);
    json_.member("end", to_string(sample.end));
    json_.list("frames", sample.frames, [&](const StackFrame& frame) { write_frame(frame); });
    json_.end_object();
    json_.newline();
  }

  Result<void> finish() override { return {}; }

 private:
  void add_merged(const StackSample& sample) {
    json_.begin_object();
    json_.member("count", sample.count);
    json_.member("period", sample.period);
    json_.member("process", sample.process_comm);
    json_.member("comm", sample.comm);
    json_.member("event", event_of(input_.profile, sample).name);
    json_.member("end", to_string(sample.end));
    json_.begin_object("labels");
    for (const StackLabel& label : sample.labels) json_.member(label.key, label.value);
    json_.end_object();
    json_.list("frames", sample.frames,
               [&](const StackFrame& frame) { write_merged_frame(frame); });
    json_.end_object();
    json_.newline();
  }

  void write_name(const FrameFunction& function) { json_.text_or_null("name", function.name); }

  /// With what names it later, if it has no name.
  void write_merged_frame(const StackFrame& frame) {
    const FramePlace& place = input_.table.place(frame.place);
    const FrameMapping& mapping = input_.table.mapping(place.mapping);
    const FrameFunction& function = frames_.function(frames_.of_place(frame.place));
    json_.begin_object();
    write_name(function);
    json_.member("module", function.module.empty() ? mapping.path : function.module);
    json_.member("kind", to_string(function.kind));
    json_.member("file", function.file);
    json_.member("line", place.line);
    if (function.name.empty() && place.map_address != 0) {
      const bool is_address = place.vaddr != 0;
      json_.address(is_address ? "address" : "file_offset",
                    (is_address ? place.vaddr : place.map_address) - (frame.is_return ? 1 : 0));
      json_.member("build_id", hex_of_bytes(mapping.build_id));
    }
    write_doubts(doubts_of(frame, place));
    json_.end_object();
  }

  void write_frame(const StackFrame& frame) {
    const FramePlace& place = input_.table.place(frame.place);
    const FrameFunction& function = frames_.function(frames_.of_place(frame.place));
    json_.begin_object();
    json_.address("ip", frame.ip);
    write_name(function);
    json_.member("offset", place.offset);
    json_.member("module", function.module.empty() ? input_.table.mapping(place.mapping).path
                                                   : function.module);
    json_.member("source", to_string(frame.source));
    json_.boolean("inlined", function.kind == FrameKind::inlined);
    json_.member("file", function.file);
    json_.member("line", place.line);
    write_doubts(doubts_of(frame, place));
    json_.end_object();
  }

  void write_doubts(Doubts doubts) {
    if (!doubts.any()) return;
    json_.begin_array("doubts");
    for (unsigned i = 0; i < kDoubtCount; ++i) {
      if (doubts.has(doubt_at(i))) json_.string(to_string(doubt_at(i)));
    }
    json_.end_array();
  }

  WriterInput input_;
  JsonWriter json_;
  ShownFrames frames_;
};

}  // namespace

std::unique_ptr<StackWriter> make_jsonl_writer(WriterInput input) {
  return std::make_unique<JsonlWriter>(std::move(input));
}

}  // namespace perfmap
