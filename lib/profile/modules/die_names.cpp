#include <dwarf.h>

#include "modules/scope_index.hpp"

namespace perfmap {
namespace {

constexpr int kMostSteps = 8;

/// Names as far as one DIE has them, and where to go on.
struct Step {
  DwarfValue name, linkage_name, origin;
};

Step read_step(const UnitContext& context, std::uint64_t die) {
  const DwarfUnit& unit = *context.unit;
  const auto table = context.file->abbreviations(unit);
  DwarfCursor cursor(context.file->sections().info.substr(0, unit.end), context.file->order(), die);
  const Abbreviation* const found = table->find(cursor.uleb());
  Step step;
  if (found == nullptr) return step;
  for_each_attribute(cursor, unit, *table, *found,
                     [&](std::uint16_t name, const DwarfValue& value) {
                       if (name == DW_AT_name) step.name = value;
                       if (name == DW_AT_linkage_name || name == DW_AT_MIPS_linkage_name) {
                         step.linkage_name = value;
                       }
                       if (name == DW_AT_abstract_origin || name == DW_AT_specification) {
                         step.origin = value;
                       }
                     });
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
    if (names.name.empty()) names.name = text_of(at, step.name);
    if (names.linkage_name.empty()) names.linkage_name = text_of(at, step.linkage_name);
    if (!names.name.empty() && !names.linkage_name.empty()) break;
    if (!enter(at, step.origin)) break;
    die = step.origin.number;
  }
  return names;
}

}  // namespace perfmap
