#include "answer_text.hpp"

#include <algorithm>

namespace perfmap::app {
AnswerWriter::AnswerWriter(const Console& console, const std::string& format)
    : console_(console),
      form_(format == "text"   ? Form::text
            : format == "json" ? Form::json
                               : Form::jsonl),
      json_(console.out()) {
  if (form_ != Form::json) return;
  json_.begin_object();
  json_.key("schema");
  json_.string("perfmap.resolve/1");
  json_.key("answers");
  json_.begin_array();
}

void AnswerWriter::write(Address address, const Resolution& answer, const AnswerSource& source) {
  if (!answer.found) {
    ++misses_;
    write_unknown(address, answer.why);
  } else if (form_ == Form::text) {
    write_text(address, *answer.found, source);
  } else {
    write_json(address, *answer.found, source);
  }
  if (form_ == Form::jsonl) json_.newline();
}

void AnswerWriter::finish() {
  if (form_ != Form::json) return;
  json_.end_array();
  json_.end_object();
  json_.newline();
}

void AnswerWriter::write_unknown(Address address, Unresolved why) {
  if (form_ == Form::text)
    return console_.out().write(hex_text(address) + " [unknown] ([unknown])\n");
  json_.begin_object();
  json_.key("address");
  json_.address(address);
  json_.key("name");
  json_.null();
  json_.key("why");
  json_.string(to_string(why));
  json_.end_object();
}

/// An answer is a line, whatever a jitdump's names hold.
void AnswerWriter::write_bytes(std::string_view bytes) {
  console_.out().write(one_line(bytes, console_.out_is_terminal()));
}

void AnswerWriter::write_text(Address address, const ResolvedName& name,
                              const AnswerSource& source) {
  OutputFile& out = console_.out();
  out.write(hex_text(address));
  out.write(" ");
  write_bytes(name.name.empty() ? "[?]" : name.name);
  out.write("+0x");
  out.write(hex_text(address - name.range.begin));
  out.write(" (");
  write_bytes(source.input->name());
  out.write(")\n");
  if (source.line == nullptr) return;
  out.write("  ");
  write_bytes(source.line->file);
  out.write(":" + std::to_string(source.line->line) + "\n");
}

void AnswerWriter::write_json(Address address, const ResolvedName& name,
                              const AnswerSource& source) {
  json_.begin_object();
  json_.key("address");
  json_.address(address);
  json_.name_members(name.name);
  json_.key("offset");
  json_.number(address - name.range.begin);
  json_.key("start");
  json_.address(name.range.begin);
  json_.key("size");
  json_.number(name.range.size);
  json_.key("source");
  json_.string(source.input->name());
  if (source.map != nullptr) {
    json_.key("entry_line");
    json_.number(source.map->line_number(name.offset));
  } else {
    json_.key("record_offset");
    json_.number(name.offset);
  }
  if (source.line != nullptr) {
    json_.text_members("file", source.line->file);
    json_.key("source_line");
    json_.number(static_cast<std::uint64_t>(std::max(source.line->line, 0)));
  }
  json_.end_object();
}

}  // namespace perfmap::app
