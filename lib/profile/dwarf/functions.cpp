// SPDX-License-Identifier: MIT
#include <algorithm>
#include <dwarf.h>

#include "dwarf/units.hpp"

namespace perfmap {

namespace {

constexpr std::size_t kMaxFrames = 256;

}  // namespace

/// Iterates over the DIEs of a unit or a part of it.
class ScopeWalk {
 public:
  ScopeWalk(const UnitRoot& root, const AbbreviationTable& table, std::uint64_t die,
            std::uint64_t max_bytes, ScopeIndex& out)
      : context_(root.context),
        unit_(*root.context.unit),
        table_(table),
        max_bytes_(max_bytes),
        out_(out),
        cursor_(context_.file->sections().info.substr(0, unit_.end), context_.file->order(), die),
        budget_(std::min(range_budget(unit_.end - die),
                         max_bytes / sizeof(SymbolRanges::RangeOwner))) {}

  void run() {
    const std::uint64_t first = cursor_.position();
    const std::uint64_t budget = budget_;
    while (!cursor_.at_end() && has_room() && step()) {
      table_.skip_plain(cursor_, StopAt::both, outer_.empty() ? 1 : outer_.back().depth, depth_);
    }
    out_.work_ = cursor_.position() - first + (budget - budget_);
    out_.partition_ = SymbolRanges(std::move(claims_));
    out_.scopes_.shrink_to_fit();
  }

 private:
  /// An open scope, or a function without code, and the enclosing scope.
  struct Level {
    std::uint64_t depth = 0;
    std::uint32_t outer = SymbolRanges::kNone;
  };

  bool has_room() const noexcept {
    return out_.scopes_.size() * sizeof(Scope) +
                   claims_.size() * 2 * sizeof(SymbolRanges::RangeOwner) <
               max_bytes_ &&
           depth_ < kMaxDieDepth;
  }
  /// Handles one DIE; false at the end.
  bool step() {
    const std::uint64_t die = cursor_.position();
    const std::uint64_t code = cursor_.uleb();
    if (code == 0) {
      if (depth_ == 0) return false;
      if (!outer_.empty() && outer_.back().depth == depth_) {
        nearest_ = outer_.back().outer;
        outer_.pop_back();
      }
      return --depth_ != 0;
    }
    const Abbreviation* const found = table_.find(code);
    if (found == nullptr) return false;
    if (found->has_children) ++depth_;
    if (found->tag != DW_TAG_subprogram && found->tag != DW_TAG_inlined_subroutine) {
      table_.skip(cursor_, unit_, *found);
      return cursor_.ok() && depth_ != 0;
    }
    const std::uint32_t inside = read_scope(die, *found);
    if (found->has_children) {
      outer_.push_back({depth_, nearest_});
      nearest_ = inside;
    }
    return cursor_.ok() && depth_ != 0;
  }

  /// Returns the scope for the children of this DIE.
  std::uint32_t read_scope(std::uint64_t die, const Abbreviation& abbreviation) {
    const CodePlace place = read_place(cursor_, unit_, table_, abbreviation);
    Scope scope;
    scope.die = die;
    scope.is_inlined = abbreviation.tag == DW_TAG_inlined_subroutine;
    ranges_.clear();
    append_ranges(context_, place, budget_, ranges_);
    // An inlined call without code may have children with code. A function without code is a
    // declaration or an abstract instance.
    if (ranges_.empty() && !scope.is_inlined) return SymbolRanges::kNone;
    if (scope.is_inlined) scope.parent = nearest_;
    const auto number = static_cast<std::uint32_t>(out_.scopes_.size());
    out_.scopes_.push_back(scope);
    for (const CodeRange& range : ranges_) claims_.push_back({range, number});
    return number;
  }

