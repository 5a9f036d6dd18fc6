// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "elf/dwarf_cursor.hpp"
#include "perfmap/types.hpp"

namespace perfmap {

/// A compressed section: SHF_COMPRESSED with zlib or zstd (gABI), or GNU's older .zdebug_.
struct CompressedSection {
  enum class Method : std::uint8_t { zlib, zstd };
  Method method = Method::zlib;
  std::string_view packed;
  std::uint64_t size = 0;  ///< decompressed size as stated by the file
};

/// Fails with unsupported for another method, and with bad_format if the header is truncated, or
/// the size is implausible.
Result<CompressedSection> read_compression(std::string_view section, bool is_gnu, bool is_64_bit,
                                           std::endian order);

/// Decompresses into a new buffer and returns how much was produced: less than `size` if the data
/// are damaged.
struct InflatedSection {
  std::unique_ptr<char[]> owned;
  std::string_view bytes;
};
/// The maximum for all sections of a file of that size together; more is an attack.
std::uint64_t max_inflated(std::uint64_t file_size) noexcept;

InflatedSection inflate_section(const CompressedSection& section);

/// The content of .gnu_debugdata: an ELF file with symbols that a distribution has stripped.
/// Nothing if it is not an xz stream, or unpacks to more than 128 MiB.
std::optional<std::string> unpack_symbols(std::string_view xz);

}  // namespace perfmap
