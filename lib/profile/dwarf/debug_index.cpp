// SPDX-License-Identifier: MIT
#include "perfmap/profile/debug_index.hpp"

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <dwarf.h>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "base/lazy.hpp"
#include "base/parallel.hpp"
#include "dwarf/dwarf_file.hpp"
#include "dwarf/units.hpp"
#include "elf/symbol_ranges.hpp"
#include "perfmap/jit_format.hpp"

namespace perfmap {

namespace {

/// A unit's lines.
struct UnitLines {
  UnitRoot root;
  LineRows rows;
};

/// A unit's functions. If the unit is a skeleton, `split` has their DIEs.
struct UnitFunctions {
  std::shared_ptr<const DwarfFile> split;
  UnitRoot root;
  FunctionIndex functions;
  /// How much ScopeIndex::work() may still be spent on single functions: they may be nested, so the
  /// sum could be quadratic.
  mutable std::atomic<std::int64_t> room{0};
};

/// The indexes of units, built on demand; the least recently used are dropped to keep within a
/// size. Thread-safe; two threads that need the same unit may both build it.
class UnitCache {
 public:
  UnitCache(std::shared_ptr<const DwarfFile> file, DebugOptions options);

  /// `unit` is an index in file.units(). nullptr: the unit has no line program.
  std::shared_ptr<const UnitLines> lines(std::uint32_t unit);
  /// nullptr: it is split, and the file with its functions is missing.
  std::shared_ptr<const UnitFunctions> functions(std::uint32_t unit);
  /// The calls inlined into a function; for FunctionIndex::kNone, the scopes of the whole unit.
  std::shared_ptr<const ScopeIndex> scopes(std::uint32_t unit, const UnitFunctions& of,
                                           std::uint32_t function);
  void count_into(DebugIndexStats& stats) const;

 private:
  struct Made {
    std::shared_ptr<const void> index;
    std::uint64_t bytes = 0;
  };
  enum class Kind : std::uint8_t { lines, functions, scopes, all_scopes };
  /// The last number is that of a function.
  using Key = std::tuple<std::uint32_t, Kind, std::uint32_t>;
  struct Held {
    Key key;
    Made made;
  };
  std::shared_ptr<const void> get(const Key& key, const std::function<Made()>& make);
  void hold(const Key& key, const Made& made);
  Made make_lines(const DwarfUnit& unit) const;
  Made make_functions(const DwarfUnit& unit);
  Made make_scopes(const UnitFunctions& of, std::uint64_t die) const;
  std::shared_ptr<const DwarfFile> open_split(const UnitRoot& skeleton);
  std::shared_ptr<const DwarfFile> find_in_package(const UnitRoot& skeleton);

