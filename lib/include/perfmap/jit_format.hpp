// SPDX-License-Identifier: MIT
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <sys/types.h>

#include "perfmap/address.hpp"

/// How runtimes name and lay out their files: what readers and writers have in common.

namespace perfmap {

/// The part of a path after the last '/'.
constexpr std::string_view base_name(std::string_view path) noexcept {
  path.remove_prefix(path.rfind('/') + 1);  // npos + 1 is 0
  return path;
}

/// The name of the file in which a runtime names the code of a process. No other place in the
/// library spells it. N is the process ID in the process's own, innermost namespace.
struct JitFileName {
  std::string_view begin;
  std::string_view end;

  std::string of(std::string_view number) const {
    return std::string(begin).append(number).append(end);
  }
  std::string of(pid_t pid) const { return of(std::to_string(pid)); }
  /// Whether the last component of a path is such a name, with any N.
  constexpr bool is_last_of(std::string_view path) const noexcept {
    const std::string_view name = base_name(path);
    return name.size() >= begin.size() + end.size() && name.starts_with(begin) &&
           name.ends_with(end);
  }
  /// N in the last component of a path; empty for other names.
  constexpr std::string_view number_in(std::string_view path) const noexcept {
    if (!is_last_of(path)) return {};
    std::string_view number = base_name(path);
    number.remove_prefix(begin.size());
    number.remove_suffix(end.size());
    return number;
  }
  /// N as a number; nothing if it has other characters than digits, or more than 64 bits.
  PERFMAP_API std::optional<std::uint64_t> pid_in(std::string_view path) const noexcept;
};
inline constexpr JitFileName kMapName{"perf-", ".map"};
inline constexpr JitFileName kDumpName{"jit-", ".dump"};

/// A list of the images that .NET has loaded, which it writes beside its map. It has no names.
inline constexpr JitFileName kImagesName{"perfinfo-", ".map"};

/// The pid in the last component of the path of a jitdump: jit-PID.dump, or a name that
/// JavaScriptCore chooses in Bun: jit-TID-PID.dump, and jit-TID-PID-XXXXXX if no directory was set.
/// `perf inject` knows the first form only. Nothing for other names.
PERFMAP_API std::optional<std::uint64_t> dump_pid_in(std::string_view path) noexcept;
/// Whether a mapped file with this path is taken for a jitdump: jit-ANYTHING.dump, or one of the
/// names above.
inline bool is_dump_path(std::string_view path) noexcept {
  return kDumpName.is_last_of(path) || dump_pid_in(path).has_value();
}

/// How names are written to perf maps, so that every reader of the format reads them: each byte
/// below 0x20, 0x7f, and each byte of invalid UTF-8 becomes \xNN; blanks at the ends are removed; a
/// name of less than three bytes (perf drops those) is put in brackets: `[a]`, and `[?]` if nothing
/// is left.

/// Whether a name is written unchanged. O(name), allocates nothing.
PERFMAP_API bool is_plain_map_name(std::string_view name) noexcept;

/// Longer names are truncated in maps that every reader is to read.
inline constexpr std::size_t kMaxPortableName = 4000;

/// Who gives a name that is to be written. In a name of a runtime, `\x0a` is four characters, and
/// its backslash is escaped, so that what is written can be read back. In a file it stands for a
/// newline already, and stays.
enum class NameOf : std::uint8_t { file, runtime };

/// Whether the writers write a name unchanged: is_plain_map_name() holds, it has at most
/// kMaxPortableName bytes, and, of a runtime, no `\xHH` (two hexadecimal digits). O(name),
/// allocates nothing.
PERFMAP_API bool writes_unchanged(std::string_view name, NameOf source = NameOf::runtime) noexcept;

/// The first 40 bytes of a jitdump.
///
/// Source: Linux, tools/perf/Documentation/jitdump-specification.txt. `elf_mach`, `pad1` and
/// `timestamp` are as the producer wrote them and are not reliable: CPython 3.13.0 writes machine
/// 0, V8 writes 0xDEADBEEF as padding, and both write microseconds of wall-clock time.
struct JitdumpHeader {
  static constexpr std::uint32_t kSize = 40;
  static constexpr std::uint64_t kArchTimestamp = 1;  ///< flags: times are TSC ticks
  static constexpr std::uint32_t kV8Padding = 0xDEADBEEF;

  std::endian order = std::endian::native;
  std::uint32_t version = 1;
  std::uint32_t total_size = kSize;
  std::uint32_t elf_mach = 0;
  std::uint32_t pad1 = 0;
  std::uint32_t pid = 0;
  std::uint64_t timestamp = 0;
  std::uint64_t flags = 0;

