// SPDX-License-Identifier: MIT
#include <optional>

#include "jitdump/jitdump_records.hpp"
#include "perfmap/jitdump.hpp"

namespace perfmap {
namespace {

template <std::size_t kSize>
void append(std::string& out, const std::array<char, kSize>& bytes) {
  out.append(bytes.data(), bytes.size());
}

void append_name(std::string& out, std::string_view name) {
  out.append(name);
  out.push_back('\0');
}

std::string_view file_of(const LineRecord& line) noexcept {
  return line.file_repeats ? kRepeatedFile : before_nul(line.file);
}

/// The size of a record, or nothing if it does not fit the field.
std::optional<std::uint32_t> record_size(std::uint64_t bytes) noexcept {
  if (bytes > UINT32_MAX) return std::nullopt;
  return static_cast<std::uint32_t>(bytes);
}

}  // namespace

std::uint32_t host_elf_machine() noexcept { return kHostElfMachine; }

void JitdumpEncoder::header(const JitdumpHeader& header, std::string_view extra) {
  append(*out_, fixed_part(header, order_));
  out_->append(extra);
}

bool JitdumpEncoder::load(std::uint64_t time, const LoadRecord& load) {
  const std::string_view name = before_nul(load.name);
  const auto size =
      record_size(load.kFixed + name.size() + 1 + load.code.size() + load.padding.size());
  if (!size) return false;
  append(*out_, fixed_part(load, *size, time, order_));
  append_name(*out_, name);
  out_->append(load.code).append(load.padding);
  return true;
}

void JitdumpEncoder::move(std::uint64_t time, const MoveRecord& move) {
  append(*out_, fixed_part(move, time, order_));
}

bool JitdumpEncoder::debug_info(std::uint64_t time, Address code_address,
                                std::span<const LineRecord> lines, std::string_view padding) {
  std::uint64_t bytes = DebugInfoRecord::kFixed + padding.size();
  for (const LineRecord& line : lines) {
    bytes += DebugInfoRecord::kSmallestLine + file_of(line).size();
  }
  const auto size = record_size(bytes);
  if (!size) return false;
  append(*out_, debug_info_part(code_address, lines.size(), *size, time, order_));
  for (const LineRecord& line : lines) {
    append(*out_, fixed_part(line, order_));
    append_name(*out_, file_of(line));
  }
  out_->append(padding);
  return true;
}

bool JitdumpEncoder::unwinding(std::uint64_t time, const UnwindingRecord& info) {
  const auto size = record_size(info.kFixed + info.eh_frame.size() + info.eh_frame_hdr.size() +
                                info.padding.size());
  if (!size) return false;
  append(*out_, fixed_part(info, *size, time, order_));
  out_->append(info.header_first ? info.eh_frame_hdr : info.eh_frame);
  out_->append(info.header_first ? info.eh_frame : info.eh_frame_hdr);
  out_->append(info.padding);
  return true;
}

void JitdumpEncoder::close(std::uint64_t time) {
  constexpr auto kClose = static_cast<std::uint32_t>(JitRecordKind::close);
  append(*out_, prefix_part(kClose, JitRecord::kPrefix, time, order_));
}

bool JitdumpEncoder::raw(std::uint32_t id, std::uint64_t time, std::string_view body) {
  const auto size = record_size(JitRecord::kPrefix + body.size());
  if (!size) return false;
  append(*out_, prefix_part(id, *size, time, order_));
  out_->append(body);
  return true;
}

bool JitdumpEncoder::record(const JitRecord& record) {
  if (record.order != order_) return swapped(record);
  return raw(record.id, record.time, record.bytes.substr(JitRecord::kPrefix));
}

bool JitdumpEncoder::swapped(const JitRecord& record) {
  std::string_view padding;
  if (const auto info = decode_debug_info(record)) {
    const auto lines = decode_lines(record, &padding);
    if (lines) return debug_info(record.time, info->code_address, *lines, padding);
  }
  const auto moved = decode_move(record);
  const std::string_view body = record.bytes.substr(JitRecord::kPrefix);
  if (moved && record.bytes.size() == MoveRecord::kFixed) {
    move(record.time, *moved);
    return true;
  }
  if (const auto loaded = decode_load(record)) return load(record.time, *loaded);
  if (const auto info = decode_unwinding(record)) return unwinding(record.time, *info);
  return raw(record.id, record.time, body);
}

}  // namespace perfmap
