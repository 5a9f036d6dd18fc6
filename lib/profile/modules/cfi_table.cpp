#include "modules/cfi_table.hpp"

#include <algorithm>
#include <elf.h>

#include "modules/cfi_program.hpp"
#include "modules/module_state.hpp"

namespace perfmap {
namespace {

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

/// What an FDE says about an address, as far as it is the one that answers: up to where another one
/// begins. `began` is where its code does.
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

std::optional<CfiRow> CfiTable::Part::row_at(Address vaddr) const noexcept {
  const std::optional<CfiIndex::Place> place = index.find(vaddr);
  std::optional<Address> began;
  return place ? row_of_fde(section, *place, vaddr, began) : std::nullopt;
}

CfiTable::CfiTable(const Module& module) : module_(&module), code_(code_of(module)) {
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
  // A gap behind a function is one. A header that is wrong about where functions begin is not to be
  // trusted with gaps.
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
  for (const Module* const from :
       {module_, module_->debug_file(), module_->state_->packed_module(*module_)}) {
    if (from == nullptr || from->type() == ET_REL) continue;
    for (const char* const name : {".debug_frame", ".zdebug_frame"}) {
      const ElfSectionFacts* const found = from->find_section(name);
      if (found == nullptr) continue;
      Part part{{from->bytes_of(*found), 0, target_of(*from), true}, {}};
      const bool is_gnu = std::string_view(name).starts_with(".z");
      if (is_gnu || (found->flags & SHF_COMPRESSED) != 0) {
        const auto compressed =
            read_compression(part.section.bytes, is_gnu, from->is_64(), from->byte_order());
        if (!compressed || compressed->size > most_inflated(from->bytes().size())) continue;
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

const CfiTable& cfi_of(const Module& module) {
  return *module.state_->cfi.get([&] { return std::make_unique<const CfiTable>(module); });
}

}  // namespace perfmap
