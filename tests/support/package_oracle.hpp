// SPDX-License-Identifier: MIT
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

namespace perfmap::test {

/// A simple reader of an index of split units (.debug_cu_index), little-endian. It searches the
/// index for each request and shares no code with the reader under test. Source: DWARF 5, 7.3.5.3;
/// GNU's version 2 has the same layout, with a version field of four bytes.
class PackageOracle {
 public:
  struct Part {
    std::uint64_t offset = 0;
    std::uint64_t size = 0;
  };
  /// By section number.
  using Parts = std::array<std::optional<Part>, 9>;

  explicit PackageOracle(std::string_view index) : index_(index) {}

  bool is_whole() const {
    if (version() != 2 && version() != 5) return false;
    const std::uint64_t slots = number(12);
    if (slots == 0 || (slots & (slots - 1)) != 0 || columns() == 0 || columns() > 8) return false;
    if (16 + 12 * slots + 4 * columns() * (1 + 2 * rows()) > index_.size()) return false;
    for (std::uint64_t one = 0; one < columns(); ++one) {
      for (std::uint64_t other = 0; other < one; ++other) {
        if (section_of(one) == section_of(other)) return false;
      }
    }
    return true;
  }

  /// The part of each section of a unit; nothing if the table does not find the unit where it
  /// probes.
  std::optional<Parts> find(std::uint64_t id) const {
    const std::uint64_t slots = number(12);
    std::uint64_t slot = id % slots;
    for (std::uint64_t tried = 0; tried < slots; ++tried) {
      const std::uint64_t row = number(16 + 8 * slots + 4 * slot);
      if (row == 0) return std::nullopt;
      if ((number(16 + 8 * slot + 4) << 32 | number(16 + 8 * slot)) == id) {
        return row <= rows() ? std::optional(parts_of(row)) : std::nullopt;
      }
      slot = (slot + ((id >> 32) % slots | 1)) % slots;
    }
    return std::nullopt;
  }

  std::uint64_t version() const {
    const std::uint64_t number_of_version = number(0);
    return number_of_version == 2 ? 2 : number_of_version & 0xffff;
  }

 private:
  std::uint64_t columns() const { return number(4); }
  std::uint64_t rows() const { return number(8); }
  std::uint64_t section_of(std::uint64_t column) const {
    return number(16 + 12 * number(12) + 4 * column);
  }

  Parts parts_of(std::uint64_t row) const {
    const std::uint64_t table = 16 + 12 * number(12);
    Parts parts;
    for (std::uint64_t column = 0; column < columns(); ++column) {
      const std::uint64_t section = section_of(column);
      if (section >= parts.size()) continue;
      parts[section] = Part{number(table + 4 * (columns() * row + column)),
                            number(table + 4 * (columns() * (row + rows()) + column))};
    }
    return parts;
  }

  /// Four bytes; 0 beyond the end.
  std::uint64_t number(std::uint64_t at) const {
    std::uint64_t value = 0;
    if (at > index_.size() || index_.size() - at < 4) return 0;
    for (int i = 3; i >= 0; --i) {
      value = value << 8 | static_cast<unsigned char>(index_[at + static_cast<std::uint64_t>(i)]);
    }
    return value;
  }

  std::string_view index_;
};

}  // namespace perfmap::test
