#pragma once

#include <bit>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "perfmap/export.hpp"
#include "perfmap/jitdump.hpp"

namespace perfmap {

/// Bytes that a record of `size` bytes lacks to a multiple of 8, to which DEBUG_INFO and
/// UNWINDING_INFO are padded. A LOAD is not: perf takes its code from the end of the record.
constexpr std::uint32_t jitdump_padding(std::uint64_t size) noexcept {
  return static_cast<std::uint32_t>(-size & 7);
}

/// This machine's number for JitdumpHeader::elf_mach: 62 on x86-64, 183 on aarch64.
PERFMAP_API std::uint32_t host_elf_machine() noexcept;

/// Makes records into bytes, which it appends to a string: the reverse of the decode_…() functions
/// of jitdump.hpp, to the byte. What is read with them and written here, in the same byte order, is
/// what it was; in the other byte order it says the same.
///
/// Sizes and counts that follow from a record's parts are made from those: total_size, `line_count`
/// and `unwinding_size`. `code_size` is written as given, because a record may leave the code out.
/// Names end at their first NUL. A record's size has 32 bits: functions that answer false have
/// appended nothing, because it would take more.
///
/// Source: Linux, tools/perf/Documentation/jitdump-specification.txt and tools/perf/util/jitdump.h.
/// Borrows the string. One thread at a time. Each O(bytes).
class PERFMAP_API JitdumpEncoder {
 public:
  explicit JitdumpEncoder(std::string& out, std::endian order = std::endian::native) noexcept
      : out_(&out), order_(order) {}

  std::endian order() const noexcept { return order_; }

  /// Everything as given but `header.order`. `extra` goes behind the 40 bytes; total_size has to
  /// count it.
  void header(const JitdumpHeader& header, std::string_view extra = {});

  [[nodiscard]] bool load(std::uint64_t time, const LoadRecord& load);
  void move(std::uint64_t time, const MoveRecord& move);
  /// An entry with `file_repeats` is written as bytes FF 00; perf before 6.2 or so takes that for
  /// a name.
  [[nodiscard]] bool debug_info(std::uint64_t time, Address code_address,
                                std::span<const LineRecord> lines, std::string_view padding = {});
  /// The frame first and the header behind it, as perf expects, unless `header_first`.
  [[nodiscard]] bool unwinding(std::uint64_t time, const UnwindingRecord& info);
  void close(std::uint64_t time);
  /// A record of any id with this body, whose fields are in order() already.
  [[nodiscard]] bool raw(std::uint32_t id, std::uint64_t time, std::string_view body);

  /// A record of another dump: its bytes as they are, or, where that dump is in the other byte
  /// order, what they say. Bodies that cannot be decoded are copied as they are.
  [[nodiscard]] bool record(const JitRecord& record);

 private:
  bool swapped(const JitRecord& record);

  std::string* out_;
  std::endian order_;
};

}  // namespace perfmap
