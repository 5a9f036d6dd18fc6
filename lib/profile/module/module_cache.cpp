// SPDX-License-Identifier: MIT
#include <algorithm>
#include <condition_variable>
#include <cstdint>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "module/module_file.hpp"
#include "perfmap/profile/module.hpp"

namespace perfmap {

namespace {

/// The content of a ModuleCache: modules and permanent errors, by file and by build id, in LRU
/// order. Does no locking.
class ModuleTable {
 public:
  using ModulePtr = std::shared_ptr<const Module>;
  struct Entry {
    ModulePtr module = nullptr;  ///< null: see `error`
    std::optional<Error> error = {};
    std::vector<FileKey> keys = {};  ///< all files with this module
  };

  /// Null if unknown. Marks it as most recently used.
  const Entry* find(const FileKey& key);
  /// All modules with that build id.
  std::vector<ModulePtr> with_build_id(std::string_view build_id) const;
  /// Marks the module as most recently used.
  void touch(const Module& module);

  void add(Entry entry);
  /// Adds `key` as another file of a known module.
  void add_key(const Module& module, const FileKey& key);

  /// Removes modules without other owners, least recently used first, until `bytes` are left. The
  /// caller destroys them. O(n).
  std::vector<ModulePtr> trim(std::uint64_t bytes);
  std::uint64_t bytes() const noexcept;
  std::size_t modules() const noexcept { return by_module_.size(); }

 private:
  using Place = std::list<Entry>::iterator;
  struct HashKey {
    std::size_t operator()(const FileKey& key) const noexcept;
  };
  void remove(Place place);

  std::list<Entry> entries_;  // most recently used first
  std::unordered_map<FileKey, Place, HashKey> by_file_;
  std::unordered_map<const Module*, Place> by_module_;
  std::unordered_multimap<std::string, Place> by_build_id_;
};

/// A process that changes a file's time again and again creates as many keys.
constexpr std::size_t kMaxKeys = 256;

std::uint64_t bytes_of(const ModuleTable::Entry& entry) noexcept {
  constexpr std::uint64_t kOwn = 512;
  return kOwn + (entry.module != nullptr ? entry.module->bytes_held() : 0);
}

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
  if (place->keys.size() == kMaxKeys) {
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
    // A use count of one cannot grow now: only the cache hands out copies of its own pointer.
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

using ModulePtr = std::shared_ptr<const Module>;
using Lock = std::unique_lock<std::mutex>;

std::optional<FileKey> key_of(const Input& input) noexcept {
  const FileFacts& facts = input.facts();
  if (!facts.is_regular) return std::nullopt;
  return FileKey{facts.device, facts.inode, facts.mtime_ns, facts.size};
}

}  // namespace

struct ModuleCache::State {
  explicit State(ModuleCacheOptions given) : options(std::move(given)) {}

  class Claim;
  std::optional<Answer> look_up(Lock& lock, const FileKey& key);
  Answer load(Input input, const std::string& root, const std::optional<FileKey>& key);
  ModulePtr same_as(Lock& lock, const ModulePtr& module);
  ModulePtr adopt(Lock& lock, const ModulePtr& module, const std::optional<FileKey>& key);
  /// Counts each caller that gets a failure.
  Answer failed(Error error) {
    ++counts.failures;
    return Failure(std::move(error));
  }

  const ModuleCacheOptions options;
  mutable std::mutex mutex;
  std::condition_variable loaded;
  std::vector<FileKey> loading;  // currently being opened by other threads
  ModuleTable table;
  Statistics counts;
};

/// Marks a file as being opened by this thread, while others wait. Ends with the scope, also on an
/// exception.
class ModuleCache::State::Claim {
 public:
  Claim(State& state, Lock& lock, const std::optional<FileKey>& key)
      : state_(&state), lock_(&lock), key_(key) {
    if (key_) state_->loading.push_back(*key_);
  }
  ~Claim() {
    if (!lock_->owns_lock()) lock_->lock();
    if (key_) std::erase(state_->loading, *key_);
    state_->loaded.notify_all();
  }
  Claim(const Claim&) = delete;
  Claim& operator=(const Claim&) = delete;

