#include "perfmap/jitdump_json.hpp"

#include <cstdio>
#include <optional>

#include "output/json_source.hpp"
#include "perfmap/jit_details.hpp"
#include "perfmap/jitdump_encode.hpp"
#include "perfmap/json_writer.hpp"
#include "perfmap/map_json.hpp"

namespace perfmap {
namespace {

class RecordWriter {
 public:
  RecordWriter(const Jitdump& dump, OutputFile& out, bool with_code)
      : json_(out), details_(dump), with_code_(with_code), ticks_(dump.has_tsc_times()) {}

  JsonWriter& json() noexcept { return json_; }

  /// A LOAD that decodes, as an entry.
  bool entry(const JitRecord& record);
  /// A record of another kind, or one that makes no sense.
  void other(const JitRecord& record);
  /// The members of an entry that say where, when and whose.
  void load_members(const JitRecord& record, const LoadRecord& load);

 private:
  void number(std::string_view key, std::uint64_t value) {
    json_.key(key);
    json_.number(value);
  }
  void address(std::string_view key, Address value) {
    json_.key(key);
    json_.address(value);
  }
  void bytes(std::string_view key, std::string_view value) {
    if (value.empty()) return;
    json_.key(key);
    json_.base64(value);
  }
  void lines(const JitRecord& record);
  void raw_lines(const std::vector<LineRecord>& lines);
  void fields_of(const JitRecord& record);
  bool says_all(const JitRecord& record);
  void time(const JitRecord& record);

  JsonWriter json_;
  JitDetails details_;
  bool with_code_;
  bool ticks_;
  std::string again_;
};

void RecordWriter::time(const JitRecord& record) {
  char text[32];
  if (ticks_) {
    std::snprintf(text, sizeof text, "%llu", static_cast<unsigned long long>(record.time));
  } else {
    std::snprintf(text, sizeof text, "%llu.%09llu",
                  static_cast<unsigned long long>(record.time / 1'000'000'000),
                  static_cast<unsigned long long>(record.time % 1'000'000'000));
  }
  json_.key("time");
  json_.string(text);
}

void RecordWriter::load_members(const JitRecord& record, const LoadRecord& load) {
  json_.name_members(load.name);
  number("offset", record.offset);
  time(record);
  number("pid", load.pid);
  number("tid", load.tid);
  number("index", load.code_index);
}

void RecordWriter::lines(const JitRecord& record) {
  const std::vector<CodeLine> lines = details_.lines(record.offset);
  if (lines.empty()) return;
  json_.key("lines");
  json_.begin_array();
  for (const CodeLine& line : lines) {
    json_.begin_object();
    address("address", line.address);
    json_.key("line");
    json_.integer(line.line);
    json_.key("column");
    json_.integer(line.column);
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
  number("size", load->code_size);
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
    done = encoder.load(record.time, *load);
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
    json_.begin_object();
    address("address", line.address);
    json_.key("line");
    json_.integer(line.line);
    json_.key("column");
    json_.integer(line.column);
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
  if (!says_all(record)) bytes("body", record.bytes.substr(JitRecord::kPrefix));
  json_.end_object();
}

void write_header(JsonWriter& json, const Jitdump& dump) {
  const auto number = [&json](std::string_view key, std::uint64_t value) {
    json.key(key);
    json.number(value);
  };
  const JitdumpHeader header = dump.header().value_or(JitdumpHeader());
  json.key("header");
  json.begin_object();
  json.key("order");
  json.string(header.order == std::endian::little ? "little" : "big");
  number("version", header.version);
  number("total_size", header.total_size);
  number("machine", header.elf_mach);
  number("pad1", header.pad1);
  number("pid", header.pid);
  number("timestamp", header.timestamp);
  number("flags", header.flags);
  if (!dump.header_extra().empty()) {
    json.key("extra");
    json.base64(dump.header_extra());
  }
  json.end_object();
}

void write_beginning(JsonWriter& json, const Jitdump& dump) {
  const auto pid = dump.header() ? std::optional<std::uint64_t>(dump.header()->pid) : std::nullopt;
  json.begin_object();
  json.key("schema");
  json.string(kMapSchema);
  json.key("source");
  write_source_json(json, dump.input(), "jitdump", pid, dump.bytes().size());
  write_header(json, dump);
}

void write_ending(JsonWriter& json, const Diagnostics& problems) {
  json.key("problems");
  json.begin_array();
  for (const Diagnostic& problem : problems.items()) write_problem(json, problem);
  json.end_array();
  json.end_object();
  json.newline();
}

void write_pieces(const Timeline& timeline, std::uint64_t time, RecordWriter& writer, bool lines) {
  timeline.for_each_at(time, [&](const PlacedCode& placed) {
    const auto record = timeline.dump().record_at(placed.code.load);
    const auto load = record ? decode_load(*record) : std::nullopt;
    if (!load) return;  // the file was cut off: nobody will want the rest
    JsonWriter& json = writer.json();
    json.begin_object();
    json.key("start");
    json.address(placed.piece.begin);
    json.key("size");
    json.number(placed.code.range.size == 0 ? 0 : placed.piece.size);
    writer.load_members(*record, *load);
    json.end_object();
    if (lines) json.newline();
  });
}

}  // namespace

void write_dump_json(const Jitdump& dump, OutputFile& out, Diagnostics& problems, bool with_code) {
  RecordWriter writer(dump, out, with_code);
  JsonWriter& json = writer.json();
  write_beginning(json, dump);
  json.key("entries");
  json.begin_array();
  dump.for_each(problems, [&](const JitRecord& record) {
    if (record.is(JitRecordKind::load)) writer.entry(record);
  });
  json.end_array();
  json.key("records");
  json.begin_array();
  Diagnostics again(0);
  dump.for_each(again, [&](const JitRecord& record) {
    if (!decode_load(record)) writer.other(record);
  });
  json.end_array();
  write_ending(json, problems);
}

void write_dump_jsonl(const Jitdump& dump, OutputFile& out, Diagnostics& problems, bool with_code) {
  RecordWriter writer(dump, out, with_code);
  write_beginning(writer.json(), dump);
  writer.json().end_object();
  writer.json().newline();
  dump.for_each(problems, [&](const JitRecord& record) {
    if (!writer.entry(record)) writer.other(record);
    writer.json().newline();
  });
}

void write_timeline_json(const Timeline& timeline, std::uint64_t time, OutputFile& out,
                         const Diagnostics& problems) {
  RecordWriter writer(timeline.dump(), out, false);
  JsonWriter& json = writer.json();
  write_beginning(json, timeline.dump());
  json.key("entries");
  json.begin_array();
  write_pieces(timeline, time, writer, false);
  json.end_array();
  write_ending(json, problems);
}

void write_timeline_jsonl(const Timeline& timeline, std::uint64_t time, OutputFile& out) {
  RecordWriter writer(timeline.dump(), out, false);
  write_pieces(timeline, time, writer, true);
}

}  // namespace perfmap
