#include "modules/dwarf_abbreviations.hpp"

#include <algorithm>
#include <dwarf.h>

#include "modules/dwarf_values.hpp"

namespace perfmap {
namespace {

constexpr std::size_t kMostAttributes = 256;  // of one abbreviation
constexpr std::size_t kMostOfAll = std::size_t{1} << 18;
constexpr std::size_t kMostAbbreviations = std::size_t{1} << 16;

}  // namespace

AbbreviationTable::AbbreviationTable(std::string_view section, std::endian order,
                                     const DwarfUnit& unit, std::uint64_t last) {
  DwarfCursor cursor(section, order, unit.abbreviations);
  const std::uint64_t first = cursor.position();
  while (read(cursor, unit) && (last == 0 || abbreviations_.back().code != last)) {
  }
  bytes_read_ = cursor.position() - first;
  // Codes are 1, 2, 3 from every compiler; find() looks there first.
  std::ranges::stable_sort(abbreviations_, {}, &Abbreviation::code);
}

bool AbbreviationTable::read(DwarfCursor& cursor, const DwarfUnit& unit) {
  Abbreviation made;
  made.code = cursor.uleb();
  if (made.code == 0) return false;
  made.tag = static_cast<std::uint16_t>(std::min<std::uint64_t>(cursor.uleb(), 0xffff));
  made.has_children = cursor.u8() != 0;
  made.first_attribute = static_cast<std::uint32_t>(attributes_.size());
  made.first_step = static_cast<std::uint32_t>(steps_.size());
  while (cursor.ok()) {
    const std::uint64_t name = cursor.uleb();
    const std::uint64_t form = cursor.uleb();
    const std::int64_t implicit = form == DW_FORM_implicit_const ? cursor.sleb() : 0;
    if (name == 0 && form == 0) break;
    const bool too_many = attributes_.size() - made.first_attribute >= kMostAttributes ||
                          attributes_.size() >= kMostOfAll;
    if (form > 0xffff || name > 0xffff || too_many) cursor.fail();
    attributes_.push_back(
        {static_cast<std::uint16_t>(name), static_cast<std::uint16_t>(form), implicit});
    add_step(unit, attributes_.back().form, made);
  }
  made.attribute_count = static_cast<std::uint32_t>(attributes_.size()) - made.first_attribute;
  if (cursor.ok()) abbreviations_.push_back(made);
  return cursor.ok() && abbreviations_.size() < kMostAbbreviations;
}

void AbbreviationTable::add_step(const DwarfUnit& unit, std::uint16_t form, Abbreviation& of) {
  const bool open = of.step_count != 0 && steps_.back().form == 0;
  if (!open) {
    steps_.push_back({});
    ++of.step_count;
  }
  if (const auto size = fixed_size(unit, form)) {
    steps_.back().fixed += *size;
  } else {
    steps_.back().form = form;
  }
}

const Abbreviation* AbbreviationTable::find(std::uint64_t code) const noexcept {
  if (code - 1 < abbreviations_.size() && abbreviations_[code - 1].code == code) {
    return &abbreviations_[code - 1];
  }
  const auto found = std::ranges::lower_bound(abbreviations_, code, {}, &Abbreviation::code);
  return found != abbreviations_.end() && found->code == code ? &*found : nullptr;
}

void AbbreviationTable::skip(DwarfCursor& cursor, const DwarfUnit& unit,
                             const Abbreviation& of) const noexcept {
  for (const Step& step : std::span(steps_).subspan(of.first_step, of.step_count)) {
    cursor.skip(step.fixed);
    if (step.form != 0) read_value(cursor, unit, {0, step.form, 0});
  }
}

std::size_t AbbreviationTable::bytes() const noexcept {
  return abbreviations_.size() * sizeof(Abbreviation) + attributes_.size() * sizeof(AttributeForm) +
         steps_.size() * sizeof(Step);
}

}  // namespace perfmap
