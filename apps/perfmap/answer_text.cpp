#include "answer_text.hpp"

#include <cstdio>

namespace perfmap::app {
namespace {

std::string hex(std::uint64_t value) {
  char text[17];
  std::snprintf(text, sizeof text, "%llx", static_cast<unsigned long long>(value));
  return text;
}

}  // namespace

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

void AnswerWriter::write(Address address, Hit hit, std::span<const Map> maps,
                         const std::optional<Entry>& entry) {
  if (!entry) {
    ++misses_;
    write_unknown(address, static_cast<bool>(hit));
  } else if (form_ == Form::text) {
    write_text(address, maps[hit.map()], *entry);
  } else {
    write_json(address, maps[hit.map()], *entry);
  }
  if (form_ == Form::jsonl) json_.newline();
}

void AnswerWriter::finish() {
  if (form_ != Form::json) return;
  json_.end_array();
  json_.end_object();
  json_.newline();
}

void AnswerWriter::write_unknown(Address address, bool was_known) {
  if (form_ == Form::text) return console_.out().write(hex(address) + " [unknown] ([unknown])\n");
  json_.begin_object();
  json_.key("address");
  json_.address(address);
  json_.key("name");
  json_.null();
  json_.key("why");
  json_.string(was_known ? "unreadable" : "not-covered");
  json_.end_object();
}

void AnswerWriter::write_text(Address address, const Map& map, const Entry& entry) {
  OutputFile& out = console_.out();
  out.write(hex(address));
  out.write(" ");
  if (console_.out_is_terminal()) {
    out.write(printable(entry.name));
  } else {
    out.write(entry.name);
  }
  out.write("+0x");
  out.write(hex(address - entry.range.begin));
  out.write(" (");
  out.write(map.input().name());
  out.write(")\n");
}

void AnswerWriter::write_json(Address address, const Map& map, const Entry& entry) {
  json_.begin_object();
  json_.key("address");
  json_.address(address);
  json_.name_members(entry.name);
  json_.key("offset");
  json_.number(address - entry.range.begin);
  json_.key("start");
  json_.address(entry.range.begin);
  json_.key("size");
  json_.number(entry.range.size);
  json_.key("source");
  json_.string(map.input().name());
  json_.key("entry_line");
  json_.number(map.line_number(entry.offset));
  json_.end_object();
}

}  // namespace perfmap::app
