#include "perfmap/debug_index.hpp"

#include <algorithm>
#include <dwarf.h>
#include <utility>

#include "modules/debug_index_impl.hpp"

namespace perfmap {
namespace {

bool has_code(const DwarfUnit& unit) {
  return unit.type == DW_UT_compile || unit.type == DW_UT_skeleton;
}

/// Reads a unit's frames from its indexes.
class Frames {
 public:
  Frames(UnitCache& cache, std::uint32_t unit)
      : cache_(cache), unit_(unit), lines_(cache.lines(unit)), functions_(cache.functions(unit)) {}

  std::vector<SourceFrame> at(Address vaddr) {
    const LineRow* const row = lines_ == nullptr ? nullptr : lines_->rows.find(vaddr);
    const std::vector<Scope> chain = chain_at(vaddr);
    std::vector<SourceFrame> frames(chain.empty() && row != nullptr ? 1 : chain.size());
    if (row != nullptr && !frames.empty()) place(frames[0], row->file, row->line, row->column);
    for (std::size_t i = 0; i < chain.size(); ++i) {
      const DieNames names = names_of(functions_->root.context, chain[i].die);
      frames[i].function = names.name;
      frames[i].linkage_name = names.linkage_name;
      frames[i].inlined = chain[i].is_inlined;
      if (!chain[i].is_inlined || i + 1 == chain.size()) continue;
      place(frames[i + 1], names.call_file, names.call_line, names.call_column);
    }
    return frames;
  }

 private:
  void place(SourceFrame& frame, std::uint32_t file, std::uint32_t line,
             std::uint32_t column) const {
    if (lines_ != nullptr) frame.file = lines_->rows.names().path(lines_->root.context, file);
    frame.line = line;
    frame.column = column;
  }
  /// Neighbours often belong to the same function.
  std::vector<Scope> chain_at(Address vaddr) {
    if (functions_ == nullptr) return {};
    const std::uint32_t function = functions_->functions.find(vaddr);
    if (scopes_ == nullptr || function != function_) {
      scopes_ = cache_.scopes(unit_, *functions_, function);
      function_ = function;
    }
    return scopes_->chain(vaddr);
  }

  UnitCache& cache_;
  std::uint32_t unit_;
  std::shared_ptr<const UnitLines> lines_;
  std::shared_ptr<const UnitFunctions> functions_;
  std::uint32_t function_ = FunctionIndex::kNobody;
  std::shared_ptr<const ScopeIndex> scopes_;  // of that function
};

}  // namespace

DebugIndex::Impl::Impl(std::shared_ptr<const DwarfFile> file, DebugOptions options)
    : file_(std::move(file)), cache_(file_, std::move(options)) {
  place_units();
}

void DebugIndex::Impl::place_units() {
  std::uint64_t abbreviations =
      (std::uint64_t{16} << 20) + 8 * file_->sections().abbreviations.size();
  std::uint64_t entries = (std::uint64_t{1} << 20) + file_->sections().info.size() / 64;
  std::vector<CodeRange> ranges;
  std::vector<Partition::Claim> claims;
  const std::vector<DwarfUnit>& units = file_->units();
  for (std::size_t i = 0; i < units.size(); ++i) {
    if (!has_code(units[i])) continue;
    const auto root = peek_root(*file_, units[i], abbreviations);
    if (!root || root->tag == DW_TAG_partial_unit) continue;
    ranges.clear();
    append_ranges(root->context, root->place, entries, ranges);
    units_with_code_ += ranges.empty() ? 0 : 1;
    for (const CodeRange& range : ranges) {
      claims.push_back({range, static_cast<std::uint32_t>(units.size() - 1 - i)});
    }
  }
  units_ = Partition(std::move(claims));
}

std::uint32_t DebugIndex::Impl::unit_of(Address vaddr) const noexcept {
  const std::uint32_t found = units_.find(vaddr);
  if (found == Partition::kNobody) return found;
  return static_cast<std::uint32_t>(file_->units().size() - 1 - found);
}

void DebugIndex::Impl::find(std::uint32_t unit, std::span<const std::size_t> which,
                            std::span<const Address> vaddrs,
                            std::span<std::vector<SourceFrame>> found) const {
  Frames frames(cache_, unit);
  for (const std::size_t i : which) found[i] = frames.at(vaddrs[i]);
}

std::optional<SourceLine> DebugIndex::Impl::find_line(Address vaddr) const {
  const std::uint32_t unit = unit_of(vaddr);
  if (unit == Partition::kNobody) return std::nullopt;
  const auto lines = cache_.lines(unit);
  const LineRow* const row = lines == nullptr ? nullptr : lines->rows.find(vaddr);
  if (row == nullptr) return std::nullopt;
  return SourceLine{lines->rows.names().path(lines->root.context, row->file), row->line,
                    row->column};
}

DebugIndexStats DebugIndex::Impl::stats() const {
  DebugIndexStats stats;
  stats.units = units_with_code_;
  cache_.count_into(stats);
  stats.damage = file_->damage();
  return stats;
}

Result<DebugIndex> DebugIndex::open(const std::string& path, DebugOptions options) {
  auto input = Input::open(path, {.regular_only = true});
  if (!input) return Failure(std::move(input.error()));
  return from_input(std::move(*input), std::move(options));
}

Result<DebugIndex> DebugIndex::from_input(Input input, DebugOptions options) {
  std::shared_ptr<const DwarfFile> alternate;
  if (options.alternate) {
    auto opened = DwarfFile::open(std::move(*options.alternate), DwarfRole::alternate,
                                  options.most_section_bytes);
    if (!opened) return Failure(std::move(opened.error()));
    alternate = std::move(*opened);
    options.alternate.reset();
  }
  auto file =
      DwarfFile::open(std::move(input), DwarfRole::linked, options.most_section_bytes, alternate);
  if (!file) return Failure(std::move(file.error()));
  return DebugIndex(std::make_shared<const Impl>(std::move(*file), std::move(options)));
}

std::vector<SourceFrame> DebugIndex::find(Address vaddr) const {
  const std::uint32_t unit = impl_->unit_of(vaddr);
  if (unit == Partition::kNobody) return {};
  std::vector<SourceFrame> found;
  constexpr std::size_t kOnly[] = {0};
  impl_->find(unit, kOnly, {&vaddr, 1}, {&found, 1});
  return found;
}

std::optional<SourceLine> DebugIndex::find_line(Address vaddr) const {
  return impl_->find_line(vaddr);
}

std::optional<AlternateLink> DebugIndex::alternate_link() const {
  const DwarfFile& file = impl_->file();
  if (file.alternate_path().empty()) return std::nullopt;
  return AlternateLink{std::string(file.alternate_path()), std::string(file.alternate_build_id())};
}

DebugIndexStats DebugIndex::stats() const { return impl_->stats(); }

}  // namespace perfmap
