#include "answer_text.hpp"

#include <algorithm>

namespace perfmap::app {

AnswerWriter::AnswerWriter(const Console& console, const std::string& format, bool lines)
    : console_(console),
      form_(format == "text"   ? Form::text
            : format == "json" ? Form::json
                               : Form::jsonl),
      lines_(lines),
      json_(console.out()) {
  if (form_ != Form::json) return;
  json_.begin_object();
  json_.key("schema");
  json_.string("perfmap.resolve/1");
  json_.key("answers");
  json_.begin_array();
}

void AnswerWriter::write(const Answer& answer) {
  if (!answer.name) ++misses_;
  doubts_.add(answer.doubts);
  if (form_ == Form::text) return write_text(answer);
  write_json(answer);
  if (form_ == Form::jsonl) json_.newline();
}

void AnswerWriter::finish() {
  if (form_ != Form::json) return;
  json_.end_array();
  json_.end_object();
  json_.newline();
}

/// An answer is a line, whatever a jitdump's names hold.
void AnswerWriter::write_bytes(std::string_view bytes) {
  console_.out().write(one_line(bytes, console_.out_is_terminal()));
}

void AnswerWriter::write_place(std::string_view file, std::uint64_t line) {
  console_.out().write("  ");
  write_bytes(file.empty() ? "??" : file);
  console_.out().write(":" + std::to_string(line) + "\n");
}

void AnswerWriter::write_text(const Answer& answer) {
  OutputFile& out = console_.out();
  const std::string address = hex_text(answer.address);
  for (const SourceFrame& frame : answer.inlined) {
    out.write(address + " ");
    write_bytes(frame.function.empty() ? "[?]" : frame.function);
    out.write(" (inlined)\n");
    if (lines_) write_place(frame.file, frame.line);
  }
  out.write(address + " ");
  if (answer.name) {
    write_bytes(answer.shown_name().empty() ? "[?]" : answer.shown_name());
    if (answer.range) out.write("+0x" + hex_text(answer.address - answer.range->begin));
  } else {
    out.write("[unknown]");
  }
  out.write(" (");
  write_bytes(answer.source.empty() ? "[unknown]" : answer.source);
  out.write(")" + doubt_mark(answer.doubts, console_.verbose()) + "\n");
  if (answer.place) write_place(answer.place->file, answer.place->line);
}

/// The source that the name comes from, and where it stands there.
void AnswerWriter::write_origin(const Answer& answer) {
  if (!answer.source.empty()) json_.text_members("source", answer.source);
  if (!answer.offset) return;
  json_.key(answer.map != nullptr ? "entry_line" : "record_offset");
  json_.number(answer.map != nullptr ? answer.map->line_number(*answer.offset) : *answer.offset);
}

void AnswerWriter::write_doubts(Doubts doubts) {
  if (!doubts.any()) return;
  json_.key("doubts");
  json_.begin_array();
  for (unsigned i = 0; i < kDoubtCount; ++i) {
    if (doubts.has(doubt_at(i))) json_.string(to_string(doubt_at(i)));
  }
  json_.end_array();
}

void AnswerWriter::write_inlined(const Answer& answer) {
  json_.key("inlined");
  json_.begin_array();
  for (const SourceFrame& frame : answer.inlined) {
    json_.begin_object();
    json_.name_members(frame.function);
    json_.text_members("file", frame.file);
    json_.key("line");
    json_.number(frame.line);
    json_.end_object();
  }
  json_.end_array();
}

void AnswerWriter::write_range(Address address, const AddressRange& range) {
  json_.key("offset");
  json_.number(address - range.begin);
  json_.key("start");
  json_.address(range.begin);
  json_.key("size");
  json_.number(range.size);
}

void AnswerWriter::write_json(const Answer& answer) {
  json_.begin_object();
  json_.key("address");
  json_.address(answer.address);
  if (answer.name) {
    json_.name_members(answer.shown_name());
    if (answer.range) write_range(answer.address, *answer.range);
  } else {
    json_.key("name");
    json_.null();
    json_.key("why");
    json_.string(answer.why);
  }
  write_origin(answer);
  if (answer.place) {
    json_.text_members("file", answer.place->file);
    json_.key("source_line");
    json_.number(answer.place->line);
  }
  if (answer.with_inlined) write_inlined(answer);
  write_doubts(answer.doubts);
  json_.end_object();
}

}  // namespace perfmap::app
