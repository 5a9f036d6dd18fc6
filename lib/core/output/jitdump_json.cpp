#include "perfmap/jitdump_json.hpp"

#include <optional>

#include "output/jitdump_json_writer.hpp"
#include "output/json_source.hpp"
#include "perfmap/map_json.hpp"

namespace perfmap {
namespace {

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
