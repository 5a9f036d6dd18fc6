#include "modules/function_index.hpp"

#include <algorithm>
#include <dwarf.h>

namespace perfmap {

class FunctionWalk {
 public:
  FunctionWalk(const UnitRoot& root, const AbbreviationTable& table, std::uint64_t most_bytes,
               FunctionIndex& out)
      : context_(root.context),
        unit_(*root.context.unit),
        table_(table),
        out_(out),
        cursor_(context_.file->sections().info.substr(0, unit_.end), context_.file->order(),
                unit_.first_die),
        most_claims_(most_bytes / (3 * sizeof(Partition::Claim))),
        budget_(std::min(range_budget(unit_.end - unit_.offset), most_claims_)) {}

  void run() {
    while (!cursor_.at_end() && claims_.size() < most_claims_ && depth_ < kMostDieDepth && step()) {
      const StopAt stop = is_within_code() ? StopAt::functions : StopAt::outer_code;
      table_.skip_plain(cursor_, stop, levels_.empty() ? 1 : levels_.back().depth, depth_);
    }
    out_.partition_ = Partition(std::move(claims_));
    out_.dies_.shrink_to_fit();
  }

 private:
  /// A DIE with open children, and whether those are within a function that has code.
  struct Level {
    std::uint64_t depth = 0;
    bool has_code = false;
  };

  /// One DIE; false at the end.
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

  /// Whether it has code.
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
  std::uint64_t most_claims_;
  std::uint64_t budget_;
  std::uint64_t depth_ = 0;
  std::vector<Level> levels_;
  std::vector<CodeRange> ranges_;
  std::vector<Partition::Claim> claims_;
};

FunctionIndex::FunctionIndex(const UnitRoot& root, const AbbreviationTable& abbreviations,
                             std::uint64_t most_bytes) {
  FunctionWalk(root, abbreviations, most_bytes, *this).run();
}

}  // namespace perfmap
