#include "formats/jitdump_resync.hpp"

#include <algorithm>
#include <cstring>

#include "perfmap/cursor.hpp"

namespace perfmap {
namespace {

constexpr std::uint32_t kMostPadding = 7;

bool in_time(std::uint64_t time, const JitRecordHints& hints) noexcept {
  constexpr std::uint64_t kWeeks = std::uint64_t{1} << 52;  // 52 days of nanoseconds
  return hints.time == 0 || (time < hints.time ? hints.time - time : time - hints.time) < kWeeks;
}

/// A LOAD whose sizes add up: the name's NUL stands right before the code or, without code, at the
/// end. Of long names only the start is looked at, so that hostile bytes cost no more than others.
bool is_plausible_load(const JitRecord& record) noexcept {
  constexpr std::size_t kLook = 256;
  Cursor cursor(record.bytes, record.order);
  cursor.skip(40);
  const std::uint64_t code_size = cursor.u64();
  cursor.skip(8);
  if (!cursor.ok()) return false;
  const std::string_view rest = cursor.rest();
  const std::size_t nul = rest.substr(0, kLook).find('\0');
  const auto adds_up = [&](std::size_t length) {
    const std::uint64_t behind = rest.size() - length - 1;
    return behind <= kMostPadding || (behind >= code_size && behind - code_size <= kMostPadding);
  };
  if (nul != std::string_view::npos) return adds_up(nul);
  if (rest.size() <= kLook || code_size >= rest.size()) return false;
  const std::string_view end = rest.substr(0, rest.size() - code_size);
  return end.substr(end.size() - std::min<std::size_t>(end.size(), kMostPadding + 1)).find('\0') !=
         std::string_view::npos;
}

bool is_plausible_debug_info(const JitRecord& record) noexcept {
  const std::optional<DebugInfoRecord> info = decode_debug_info(record);
  return info && info->line_count != 0 &&
         info->line_count <= info->lines.size() / DebugInfoRecord::kSmallestLine;
}

bool is_plausible_unwinding(const JitRecord& record) noexcept {
  const std::optional<UnwindingRecord> info = decode_unwinding(record);
  return info && info->padding.size() <= kMostPadding;
}

}  // namespace

std::optional<JitRecord> read_prefix(std::string_view bytes, std::uint64_t offset,
                                     std::endian order) noexcept {
  const std::string_view rest = bytes.substr(offset);
  Cursor cursor(rest, order);
  JitRecord record;
  record.id = cursor.u32();
  const std::uint32_t size = cursor.u32();
  record.time = cursor.u64();
  if (!cursor.ok() || size < JitRecord::kPrefix || size > rest.size()) return std::nullopt;
  record.offset = offset;
  record.bytes = rest.substr(0, size);
  record.order = order;
  return record;
}

bool is_plausible(const JitRecord& record, const JitRecordHints& hints) noexcept {
  if (!in_time(record.time, hints)) return false;
  switch (static_cast<JitRecordKind>(record.id)) {
    case JitRecordKind::load: return is_plausible_load(record);
    case JitRecordKind::move: return record.bytes.size() == MoveRecord::kFixed;
    case JitRecordKind::debug_info: return is_plausible_debug_info(record);
    case JitRecordKind::close: return record.bytes.size() == JitRecord::kPrefix;
    case JitRecordKind::unwinding_info: return is_plausible_unwinding(record);
  }
  return false;
}

bool could_be_prefix(std::string_view bytes, std::uint64_t offset,
                     const JitRecordHints& hints) noexcept {
  Cursor cursor(bytes.substr(offset), hints.order);
  const std::uint32_t id = cursor.u32();
  const std::uint32_t size = cursor.u32();
  const std::uint64_t time = cursor.u64();
  if (!cursor.ok()) return true;  // the end of the file
  return id <= static_cast<std::uint32_t>(JitRecordKind::unwinding_info) &&
         size >= JitRecord::kPrefix && in_time(time, hints);
}

std::optional<JitRecord> find_record(std::string_view bytes, std::uint64_t offset,
                                     const JitRecordHints& hints) noexcept {
  for (; bytes.size() - offset >= JitRecord::kPrefix; ++offset) {
    // Most bytes are no prefix: the id decides.
    std::uint32_t id = 0;
    std::memcpy(&id, bytes.data() + offset, sizeof id);
    if (hints.order != std::endian::native) id = __builtin_bswap32(id);
    if (id > static_cast<std::uint32_t>(JitRecordKind::unwinding_info)) continue;
    const std::optional<JitRecord> record = read_prefix(bytes, offset, hints.order);
    if (record && is_plausible(*record, hints) && could_be_prefix(bytes, record->end(), hints)) {
      return record;
    }
  }
  return std::nullopt;
}

std::uint64_t repeated_bytes(std::string_view bytes, std::uint64_t damage,
                             const JitRecord& next) noexcept {
  const std::uint64_t far = damage < kMostRepeated ? 0 : damage - kMostRepeated;
  const std::string_view before = bytes.substr(far, damage - far);
  const std::size_t copy = before.rfind(next.bytes.substr(0, 40));
  if (copy == std::string_view::npos) return 0;
  const std::uint64_t length = next.offset - (far + copy);
  if (length > before.size() || length > bytes.size() - damage) return 0;
  const bool same = before.substr(before.size() - length) == bytes.substr(damage, length);
  return same ? length : 0;
}

}  // namespace perfmap
