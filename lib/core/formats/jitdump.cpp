#include "perfmap/jitdump.hpp"

#include <string>

#include "formats/jitdump_fields.hpp"
#include "formats/jitdump_resync.hpp"
#include "formats/jitdump_sizes.hpp"
#include "perfmap/cursor.hpp"
#include "perfmap/rules.hpp"

namespace perfmap {
namespace {

std::uint32_t smallest_size(std::uint32_t id) noexcept {
  switch (static_cast<JitRecordKind>(id)) {
    case JitRecordKind::load: return LoadRecord::kFixed + 1;
    case JitRecordKind::move: return MoveRecord::kFixed;
    case JitRecordKind::debug_info: return DebugInfoRecord::kFixed;
    case JitRecordKind::close: return JitRecord::kPrefix;
    case JitRecordKind::unwinding_info: return UnwindingRecord::kFixed;
  }
  return UINT32_MAX;
}

/// Records of ids to come are skipped by their size, which is to be believed where a known record
/// follows soon.
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

/// Whether records begin there. The size is damaged where none does, but one begins behind the 40
/// bytes that every header has.
bool is_end_of_header(std::string_view bytes, std::uint32_t size, std::endian order) noexcept {
  if (size <= JitdumpHeader::kSize || size > bytes.size()) return false;
  const JitRecordHints hints{order, 0};
  if (read_prefix(bytes, size, order) && could_be_prefix(bytes, size, hints)) return true;
  const std::optional<JitRecord> at_40 = read_prefix(bytes, JitdumpHeader::kSize, order);
  return !at_40 || !is_plausible(*at_40, hints);
}

}  // namespace

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
  // What follows is looked at, too: it is read next, and garbage seldom fits twice.
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
      lose_records(problems, bytes.size() - at_, "at the end are no whole record");
    } else if (const std::uint64_t repeated = repeated_before(*record); repeated != 0) {
      ++damage_.repeated;
      lose(problems, repeated,
           "repeat those before them: a forked child wrote the buffer of its parent");
    } else {
      lose_records(problems, record->offset - at_, "are no record: reading goes on behind them");
    }
  }
  return std::nullopt;
}

std::uint64_t Jitdump::Reader::repeated_before(const JitRecord& next) noexcept {
  // Each look back costs as much as reading so many bytes: a file that is damage all over gets as
  // many as its size allows.
  if (looks_back_ * kMostRepeated > 64 * kMostRepeated + dump_->bytes().size()) return 0;
  ++looks_back_;
  return repeated_bytes(dump_->bytes(), at_, next);
}

void Jitdump::Reader::lose_records(Diagnostics& problems, std::uint64_t count, const char* why) {
  if (damage_.lost++ == 0) damage_.first = at_;
  lose(problems, count, why);
}

void Jitdump::Reader::lose(Diagnostics& problems, std::uint64_t count, const char* why) {
  problems.add(rule::kDamagedRecord, {at_, 0, 0},
               std::to_string(count) + (count == 1 ? " byte " : " bytes ") + why);
  lost_ += count;
  at_ += count;
}

}  // namespace perfmap
