#pragma once

#include <cstdint>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <mutex>

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
struct UnitScopes {
  std::shared_ptr<const DwarfFile> split;
  UnitRoot root;
  ScopeIndex scopes;
};

/// The indexes of units, made on demand and dropped by size, those used least recently first.
/// Several threads may ask at once; two that ask for the same unit may both make it.
class UnitCache {
 public:
  UnitCache(std::shared_ptr<const DwarfFile> file, DebugOptions options);

  /// By number in file.units(). nullptr: the unit has no line program.
  std::shared_ptr<const UnitLines> lines(std::uint32_t unit);
  std::shared_ptr<const UnitScopes> scopes(std::uint32_t unit);
  void count_into(DebugIndexStats& stats) const;

 private:
  struct Made {
    std::shared_ptr<const void> index;
    std::uint64_t bytes = 0;
  };
  struct Held {
    std::uint64_t key = 0;
    Made made;
  };
  std::shared_ptr<const void> get(std::uint64_t key, const std::function<Made()>& make);
  void hold(std::uint64_t key, const Made& made);
  Made make_lines(const DwarfUnit& unit) const;
  Made make_scopes(const DwarfUnit& unit);
  std::shared_ptr<const DwarfFile> open_split(const UnitRoot& skeleton) const;

  std::shared_ptr<const DwarfFile> file_;
  DebugOptions options_;
  mutable std::mutex mutex_;
  std::list<Held> held_;  // the most recently used first
  std::map<std::uint64_t, std::list<Held>::iterator> by_key_;
  std::uint64_t bytes_ = 0;
  std::uint64_t built_ = 0;
  std::uint64_t split_missing_ = 0;
};

}  // namespace perfmap
