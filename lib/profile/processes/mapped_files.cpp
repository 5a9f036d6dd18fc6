#include <algorithm>
#include <functional>

#include "perfmap/memory_map.hpp"

namespace perfmap {
namespace {

std::size_t hash_of(const MappedFile& file) noexcept {
  const std::hash<std::string_view> of_text;
  std::size_t hash = of_text(file.name) ^ (of_text(file.build_id) << 1);
  for (const std::uint64_t part : {file.inode, file.generation, std::uint64_t{file.device_major},
                                   std::uint64_t{file.device_minor}}) {
    hash = (hash ^ static_cast<std::size_t>(part)) * 0x9e3779b97f4a7c15;
  }
  return hash;
}

}  // namespace

std::shared_ptr<const MappedFile> MappedFiles::intern(MappedFile file) {
  const std::size_t hash = hash_of(file);
  const auto [first, last] = known_.equal_range(hash);
  for (auto at = first; at != last; ++at) {
    if (auto known = at->second.lock(); known && *known == file) return known;
  }
  if (known_.size() >= cleaned_at_) forget_dead();
  auto made = std::make_shared<const MappedFile>(std::move(file));
  known_.emplace(hash, made);
  return made;
}

/// Once for each time that the table has doubled: O(1) for each that was added.
void MappedFiles::forget_dead() {
  std::erase_if(known_, [](const auto& one) { return one.second.expired(); });
  cleaned_at_ = std::max<std::size_t>(64, known_.size() * 2);
}

std::size_t MappedFiles::size() const noexcept {
  return static_cast<std::size_t>(std::count_if(
      known_.begin(), known_.end(), [](const auto& one) { return !one.second.expired(); }));
}

}  // namespace perfmap
