#include "output/jitdump_json_records.hpp"

#include <optional>
#include <vector>

#include "output/json_fields.hpp"
#include "perfmap/jitdump_writer.hpp"

namespace perfmap {
namespace {

bool encode_load(Fields& fields, JitdumpEncoder& encoder, bool& without_code) {
  LoadRecord load;
  load.range = AddressRange::clamped(fields.address("start"), 0);
  load.code_size = fields.number("size");
  load.vma = fields.has("vma") ? fields.address("vma") : load.range.begin;
  load.pid = fields.number32("pid");
  load.tid = fields.number32("tid");
  load.code_index = fields.number("index");
  const std::string name = fields.text("name");
  std::optional<std::string> code = fields.bytes("code");
  const std::string padding = fields.bytes("padding").value_or("");
  const bool has_code = !fields.has("has_code") || fields.flag("has_code");
  if (code && code->size() != load.code_size) fields.fail("\"code\" does not have \"size\" bytes");
  if (!code && has_code && load.code_size != 0 && fields.problem().empty()) {
    without_code = true;
    code = std::string(load.code_size <= JitdumpWriter::kMostZeros ? load.code_size : 0, '\0');
  }
  load.name = name;
  load.code = code ? std::string_view(*code) : std::string_view();
  load.padding = padding;
  return fields.problem().empty() && encoder.load(fields.time("time"), load);
}

bool encode_move(Fields& fields, JitdumpEncoder& encoder) {
  MoveRecord move;
  move.pid = fields.number32("pid");
  move.tid = fields.number32("tid");
  move.old_address = fields.address("old_start");
  move.range = AddressRange::clamped(fields.address("start"), 0);
  move.vma = fields.has("vma") ? fields.address("vma") : move.range.begin;
  move.code_size = fields.number("size");
  move.code_index = fields.number("index");
  encoder.move(fields.time("time"), move);
  return true;
}

bool encode_lines(Fields& fields, JitdumpEncoder& encoder) {
  const std::vector<nlohmann::json> objects = fields.objects("lines");
  std::vector<std::string> files(objects.size());
  std::vector<LineRecord> lines(objects.size());
  for (std::size_t i = 0; i < objects.size(); ++i) {
    Fields line(objects[i]);
    files[i] = line.text("file");
    lines[i] = {line.address("address"), line.integer("line"), line.integer("column"), files[i],
                line.flag("file_repeats")};
    if (!line.problem().empty()) fields.fail(line.problem());
  }
  const std::string padding = fields.bytes("padding").value_or("");
  return encoder.debug_info(fields.time("time"), fields.address("start"), lines, padding);
}

bool encode_unwinding(Fields& fields, JitdumpEncoder& encoder) {
  const std::string frame = fields.bytes("eh_frame").value_or("");
  const std::string header = fields.bytes("eh_frame_hdr").value_or("");
  const std::string padding = fields.bytes("padding").value_or("");
  UnwindingRecord info;
  info.eh_frame = frame;
  info.eh_frame_hdr = header;
  info.eh_frame_hdr_size = header.size();
  info.mapped_size = fields.number("mapped_size");
  info.header_first = fields.flag("header_first");
  info.padding = padding;
  return encoder.unwinding(fields.time("time"), info);
}

std::optional<JitRecordKind> kind_of(const std::string& name) {
  for (std::uint32_t id = 0; id <= static_cast<std::uint32_t>(JitRecordKind::unwinding_info);
       ++id) {
    const auto kind = static_cast<JitRecordKind>(id);
    if (to_string(kind) == name) return kind;
  }
  return std::nullopt;
}

bool encode_fields(JitRecordKind kind, Fields& fields, JitdumpEncoder& encoder,
                   bool& without_code) {
  switch (kind) {
    case JitRecordKind::load: return encode_load(fields, encoder, without_code);
    case JitRecordKind::move: return encode_move(fields, encoder);
    case JitRecordKind::debug_info: return encode_lines(fields, encoder);
    case JitRecordKind::unwinding_info: return encode_unwinding(fields, encoder);
    case JitRecordKind::close: encoder.close(fields.time("time")); break;
  }
  return true;
}

}  // namespace

JsonRecord encode_json_record(const nlohmann::json& object, JitdumpEncoder& encoder) {
  Fields fields(object);
  JsonRecord record;
  const std::string name = fields.has("kind") ? fields.text("kind") : "load";
  const auto kind = kind_of(name);
  const bool entry = !fields.has("kind");
  if (!kind && name != "unknown") fields.fail("there is no kind of record '" + name + "'");
  if (entry && !(fields.has("start") && fields.has("size") && fields.has("name"))) {
    fields.fail("an entry wants \"start\", \"size\" and \"name\"");
  }
  bool fits = true;
  if (const auto body = fields.bytes("body"); body || !kind) {
    const std::uint32_t id = kind ? static_cast<std::uint32_t>(*kind) : fields.number32("id");
    fits = encoder.raw(id, fields.time("time"), body.value_or(""));
  } else {
    fits = encode_fields(*kind, fields, encoder, record.without_code);
  }
  if (!fits) fields.fail("a record of 4 GiB or more");
  record.problem = fields.problem();
  return record;
}

JsonDumpHeader read_json_header(const nlohmann::json& object) {
  JsonDumpHeader read;
  if (!object.is_object()) return {{}, {}, "\"header\" is not an object"};
  Fields fields(object);
  const std::string order = fields.text("order");
  if (order != "little" && order != "big") fields.fail("\"order\" is neither little nor big");
  read.header.order = order == "big" ? std::endian::big : std::endian::little;
  read.header.version = fields.has("version") ? fields.number32("version") : 1;
  read.extra = fields.bytes("extra").value_or("");
  read.header.total_size =
      fields.has("total_size")
          ? fields.number32("total_size")
          : JitdumpHeader::kSize + static_cast<std::uint32_t>(read.extra.size());
  read.header.elf_mach = fields.number32("machine");
  read.header.pad1 = fields.number32("pad1");
  read.header.pid = fields.number32("pid");
  read.header.timestamp = fields.number("timestamp");
  read.header.flags = fields.number("flags");
  read.problem = fields.problem();
  return read;
}

}  // namespace perfmap