  std::shared_ptr<const DwarfFile> file_;
  DebugOptions options_;
  mutable std::mutex mutex_;
  std::list<Held> held_;  // most recently used first
  std::map<Key, std::list<Held>::iterator> by_key_;
  std::uint64_t bytes_ = 0;
  std::uint64_t built_ = 0;
  std::uint64_t split_missing_ = 0;
  std::uint64_t package_lacks_ = 0;
  Once package_once_;
  std::shared_ptr<const DwarfPackage> package_;
};

/// Possible paths of a split unit's file: below its compilation directory, or next to the file that
/// names it.
std::vector<std::string> split_paths(const UnitRoot& skeleton) {
  const std::string name(skeleton.split_name);
  std::vector<std::string> paths;
  const bool is_absolute = name.front() == '/';
  if (is_absolute || skeleton.compile_directory.empty()) {
    paths.push_back(name);
  } else {
    paths.push_back(std::string(skeleton.compile_directory) + "/" + name);
  }
  const std::string& own = skeleton.context.file->input().name();
  const std::size_t slash = own.rfind('/');
  if (slash != std::string::npos) {
    paths.push_back(own.substr(0, slash + 1) + std::string(base_name(name)));
  }
  return paths;
}

UnitRoot root_of(const DwarfFile& file, const DwarfUnit& unit) {
  return read_unit_root(file, unit, *file.abbreviations(unit));
}

/// The unit with the skeleton's id, or nullptr if the file does not belong to the skeleton.
const DwarfUnit* split_unit(const DwarfFile& file, const UnitRoot& skeleton) {
  std::uint64_t budget = (std::uint64_t{1} << 20) + 8 * file.sections().abbreviations.size();
  for (const DwarfUnit& unit : file.units()) {
    if (unit.type == DW_UT_split_compile && unit.split_id == skeleton.split_id) return &unit;
    if (unit.type != DW_UT_compile) continue;  // DWARF 4 has the id in the first DIE
    const auto root = peek_root(file, unit, budget);
    if (root && root->split_id == skeleton.split_id) return &unit;
  }
  return nullptr;
}

UnitCache::UnitCache(std::shared_ptr<const DwarfFile> file, DebugOptions options)
    : file_(std::move(file)), options_(std::move(options)) {}

std::shared_ptr<const UnitLines> UnitCache::lines(std::uint32_t unit) {
  const auto made = get({unit, Kind::lines, 0}, [&] { return make_lines(file_->units()[unit]); });
  return std::static_pointer_cast<const UnitLines>(made);
}

std::shared_ptr<const UnitFunctions> UnitCache::functions(std::uint32_t unit) {
  const auto made =
      get({unit, Kind::functions, 0}, [&] { return make_functions(file_->units()[unit]); });
  return std::static_pointer_cast<const UnitFunctions>(made);
}

std::shared_ptr<const ScopeIndex> UnitCache::scopes(std::uint32_t unit, const UnitFunctions& of,
                                                    std::uint32_t function) {
  const bool is_one = function != FunctionIndex::kNone && of.room.load() > 0;
  const std::uint64_t die =
      is_one ? of.functions.die_of(function) : of.root.context.unit->first_die;
  const Key key = is_one ? Key{unit, Kind::scopes, function} : Key{unit, Kind::all_scopes, 0};
  const auto made = get(key, [&] { return make_scopes(of, die); });
  return std::static_pointer_cast<const ScopeIndex>(made);
}

std::shared_ptr<const void> UnitCache::get(const Key& key, const std::function<Made()>& make) {
  {
    const std::lock_guard lock(mutex_);
    if (const auto found = by_key_.find(key); found != by_key_.end()) {
      held_.splice(held_.begin(), held_, found->second);
      return found->second->made.index;
    }
  }
  const Made made = make();
  const std::lock_guard lock(mutex_);
  ++built_;
  if (!by_key_.contains(key)) hold(key, made);
  return made.index;
}

void UnitCache::hold(const Key& key, const Made& made) {
  held_.push_front({key, made});
  by_key_[key] = held_.begin();
  bytes_ += made.bytes;
  while (bytes_ > options_.max_bytes && held_.size() > 1) {
    bytes_ -= held_.back().made.bytes;
    by_key_.erase(held_.back().key);
    held_.pop_back();
  }
}

UnitCache::Made UnitCache::make_lines(const DwarfUnit& unit) const {
  const UnitRoot root = root_of(*file_, unit);
  if (!root.line_program) return {};
  LineRows rows(root.context, root.compile_directory, *root.line_program, options_.max_bytes);
  const std::uint64_t bytes = rows.bytes();
  return {std::make_shared<const UnitLines>(UnitLines{root, std::move(rows)}), bytes};
}

UnitCache::Made UnitCache::make_functions(const DwarfUnit& unit) {
  const auto made = std::make_shared<UnitFunctions>();
  made->root = root_of(*file_, unit);
  if (!made->root.split_name.empty()) {
    made->split = open_split(made->root);
    if (made->split == nullptr) {
      const std::lock_guard lock(mutex_);
      ++split_missing_;
      package_lacks_ += package_ == nullptr ? 0 : 1;
      return {};
    }
    const DwarfUnit& split = *split_unit(*made->split, made->root);
    made->root =
        read_split_root(*made->split, split, *made->split->abbreviations(split), made->root);
  }
  const UnitContext& context = made->root.context;
  made->functions =
      FunctionIndex(made->root, *context.file->abbreviations(*context.unit), options_.max_bytes);
  constexpr std::uint64_t kTimes = 4;  // without nesting, each function is read once
  made->room = static_cast<std::int64_t>(kTimes * (context.unit->end - context.unit->offset));
  const std::uint64_t bytes =
      made->functions.bytes() + (made->split == nullptr ? 0 : made->split->bytes());
  return {made, bytes};
}

UnitCache::Made UnitCache::make_scopes(const UnitFunctions& of, std::uint64_t die) const {
  const UnitContext& context = of.root.context;
  auto made = std::make_shared<const ScopeIndex>(
      of.root, *context.file->abbreviations(*context.unit), die, options_.max_bytes);
  of.room -= static_cast<std::int64_t>(made->work());
  constexpr std::uint64_t kPlace = sizeof(ScopeIndex) + 192;  // overhead in the list and the map
  const std::uint64_t bytes = kPlace + made->bytes();
  return {std::move(made), bytes};
}

std::shared_ptr<const DwarfFile> UnitCache::find_in_package(const UnitRoot& skeleton) {
  package_once_.run([&] {
    auto input = options_.open_package ? options_.open_package() : Failure(Error{});
    if (input) package_ = DwarfPackage::open(std::move(*input), options_.max_section_bytes);
  });
  auto part = package_ == nullptr ? nullptr : package_->find(skeleton.split_id);
  return part != nullptr && split_unit(*part, skeleton) != nullptr ? part : nullptr;
}

std::shared_ptr<const DwarfFile> UnitCache::open_split(const UnitRoot& skeleton) {
  if (auto part = find_in_package(skeleton)) return part;
  if (!options_.open_split) return nullptr;
  for (const std::string& path : split_paths(skeleton)) {
    auto input = options_.open_split(path);
    if (!input) continue;
    const auto file =
        DwarfFile::open(std::move(*input), DwarfRole::split, options_.max_section_bytes);
    if (file && split_unit(**file, skeleton) != nullptr) return *file;
  }
  return nullptr;
}

void UnitCache::count_into(DebugIndexStats& stats) const {
  const std::lock_guard lock(mutex_);
  stats.built = built_;
  stats.bytes = bytes_;
  stats.split_missing = split_missing_;
  stats.package_lacks = package_lacks_;
}

}  // namespace

class DebugIndex::Impl {
 public:
  Impl(std::shared_ptr<const DwarfFile> file, DebugOptions options);

