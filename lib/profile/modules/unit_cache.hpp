#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <tuple>

#include "modules/dwarf_package.hpp"
#include "modules/function_index.hpp"
#include "modules/line_program.hpp"
#include "modules/scope_index.hpp"
#include "perfmap/debug_index.hpp"

namespace perfmap {

/// A unit's lines.
struct UnitLines {
  UnitRoot root;
  LineRows rows;
};

/// A unit's functions. `split` has their DIEs where the unit is a skeleton.
struct UnitFunctions {
  std::shared_ptr<const DwarfFile> split;
  UnitRoot root;
  FunctionIndex functions;
  /// ScopeIndex::work() that may still be done for single functions: they may lie within each
  /// other.
  mutable std::atomic<std::int64_t> room{0};
};

/// The indexes of units, made on demand and dropped by size, those used least recently first.
/// Several threads may ask at once; two that ask for the same unit may both make it.
class UnitCache {
 public:
  UnitCache(std::shared_ptr<const DwarfFile> file, DebugOptions options);

  /// By number in file.units(). nullptr: the unit has no line program.
  std::shared_ptr<const UnitLines> lines(std::uint32_t unit);
  /// nullptr: it is split, and the file that has them is not there.
  std::shared_ptr<const UnitFunctions> functions(std::uint32_t unit);
  /// What was inlined into a function; of FunctionIndex::kNobody: the scopes of the whole unit.
  std::shared_ptr<const ScopeIndex> scopes(std::uint32_t unit, const UnitFunctions& of,
                                           std::uint32_t function);
  void count_into(DebugIndexStats& stats) const;

 private:
  struct Made {
    std::shared_ptr<const void> index;
    std::uint64_t bytes = 0;
  };
  enum class Kind : std::uint8_t { lines, functions, scopes, all_scopes };
  /// The number is that of a function.
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
  std::list<Held> held_;  // the most recently used first
  std::map<Key, std::list<Held>::iterator> by_key_;
  std::uint64_t bytes_ = 0;
  std::uint64_t built_ = 0;
  std::uint64_t split_missing_ = 0;
  std::uint64_t package_lacks_ = 0;
  std::once_flag package_once_;
  std::shared_ptr<const DwarfPackage> package_;
};

}  // namespace perfmap
