// SPDX-License-Identifier: MIT
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

/// The blocks of a tar archive: POSIX.1-2001 (ustar and pax), and GNU's variant.

namespace perfmap {

inline constexpr std::size_t kTarBlock = 512;

/// The kinds of entries that a reader of recordings has to distinguish.
namespace tar_type {
inline constexpr char kFile = '0';
inline constexpr char kOldFile = '\0';
inline constexpr char kHardLink = '1';
inline constexpr char kSymbolicLink = '2';
inline constexpr char kCharacterDevice = '3';
inline constexpr char kBlockDevice = '4';
inline constexpr char kDirectory = '5';
inline constexpr char kFifo = '6';
inline constexpr char kContiguousFile = '7';
inline constexpr char kPax = 'x';
inline constexpr char kGlobalPax = 'g';
inline constexpr char kGnuLongName = 'L';
inline constexpr char kGnuLongLink = 'K';
inline constexpr char kGnuSparse = 'S';
}  // namespace tar_type

/// A header block.
struct TarHeader {
  std::string name;  ///< with the prefix
  char type = tar_type::kFile;
  std::uint64_t size = 0;     ///< of the data that follow
  std::int64_t mtime_ns = 0;  ///< since 1970; 0 if it is negative or too large
};

/// Whether these bytes, the first of an archive, are a header.
bool begins_tar(std::string_view bytes) noexcept;
/// Nothing if the checksum is wrong, or a number is none. `block` has kTarBlock bytes.
std::optional<TarHeader> parse_tar_header(std::string_view block);

/// What pax records say about an entry. Members that no record sets keep their values.
struct PaxRecords {
  std::optional<std::string> path = {};
  std::optional<std::uint64_t> size = {};
  std::optional<std::int64_t> mtime_ns = {};
  bool is_sparse = false;  ///< GNU.sparse.*: the data are a list of pieces
};
/// False if the text is no list of records.
bool parse_pax(std::string_view text, PaxRecords& records);

/// The blocks before the data of an entry: a pax header, which has the time, and what ustar cannot
/// hold; and the header.
std::string tar_blocks(const TarHeader& entry);
/// The zeros after so many bytes of data, up to a whole block.
std::size_t tar_padding(std::uint64_t size) noexcept;

}  // namespace perfmap