  /// Index in the file; kNone if no unit has the address.
  std::uint32_t unit_of(Address vaddr) const noexcept;
  /// Looks up addresses of one unit: sets `found[i]` for each i in `which`, which is sorted by
  /// address.
  void find(std::uint32_t unit, std::span<const std::size_t> which, std::span<const Address> vaddrs,
            std::span<std::vector<SourceFrame>> found) const;
  std::optional<SourceLine> find_line(Address vaddr) const;
  const DwarfFile& file() const noexcept { return *file_; }
  DebugIndexStats stats() const;

 private:
  void place_units();

  std::shared_ptr<const DwarfFile> file_;
  SymbolRanges units_;  // numbered from the last, so that the first unit wins
  std::uint64_t units_with_code_ = 0;
  mutable UnitCache cache_;
};

namespace {

bool has_code(const DwarfUnit& unit) {
  return unit.type == DW_UT_compile || unit.type == DW_UT_skeleton;
}

/// Builds a unit's frames from its indexes.
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
  /// Caches the function: adjacent addresses often belong to the same.
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
  std::uint32_t function_ = FunctionIndex::kNone;
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
  std::vector<SymbolRanges::RangeOwner> claims;
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
  units_ = SymbolRanges(std::move(claims));
}

std::uint32_t DebugIndex::Impl::unit_of(Address vaddr) const noexcept {
  const std::uint32_t found = units_.find(vaddr);
  if (found == SymbolRanges::kNone) return found;
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
  if (unit == SymbolRanges::kNone) return std::nullopt;
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
  if (file_->alternate() == nullptr) stats.alternate_missing = file_->alternate_path();
  return stats;
}

Result<DebugIndex> DebugIndex::open(const std::string& path, DebugOptions options) {
  auto input = Input::open(path, {.regular_only = true});
  if (!input) return failure(input);
  return from_input(std::move(*input), std::move(options));
}

Result<DebugIndex> DebugIndex::from_input(Input input, DebugOptions options) {
  std::shared_ptr<const DwarfFile> alternate;
  if (options.alternate) {
    auto opened = DwarfFile::open(std::move(*options.alternate), DwarfRole::alternate,
                                  options.max_section_bytes);
    if (!opened) return failure(opened);
    alternate = std::move(*opened);
    options.alternate.reset();
  }
  auto file =
      DwarfFile::open(std::move(input), DwarfRole::linked, options.max_section_bytes, alternate);
  if (!file) return failure(file);
  return DebugIndex(std::make_shared<const Impl>(std::move(*file), std::move(options)));
}

std::vector<SourceFrame> DebugIndex::find(Address vaddr) const {
  const std::uint32_t unit = impl_->unit_of(vaddr);
  if (unit == SymbolRanges::kNone) return {};
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

namespace {

/// Addresses of one unit: [first, last) in sorted order.
struct Task {
  std::uint32_t unit = 0;
  std::size_t first = 0;
  std::size_t last = 0;
};

}  // namespace

std::vector<std::vector<SourceFrame>> DebugIndex::find_all(std::span<const Address> vaddrs,
                                                           unsigned threads) const {
  std::vector<std::size_t> order(vaddrs.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::vector<std::uint32_t> units(vaddrs.size());
  std::ranges::transform(vaddrs, units.begin(),
                         [&](Address vaddr) { return impl_->unit_of(vaddr); });
  std::ranges::sort(order, [&](std::size_t a, std::size_t b) {
    return std::pair(units[a], vaddrs[a]) < std::pair(units[b], vaddrs[b]);
  });
  std::vector<Task> tasks;
  for (std::size_t i = 0; i < order.size(); ++i) {
    const std::uint32_t unit = units[order[i]];
    if (unit == SymbolRanges::kNone) break;
    if (tasks.empty() || tasks.back().unit != unit) tasks.push_back({unit, i, i});
    tasks.back().last = i + 1;
  }
  std::vector<std::vector<SourceFrame>> found(vaddrs.size());
  parallel_for(tasks.size(), threads, [&](std::size_t number) {
    const Task& task = tasks[number];
    impl_->find(task.unit, std::span(order).subspan(task.first, task.last - task.first), vaddrs,
                found);
  });
  return found;
}

}  // namespace perfmap