  friend bool operator==(const JitdumpHeader&, const JitdumpHeader&) = default;
};

/// A new kind needs a value here and a row in the tables of jitdump.cpp and jitdump_json.cpp.
enum class JitRecordKind : std::uint32_t { load, move, debug_info, close, unwinding_info };
inline constexpr std::uint32_t kJitRecordKinds = 5;

/// A record as stored in the file: its prefix, and all of its bytes, including prefix and padding.
/// Records need not be aligned. Borrowed from the input.
struct JitRecord {
  static constexpr std::uint32_t kPrefix = 16;

  std::uint64_t offset = 0;  ///< of the record in the file
  std::uint64_t time = 0;    ///< CLOCK_MONOTONIC nanoseconds, or ticks; see kArchTimestamp
  std::string_view bytes;
  std::uint32_t id = 0;  ///< a JitRecordKind, or an unknown id
  std::endian order = std::endian::native;

  bool is(JitRecordKind kind) const noexcept { return id == static_cast<std::uint32_t>(kind); }
  std::uint64_t end() const noexcept { return offset + bytes.size(); }
};

/// "load", "move", "debug-info", "close", "unwinding-info"; nothing for an unknown id.
PERFMAP_API std::string_view to_string(JitRecordKind kind) noexcept;

/// Code was loaded at `range`.
struct LoadRecord {
  static constexpr std::uint32_t kFixed = 56;
  /// Maximum number of bytes of code that is not known and written as zeros.
  static constexpr std::uint64_t kMaxZeros = std::uint64_t{32} << 20;

  /// code_addr and code_size; perf and this library use these, not vma. Smaller than code_size if
  /// that would pass the end of the address space, or if the record has fewer bytes of code.
  AddressRange range;
  std::uint32_t pid = 0;
  std::uint32_t tid = 0;  ///< Erlang writes a truncated pthread id
  std::uint64_t vma = 0;
  std::uint64_t code_size = 0;  ///< as written
  std::uint64_t code_index = 0;
  std::string_view name;  ///< raw bytes up to the first NUL
  std::string_view code;  ///< after the name; empty if the producer left it out
  /// bytes after the code; perf takes the code from the end of the record
  std::string_view padding;
};

/// The code with `code_index` moved to another address.
struct MoveRecord {
  static constexpr std::uint32_t kFixed = 64;

  std::uint64_t old_address = 0;
  AddressRange range;  ///< new_code_addr and code_size; Timeline checks them against the LOAD
  std::uint32_t pid = 0;
  std::uint32_t tid = 0;
  std::uint64_t vma = 0;
  std::uint64_t code_size = 0;  ///< as written
  std::uint64_t code_index = 0;
};

/// Source lines of a function whose LOAD comes later.
struct DebugInfoRecord {
  static constexpr std::uint32_t kFixed = 32;
  static constexpr std::uint32_t kSmallestLine = 17;  // address, line, column, an empty name's NUL

  Address code_address = 0;
  std::uint64_t line_count = 0;  ///< as written
  std::string_view lines;        ///< `line_count` entries, then padding; see decode_lines()
};

/// One entry of a DebugInfoRecord: the source line of the code from `address` to the next entry's
/// address, or to the end of the function.
struct LineRecord {
  Address address = 0;  ///< as written; JitDetails corrects it
  std::int32_t line = 0;
  std::int32_t column = 0;  ///< "discriminator" in the format; producers put a column there
  /// if the entry has bytes FF 00 ("as before"), the file of the entry before it
  std::string_view file;
  bool file_repeats = false;
};

/// .eh_frame and .eh_frame_hdr of a function whose LOAD comes later. perf, CPython and V8 write the
/// frame first; LLVM and the text of the specification write the header first. The bytes decide
/// which.
struct UnwindingRecord {
  static constexpr std::uint32_t kFixed = 40;

  std::uint64_t unwinding_size = 0;
  std::uint64_t eh_frame_hdr_size = 0;
  std::uint64_t mapped_size = 0;  ///< 0: not mapped in the process
  std::string_view eh_frame;
  std::string_view eh_frame_hdr;
  bool header_first = false;
  std::string_view padding;
};

/// Number of bytes that pad a record of `size` bytes to a multiple of 8. DEBUG_INFO and
/// UNWINDING_INFO are padded. A LOAD is not, because perf takes its code from the end of the
/// record.
constexpr std::uint32_t jitdump_padding(std::uint64_t size) noexcept {
  return static_cast<std::uint32_t>(-size & 7);
}

/// The decoded body of a record of that kind; nothing if the record has another kind or is too
/// short for it. O(name). Borrowed from the input.
PERFMAP_API std::optional<LoadRecord> decode_load(const JitRecord& record) noexcept;
PERFMAP_API std::optional<MoveRecord> decode_move(const JitRecord& record) noexcept;
PERFMAP_API std::optional<DebugInfoRecord> decode_debug_info(const JitRecord& record) noexcept;
PERFMAP_API std::optional<UnwindingRecord> decode_unwinding(const JitRecord& record) noexcept;

}  // namespace perfmap
