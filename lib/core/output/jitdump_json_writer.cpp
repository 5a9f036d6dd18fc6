#include "output/jitdump_json_writer.hpp"

#include "formats/jitdump_sizes.hpp"
#include "perfmap/jitdump_encode.hpp"
#include "perfmap/seconds.hpp"

namespace perfmap {

void RecordWriter::time(const JitRecord& record) {
  json_.key("time");
  json_.string(ticks_ ? std::to_string(record.time) : seconds_text(record.time));
}

void RecordWriter::load_members(const JitRecord& record, const LoadRecord& load) {
  json_.name_members(load.name);
  number("offset", record.offset);
  time(record);
  number("pid", load.pid);
  number("tid", load.tid);
  number("index", load.code_index);
}

void RecordWriter::begin_line(Address where, std::int32_t line, std::int32_t column) {
  json_.begin_object();
  address("address", where);
  json_.key("line");
  json_.integer(line);
  json_.key("column");
  json_.integer(column);
}

void RecordWriter::lines(const JitRecord& record) {
  const std::vector<CodeLine> lines = details_.lines(record.offset);
  if (lines.empty()) return;
  json_.key("lines");
  json_.begin_array();
  for (const CodeLine& line : lines) {
    begin_line(line.address, line.line, line.column);
    json_.text_members("file", line.file);
    json_.end_object();
  }
  json_.end_array();
}

bool RecordWriter::entry(const JitRecord& record) {
  const auto load = decode_load(record);
  if (!load) return false;
  json_.begin_object();
  address("start", load->range.begin);
  // Where the record has less code than it says, "body" gives what it says.
  number("size", has_odd_sizes(record) ? load->code.size() : load->code_size);
  load_members(record, *load);
  if (load->vma != load->range.begin) address("vma", load->vma);
  if (with_code_) bytes("code", load->code);
  bytes("padding", load->padding);
  lines(record);
  // A producer that leaves the code out is not one whose code was left out here.
  if (load->code.empty() && load->code_size != 0) {
    json_.key("has_code");
    json_.boolean(false);
  }
  if (with_code_ && !says_all(record)) bytes("body", record.bytes.substr(JitRecord::kPrefix));
  json_.end_object();
  return true;
}

/// Whether the fields give the record back to the byte.
bool RecordWriter::says_all(const JitRecord& record) {
  again_.clear();
  JitdumpEncoder encoder(again_, record.order);
  bool done = false;
  std::string_view padding;
  if (const auto load = decode_load(record)) {
    done = !has_odd_sizes(record) && encoder.load(record.time, *load);
  } else if (const auto move = decode_move(record)) {
    encoder.move(record.time, *move);
    done = true;
  } else if (const auto info = decode_debug_info(record)) {
    const auto lines = decode_lines(record, &padding);
    done = lines && encoder.debug_info(record.time, info->code_address, *lines, padding);
  } else if (const auto unwinding = decode_unwinding(record)) {
    done = encoder.unwinding(record.time, *unwinding);
  } else if (record.is(JitRecordKind::close)) {
    encoder.close(record.time);
    done = true;
  }
  return done && again_ == record.bytes;
}

void RecordWriter::raw_lines(const std::vector<LineRecord>& lines) {
  json_.key("lines");
  json_.begin_array();
  for (const LineRecord& line : lines) {
    begin_line(line.address, line.line, line.column);
    if (line.file_repeats) {
      json_.key("file_repeats");
      json_.boolean(true);
    } else {
      json_.text_members("file", line.file);
    }
    json_.end_object();
  }
  json_.end_array();
}

void RecordWriter::fields_of(const JitRecord& record) {
  if (const auto move = decode_move(record)) {
    number("pid", move->pid);
    number("tid", move->tid);
    address("vma", move->vma);
    address("old_start", move->old_address);
    address("start", move->range.begin);
    number("size", move->code_size);
    number("index", move->code_index);
  } else if (const auto info = decode_debug_info(record)) {
    std::string_view padding;
    address("start", info->code_address);
    if (const auto lines = decode_lines(record, &padding)) raw_lines(*lines);
    bytes("padding", padding);
  } else if (const auto unwinding = decode_unwinding(record)) {
    bytes("eh_frame", unwinding->eh_frame);
    bytes("eh_frame_hdr", unwinding->eh_frame_hdr);
    number("mapped_size", unwinding->mapped_size);
    json_.key("header_first");
    json_.boolean(unwinding->header_first);
    bytes("padding", unwinding->padding);
  }
}

void RecordWriter::other(const JitRecord& record) {
  const std::string_view kind = to_string(static_cast<JitRecordKind>(record.id));
  json_.begin_object();
  json_.key("kind");
  json_.string(kind.empty() ? "unknown" : kind);
  if (kind.empty()) number("id", record.id);
  number("offset", record.offset);
  time(record);
  fields_of(record);
  if (!says_all(record)) {  // an empty one says that there is nothing, not even fields
    json_.key("body");
    json_.base64(record.bytes.substr(JitRecord::kPrefix));
  }
  json_.end_object();
}

}  // namespace perfmap