  const UnitContext& context_;
  const DwarfUnit& unit_;
  const AbbreviationTable& table_;
  std::uint64_t max_bytes_;
  ScopeIndex& out_;
  DwarfCursor cursor_;
  std::uint64_t budget_;
  std::uint32_t nearest_ = SymbolRanges::kNone;
  std::uint64_t depth_ = 0;
  std::vector<Level> outer_;
  std::vector<CodeRange> ranges_;
  std::vector<SymbolRanges::RangeOwner> claims_;
};

ScopeIndex::ScopeIndex(const UnitRoot& root, const AbbreviationTable& abbreviations,
                       std::uint64_t die, std::uint64_t max_bytes) {
  ScopeWalk(root, abbreviations, die, max_bytes, *this).run();
}

std::vector<Scope> ScopeIndex::chain(std::uint64_t address) const {
  std::vector<Scope> found;
  std::uint32_t at = partition_.find(address);
  while (at != SymbolRanges::kNone && found.size() < kMaxFrames) {
    found.push_back(scopes_[at]);
    at = scopes_[at].parent;
  }
  return found;
}

std::size_t ScopeIndex::bytes() const noexcept {
  return scopes_.capacity() * sizeof(Scope) + partition_.bytes();
}

namespace {

constexpr int kMaxSteps = 8;

/// The names found in one DIE, and the next DIE to look at.
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

/// Changes `context` to the unit that a reference leads to.
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
  for (int i = 0; i < kMaxSteps; ++i) {
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

class FunctionWalk {
 public:
  FunctionWalk(const UnitRoot& root, const AbbreviationTable& table, std::uint64_t max_bytes,
               FunctionIndex& out)
      : context_(root.context),
        unit_(*root.context.unit),
        table_(table),
        out_(out),
        cursor_(context_.file->sections().info.substr(0, unit_.end), context_.file->order(),
                unit_.first_die),
        max_claims_(max_bytes / (3 * sizeof(SymbolRanges::RangeOwner))),
        budget_(std::min(range_budget(unit_.end - unit_.offset), max_claims_)) {}

  void run() {
    while (!cursor_.at_end() && claims_.size() < max_claims_ && depth_ < kMaxDieDepth && step()) {
      const StopAt stop = is_within_code() ? StopAt::functions : StopAt::outer_code;
      table_.skip_plain(cursor_, stop, levels_.empty() ? 1 : levels_.back().depth, depth_);
    }
    out_.partition_ = SymbolRanges(std::move(claims_));
    out_.dies_.shrink_to_fit();
  }

 private:
  /// A DIE with open children, and whether they are inside a function with code.
  struct Level {
    std::uint64_t depth = 0;
    bool has_code = false;
  };

  /// Handles one DIE; false at the end.
  bool step() {
    const std::uint64_t die = cursor_.position();
    const std::uint64_t code = cursor_.uleb();
    if (code == 0) {
      if (depth_ == 0) return false;
      if (!levels_.empty() && levels_.back().depth == depth_) levels_.pop_back();
      return --depth_ != 0;
    }
    const Abbreviation* const found = table_.find(code);
    if (found == nullptr) return false;
    if (found->has_children) ++depth_;
    const bool is_function = found->tag == DW_TAG_subprogram;
    const bool is_outer =
        is_function || (found->tag == DW_TAG_inlined_subroutine && !is_within_code());
    const bool is_read = is_outer && found->may_have_code;
    const bool has_code = is_read && read_function(die, *found);
    if (!is_read) table_.skip(cursor_, unit_, *found);
    if (is_outer && found->has_children) levels_.push_back({depth_, has_code || !is_function});
    return cursor_.ok() && depth_ != 0;
  }
  bool is_within_code() const noexcept { return !levels_.empty() && levels_.back().has_code; }

  /// Returns whether it has code.
  bool read_function(std::uint64_t die, const Abbreviation& abbreviation) {
    const CodePlace place = read_place(cursor_, unit_, table_, abbreviation);
    ranges_.clear();
    append_ranges(context_, place, budget_, ranges_);
    if (ranges_.empty()) return false;
    const auto number = static_cast<std::uint32_t>(out_.dies_.size());
    out_.dies_.push_back(die);
    for (const CodeRange& range : ranges_) claims_.push_back({range, number});
    return true;
  }

  const UnitContext& context_;
  const DwarfUnit& unit_;
  const AbbreviationTable& table_;
  FunctionIndex& out_;
  DwarfCursor cursor_;
  std::uint64_t max_claims_;
  std::uint64_t budget_;
  std::uint64_t depth_ = 0;
  std::vector<Level> levels_;
  std::vector<CodeRange> ranges_;
  std::vector<SymbolRanges::RangeOwner> claims_;
};

FunctionIndex::FunctionIndex(const UnitRoot& root, const AbbreviationTable& abbreviations,
                             std::uint64_t max_bytes) {
  FunctionWalk(root, abbreviations, max_bytes, *this).run();
}

}  // namespace perfmap
