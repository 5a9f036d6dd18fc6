#include "perfmap/module_cache.hpp"

#include <algorithm>
#include <condition_variable>
#include <mutex>
#include <optional>

#include "modules/module_file.hpp"
#include "modules/module_table.hpp"

namespace perfmap {
namespace {

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
  /// Who is being told "failed" is counted.
  Answer failed(Error error) {
    ++counts.failures;
    return Failure(std::move(error));
  }

  const ModuleCacheOptions options;
  mutable std::mutex mutex;
  std::condition_variable loaded;
  std::vector<FileKey> loading;  // by other threads, just now
  ModuleTable table;
  Statistics counts;
};

/// A file that one thread opens, while others wait: until this ends, however it does.
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

/// What is known, after waiting for what is being opened; nothing where nothing is known.
std::optional<ModuleCache::Answer> ModuleCache::State::look_up(Lock& lock, const FileKey& key) {
  loaded.wait(lock,
              [&] { return std::find(loading.begin(), loading.end(), key) == loading.end(); });
  const ModuleTable::Entry* const known = table.find(key);
  if (known == nullptr) return std::nullopt;
  ++counts.hits;
  return known->module != nullptr ? Answer(known->module) : failed(*known->error);
}

/// A module of the same build-id and bytes, or null. Bytes are compared without the lock; those who
/// come meanwhile are looked at in turn.
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
  std::vector<ModulePtr> gone;  // destroyed last, without the lock
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
  gone = table.trim(options.most_bytes);
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
