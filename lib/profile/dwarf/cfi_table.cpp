// SPDX-License-Identifier: MIT
#include "dwarf/cfi_table.hpp"

#include <algorithm>
#include <cstring>
#include <dwarf.h>
#include <elf.h>
#include <utility>

#include "dwarf/cfi_program.hpp"

namespace perfmap {

namespace {

struct Found {
  Address begin = 0;
  std::uint32_t offset = 0;
};

/// Caches the last CIE: FDEs mostly follow their CIE.
class LastCie {
 public:
  explicit LastCie(const CfiSection& section) : section_(section) {}
  const std::optional<CfiCie>& at(std::uint64_t offset) noexcept {
    if (offset != offset_) cie_ = read_cie(section_, offset);
    offset_ = offset;
    return cie_;
  }

 private:
  const CfiSection& section_;
  std::uint64_t offset_ = UINT64_MAX;
  std::optional<CfiCie> cie_;
};

std::vector<Found> fdes_of(const CfiSection& section, const CodeAreas* areas) {
  std::vector<Found> found;
  LastCie cies(section);
  std::uint64_t offset = 0;
  while (offset <= UINT32_MAX) {
    const std::optional<CfiEntry> entry = read_cfi_entry(section, offset);
    if (!entry) break;
    const std::uint64_t begin = std::exchange(offset, entry->end);
    if (entry->is_cie) continue;
    const std::optional<CfiCie>& cie = cies.at(entry->cie);
    const std::optional<CfiFde> fde = cie ? read_fde(section, *entry, *cie) : std::nullopt;
    if (!fde || fde->range.size == 0) continue;
    if (areas != nullptr && areas->room_at(fde->range.begin) == 0) continue;
    found.push_back({fde->range.begin, static_cast<std::uint32_t>(begin)});
  }
  return found;
}

Target target_of(const Module& module) noexcept {
  return {module.byte_order(), module.is_64(), module.machine(), 0};
}

CodeAreas code_of(const Module& module) {
  std::vector<AddressRange> ranges;
  for (const LoadSegment& segment : module.segments()) {
    if (segment.is_executable) ranges.push_back(segment.range);
  }
  return CodeAreas(std::move(ranges));
}

/// The row of an FDE for an address, cut where the code of another FDE begins. `began` is where its
/// own code begins.
std::optional<CfiRow> row_of_fde(const CfiSection& section, const CfiIndex::Place& place,
                                 Address vaddr, std::optional<Address>& began) noexcept {
  const std::optional<CfiEntry> entry = read_cfi_entry(section, place.offset);
  if (!entry || entry->is_cie) return std::nullopt;
  const std::optional<CfiCie> cie = read_cie(section, entry->cie);
  std::optional<CfiFde> fde = cie ? read_fde(section, *entry, *cie) : std::nullopt;
  if (!fde) return std::nullopt;
  began = fde->range.begin;
  if (!fde->range.contains(vaddr)) return std::nullopt;
  fde->range.size = std::min(fde->range.size, place.next - fde->range.begin);
  return run_cfi(section, *cie, *fde, vaddr);
}

}  // namespace

CfiIndex::CfiIndex(const CfiSection& section, const CodeAreas* areas) {
  std::vector<Found> found = fdes_of(section, areas);
  const auto is_before = [](const Found& a, const Found& b) {
    return a.begin != b.begin ? a.begin < b.begin : a.offset < b.offset;
  };
  std::sort(found.begin(), found.end(), is_before);
  begins_.reserve(found.size());
  offsets_.reserve(found.size());
  for (const Found& each : found) {
    begins_.push_back(each.begin);
    offsets_.push_back(each.offset);
  }
}

std::optional<CfiIndex::Place> CfiIndex::find(Address vaddr) const noexcept {
  const auto after = std::upper_bound(begins_.begin(), begins_.end(), vaddr);
  if (after == begins_.begin()) return std::nullopt;
  return Place{offsets_[static_cast<std::size_t>(after - begins_.begin() - 1)],
               after == begins_.end() ? UINT64_MAX : *after};
}

std::optional<EhFrameHeader> EhFrameHeader::read(std::string_view bytes, Address address,
                                                 const Target& target) noexcept {
  DwarfCursor in(bytes, target.order);
  const CfiPointers pointers{address, address, target.address_size()};
  const std::uint8_t version = in.u8();
  const std::uint8_t frames_encoding = in.u8();
  const std::uint8_t count_encoding = in.u8();
  const std::uint8_t table_encoding = in.u8();
  const std::optional<Address> frames = read_cfi_pointer(in, frames_encoding, pointers);
  const std::optional<Address> count = read_cfi_pointer(in, count_encoding, pointers);
  if (version != 1 || !frames || !count) return std::nullopt;
  if (table_encoding != (DW_EH_PE_datarel | DW_EH_PE_sdata4)) return std::nullopt;
  if (*count == 0 || *count > in.left() / 8) return std::nullopt;
  EhFrameHeader made;
  made.table_ = in.bytes(*count * 8);
  made.address_ = address;
  made.last_ = target.last_address();
  made.swapped_ = target.order != std::endian::native;
  made.count_ = *count;
  made.frames_ = *frames;
  return made.is_sorted() ? std::optional(made) : std::nullopt;
}

Address EhFrameHeader::at(std::uint64_t offset) const noexcept {
  std::uint32_t distance = 0;
  std::memcpy(&distance, table_.data() + offset, sizeof distance);
  if (swapped_) distance = __builtin_bswap32(distance);
  const auto extended = static_cast<std::int64_t>(static_cast<std::int32_t>(distance));
  return (address_ + static_cast<Address>(extended)) & last_;
}

bool EhFrameHeader::is_sorted() const noexcept {
  for (std::uint64_t i = 1; i < count_; ++i) {
    if (code(i) < code(i - 1)) return false;
  }
  return true;
}

std::optional<EhFrameHeader::Entry> EhFrameHeader::find(Address vaddr) const noexcept {
  std::uint64_t first = 0;
  for (std::uint64_t left = count_; left > 0;) {
    const std::uint64_t half = left / 2;
    if (code(first + half) <= vaddr) {
      first += half + 1;
      left -= half + 1;
    } else {
      left = half;
    }
  }
  if (first == 0) return std::nullopt;
  const std::uint64_t found = first - 1;
  return Entry{code(found), at(found * 8 + 4), first < count_ ? code(first) : UINT64_MAX};
}

std::optional<CfiRow> CfiTable::Part::row_at(Address vaddr) const noexcept {
  const std::optional<CfiIndex::Place> place = index.find(vaddr);
  std::optional<Address> began;
  return place ? row_of_fde(section, *place, vaddr, began) : std::nullopt;
}

CfiTable::CfiTable(const Module& module, std::function<const Module*()> packed)
    : module_(&module), packed_(std::move(packed)), code_(code_of(module)) {
  frames_.target = target_of(module);
  if (module.type() == ET_REL) {
    module_ = nullptr;
    return;
  }
  if (const ElfSectionFacts* const section = module.find_section(".eh_frame_hdr")) {
    header_ = EhFrameHeader::read(module.bytes_of(*section), section->address, frames_.target);
  }
  if (const ElfSectionFacts* const section = module.find_section(".eh_frame")) {
    frames_.bytes = module.bytes_of(*section);
    frames_.address = section->address;
  } else if (header_) {
    frames_.bytes = module.bytes_at(header_->frames());
    frames_.address = header_->frames();
  }
}

CfiTable::CfiTable(std::string_view eh_frame, Address address, const Target& target)
    : frames_{eh_frame, address, target, false} {
  walked();
}

const CfiTable::Part& CfiTable::walked() const {
  return walked_.get([this] {
    return Part{frames_, CfiIndex(frames_, module_ != nullptr ? &code_ : nullptr)};
  });
}

std::optional<CfiRow> CfiTable::row_by_header(Address vaddr) const {
  const std::optional<EhFrameHeader::Entry> entry = header_->find(vaddr);
  if (!entry) return std::nullopt;
  std::optional<Address> began;
  std::optional<CfiRow> row =
      row_of_fde(frames_, {entry->fde - frames_.address, entry->next}, vaddr, began);
  // A gap after a function is a real gap. But if the header is wrong about where functions begin,
  // its gaps cannot be trusted either.
  return row || began == entry->code ? row : walked().row_at(vaddr);
}

std::optional<CfiRow> CfiTable::row_at(Address vaddr) const {
  std::optional<CfiRow> row = header_ ? row_by_header(vaddr) : walked().row_at(vaddr);
  if (row || module_ == nullptr) return row;
  for (const Part& part : debug_frames_.get([this] { return debug_frames(); })) {
    row = part.row_at(vaddr);
    if (row) break;
  }
  return row;
}

CfiTable::Parts CfiTable::debug_frames() const {
  Parts parts;
  for (const Module* const from : {module_, module_->debug_file(), packed_()}) {
    if (from == nullptr || from->type() == ET_REL) continue;
    for (const char* const name : {".debug_frame", ".zdebug_frame"}) {
      const ElfSectionFacts* const found = from->find_section(name);
      if (found == nullptr) continue;
      Part part{{from->bytes_of(*found), 0, target_of(*from), true}, {}};
      const bool is_gnu = std::string_view(name).starts_with(".z");
      if (is_gnu || (found->flags & SHF_COMPRESSED) != 0) {
        const auto compressed =
            read_compression(part.section.bytes, is_gnu, from->is_64(), from->byte_order());
        if (!compressed || compressed->size > max_inflated(from->bytes().size())) continue;
        InflatedSection inflated = inflate_section(*compressed);
        part.section.bytes = inflated.bytes;
        part.owned = std::move(inflated.owned);
      }
      part.index = CfiIndex(part.section, &code_);
      if (part.index.size() != 0) parts.push_back(std::move(part));
    }
  }
  return parts;
}

std::uint64_t CfiTable::bytes_held() const noexcept {
  std::uint64_t held = sizeof *this;
  if (const Part* const part = walked_.made()) held += part->index.bytes();
  if (const Parts* const parts = debug_frames_.made()) {
    for (const Part& part : *parts) {
      held += part.index.bytes() + (part.owned != nullptr ? part.section.bytes.size() : 0);
    }
  }
  return held;
}

}  // namespace perfmap
