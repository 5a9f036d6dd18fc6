// SPDX-License-Identifier: MIT
#include "perfmap/jitdump.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

#include "base/cursor.hpp"
#include "jitdump/jitdump_records.hpp"
#include "perfmap/diagnostic.hpp"
#include "perfmap/text.hpp"

namespace perfmap {

namespace {

// Offsets of the size fields.
constexpr std::uint64_t kCodeSizeAt = 40;
constexpr std::uint64_t kUnwindingSizeAt = 16;

/// A complete LOAD has a NUL right before its code. If it is there, the name is not scanned.
bool has_odd_code_size(const JitRecord& record) noexcept {
  Cursor cursor(record.bytes, record.order);
  cursor.skip(kCodeSizeAt);
  const std::uint64_t code_size = cursor.u64();
  const std::uint64_t size = record.bytes.size();
  if (!cursor.ok() || size <= LoadRecord::kFixed) return false;
  const std::uint64_t room = size - LoadRecord::kFixed - 1;
  if (code_size <= room && record.bytes[size - code_size - 1] == '\0') return false;
  const auto load = decode_load(record);
  return load && load->code.size() < code_size && !load->code.empty();
}

/// Records with ids of future versions are skipped by their size. The size is trusted if a known
/// record follows soon.
bool is_unknown_kind(std::string_view bytes, JitRecord record, const JitRecordHints& hints) {
  constexpr int kInARow = 16;
  for (int i = 0; i < kInARow; ++i) {
    if (could_be_prefix(bytes, record.end(), hints)) return true;
    const std::optional<JitRecord> next = read_prefix(bytes, record.end(), record.order);
    if (!next) return false;
    record = *next;
  }
  return false;
}

/// Whether records begin after a header of that size. The size is damaged if none begins there, but
/// one begins after the 40 bytes that every header has.
bool is_end_of_header(std::string_view bytes, std::uint32_t size, std::endian order) noexcept {
  if (size <= JitdumpHeader::kSize || size > bytes.size()) return false;
  const JitRecordHints hints{order, 0};
  if (read_prefix(bytes, size, order) && could_be_prefix(bytes, size, hints)) return true;
  const std::optional<JitRecord> at_40 = read_prefix(bytes, JitdumpHeader::kSize, order);
  return !at_40 || !is_plausible(*at_40, hints);
}

}  // namespace

bool has_odd_sizes(const JitRecord& record) noexcept {
  if (record.is(JitRecordKind::load)) return has_odd_code_size(record);
  if (const auto info = decode_debug_info(record)) {
    return info->line_count > info->lines.size() / DebugInfoRecord::kSmallestLine;
  }
  return record.is(JitRecordKind::unwinding_info) && !decode_unwinding(record);
}

void report_odd_sizes(const JitRecord& record, Diagnostics& problems) {
  const auto report = [&](const Rule& rule, std::uint64_t at, const std::string& message) {
    problems.add(rule, {record.offset + at, 0, 0}, message);
  };
  if (const auto load = decode_load(record)) {
    report(rule::kLoadSizes, kCodeSizeAt,
           "a code size of " + std::to_string(load->code_size) + ", but room for " +
               counted(load->code.size(), "byte") + ": perf reads other bytes as code");
  } else if (record.is(JitRecordKind::debug_info)) {
    report(rule::kBadLines, 0, "its source lines exceed the record");
  } else {
    report(rule::kUnwindingSizes, kUnwindingSizeAt, "its sizes do not fit into the record");
  }
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

std::uint64_t repeated_bytes(std::string_view bytes, std::uint64_t damage,
                             const JitRecord& next) noexcept {
  const std::uint64_t far = damage < kMaxRepeated ? 0 : damage - kMaxRepeated;
  const std::string_view before = bytes.substr(far, damage - far);
  const std::size_t copy = before.rfind(next.bytes.substr(0, 40));
  if (copy == std::string_view::npos) return 0;
  const std::uint64_t length = next.offset - (far + copy);
  if (length > before.size() || length > bytes.size() - damage) return 0;
  const bool same = before.substr(before.size() - length) == bytes.substr(damage, length);
  return same ? length : 0;
}

Jitdump::Jitdump(Input input, Options options) : input_(std::move(input)), options_(options) {
  read_header();
}

void Jitdump::read_header() noexcept {
  const std::string_view text = bytes();
  header_.reset();
  first_record_ = text.size() < JitdumpHeader::kSize ? text.size() : JitdumpHeader::kSize;
  for (const std::endian order : {std::endian::little, std::endian::big}) {
    Cursor cursor(text.substr(0, JitdumpHeader::kSize), order);
    if (cursor.u32() != kJitdumpMagic) continue;
    JitdumpHeader header;
    header.order = order;
    header.version = cursor.u32();
    header.total_size = cursor.u32();
    header.elf_mach = cursor.u32();
    header.pad1 = cursor.u32();
    header.pid = cursor.u32();
    header.timestamp = cursor.u64();
    header.flags = cursor.u64();
    if (!cursor.ok()) return;
    header_ = header;
    if (is_end_of_header(text, header.total_size, order)) first_record_ = header.total_size;
  }
}

std::string_view Jitdump::header_extra() const noexcept {
  if (!header_) return {};
  return bytes().substr(JitdumpHeader::kSize, first_record_ - JitdumpHeader::kSize);
}

bool Jitdump::has_tsc_times() const noexcept {
  return header_ && (header_->flags & JitdumpHeader::kArchTimestamp) != 0;
}

bool Jitdump::is_v8() const noexcept {
  return header_ && header_->pad1 == JitdumpHeader::kV8Padding;
}

std::optional<JitRecord> Jitdump::record_at(std::uint64_t offset) const noexcept {
  if (offset >= bytes().size() || input_.was_truncated()) return std::nullopt;
  return read_prefix(bytes(), offset, header_ ? header_->order : std::endian::native);
}

Result<Growth> Jitdump::refresh() {
  Result<Growth> growth = input_.refresh();
  if (growth && *growth != Growth::unchanged) read_header();
  return growth;
}

std::optional<JitRecord> Jitdump::Reader::next(Diagnostics& problems) {
  const std::string_view bytes = dump_->bytes();
  const std::endian order = dump_->header_ ? dump_->header_->order : std::endian::native;
  const std::optional<JitRecord> record = read_prefix(bytes, at_, order);
  // The following record is checked, too: it is read next, and garbage rarely fits twice.
  if (!closed_ && record && record->bytes.size() >= smallest_size(record->id) &&
      could_be_prefix(bytes, record->end(), {order, 0})) [[likely]] {
    if (has_odd_sizes(*record)) [[unlikely]]
      report_odd_sizes(*record, problems);
    take(*record);
    return record;
  }
  return next_slowly(problems);
}

void Jitdump::Reader::take(const JitRecord& record) noexcept {
  at_ = record.end();
  if (record.time != 0) last_time_ = record.time;
  closed_ = dump_->options_.stop_at_close && record.is(JitRecordKind::close);
}

std::optional<JitRecord> Jitdump::Reader::next_slowly(Diagnostics& problems) {
  const std::string_view bytes = dump_->bytes();
  const JitRecordHints hints{dump_->header_ ? dump_->header_->order : std::endian::native,
                             last_time_};
  while (!closed_ && at_ < bytes.size()) {
    std::optional<JitRecord> record = read_prefix(bytes, at_, hints.order);
    if (record && (is_plausible(*record, hints) || is_unknown_kind(bytes, *record, hints))) {
      if (has_odd_sizes(*record)) report_odd_sizes(*record, problems);
      take(*record);
      return record;
    }
    record = find_record(bytes, at_ + 1, hints);
    if (!record && dump_->options_.growing) break;
    if (!record) {
      damage_.is_cut_off = true;
      lose_records(problems, bytes.size() - at_, "at the end are not a complete record");
    } else if (const std::uint64_t repeated = repeated_before(*record); repeated != 0) {
      ++damage_.repeated;
      lose(problems, repeated,
           "repeat the bytes before them: a forked child wrote the buffer of its parent");
    } else {
      lose_records(problems, record->offset - at_, "are not a record: skipped");
    }
  }
  return std::nullopt;
}

std::uint64_t Jitdump::Reader::repeated_before(const JitRecord& next) noexcept {
  // Each look back costs as much as reading that many bytes, so the number of looks is limited by
  // the file size: otherwise a file damaged all over would take too long.
  if (looks_back_ * kMaxRepeated > 64 * kMaxRepeated + dump_->bytes().size()) return 0;
  ++looks_back_;
  return repeated_bytes(dump_->bytes(), at_, next);
}

void Jitdump::Reader::lose_records(Diagnostics& problems, std::uint64_t count, const char* why) {
  if (damage_.lost++ == 0) damage_.first = at_;
  lose(problems, count, why);
}

void Jitdump::Reader::lose(Diagnostics& problems, std::uint64_t count, const char* why) {
  problems.add(rule::kDamagedRecord, {at_, 0, 0}, counted(count, "byte") + " " + why);
  lost_ += count;
  at_ += count;
}

}  // namespace perfmap
