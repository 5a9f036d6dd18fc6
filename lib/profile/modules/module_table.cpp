#include "modules/module_table.hpp"

#include <algorithm>

namespace perfmap {
namespace {

/// Whoever sets a file's time again and again makes as many keys.
constexpr std::size_t kMostKeys = 256;

std::uint64_t bytes_of(const ModuleTable::Entry& entry) noexcept {
  constexpr std::uint64_t kOwn = 512;
  return kOwn + (entry.module != nullptr ? entry.module->bytes_held() : 0);
}

}  // namespace

std::size_t ModuleTable::HashKey::operator()(const FileKey& key) const noexcept {
  std::uint64_t hash = 0;
  for (const std::uint64_t part :
       {key.device, key.inode, static_cast<std::uint64_t>(key.mtime_ns), key.size}) {
    hash = (hash ^ part) * 0x9e3779b97f4a7c15;
    hash ^= hash >> 32;
  }
  return static_cast<std::size_t>(hash);
}

const ModuleTable::Entry* ModuleTable::find(const FileKey& key) {
  const auto found = by_file_.find(key);
  if (found == by_file_.end()) return nullptr;
  entries_.splice(entries_.begin(), entries_, found->second);
  return &*found->second;
}

std::vector<ModuleTable::ModulePtr> ModuleTable::with_build_id(std::string_view build_id) const {
  std::vector<ModulePtr> modules;
  const auto [first, last] = by_build_id_.equal_range(std::string(build_id));
  for (auto at = first; at != last; ++at) modules.push_back(at->second->module);
  return modules;
}

void ModuleTable::touch(const Module& module) {
  entries_.splice(entries_.begin(), entries_, by_module_.at(&module));
}

void ModuleTable::add(Entry entry) {
  entries_.push_front(std::move(entry));
  const Place place = entries_.begin();
  for (const FileKey& key : place->keys) by_file_[key] = place;
  if (place->module == nullptr) return;
  by_module_[place->module.get()] = place;
  const std::string_view build_id = place->module->build_id();
  if (!build_id.empty()) by_build_id_.emplace(build_id, place);
}

void ModuleTable::add_key(const Module& module, const FileKey& key) {
  const Place place = by_module_.at(&module);
  if (place->keys.size() == kMostKeys) {
    by_file_.erase(place->keys.front());
    place->keys.erase(place->keys.begin());
  }
  place->keys.push_back(key);
  by_file_[key] = place;
}

void ModuleTable::remove(Place place) {
  for (const FileKey& key : place->keys) by_file_.erase(key);
  if (place->module != nullptr) {
    by_module_.erase(place->module.get());
    const auto [first, last] = by_build_id_.equal_range(std::string(place->module->build_id()));
    const auto own =
        std::find_if(first, last, [place](const auto& e) { return e.second == place; });
    if (own != last) by_build_id_.erase(own);
  }
  entries_.erase(place);
}

std::vector<ModuleTable::ModulePtr> ModuleTable::trim(std::uint64_t bytes_left) {
  std::vector<ModulePtr> gone;
  std::uint64_t held = bytes();
  for (auto at = entries_.end(); at != entries_.begin() && held > bytes_left;) {
    const Place place = std::prev(at);
    // Only we hand out what only we hold, so that nobody can take it meanwhile.
    if (place->module != nullptr && place->module.use_count() > 1) {
      at = place;
      continue;
    }
    held -= bytes_of(*place);
    if (place->module != nullptr) gone.push_back(place->module);
    remove(place);
  }
  return gone;
}

std::uint64_t ModuleTable::bytes() const noexcept {
  std::uint64_t held = 0;
  for (const Entry& entry : entries_) held += bytes_of(entry);
  return held;
}

}  // namespace perfmap
