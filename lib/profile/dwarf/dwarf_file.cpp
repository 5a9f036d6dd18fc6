// SPDX-License-Identifier: MIT
#include "dwarf/dwarf_file.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <elf.h>
#include <set>
#include <utility>

namespace perfmap {

namespace {

constexpr std::size_t kMaxUnits = std::size_t{1} << 22;
constexpr std::size_t kMaxTableBytes = std::size_t{8} << 20;
constexpr std::string_view kGnu("GNU\0", 4);

Failure failure(Errc code, const Input& input, std::string_view why) {
  return Failure(Error::told(code, input.name() + ": " + std::string(why)));
}

using Member = std::string_view DwarfSections::*;
/// Names without ".debug_" and, in a split unit's file, ".dwo".
constexpr std::array<std::pair<std::string_view, Member>, 10> kSections = {{
    {"info", &DwarfSections::info},
    {"abbrev", &DwarfSections::abbreviations},
    {"line", &DwarfSections::line},
    {"str", &DwarfSections::strings},
    {"line_str", &DwarfSections::line_strings},
    {"str_offsets", &DwarfSections::string_offsets},
    {"addr", &DwarfSections::addresses},
    {"ranges", &DwarfSections::ranges},
    {"rnglists", &DwarfSections::range_lists},
    {"cu_index", &DwarfSections::unit_index},
}};

/// "info" of .debug_info, .debug_info.dwo and .zdebug_info; else empty.
std::string_view debug_name(std::string_view name) {
  const std::size_t prefix = name.starts_with(".debug_") ? 7 : name.starts_with(".zdebug_") ? 8 : 0;
  if (prefix == 0) return {};
  name.remove_prefix(prefix);
  if (name.ends_with(".dwo")) name.remove_suffix(4);
  return name;
}

bool is_wanted(std::string_view name) {
  const std::string_view debug = debug_name(name);
  return std::ranges::any_of(kSections, [&](const auto& known) { return known.first == debug; }) ||
         name == ".gnu_debugaltlink" || name == ".note.gnu.build-id";
}

/// Whether a section belongs to split units; a file may have ordinary sections as well.
bool is_split(std::string_view name) { return name.ends_with(".dwo") || name == ".debug_cu_index"; }

}  // namespace

Result<std::shared_ptr<const DwarfFile>> DwarfFile::open(
    Input input, DwarfRole role, std::uint64_t max_bytes,
    std::shared_ptr<const DwarfFile> alternate) {
  // Not by libelf, which reads the headers more than once: their owner may change them meanwhile.
  const Result<ElfLayout> layout = read_elf_layout(input.text(), input.name());
  if (!layout) return failure(layout);
  const std::shared_ptr<DwarfFile> made(new DwarfFile(std::move(input)));
  if (auto read = made->read_sections(*layout, role, max_bytes); !read) return failure(read);
  made->read_segments(*layout);
  made->read_units();
  if (alternate != nullptr && alternate->build_id_ != made->alternate_build_id_) {
    return failure(Errc::bad_format, made->input_, "the alternate file has another build ID");
  }
  made->alternate_ = std::move(alternate);
  if (made->units_.empty()) {
    return failure(Errc::unsupported, made->input_,
                   made->damage_.empty() ? "no DWARF" : made->damage_);
  }
  return made;
}

std::shared_ptr<const DwarfFile> DwarfFile::part_of(std::shared_ptr<const DwarfFile> package,
                                                    const DwarfSections& sections) {
  const std::shared_ptr<DwarfFile> made(new DwarfFile(package->input_));
  made->order_ = package->order_;
  made->sections_ = sections;
  made->package_ = std::move(package);
  made->read_units();
  return made->units_.empty() ? nullptr : made;
}

std::uint64_t DwarfFile::bytes() const noexcept {
  if (package_ == nullptr) return input_.text().size();
  return sections_.info.size() + sections_.abbreviations.size() + sections_.string_offsets.size() +
         sections_.range_lists.size();
}

Result<void> DwarfFile::read_sections(const ElfLayout& layout, DwarfRole role,
                                      std::uint64_t max_bytes) {
  order_ = layout.order;
  if (layout.type == ET_REL && role == DwarfRole::linked) {
    return failure(Errc::unsupported, input_, "not linked: its DWARF has no addresses yet");
  }
  // Sections may share bytes in the file, and each could expand to the maximum.
  const std::uint64_t max = std::min(max_bytes, max_inflated(input_.text().size()));
  std::uint64_t room = max;
  for (const ElfSectionFacts& section : layout.sections) {
    if (section.type == SHT_NOBITS) continue;
    const std::string name(section.name);  // a copy, because the file's bytes may change
    if (!is_wanted(name)) continue;
    if (name.starts_with(".debug_") && is_split(name) != (role == DwarfRole::split)) continue;
    std::string_view bytes = layout.bytes_of(input_.text(), section);
    const bool is_gnu = name.starts_with(".zdebug_");
    if (is_gnu || (section.flags & SHF_COMPRESSED) != 0) {
      const auto expanded = expand(name, bytes, is_gnu, layout.is_64, room);
      if (!expanded) return failure(expanded);
      bytes = *expanded;
    }
    take_section(name, bytes);
  }
  return {};
}

Result<std::string_view> DwarfFile::expand(std::string_view name, std::string_view bytes,
                                           bool is_gnu, bool is_64_bit, std::uint64_t& room) {
  const auto compressed = read_compression(bytes, is_gnu, is_64_bit, order_);
  const auto note = [&](std::string_view why) {
    if (damage_.empty()) damage_ = std::string(name) + ": " + std::string(why);
  };
  if (!compressed) {
    note(compressed.error().message());
    return std::string_view();
  }
  if (compressed->size > room) return failure(Errc::too_large, input_, "too much DWARF");
  room -= compressed->size;
  inflated_.push_back(inflate_section(*compressed));
  if (inflated_.back().bytes.size() < compressed->size) note("damaged compressed section");
  return inflated_.back().bytes;
}

void DwarfFile::take_section(std::string_view name, std::string_view bytes) {
  if (name == ".gnu_debugaltlink") {
    alternate_path_ = bytes.substr(0, bytes.find('\0'));
    if (alternate_path_.size() < bytes.size()) {
      alternate_build_id_ = bytes.substr(alternate_path_.size() + 1);
    }
  } else if (name == ".note.gnu.build-id") {
    DwarfCursor note(bytes, order_);
    const std::uint32_t name_size = note.u32();
    const std::uint32_t size = note.u32();
    note.u32();
    if (note.bytes(name_size) == kGnu) build_id_ = note.bytes(size);
  }
  for (const auto& [known, member] : kSections) {
    if (debug_name(name) == known) sections_.*member = bytes;
  }
}

void DwarfFile::read_segments(const ElfLayout& layout) {
  std::vector<SymbolRanges::RangeOwner> claims;
  for (const LoadSegment& segment : layout.segments) {
    const AddressRange range = segment.range;
    if (segment.is_executable && range.size != 0) {
      claims.push_back({{range.begin, range.end()}, 0});
    }
  }
  has_segments_ = !claims.empty();
  executable_ = SymbolRanges(std::move(claims));
}

bool DwarfFile::is_code(Address address) const noexcept {
  if (!has_segments_) return address != 0;
  return executable_.find(address) != SymbolRanges::kNone;
}

void DwarfFile::read_units() {
  DwarfCursor cursor(sections_.info, order_);
  while (!cursor.at_end() && units_.size() < kMaxUnits) {
    const DwarfUnit unit = read_unit_header(cursor);
    if (!cursor.ok()) break;
    if (unit.is_readable()) units_.push_back(unit);
  }
  units_.shrink_to_fit();
}

const DwarfUnit* DwarfFile::unit_at(std::uint64_t offset) const noexcept {
  const auto next = std::ranges::upper_bound(units_, offset, {}, &DwarfUnit::offset);
  if (next == units_.begin()) return nullptr;
  const DwarfUnit& found = *(next - 1);
  return offset < found.end ? &found : nullptr;
}

std::shared_ptr<const AbbreviationTable> DwarfFile::abbreviations(const DwarfUnit& unit) const {
  {
    const std::lock_guard lock(mutex_);
    if (const auto found = tables_.find(unit.offset); found != tables_.end()) return found->second;
  }
  auto made = std::make_shared<const AbbreviationTable>(sections_.abbreviations, order_, unit);
  const std::lock_guard lock(mutex_);
  if (tables_bytes_ > kMaxTableBytes) {
    tables_.clear();
    tables_bytes_ = 0;
  }
  if (tables_.emplace(unit.offset, made).second) tables_bytes_ += made->bytes();
  return made;
}

namespace {

constexpr std::uint64_t kHeader = 16;
constexpr std::uint32_t kMaxColumns = 8;

/// The section of a column; nullptr for sections that are not needed. Columns 1 to 6 are the same
/// in both versions; 8 is .debug_rnglists in version 5, but .debug_macro in version 2.
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

std::shared_ptr<const DwarfPackage> DwarfPackage::open(Input input, std::uint64_t max_bytes) {
  auto file = DwarfFile::open(std::move(input), DwarfRole::split, max_bytes);
  if (!file) return nullptr;
  const std::shared_ptr<DwarfPackage> made(new DwarfPackage(std::move(*file)));
  return made->read_header() ? made : nullptr;
}

/// 0 after the index's end.
std::uint64_t DwarfPackage::word(std::uint64_t offset, unsigned size) const {
  return DwarfCursor(file_->sections().unit_index, file_->order(), offset).sized(size);
}

bool DwarfPackage::read_header() {
  const std::uint64_t size = file_->sections().unit_index.size();
  // Version 5 has two bytes for the version, and two of padding.
  version_ = static_cast<std::uint32_t>(word(0, 4) == 2 ? 2 : word(0, 2));
  columns_ = static_cast<std::uint32_t>(word(4, 4));
  rows_ = static_cast<std::uint32_t>(word(8, 4));
  slots_ = static_cast<std::uint32_t>(word(12, 4));
  const bool is_known = version_ == 2 || version_ == 5;
  if (!is_known || !std::has_single_bit(slots_) || columns_ == 0 || columns_ > kMaxColumns) {
    return false;
  }
  const std::uint64_t table = kHeader + std::uint64_t{12} * slots_;
  if (table + 4 * columns_ * (1 + 2 * std::uint64_t{rows_}) > size) return false;
  std::set<std::uint64_t> sections;  // each may have one column
  for (std::uint32_t column = 0; column < columns_; ++column) {
    sections.insert(word(table + std::uint64_t{4} * column, 4));
  }
  return sections.size() == columns_;
}

/// A hash table with open addressing; rows are numbered from 1, and 0 means none.
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
