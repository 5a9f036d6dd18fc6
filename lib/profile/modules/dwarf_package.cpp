#include "modules/dwarf_package.hpp"

#include <bit>
#include <set>
#include <utility>

namespace perfmap {
namespace {

constexpr std::uint64_t kHeader = 16;
constexpr std::uint32_t kMostColumns = 8;

/// Which section a column is of; nullptr for those that nobody asks for here. Both versions agree
/// on 1 to 6; what is 8 in version 5 is .debug_macro in version 2.
std::string_view DwarfSections::*section_of(std::uint64_t number, std::uint32_t version) {
  switch (number) {
    case 1: return &DwarfSections::info;
    case 3: return &DwarfSections::abbreviations;
    case 4: return &DwarfSections::line;
    case 6: return &DwarfSections::string_offsets;
    case 8: return version >= 5 ? &DwarfSections::range_lists : nullptr;
    default: return nullptr;
  }
}

}  // namespace

std::shared_ptr<const DwarfPackage> DwarfPackage::open(Input input, std::uint64_t most_bytes) {
  auto file = DwarfFile::open(std::move(input), DwarfRole::split, most_bytes);
  if (!file) return nullptr;
  const std::shared_ptr<DwarfPackage> made(new DwarfPackage(std::move(*file)));
  return made->read_header() ? made : nullptr;
}

/// 0 behind the index's end.
std::uint64_t DwarfPackage::word(std::uint64_t offset, unsigned size) const {
  return DwarfCursor(file_->sections().unit_index, file_->order(), offset).sized(size);
}

bool DwarfPackage::read_header() {
  const std::uint64_t size = file_->sections().unit_index.size();
  // Version 5 has two bytes for it, and two of padding.
  version_ = static_cast<std::uint32_t>(word(0, 4) == 2 ? 2 : word(0, 2));
  columns_ = static_cast<std::uint32_t>(word(4, 4));
  rows_ = static_cast<std::uint32_t>(word(8, 4));
  slots_ = static_cast<std::uint32_t>(word(12, 4));
  const bool is_known = version_ == 2 || version_ == 5;
  if (!is_known || !std::has_single_bit(slots_) || columns_ == 0 || columns_ > kMostColumns) {
    return false;
  }
  const std::uint64_t table = kHeader + std::uint64_t{12} * slots_;
  if (table + 4 * columns_ * (1 + 2 * std::uint64_t{rows_}) > size) return false;
  std::set<std::uint64_t> sections;  // each has one column
  for (std::uint32_t column = 0; column < columns_; ++column) {
    sections.insert(word(table + std::uint64_t{4} * column, 4));
  }
  return sections.size() == columns_;
}

/// A hash table with open addressing; rows count from 1, and 0 is none.
std::uint32_t DwarfPackage::row_of(std::uint64_t id) const {
  const std::uint64_t mask = slots_ - 1;
  const std::uint64_t step = (id >> 32 & mask) | 1;
  std::uint64_t slot = id & mask;
  for (std::uint32_t i = 0; i < slots_; ++i, slot = (slot + step) & mask) {
    const auto row =
        static_cast<std::uint32_t>(word(kHeader + std::uint64_t{8} * slots_ + 4 * slot, 4));
    if (row == 0) return 0;
    if (word(kHeader + 8 * slot, 8) == id) return row <= rows_ ? row : 0;
  }
  return 0;
}

std::shared_ptr<const DwarfFile> DwarfPackage::find(std::uint64_t id) const {
  const std::uint64_t row = row_of(id);
  if (row == 0) return nullptr;
  const std::uint64_t table = kHeader + std::uint64_t{12} * slots_;
  const std::uint64_t width = std::uint64_t{4} * columns_;
  DwarfSections sections = file_->sections();
  for (std::uint32_t column = 0; column < columns_; ++column) {
    const std::uint64_t at = table + 4 * column;
    const auto section = section_of(word(at, 4), version_);
    if (section == nullptr) continue;
    const std::uint64_t offset = word(at + row * width, 4);
    const std::uint64_t size = word(at + (row + rows_) * width, 4);
    const std::string_view whole = file_->sections().*section;
    if (offset > whole.size() || size > whole.size() - offset) return nullptr;
    sections.*section = whole.substr(offset, size);
  }
  return DwarfFile::part_of(file_, sections);
}

}  // namespace perfmap
