#include "modules/scope_index.hpp"

#include <algorithm>
#include <dwarf.h>

namespace perfmap {
namespace {

constexpr std::size_t kMostFrames = 256;

}  // namespace

/// The walk over the DIEs of a unit, or of a part of it.
class ScopeWalk {
 public:
  ScopeWalk(const UnitRoot& root, const AbbreviationTable& table, std::uint64_t die,
            std::uint64_t most_bytes, ScopeIndex& out)
      : context_(root.context),
        unit_(*root.context.unit),
        table_(table),
        most_bytes_(most_bytes),
        out_(out),
        cursor_(context_.file->sections().info.substr(0, unit_.end), context_.file->order(), die),
        budget_(std::min(range_budget(unit_.end - die), most_bytes / sizeof(Partition::Claim))) {}

  void run() {
    const std::uint64_t first = cursor_.position();
    const std::uint64_t budget = budget_;
    while (!cursor_.at_end() && has_room() && step()) {
      table_.skip_plain(cursor_, StopAt::both, outer_.empty() ? 1 : outer_.back().depth, depth_);
    }
    out_.work_ = cursor_.position() - first + (budget - budget_);
    out_.partition_ = Partition(std::move(claims_));
    out_.scopes_.shrink_to_fit();
  }

 private:
  /// An open scope, or a function without code, and the scope that it lies in.
  struct Level {
    std::uint64_t depth = 0;
    std::uint32_t outer = Partition::kNobody;
  };

  bool has_room() const noexcept {
    return out_.scopes_.size() * sizeof(Scope) + claims_.size() * 2 * sizeof(Partition::Claim) <
               most_bytes_ &&
           depth_ < kMostDieDepth;
  }
  /// One DIE; false at the end.
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

  /// The scope that children of this DIE lie in.
  std::uint32_t read_scope(std::uint64_t die, const Abbreviation& abbreviation) {
    const CodePlace place = read_place(cursor_, unit_, table_, abbreviation);
    Scope scope;
    scope.die = die;
    scope.is_inlined = abbreviation.tag == DW_TAG_inlined_subroutine;
    ranges_.clear();
    append_ranges(context_, place, budget_, ranges_);
    // An inlined call without code may have children with some; a function without is a
    // declaration or the abstract one.
    if (ranges_.empty() && !scope.is_inlined) return Partition::kNobody;
    if (scope.is_inlined) scope.parent = nearest_;
    const auto number = static_cast<std::uint32_t>(out_.scopes_.size());
    out_.scopes_.push_back(scope);
    for (const CodeRange& range : ranges_) claims_.push_back({range, number});
    return number;
  }

  const UnitContext& context_;
  const DwarfUnit& unit_;
  const AbbreviationTable& table_;
  std::uint64_t most_bytes_;
  ScopeIndex& out_;
  DwarfCursor cursor_;
  std::uint64_t budget_;
  std::uint32_t nearest_ = Partition::kNobody;
  std::uint64_t depth_ = 0;
  std::vector<Level> outer_;
  std::vector<CodeRange> ranges_;
  std::vector<Partition::Claim> claims_;
};

ScopeIndex::ScopeIndex(const UnitRoot& root, const AbbreviationTable& abbreviations,
                       std::uint64_t die, std::uint64_t most_bytes) {
  ScopeWalk(root, abbreviations, die, most_bytes, *this).run();
}

std::vector<Scope> ScopeIndex::chain(std::uint64_t address) const {
  std::vector<Scope> found;
  std::uint32_t at = partition_.find(address);
  while (at != Partition::kNobody && found.size() < kMostFrames) {
    found.push_back(scopes_[at]);
    at = scopes_[at].parent;
  }
  return found;
}

std::size_t ScopeIndex::bytes() const noexcept {
  return scopes_.capacity() * sizeof(Scope) + partition_.bytes();
}

}  // namespace perfmap
