#pragma once

#include <cstdint>
#include <list>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "perfmap/module_cache.hpp"

namespace perfmap {

/// What a ModuleCache knows: modules, and errors that asking again would not change, by file and by
/// build-id, in the order of their last use. Knows no lock.
class ModuleTable {
 public:
  using ModulePtr = std::shared_ptr<const Module>;
  struct Entry {
    ModulePtr module = nullptr;  ///< null: `error`
    std::optional<Error> error = {};
    std::vector<FileKey> keys = {};  ///< all files that it stands for
  };

  /// Null where nothing is known. Makes it the one used last.
  const Entry* find(const FileKey& key);
  /// Modules of a build-id, used last or not.
  std::vector<ModulePtr> with_build_id(std::string_view build_id) const;
  /// Makes the module the one used last.
  void touch(const Module& module);

  void add(Entry entry);
  /// From now on `key` is another name of a module that is here.
  void add_key(const Module& module, const FileKey& key);

  /// Takes out what nobody else holds, used longest ago first, until `bytes` are left; for the
  /// caller to destroy. O(n).
  std::vector<ModulePtr> trim(std::uint64_t bytes);
  std::uint64_t bytes() const noexcept;
  std::size_t modules() const noexcept { return by_module_.size(); }

 private:
  using Place = std::list<Entry>::iterator;
  struct HashKey {
    std::size_t operator()(const FileKey& key) const noexcept;
  };
  void remove(Place place);

  std::list<Entry> entries_;  // used last, first
  std::unordered_map<FileKey, Place, HashKey> by_file_;
  std::unordered_map<const Module*, Place> by_module_;
  std::unordered_multimap<std::string, Place> by_build_id_;
};

}  // namespace perfmap
