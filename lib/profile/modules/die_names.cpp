#include <algorithm>
#include <dwarf.h>

#include "modules/scope_index.hpp"

namespace perfmap {
namespace {

constexpr int kMostSteps = 8;

/// Names as far as one DIE has them, and where to go on.
struct Step {
  DwarfValue name, linkage_name, origin;
  std::uint64_t call_file = 0;
  std::uint64_t call_line = 0;
  std::uint64_t call_column = 0;

  void take(std::uint16_t attribute, const DwarfValue& value) noexcept {
    switch (attribute) {
      case DW_AT_name: name = value; break;
      case DW_AT_linkage_name:
      case DW_AT_MIPS_linkage_name: linkage_name = value; break;
      case DW_AT_abstract_origin:
      case DW_AT_specification: origin = value; break;
      case DW_AT_call_file: call_file = value.number; break;
      case DW_AT_call_line: call_line = value.number; break;
      case DW_AT_call_column: call_column = value.number; break;
      default: break;
    }
  }
};

std::uint32_t narrow(std::uint64_t number) noexcept {
  return static_cast<std::uint32_t>(std::min<std::uint64_t>(number, UINT32_MAX));
}

Step read_step(const UnitContext& context, std::uint64_t die) {
  const DwarfUnit& unit = *context.unit;
  const auto table = context.file->abbreviations(unit);
  DwarfCursor cursor(context.file->sections().info.substr(0, unit.end), context.file->order(), die);
  const Abbreviation* const found = table->find(cursor.uleb());
  Step step;
  if (found == nullptr) return step;
  for_each_attribute(cursor, unit, *table, *found,
                     [&](std::uint16_t name, const DwarfValue& value) { step.take(name, value); });
  return step;
}

/// Makes `context` that of the unit which a reference leads to.
bool enter(UnitContext& context, const DwarfValue& reference) {
  const bool elsewhere = reference.kind == ValueKind::alternate_reference;
  const DwarfFile* const file = elsewhere ? context.file->alternate() : context.file;
  if (file == nullptr || (!elsewhere && reference.kind != ValueKind::reference)) return false;
  const DwarfUnit* const unit = file->unit_at(reference.number);
  if (unit == nullptr || reference.number < unit->first_die) return false;
  if (unit != context.unit)
    context = read_unit_root(*file, *unit, *file->abbreviations(*unit)).context;
  return true;
}

}  // namespace

DieNames names_of(const UnitContext& context, std::uint64_t die) {
  UnitContext at = context;
  DieNames names;
  for (int i = 0; i < kMostSteps; ++i) {
    const Step step = read_step(at, die);
    if (i == 0) {
      names.call_file = narrow(step.call_file);
      names.call_line = narrow(step.call_line);
      names.call_column = narrow(step.call_column);
    }
    if (names.name.empty()) names.name = text_of(at, step.name);
    if (names.linkage_name.empty()) names.linkage_name = text_of(at, step.linkage_name);
    if (!names.name.empty() && !names.linkage_name.empty()) break;
    if (!enter(at, step.origin)) break;
    die = step.origin.number;
  }
  return names;
}

}  // namespace perfmap
