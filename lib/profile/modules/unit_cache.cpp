#include "modules/unit_cache.hpp"

#include <dwarf.h>
#include <string>
#include <utility>

namespace perfmap {
namespace {

/// Where a split unit's file may be: below the directory that it was compiled in, or beside the
/// file that names it.
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
    paths.push_back(own.substr(0, slash + 1) + name.substr(name.rfind('/') + 1));
  }
  return paths;
}

UnitRoot root_of(const DwarfFile& file, const DwarfUnit& unit) {
  return read_unit_root(file, unit, *file.abbreviations(unit));
}

/// The unit with the skeleton's id, or nullptr: not the file that the skeleton was made with.
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

}  // namespace

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
  const bool is_one = function != FunctionIndex::kNobody && of.room.load() > 0;
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
  while (bytes_ > options_.most_bytes && held_.size() > 1) {
    bytes_ -= held_.back().made.bytes;
    by_key_.erase(held_.back().key);
    held_.pop_back();
  }
}

UnitCache::Made UnitCache::make_lines(const DwarfUnit& unit) const {
  const UnitRoot root = root_of(*file_, unit);
  if (!root.line_program) return {};
  LineRows rows(root.context, root.compile_directory, *root.line_program, options_.most_bytes);
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
      FunctionIndex(made->root, *context.file->abbreviations(*context.unit), options_.most_bytes);
  constexpr std::uint64_t kTimes = 4;  // proper ones are read once, each for itself
  made->room = static_cast<std::int64_t>(kTimes * (context.unit->end - context.unit->offset));
  const std::uint64_t bytes =
      made->functions.bytes() + (made->split == nullptr ? 0 : made->split->bytes());
  return {made, bytes};
}

UnitCache::Made UnitCache::make_scopes(const UnitFunctions& of, std::uint64_t die) const {
  const UnitContext& context = of.root.context;
  auto made = std::make_shared<const ScopeIndex>(
      of.root, *context.file->abbreviations(*context.unit), die, options_.most_bytes);
  of.room -= static_cast<std::int64_t>(made->work());
  constexpr std::uint64_t kPlace = sizeof(ScopeIndex) + 192;  // in the list and the map
  const std::uint64_t bytes = kPlace + made->bytes();
  return {std::move(made), bytes};
}

std::shared_ptr<const DwarfFile> UnitCache::find_in_package(const UnitRoot& skeleton) {
  std::call_once(package_once_, [&] {
    auto input = options_.open_package ? options_.open_package() : Failure(Error{});
    if (input) package_ = DwarfPackage::open(std::move(*input), options_.most_section_bytes);
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
        DwarfFile::open(std::move(*input), DwarfRole::split, options_.most_section_bytes);
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

}  // namespace perfmap
