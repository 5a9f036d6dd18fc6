// SPDX-License-Identifier: MIT
#include <algorithm>
#include <array>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "jitdump/jitdump_records.hpp"
#include "perfmap/jitdump.hpp"
#include "perfmap/json.hpp"
#include "perfmap/text.hpp"
#include "report/json_fields.hpp"

namespace perfmap {

namespace {

/// Writes the records of a dump as JSON objects; see json.hpp. Borrows the dump.
class RecordWriter {
 public:
  RecordWriter(const Jitdump& dump, OutputFile& out, bool with_code)
      : json_(out), details_(dump), with_code_(with_code), ticks_(dump.has_tsc_times()) {}

  JsonWriter& json() noexcept { return json_; }

  /// Writes a LOAD that decodes, as an entry.
  bool entry(const JitRecord& record);
  /// Writes a record of another kind, or a malformed one.
  void other(const JitRecord& record);
  /// Writes the members for address, time and thread of an entry.
  void load_members(const JitRecord& record, const LoadRecord& load);

 private:
  void bytes(std::string_view key, std::string_view value) {
    if (value.empty()) return;
    json_.base64(key, value);
  }
  void begin_line(Address where, std::int32_t line, std::int32_t column);
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
  json_.member("time", ticks_ ? std::to_string(record.time) : seconds_text(record.time));
}

void RecordWriter::load_members(const JitRecord& record, const LoadRecord& load) {
  json_.name_members(load.name);
  json_.member("offset", record.offset);
  time(record);
  json_.member("pid", load.pid);
  json_.member("tid", load.tid);
  json_.member("index", load.code_index);
}

void RecordWriter::begin_line(Address where, std::int32_t line, std::int32_t column) {
  json_.begin_object();
  json_.address("address", where);
  json_.integer("line", line);
  json_.integer("column", column);
}

void RecordWriter::lines(const JitRecord& record) {
  const std::vector<CodeLine> lines = details_.lines(record.offset);
  if (lines.empty()) return;
  json_.list("lines", lines, [&](const CodeLine& line) {
    begin_line(line.address, line.line, line.column);
    json_.text_members("file", line.file);
    json_.end_object();
  });
}

bool RecordWriter::entry(const JitRecord& record) {
  const auto load = decode_load(record);
  if (!load) return false;
  json_.begin_object();
  json_.address("start", load->range.begin);
  // If the record has less code than it states, "body" holds the stated size.
  json_.member("size", has_odd_sizes(record) ? load->code.size() : load->code_size);
  load_members(record, *load);
  if (load->vma != load->range.begin) json_.address("vma", load->vma);
  if (with_code_) bytes("code", load->code);
  bytes("padding", load->padding);
  lines(record);
  // Code left out by the producer differs from code left out by this command.
  if (load->code.empty() && load->code_size != 0) json_.boolean("has_code", false);
  if (with_code_ && !says_all(record)) bytes("body", record.bytes.substr(JitRecord::kPrefix));
  json_.end_object();
  return true;
}

/// Whether the fields reproduce the record exactly.
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
  json_.list("lines", lines, [&](const LineRecord& line) {
    begin_line(line.address, line.line, line.column);
    if (line.file_repeats) {
      json_.boolean("file_repeats", true);
    } else {
      json_.text_members("file", line.file);
    }
    json_.end_object();
  });
}

void RecordWriter::fields_of(const JitRecord& record) {
  if (const auto move = decode_move(record)) {
    json_.member("pid", move->pid);
    json_.member("tid", move->tid);
    json_.address("vma", move->vma);
    json_.address("old_start", move->old_address);
    json_.address("start", move->range.begin);
    json_.member("size", move->code_size);
    json_.member("index", move->code_index);
  } else if (const auto info = decode_debug_info(record)) {
    std::string_view padding;
    json_.address("start", info->code_address);
    if (const auto lines = decode_lines(record, &padding)) raw_lines(*lines);
    bytes("padding", padding);
  } else if (const auto unwinding = decode_unwinding(record)) {
    bytes("eh_frame", unwinding->eh_frame);
    bytes("eh_frame_hdr", unwinding->eh_frame_hdr);
    json_.member("mapped_size", unwinding->mapped_size);
    json_.boolean("header_first", unwinding->header_first);
    bytes("padding", unwinding->padding);
  }
}

void RecordWriter::other(const JitRecord& record) {
  const std::string_view kind = to_string(static_cast<JitRecordKind>(record.id));
  json_.begin_object();
  json_.member("kind", kind.empty() ? "unknown" : kind);
  if (kind.empty()) json_.member("id", record.id);
  json_.member("offset", record.offset);
  time(record);
  fields_of(record);
  if (!says_all(record)) {  // an empty body states that there are no bytes, not even fields
    json_.base64("body", record.bytes.substr(JitRecord::kPrefix));
  }
  json_.end_object();
}

/// A record of a dump's JSON, made into bytes.
struct JsonRecord {
  std::string problem;        ///< why there is no record, if not empty
  bool without_code = false;  ///< its code is unknown
  std::uint64_t zeros = 0;    ///< for that code, still missing before the last `padding` bytes
  std::uint64_t padding = 0;
};

/// "header", and the bytes after its 40 known ones.
struct JsonDumpHeader {
  JitdumpHeader header;
  std::string extra;
  std::string problem;
};

bool encode_load(Fields& fields, JitdumpEncoder& encoder, JsonRecord& record) {
  LoadRecord load;
  load.range = AddressRange::clamped(fields.address("start"), 0);
  load.code_size = fields.number("size");
  load.vma = fields.has("vma") ? fields.address("vma") : load.range.begin;
  load.pid = fields.number32("pid");
  load.tid = fields.number32("tid");
  load.code_index = fields.number("index");
  const std::string name = fields.text("name");
  const std::optional<std::string> code = fields.bytes("code");
  const std::string padding = fields.bytes("padding").value_or("");
  const bool has_code = !fields.has("has_code") || fields.flag("has_code");
  if (code && code->size() != load.code_size) fields.fail("\"code\" does not have \"size\" bytes");
  if (!code && has_code && load.code_size != 0 && fields.problem().empty()) {
    record.without_code = true;
    record.zeros = zeros_for(load.code_size);
    record.padding = padding.size();
  }
  load.name = name;
  load.code = code ? std::string_view(*code) : std::string_view();
  load.padding = padding;
  return fields.problem().empty() && encoder.load(fields.time("time"), load);
}

bool encode_move(Fields& fields, JitdumpEncoder& encoder, JsonRecord& /*record*/) {
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

bool encode_lines(Fields& fields, JitdumpEncoder& encoder, JsonRecord& /*record*/) {
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

bool encode_unwinding(Fields& fields, JitdumpEncoder& encoder, JsonRecord& /*record*/) {
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
  for (std::uint32_t id = 0; id < kJitRecordKinds; ++id) {
    const auto kind = static_cast<JitRecordKind>(id);
    if (to_string(kind) == name) return kind;
  }
  return std::nullopt;
}

bool encode_close(Fields& fields, JitdumpEncoder& encoder, JsonRecord& /*record*/) {
  encoder.close(fields.time("time"));
  return true;
}

/// Indexed by JitRecordKind.
using EncodeFields = bool (*)(Fields& fields, JitdumpEncoder& encoder, JsonRecord& record);
constexpr std::array<EncodeFields, kJitRecordKinds> kEncode = {
    encode_load, encode_move, encode_lines, encode_close, encode_unwinding};

bool encode_fields(JitRecordKind kind, Fields& fields, JitdumpEncoder& encoder,
                   JsonRecord& record) {
  return kEncode[static_cast<std::size_t>(kind)](fields, encoder, record);
}

/// Appends the record described by an object of "entries" or "records" to the encoder's output.
JsonRecord encode_json_record(const nlohmann::json& object, JitdumpEncoder& encoder) {
  Fields fields(object);
  JsonRecord record;
  const std::string name = fields.has("kind") ? fields.text("kind") : "load";
  const auto kind = kind_of(name);
  const bool entry = !fields.has("kind");
  if (!kind && name != "unknown") fields.fail("unknown kind of record '" + name + "'");
  if (entry && !(fields.has("start") && fields.has("size") && fields.has("name"))) {
    fields.fail("an entry needs \"start\", \"size\" and \"name\"");
  }
  bool fits = true;
  if (const auto body = fields.bytes("body"); body || !kind) {
    const std::uint32_t id = kind ? static_cast<std::uint32_t>(*kind) : fields.number32("id");
    fits = encoder.raw(id, fields.time("time"), body.value_or(""));
  } else {
    fits = encode_fields(*kind, fields, encoder, record);
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

/// How many bytes are searched for the kind of map. A tool that sorts keys puts "source" last.
constexpr std::size_t kLookAt = std::size_t{64} << 10;

bool says_jitdump(std::string_view json) noexcept {
  constexpr std::string_view kBlanks = " \t\r\n";
  constexpr std::string_view kKey = "\"kind\"";
  for (std::size_t at = json.find(kKey); at != std::string_view::npos; at = json.find(kKey, at)) {
    at += kKey.size();
    std::string_view rest = json.substr(at);
    rest.remove_prefix(std::min(rest.find_first_not_of(kBlanks), rest.size()));
    if (!rest.starts_with(':')) continue;
    rest.remove_prefix(1);
    rest.remove_prefix(std::min(rest.find_first_not_of(kBlanks), rest.size()));
    if (rest.starts_with("\"jitdump\"")) return true;
  }
  return false;
}

/// Collects records in input order, with their final positions. Zeros for unknown code are made at
/// the end, if the dump is not too large.
class DumpBuilder {
 public:
  explicit DumpBuilder(std::uint64_t max_bytes) : max_bytes_(max_bytes) {}

  std::string problem;

  void header(const nlohmann::json& object) {
    JsonDumpHeader read = read_json_header(object);
    if (problem.empty()) problem = std::move(read.problem);
    header_ = read.header;
    extra_ = std::move(read.extra);
  }
  bool has_header() const noexcept { return header_.has_value(); }

  void record(const nlohmann::json& object) {
    if (!problem.empty()) return;
    const std::size_t begin = bytes_.size();
    JitdumpEncoder encoder(bytes_, header_->order);
    JsonRecord read = encode_json_record(object, encoder);
    problem = std::move(read.problem);
    without_code_ += read.without_code ? 1 : 0;
    zeros_ += read.zeros;
    const std::uint64_t size = JitdumpHeader::kSize + extra_.size() + bytes_.size() + zeros_;
    if (without_code_ != 0 && size > max_bytes_ && problem.empty()) {
      problem = "the jitdump would have " + more_than(max_bytes_) + ", with zeros for missing code";
    }
    if (read.zeros != 0 && problem.empty()) lengthen(begin, read.zeros);
    const auto offset = object.find("offset");
    if (offset != object.end() && offset->is_number_unsigned()) {
      last_offset_ = offset->get<std::uint64_t>();
    }
    places_.push_back(
        {last_offset_, begin, bytes_.size() - begin - read.padding, read.zeros, read.padding});
  }

  JitdumpBytes dump() && {
    std::stable_sort(places_.begin(), places_.end(),
                     [](const Place& a, const Place& b) { return a.offset < b.offset; });
    JitdumpBytes dump{{}, without_code_};
    dump.bytes.reserve(JitdumpHeader::kSize + extra_.size() + bytes_.size() + zeros_);
    JitdumpEncoder(dump.bytes, header_->order).header(*header_, extra_);
    for (const Place& place : places_) {
      dump.bytes.append(bytes_, place.begin, place.size);
      dump.bytes.append(place.zeros, '\0');
      dump.bytes.append(bytes_, place.begin + place.size, place.padding);
    }
    return dump;
  }

 private:
  struct Place {
    std::uint64_t offset;
    std::size_t begin;
    std::size_t size;  // before the zeros
    std::uint64_t zeros;
    std::size_t padding;  // bytes after the zeros
  };

  /// Adds the zeros to the size of the record at `begin`.
  void lengthen(std::size_t begin, std::uint64_t zeros) {
    const std::uint64_t size = bytes_.size() - begin + zeros;
    if (size > UINT32_MAX) problem = "a record of 4 GiB or more";
    constexpr std::size_t kSizeAt = 4;
    FieldWriter(bytes_.data() + begin + kSizeAt, header_->order)
        .u32(static_cast<std::uint32_t>(size));
  }

  std::uint64_t max_bytes_;
  std::uint64_t zeros_ = 0;
  std::optional<JitdumpHeader> header_;
  std::string extra_;
  std::string bytes_;
  std::vector<Place> places_;
  std::uint64_t last_offset_ = 0;
  std::uint64_t without_code_ = 0;
};

/// Streams through one document and passes on each requested value, without storing them: the
/// members of the object `member`, or all objects in the arrays `arrays`.
class DocumentWalk {
 public:
  explicit DocumentWalk(std::string_view json) : json_(json) {}

  /// False if the input is not JSON; stopped_at() gives the position.
  bool headers(const std::function<void(const nlohmann::json&)>& take) {
    return walk([&](int depth, const nlohmann::json& value) {
      if (depth == 1 && key_ == "header") take(value);
    });
  }
  bool records(const std::function<void(const nlohmann::json&)>& take) {
    return walk([&](int depth, const nlohmann::json& value) {
      if (depth == 2 && (key_ == "entries" || key_ == "records")) take(value);
    });
  }
  std::size_t position() const noexcept { return taken_ == 0 ? 0 : taken_ - 1; }

 private:
  template <class Take>
  bool walk(Take take) {
    using Event = nlohmann::json::parse_event_t;
    taken_ = 0;
    key_.clear();
    const auto visit = [&](int depth, Event event, nlohmann::json& value) {
      if (event == Event::key && depth == 1) key_ = value.get<std::string>();
      if (event != Event::object_end) return true;
      take(depth, value);
      return depth == 0 || depth > 2;  // the inside of a record is kept until the record ends
    };
    const nlohmann::json whole =
        nlohmann::json::parse(CountingIterator(json_.data(), &taken_),
                              CountingIterator(json_.data() + json_.size(), &taken_), visit, false);
    return !whole.is_discarded();
  }
  std::string_view json_;
  std::string key_;
  std::size_t taken_ = 0;
};

Failure failure(std::string why, std::string_view json, std::size_t offset) {
  return Failure(Error::bad_format(std::move(why)).at(locate(json, offset)));
}

Result<JitdumpBytes> from_document(std::string_view json, std::uint64_t max_bytes) {
  DumpBuilder builder(max_bytes);
  std::size_t wrong_at = 0;
  DocumentWalk walk(json);
  const auto note = [&] {
    if (!builder.problem.empty() && wrong_at == 0) wrong_at = walk.position();
  };
  const bool good = walk.headers([&](const nlohmann::json& value) {
    builder.header(value);
    note();
  });
  if (!good) return failure("this is not JSON", json, walk.position());
  if (!builder.has_header()) return failure("a jitdump needs a \"header\"", json, 0);
  walk.records([&](const nlohmann::json& value) {
    builder.record(value);
    note();
  });
  if (!builder.problem.empty()) return failure(std::move(builder.problem), json, wrong_at);
  return std::move(builder).dump();
}

Result<JitdumpBytes> from_lines(std::string_view json, std::uint64_t max_bytes) {
  DumpBuilder builder(max_bytes);
  for (std::size_t offset = 0; offset < json.size();) {
    const std::string_view rest = json.substr(offset);
    const std::string_view line = rest.substr(0, rest.find('\n'));
    if (line.find_first_not_of(" \t\r") != std::string_view::npos) {
      const auto value = nlohmann::json::parse(line.begin(), line.end(), nullptr, false);
      if (!value.is_object()) return failure("this line is not a JSON object", json, offset);
      if (builder.has_header()) {
        builder.record(value);
      } else {
        builder.header(value.value("header", nlohmann::json()));
      }
      if (!builder.problem.empty()) return failure(std::move(builder.problem), json, offset);
    }
    offset += line.size() + 1;
  }
  if (!builder.has_header()) return failure("a jitdump needs a \"header\"", json, 0);
  return std::move(builder).dump();
}

void write_header(JsonWriter& json, const Jitdump& dump) {
  const JitdumpHeader header = dump.header().value_or(JitdumpHeader());
  json.begin_object("header");
  json.member("order", header.order == std::endian::little ? "little" : "big");
  json.member("version", header.version);
  json.member("total_size", header.total_size);
  json.member("machine", header.elf_mach);
  json.member("pad1", header.pad1);
  json.member("pid", header.pid);
  json.member("timestamp", header.timestamp);
  json.member("flags", header.flags);
  if (!dump.header_extra().empty()) json.base64("extra", dump.header_extra());
  json.end_object();
}

void write_beginning(JsonWriter& json, const Jitdump& dump) {
  const auto pid = dump.header() ? std::optional<std::uint64_t>(dump.header()->pid) : std::nullopt;
  json.begin_object();
  json.member("schema", kMapSchema);
  json.key("source");
  write_source_json(json, dump.input(), "jitdump", pid, dump.bytes().size());
  write_header(json, dump);
}

void write_ending(JsonWriter& json, const Diagnostics& problems) {
  json.list("problems", problems.items(),
            [&](const Diagnostic& problem) { write_problem(json, problem); });
  json.end_object();
  json.newline();
}

void write_pieces(const Timeline& timeline, std::uint64_t time, RecordWriter& writer, bool lines) {
  timeline.for_each_at(time, [&](const PlacedCode& placed) {
    const auto record = timeline.dump().record_at(placed.code.load);
    const auto load = record ? decode_load(*record) : std::nullopt;
    if (!load) return;  // the file was truncated: the rest is useless
    JsonWriter& json = writer.json();
    json.begin_object();
    json.address("start", placed.piece.begin);
    json.member("size", placed.code.range.size == 0 ? 0 : placed.piece.size);
    writer.load_members(*record, *load);
    json.end_object();
    if (lines) json.newline();
  });
}

}  // namespace

bool is_dump_json(std::string_view json) noexcept {
  if (says_jitdump(json.substr(0, kLookAt))) return true;
  return json.size() > kLookAt &&
         says_jitdump(json.substr(json.size() - std::min(json.size(), kLookAt)));
}

Result<JitdumpBytes> dump_from_json(std::string_view json, std::uint64_t max_bytes) {
  const std::size_t first = json.find_first_not_of(" \t\r\n");
  if (first == std::string_view::npos) return failure("a jitdump needs a \"header\"", json, 0);
  const std::string_view rest = json.substr(first);
  const std::string_view line = rest.substr(0, rest.find('\n'));
  const bool more = rest.substr(line.size()).find_first_not_of(" \t\r\n") != std::string_view::npos;
  const bool lines = nlohmann::json::accept(line.begin(), line.end()) &&
                     (more || line.find("\"entries\"") == std::string_view::npos);
  return lines ? from_lines(json, max_bytes) : from_document(json, max_bytes);
}

void write_dump_json(const Jitdump& dump, OutputFile& out, Diagnostics& problems, bool with_code) {
  RecordWriter writer(dump, out, with_code);
  JsonWriter& json = writer.json();
  write_beginning(json, dump);
  json.begin_array("entries");
  dump.for_each(problems, [&](const JitRecord& record) {
    if (record.is(JitRecordKind::load)) writer.entry(record);
  });
  json.end_array();
  json.begin_array("records");
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
  json.begin_array("entries");
  write_pieces(timeline, time, writer, false);
  json.end_array();
  write_ending(json, problems);
}

void write_timeline_jsonl(const Timeline& timeline, std::uint64_t time, OutputFile& out) {
  RecordWriter writer(timeline.dump(), out, false);
  write_pieces(timeline, time, writer, true);
}

}  // namespace perfmap