 private:
  State* state_;
  Lock* lock_;
  std::optional<FileKey> key_;
};

/// The cached result, after waiting for a pending open; nothing if unknown.
std::optional<ModuleCache::Answer> ModuleCache::State::look_up(Lock& lock, const FileKey& key) {
  loaded.wait(lock,
              [&] { return std::find(loading.begin(), loading.end(), key) == loading.end(); });
  const ModuleTable::Entry* const known = table.find(key);
  if (known == nullptr) return std::nullopt;
  ++counts.hits;
  return known->module != nullptr ? Answer(known->module) : failed(*known->error);
}

/// A module with the same build id and the same bytes, or null. Bytes are compared without the
/// lock; modules added meanwhile are checked afterwards.
ModulePtr ModuleCache::State::same_as(Lock& lock, const ModulePtr& module) {
  if (module->build_id().empty()) return nullptr;
  std::vector<ModulePtr> seen;
  for (;;) {
    const std::vector<ModulePtr> others = table.with_build_id(module->build_id());
    const auto next = std::find_if(others.begin(), others.end(), [&seen](const ModulePtr& other) {
      return std::find(seen.begin(), seen.end(), other) == seen.end();
    });
    if (next == others.end()) return nullptr;
    if (options.trust_build_ids) return *next;
    seen.push_back(*next);
    lock.unlock();
    const bool same = (*next)->bytes() == module->bytes();
    lock.lock();
    if (same) return *next;
  }
}

ModulePtr ModuleCache::State::adopt(Lock& lock, const ModulePtr& module,
                                    const std::optional<FileKey>& key) {
  const ModulePtr other = same_as(lock, module);
  if (other == nullptr) {
    table.add({module, std::nullopt, key ? std::vector{*key} : std::vector<FileKey>()});
    return module;
  }
  ++counts.shared;
  if (key) table.add_key(*other, *key);
  table.touch(*other);
  return other;
}

ModuleCache::Answer ModuleCache::State::load(Input input, const std::string& root,
                                             const std::optional<FileKey>& key) {
  std::vector<ModulePtr> gone;  // declared first, so destroyed last, without the lock
  Lock lock(mutex);
  if (key) {
    if (std::optional<Answer> known = look_up(lock, *key)) return *std::move(known);
  }
  const Claim claim(*this, lock, key);
  ++counts.opened;
  lock.unlock();
  Answer opened = Module::open(std::move(input), {root, options.debug_directories, options.fetch});
  lock.lock();
  if (!opened) {
    if (key && opened.error().code == Errc::bad_format)
      table.add({nullptr, opened.error(), {*key}});
    return failed(std::move(opened.error()));
  }
  opened = adopt(lock, *opened, key);
  gone = table.trim(options.max_bytes);
  counts.evictions += gone.size();
  return opened;
}

ModuleCache::ModuleCache(ModuleCacheOptions options)
    : state_(std::make_unique<State>(std::move(options))) {}
ModuleCache::~ModuleCache() = default;

ModuleCache::Answer ModuleCache::open(const std::string& path, const std::string& root) {
  if (const std::optional<FileKey> key = key_of_module_file(root, path)) {
    Lock lock(state_->mutex);
    if (std::optional<Answer> known = state_->look_up(lock, *key)) return *std::move(known);
  }
  Result<Input> input = open_module_file(root, path);
  if (!input) {
    const Lock lock(state_->mutex);
    return state_->failed(std::move(input.error()));
  }
  input->rename(path);
  return open(*std::move(input), root);
}

ModuleCache::Answer ModuleCache::open(Input input, const std::string& root) {
  const std::optional<FileKey> key = key_of(input);
  return state_->load(std::move(input), root, key);
}

std::shared_ptr<const Module> ModuleCache::find(const FileKey& key) {
  Lock lock(state_->mutex);
  const auto known = state_->look_up(lock, key);
  return known ? known->value_or(nullptr) : nullptr;
}

std::shared_ptr<const Module> ModuleCache::find_build_id(std::string_view build_id) {
  const Lock lock(state_->mutex);
  const std::vector<ModulePtr> found = state_->table.with_build_id(build_id);
  if (found.empty()) return nullptr;
  state_->table.touch(*found.front());
  ++state_->counts.hits;
  return found.front();
}

void ModuleCache::trim(std::uint64_t bytes) {
  std::vector<ModulePtr> gone;
  const Lock lock(state_->mutex);
  gone = state_->table.trim(bytes);
  state_->counts.evictions += gone.size();
}

ModuleCache::Statistics ModuleCache::statistics() const {
  const Lock lock(state_->mutex);
  Statistics statistics = state_->counts;
  statistics.modules = state_->table.modules();
  statistics.bytes = state_->table.bytes();
  return statistics;
}

}  // namespace perfmap
