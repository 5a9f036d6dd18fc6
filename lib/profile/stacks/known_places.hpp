#pragma once

#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <vector>

namespace perfmap {

/// What an address of a process stands for, in every process where that is the same code.
struct PlaceKey {
  const void* what = nullptr;  ///< a MappedFile, or the sources of a runtime's code, or nothing
  std::uint64_t where = 0;     ///< offset in the file, or address
  bool is_return = false;
  bool operator==(const PlaceKey&) const = default;
};
struct HashPlaceKey {
  std::size_t operator()(const PlaceKey& key) const noexcept {
    return (reinterpret_cast<std::uintptr_t>(key.what) ^
            (key.where << 1 | (key.is_return ? 1U : 0U))) *
           0x9e3779b97f4a7c15U;
  }
};

/// Places of one address, the innermost first, by their position in a list.
struct PlaceRun {
  std::uint32_t first = 0;
  std::uint32_t count = 0;  ///< never 0 of those that are known
  std::uint64_t since = 0;  ///< of code that comes and goes
  std::uint64_t until = UINT64_MAX;
  bool is_return = false;  ///< named by the address before

  bool is_forever() const noexcept { return since == 0 && until == UINT64_MAX; }
  /// At the time asked for, and who knows when else.
  bool is_moment() const noexcept { return until - since == 1; }
};

/// The runs of keys. Code of files lies in one table of 32 bytes a place, as most look-ups are for
/// such; code of runtimes has a list of runs for each key.
class KnownPlaces {
 public:
  KnownPlaces() : slots_(kFirst) {}

  /// count is 0 where none is known.
  PlaceRun find(const PlaceKey& key, std::uint64_t time) const noexcept {
    const Slot& slot = slots_[place_of(key)];
    if (slot.count != 0) return {slot.first, slot.count, 0, UINT64_MAX, slot.is_return != 0};
    if (runs_.empty()) return {};
    const auto found = runs_.find(key);
    if (found == runs_.end()) return {};
    for (const PlaceRun& run : found->second) {
      if (time >= run.since && (time < run.until || run.until == UINT64_MAX)) return run;
    }
    return {};
  }
  /// There must be none for that key at that time.
  void add(const PlaceKey& key, const PlaceRun& run) {
    if (!run.is_forever()) {
      runs_[key].push_back(run);
      return;
    }
    if (2 * ++used_ > slots_.size()) grow();
    slots_[place_of(key)] = {key, run.first, run.count & kMostPlaces, run.is_return ? 1U : 0U};
  }
  /// What was added last for a time only; null: nothing. Valid until the next add().
  PlaceRun* last_of(const PlaceKey& key) {
    const auto found = runs_.find(key);
    return found == runs_.end() ? nullptr : &found->second.back();
  }

 private:
  static constexpr std::size_t kFirst = 1024;
  static constexpr std::uint32_t kMostPlaces = UINT32_MAX >> 1;
  struct Slot {
    PlaceKey key;
    std::uint32_t first = 0;
    std::uint32_t count : 31 = 0;  // 0: free
    std::uint32_t is_return : 1 = 0;
  };
  static_assert(sizeof(Slot) == 32);

  std::size_t place_of(const PlaceKey& key) const noexcept {
    std::size_t at = HashPlaceKey()(key) >> 16 & (slots_.size() - 1);
    while (slots_[at].count != 0 && !(slots_[at].key == key)) at = (at + 1) & (slots_.size() - 1);
    return at;
  }
  void grow() {
    std::vector<Slot> before(2 * slots_.size());
    before.swap(slots_);
    for (const Slot& slot : before) {
      if (slot.count != 0) slots_[place_of(slot.key)] = slot;
    }
  }

  std::vector<Slot> slots_;  // no more than half of them in use
  std::size_t used_ = 0;
  std::unordered_map<PlaceKey, std::vector<PlaceRun>, HashPlaceKey> runs_;
};

}  // namespace perfmap
