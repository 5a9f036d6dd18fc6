// SPDX-License-Identifier: MIT
#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <cstring>
#include <elf.h>
#include <optional>
#include <string_view>

#include "base/cursor.hpp"
#include "base/utf8.hpp"
#include "perfmap/jit_format.hpp"

/// How the bytes of a jitdump's records are written.

namespace perfmap {

inline constexpr std::uint32_t kJitdumpMagic = 0x4A695444;

/// See host_elf_machine().
#if defined(__x86_64__)
inline constexpr std::uint32_t kHostElfMachine = EM_X86_64;
#elif defined(__aarch64__)
inline constexpr std::uint32_t kHostElfMachine = EM_AARCH64;
#elif defined(__i386__)
inline constexpr std::uint32_t kHostElfMachine = EM_386;
#elif defined(__arm__)
inline constexpr std::uint32_t kHostElfMachine = EM_ARM;
#elif defined(__riscv)
inline constexpr std::uint32_t kHostElfMachine = EM_RISCV;
#elif defined(__powerpc64__)
inline constexpr std::uint32_t kHostElfMachine = EM_PPC64;
#elif defined(__s390x__)
inline constexpr std::uint32_t kHostElfMachine = EM_S390;
#elif defined(__loongarch__)
inline constexpr std::uint32_t kHostElfMachine = EM_LOONGARCH;
#else
inline constexpr std::uint32_t kHostElfMachine = EM_NONE;
#endif

/// Writes the fields of a binary record in either byte order, the counterpart of Cursor. The caller
/// must provide enough space.
class FieldWriter {
 public:
  FieldWriter(char* at, std::endian order) noexcept
      : at_(at), swapped_(order != std::endian::native) {}

  FieldWriter& u32(std::uint32_t value) noexcept {
    return number(swapped_ ? __builtin_bswap32(value) : value);
  }
  FieldWriter& i32(std::int32_t value) noexcept { return u32(static_cast<std::uint32_t>(value)); }
  FieldWriter& u64(std::uint64_t value) noexcept {
    return number(swapped_ ? __builtin_bswap64(value) : value);
  }
  FieldWriter& prefix(JitRecordKind kind, std::uint32_t size, std::uint64_t time) noexcept {
    return u32(static_cast<std::uint32_t>(kind)).u32(size).u64(time);
  }

 private:
  template <class T>
  FieldWriter& number(T value) noexcept {
    std::memcpy(at_, &value, sizeof value);
    at_ += sizeof value;
    return *this;
  }

