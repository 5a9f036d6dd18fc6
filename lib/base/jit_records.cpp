// SPDX-License-Identifier: MIT
// The bytes of a jitdump's records, and the search for records in damaged bytes. Needs libc alone,
// because the writers use it.

#include <algorithm>
#include <array>
#include <cstring>

#include "base/cursor.hpp"
#include "base/jit_record_bytes.hpp"
#include "base/utf8.hpp"

namespace perfmap {
namespace {

/// Whether `data` begins with an .eh_frame_hdr of `size` bytes: version 1, a pointer to .eh_frame
/// relative to itself, a count and a table as every producer of jitdumps writes them.
inline bool begins_with_eh_frame_hdr(std::string_view data, std::uint64_t size) noexcept {
  constexpr std::string_view kStart = "\x01\x1b\x03\x3b";
  return size >= 8 && size <= data.size() && data.starts_with(kStart);
}

constexpr std::size_t kMaxAlignment = 7;

}  // namespace

bool is_left_out_code(std::string_view rest) noexcept {
  return rest.size() <= kMaxAlignment &&
         std::all_of(rest.begin(), rest.end(), [](char byte) { return byte == '\0'; });
}

namespace {

/// A cursor over the body of a record if it has that kind.
std::optional<Cursor> body_of(const JitRecord& record, JitRecordKind kind) noexcept {
  if (!record.is(kind)) return std::nullopt;
  Cursor cursor(record.bytes, record.order);
  cursor.skip(JitRecord::kPrefix);
  return cursor;
}

}  // namespace

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
  // A producer without code may still state its size. No producer gives less code than it states:
  // then the record is damaged, and the bytes present count, which the file bounds.
  std::uint64_t size = load.code_size;
  if (size > load.padding.size() && !is_left_out_code(load.padding)) size = load.padding.size();
  load.range = AddressRange::within_space(address, size);
  if (size <= load.padding.size()) {
    load.code = first_bytes(load.padding, size);
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
  info.header_first =
      begins_with_eh_frame_hdr(data, info.eh_frame_hdr_size) &&
      !begins_with_eh_frame_hdr(without_first(data, frame_size), info.eh_frame_hdr_size);
  const auto part = [&](std::size_t begin, std::size_t size) {
    return first_bytes(without_first(data, begin), size);
  };
  info.eh_frame_hdr = part(info.header_first ? 0 : frame_size, info.eh_frame_hdr_size);
  info.eh_frame = part(info.header_first ? info.eh_frame_hdr_size : 0, frame_size);
  info.padding = body->rest();
  return info;
}

namespace {

constexpr std::uint32_t kMaxPadding = 7;

bool in_time(std::uint64_t time, const JitRecordHints& hints) noexcept {
  constexpr std::uint64_t kWeeks = std::uint64_t{1} << 52;  // 52 days of nanoseconds
  return hints.time == 0 || (time < hints.time ? hints.time - time : time - hints.time) < kWeeks;
}

/// Whether the sizes of a LOAD add up: the name's NUL is right before the code or, without code, at
/// the end. Of a long name only the start is scanned, so that hostile bytes cost no more than
/// others.
bool is_plausible_load(const JitRecord& record) noexcept {
  constexpr std::size_t kLook = 256;
  Cursor cursor(record.bytes, record.order);
  cursor.skip(40);
  const std::uint64_t code_size = cursor.u64();
  cursor.skip(8);
  if (!cursor.ok()) return false;
  const std::string_view rest = cursor.rest();
  const std::size_t nul = first_bytes(rest, kLook).find('\0');
  const auto adds_up = [&](std::size_t length) {
    const std::uint64_t after = rest.size() - length - 1;
    return after <= kMaxPadding || (after >= code_size && after - code_size <= kMaxPadding);
  };
  if (nul != std::string_view::npos) return adds_up(nul);
  if (rest.size() <= kLook || code_size >= rest.size()) return false;
  const std::string_view end = first_bytes(rest, rest.size() - code_size);
  const std::size_t looked = std::min<std::size_t>(end.size(), kMaxPadding + 1);
  return without_first(end, end.size() - looked).find('\0') != std::string_view::npos;
}

bool is_plausible_debug_info(const JitRecord& record) noexcept {
  const std::optional<DebugInfoRecord> info = decode_debug_info(record);
  return info && info->line_count != 0 &&
         info->line_count <= info->lines.size() / DebugInfoRecord::kSmallestLine;
}

bool is_plausible_unwinding(const JitRecord& record) noexcept {
  const std::optional<UnwindingRecord> info = decode_unwinding(record);
  return info && info->padding.size() <= kMaxPadding;
}

/// For records of a fixed size.
template <std::uint32_t size>
bool has_its_size(const JitRecord& record) noexcept {
  return record.bytes.size() == size;
}

struct RecordKind {
  JitRecordKind kind;
  std::string_view name;
  std::uint32_t smallest;  ///< smallest possible size of a record
  bool (*is_plausible)(const JitRecord& record) noexcept;
};
constexpr std::array<RecordKind, kJitRecordKinds> kKinds{{
    {JitRecordKind::load, "load", LoadRecord::kFixed + 1, is_plausible_load},
    {JitRecordKind::move, "move", MoveRecord::kFixed, has_its_size<MoveRecord::kFixed>},
    {JitRecordKind::debug_info, "debug-info", DebugInfoRecord::kFixed, is_plausible_debug_info},
    {JitRecordKind::close, "close", JitRecord::kPrefix, has_its_size<JitRecord::kPrefix>},
    {JitRecordKind::unwinding_info, "unwinding-info", UnwindingRecord::kFixed,
     is_plausible_unwinding},
}};

constexpr bool are_by_id() {
  for (std::size_t i = 0; i < kKinds.size(); ++i) {
    if (static_cast<std::size_t>(kKinds[i].kind) != i) return false;
  }
  return true;
}
static_assert(are_by_id());

}  // namespace

std::string_view to_string(JitRecordKind kind) noexcept {
  const auto id = static_cast<std::size_t>(kind);
  return id < kKinds.size() ? kKinds[id].name : std::string_view();
}

std::uint32_t smallest_size(std::uint32_t id) noexcept {
  return id < kKinds.size() ? kKinds[id].smallest : UINT32_MAX;
}

bool is_plausible(const JitRecord& record, const JitRecordHints& hints) noexcept {
  return in_time(record.time, hints) && record.id < kKinds.size() &&
         record.bytes.size() >= kKinds[record.id].smallest &&
         kKinds[record.id].is_plausible(record);
}

bool could_be_prefix(std::string_view bytes, std::uint64_t offset,
                     const JitRecordHints& hints) noexcept {
  Cursor cursor(without_first(bytes, offset), hints.order);
  const std::uint32_t id = cursor.u32();
  const std::uint32_t size = cursor.u32();
  const std::uint64_t time = cursor.u64();
  if (!cursor.ok()) return true;  // end of the file
  return id < kJitRecordKinds && size >= JitRecord::kPrefix && in_time(time, hints);
}

std::optional<JitRecord> find_record(std::string_view bytes, std::uint64_t offset,
                                     const JitRecordHints& hints) noexcept {
  for (; bytes.size() - offset >= JitRecord::kPrefix; ++offset) {
    // Most offsets do not hold a record prefix; checking the id first rejects them cheaply.
    std::uint32_t id = 0;
    std::memcpy(&id, bytes.data() + offset, sizeof id);
    if (hints.order != std::endian::native) id = __builtin_bswap32(id);
    if (id >= kJitRecordKinds) continue;
    const std::optional<JitRecord> record = read_prefix(bytes, offset, hints.order);
    if (record && is_plausible(*record, hints) && could_be_prefix(bytes, record->end(), hints)) {
      return record;
    }
  }
  return std::nullopt;
}

}  // namespace perfmap
