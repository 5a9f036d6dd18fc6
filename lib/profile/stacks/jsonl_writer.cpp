#include "perfmap/json_writer.hpp"
#include "perfmap/seconds.hpp"
#include "stacks/shown_frames.hpp"
#include "stacks/writers.hpp"

namespace perfmap {
namespace {

/// One object a line; docs/schema/perfmap.stack-1.json.
class JsonlWriter : public StackWriter {
 public:
  explicit JsonlWriter(WriterInput input)
      : input_(std::move(input)),
        json_(input_.out),
        frames_(input_.table, input_.options.merge_tiers, false) {}

  void add(const StackSample& sample) override {
    json_.begin_object();
    text("time", seconds_text(sample.time));
    number("pid", static_cast<std::uint64_t>(sample.pid));
    number("tid", static_cast<std::uint64_t>(sample.tid));
    text("comm", sample.comm);
    text("event", event_of(input_.profile, sample).name);
    number("period", sample.period);
    text("end", to_string(sample.end));
    json_.key("frames");
    json_.begin_array();
    for (const StackFrame& frame : sample.frames) write_frame(frame);
    json_.end_array();
    json_.end_object();
    json_.newline();
  }

  Result<void> finish() override { return {}; }

 private:
  void text(std::string_view key, std::string_view value) {
    json_.key(key);
    json_.string(value);
  }
  void number(std::string_view key, std::uint64_t value) {
    json_.key(key);
    json_.number(value);
  }

  void write_frame(const StackFrame& frame) {
    const FramePlace& place = input_.table.place(frame.place);
    const FrameFunction& function = frames_.function(frames_.of_place(frame.place));
    json_.begin_object();
    json_.key("ip");
    json_.address(frame.ip);
    json_.key("name");
    if (function.name.empty()) {
      json_.null();
    } else {
      json_.string(function.name);
    }
    number("offset", place.offset);
    text("module",
         function.module.empty() ? input_.table.mapping(place.mapping).path : function.module);
    text("source", to_string(frame.source));
    json_.key("inlined");
    json_.boolean(function.kind == FrameKind::inlined);
    text("file", function.file);
    number("line", place.line);
    json_.end_object();
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
