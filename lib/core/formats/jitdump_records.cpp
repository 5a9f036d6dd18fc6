#include <algorithm>
#include <array>

#include "formats/eh_frame.hpp"
#include "formats/jitdump_fields.hpp"
#include "formats/jitdump_sizes.hpp"
#include "perfmap/cursor.hpp"
#include "perfmap/jitdump.hpp"

namespace perfmap {
namespace {

/// A cursor over the body of a record of that kind.
std::optional<Cursor> body_of(const JitRecord& record, JitRecordKind kind) noexcept {
  if (!record.is(kind)) return std::nullopt;
  Cursor cursor(record.bytes, record.order);
  cursor.skip(JitRecord::kPrefix);
  return cursor;
}

}  // namespace

std::string_view to_string(JitRecordKind kind) noexcept {
  constexpr std::array<std::string_view, 5> kNames = {"load", "move", "debug-info", "close",
                                                      "unwinding-info"};
  const auto number = static_cast<std::size_t>(kind);
  return number < kNames.size() ? kNames[number] : std::string_view();
}

std::optional<LoadRecord> decode_load(const JitRecord& record) noexcept {
  std::optional<Cursor> body = body_of(record, JitRecordKind::load);
  if (!body) return std::nullopt;
  LoadRecord load;
  load.pid = body->u32();
  load.tid = body->u32();
  load.vma = body->u64();
  const Address address = body->u64();
  load.code_size = body->u64();
  load.code_index = body->u64();
  load.name = body->c_string();
  if (!body->ok()) return std::nullopt;
  load.padding = body->rest();
  // A producer may have no code to give and say its size all the same. One that gives less than it
  // says does not exist: there the bytes count, which are bounded by the file.
  std::uint64_t size = load.code_size;
  if (size > load.padding.size() && !is_left_out_code(load.padding)) size = load.padding.size();
  load.range = AddressRange::within_space(address, size);
  if (size <= load.padding.size()) {
    load.code = load.padding.substr(0, size);
    load.padding.remove_prefix(size);
  }
  return load;
}

std::optional<MoveRecord> decode_move(const JitRecord& record) noexcept {
  std::optional<Cursor> body = body_of(record, JitRecordKind::move);
  if (!body) return std::nullopt;
  MoveRecord move;
  move.pid = body->u32();
  move.tid = body->u32();
  move.vma = body->u64();
  move.old_address = body->u64();
  const Address address = body->u64();
  move.code_size = body->u64();
  move.code_index = body->u64();
  if (!body->ok()) return std::nullopt;
  move.range = AddressRange::within_space(address, move.code_size);
  return move;
}

std::optional<DebugInfoRecord> decode_debug_info(const JitRecord& record) noexcept {
  std::optional<Cursor> body = body_of(record, JitRecordKind::debug_info);
  if (!body) return std::nullopt;
  DebugInfoRecord info;
  info.code_address = body->u64();
  info.line_count = body->u64();
  if (!body->ok()) return std::nullopt;
  info.lines = body->rest();
  return info;
}

std::optional<std::vector<LineRecord>> decode_lines(const JitRecord& record,
                                                    std::string_view* padding) {
  const std::optional<DebugInfoRecord> info = decode_debug_info(record);
  if (!info || info->line_count > info->lines.size() / DebugInfoRecord::kSmallestLine) {
    return std::nullopt;
  }
  std::vector<LineRecord> lines;
  lines.reserve(info->line_count);
  Cursor cursor(info->lines, record.order);
  for (std::uint64_t i = 0; i < info->line_count; ++i) {
    LineRecord line;
    line.address = cursor.u64();
    line.line = cursor.i32();
    line.column = cursor.i32();
    line.file = cursor.c_string();
    line.file_repeats = line.file == kRepeatedFile && !lines.empty();
    if (line.file_repeats) line.file = lines.back().file;
    lines.push_back(line);
  }
  if (!cursor.ok()) return std::nullopt;
  if (padding != nullptr) *padding = cursor.rest();
  return lines;
}

std::optional<UnwindingRecord> decode_unwinding(const JitRecord& record) noexcept {
  std::optional<Cursor> body = body_of(record, JitRecordKind::unwinding_info);
  if (!body) return std::nullopt;
  UnwindingRecord info;
  info.unwinding_size = body->u64();
  info.eh_frame_hdr_size = body->u64();
  info.mapped_size = body->u64();
  const std::string_view data = body->bytes(info.unwinding_size);
  if (!body->ok() || info.eh_frame_hdr_size > data.size()) return std::nullopt;
  const std::size_t frame_size = data.size() - info.eh_frame_hdr_size;
  info.header_first = begins_with_eh_frame_hdr(data, info.eh_frame_hdr_size) &&
                      !begins_with_eh_frame_hdr(data.substr(frame_size), info.eh_frame_hdr_size);
  info.eh_frame_hdr = data.substr(info.header_first ? 0 : frame_size, info.eh_frame_hdr_size);
  info.eh_frame = data.substr(info.header_first ? info.eh_frame_hdr_size : 0, frame_size);
  info.padding = body->rest();
  return info;
}

}  // namespace perfmap