  char* at_;
  bool swapped_;
};

// The fixed-size parts of records. `size` is the total size of the record.

using LoadFixed = std::array<char, LoadRecord::kFixed>;
using MoveFixed = std::array<char, MoveRecord::kFixed>;
using DebugInfoFixed = std::array<char, DebugInfoRecord::kFixed>;
using LineFixed = std::array<char, DebugInfoRecord::kSmallestLine - 1>;
using UnwindingFixed = std::array<char, UnwindingRecord::kFixed>;
using PrefixFixed = std::array<char, JitRecord::kPrefix>;
using HeaderFixed = std::array<char, JitdumpHeader::kSize>;

inline HeaderFixed fixed_part(const JitdumpHeader& header, std::endian order) noexcept {
  HeaderFixed bytes;
  FieldWriter fields(bytes.data(), order);
  fields.u32(kJitdumpMagic).u32(header.version).u32(header.total_size).u32(header.elf_mach);
  fields.u32(header.pad1).u32(header.pid).u64(header.timestamp).u64(header.flags);
  return bytes;
}

inline PrefixFixed prefix_part(std::uint32_t id, std::uint32_t size, std::uint64_t time,
                               std::endian order) noexcept {
  PrefixFixed bytes;
  FieldWriter(bytes.data(), order).u32(id).u32(size).u64(time);
  return bytes;
}

inline LoadFixed fixed_part(const LoadRecord& load, std::uint32_t size, std::uint64_t time,
                            std::endian order) noexcept {
  LoadFixed bytes;
  FieldWriter fields(bytes.data(), order);
  fields.prefix(JitRecordKind::load, size, time).u32(load.pid).u32(load.tid).u64(load.vma);
  fields.u64(load.range.begin).u64(load.code_size).u64(load.code_index);
  return bytes;
}

inline MoveFixed fixed_part(const MoveRecord& move, std::uint64_t time,
                            std::endian order) noexcept {
  MoveFixed bytes;
  FieldWriter fields(bytes.data(), order);
  fields.prefix(JitRecordKind::move, MoveRecord::kFixed, time).u32(move.pid).u32(move.tid);
  fields.u64(move.vma).u64(move.old_address).u64(move.range.begin).u64(move.code_size);
  fields.u64(move.code_index);
  return bytes;
}

inline DebugInfoFixed debug_info_part(Address code, std::uint64_t lines, std::uint32_t size,
                                      std::uint64_t time, std::endian order) noexcept {
  DebugInfoFixed bytes;
  FieldWriter fields(bytes.data(), order);
  fields.prefix(JitRecordKind::debug_info, size, time).u64(code).u64(lines);
  return bytes;
}

inline LineFixed fixed_part(const LineRecord& line, std::endian order) noexcept {
  LineFixed bytes;
  FieldWriter(bytes.data(), order).u64(line.address).i32(line.line).i32(line.column);
  return bytes;
}

inline UnwindingFixed fixed_part(const UnwindingRecord& info, std::uint32_t size,
                                 std::uint64_t time, std::endian order) noexcept {
  UnwindingFixed bytes;
  FieldWriter fields(bytes.data(), order);
  fields.prefix(JitRecordKind::unwinding_info, size, time);
  fields.u64(info.eh_frame.size() + info.eh_frame_hdr.size()).u64(info.eh_frame_hdr.size());
  fields.u64(info.mapped_size);
  return bytes;
}

/// Stands for the file name of the previous entry.
constexpr std::string_view kRepeatedFile = "\xff";

/// Names end at their first NUL, in the file as well as here.
constexpr std::string_view before_nul(std::string_view name) noexcept {
  return first_bytes(name, name.find('\0'));
}

/// Whether `rest`, the bytes between a LOAD's name and the next record, means that the code was
/// left out: it is empty, or a few zeros for alignment.
bool is_left_out_code(std::string_view rest) noexcept;

/// What is known about the other records of a dump when one is found damaged.
struct JitRecordHints {
  std::endian order = std::endian::native;
  std::uint64_t time = 0;  ///< of the last good record; 0: none yet
};

/// The record whose prefix lies at `offset`, if it fits into `bytes`.
inline std::optional<JitRecord> read_prefix(std::string_view bytes, std::uint64_t offset,
                                            std::endian order) noexcept {
  const std::string_view rest = without_first(bytes, offset);
  Cursor cursor(rest, order);
  JitRecord record;
  record.id = cursor.u32();
  const std::uint32_t size = cursor.u32();
  record.time = cursor.u64();
  if (!cursor.ok() || size < JitRecord::kPrefix || size > rest.size()) return std::nullopt;
  record.offset = offset;
  record.bytes = {rest.data(), size};
  record.order = order;
  return record;
}

/// The smallest possible size of a record of that kind; UINT32_MAX for unknown ids.
std::uint32_t smallest_size(std::uint32_t id) noexcept;

/// Whether this looks like a record that a producer writes: a known id, a body whose sizes add up,
/// and a time within weeks of the hint's. O(1).
bool is_plausible(const JitRecord& record, const JitRecordHints& hints) noexcept;

/// Whether a record's prefix could begin at `offset`, or the bytes end there.
bool could_be_prefix(std::string_view bytes, std::uint64_t offset,
                     const JitRecordHints& hints) noexcept;

/// The first plausible record at or after `offset` that is followed by the end or by another
/// possible prefix. O(bytes) for any content.
std::optional<JitRecord> find_record(std::string_view bytes, std::uint64_t offset,
                                     const JitRecordHints& hints) noexcept;

}  // namespace perfmap
