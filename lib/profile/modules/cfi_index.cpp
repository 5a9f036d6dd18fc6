#include "modules/cfi_index.hpp"

#include <algorithm>
#include <utility>

namespace perfmap {
namespace {

struct Found {
  Address begin = 0;
  std::uint32_t offset = 0;
};

/// FDEs mostly follow the CIE that they refer to.
class LastCie {
 public:
  explicit LastCie(const CfiSection& section) : section_(section) {}
  const std::optional<CfiCie>& at(std::uint64_t offset) noexcept {
    if (offset != offset_) cie_ = read_cie(section_, offset);
    offset_ = offset;
    return cie_;
  }

 private:
  const CfiSection& section_;
  std::uint64_t offset_ = UINT64_MAX;
  std::optional<CfiCie> cie_;
};

std::vector<Found> fdes_of(const CfiSection& section, const CodeAreas* areas) {
  std::vector<Found> found;
  LastCie cies(section);
  std::uint64_t offset = 0;
  while (offset <= UINT32_MAX) {
    const std::optional<CfiEntry> entry = read_cfi_entry(section, offset);
    if (!entry) break;
    const std::uint64_t begin = std::exchange(offset, entry->end);
    if (entry->is_cie) continue;
    const std::optional<CfiCie>& cie = cies.at(entry->cie);
    const std::optional<CfiFde> fde = cie ? read_fde(section, *entry, *cie) : std::nullopt;
    if (!fde || fde->range.size == 0) continue;
    if (areas != nullptr && areas->room_at(fde->range.begin) == 0) continue;
    found.push_back({fde->range.begin, static_cast<std::uint32_t>(begin)});
  }
  return found;
}

}  // namespace

CfiIndex::CfiIndex(const CfiSection& section, const CodeAreas* areas) {
  std::vector<Found> found = fdes_of(section, areas);
  const auto is_before = [](const Found& a, const Found& b) {
    return a.begin != b.begin ? a.begin < b.begin : a.offset < b.offset;
  };
  std::sort(found.begin(), found.end(), is_before);
  begins_.reserve(found.size());
  offsets_.reserve(found.size());
  for (const Found& each : found) {
    begins_.push_back(each.begin);
    offsets_.push_back(each.offset);
  }
}

std::optional<CfiIndex::Place> CfiIndex::find(Address vaddr) const noexcept {
  const auto after = std::upper_bound(begins_.begin(), begins_.end(), vaddr);
  if (after == begins_.begin()) return std::nullopt;
  return Place{offsets_[static_cast<std::size_t>(after - begins_.begin() - 1)],
               after == begins_.end() ? UINT64_MAX : *after};
}

}  // namespace perfmap
