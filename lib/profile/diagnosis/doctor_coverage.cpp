#include "diagnosis/doctor_coverage.hpp"

#include <algorithm>

namespace perfmap {
namespace {

/// Code of libffi's, which calls C through tables: no runtime's, and nobody names it.
bool is_of_libffi(const Region& region) noexcept {
  return region.file->name.starts_with("/memfd:libffi");
}

void count(const Region& region, std::uint64_t named, JitMemory& memory) {
  ++memory.regions;
  memory.bytes += region.range.size;
  memory.named_bytes += named;
  if (named == 0 || perf_asks_its_map(region)) return;
  if (memory.ignored_bytes == 0) memory.ignored_region = region.file->name;
  memory.ignored_bytes += named;
}

}  // namespace

Coverage::Coverage(const MemoryMap& memory) {
  for (const Region& region : memory.regions) {
    if (region.access.execute && region.range.size != 0) executable_.push_back(&region);
  }
  std::sort(executable_.begin(), executable_.end(),
            [](const Region* a, const Region* b) { return a->range.begin < b->range.begin; });
}

/// Regions of one process do not overlap; those of hostile text may, and cost a hit at most.
bool Coverage::meets_executable(AddressRange entry) const noexcept {
  const auto above =
      std::partition_point(executable_.begin(), executable_.end(),
                           [&](const Region* region) { return region->range.begin < entry.end(); });
  return above != executable_.begin() && (*std::prev(above))->range.end() > entry.begin;
}

void Coverage::add(AddressRange entry) {
  const AddressRange range =
      AddressRange::clamped(entry.begin, std::max<std::uint64_t>(entry.size, 1));
  if (!meets_executable(range)) return;
  ++hits_;
  named_.push_back(range);
  if (named_.size() < unite_at_) return;
  unite();
  unite_at_ = std::max(unite_at_, named_.size() * 2);
}

void Coverage::unite() {
  std::sort(named_.begin(), named_.end(),
            [](AddressRange a, AddressRange b) { return a.begin < b.begin; });
  std::size_t kept = 0;
  for (const AddressRange range : named_) {
    if (kept != 0 && range.begin <= named_[kept - 1].end()) {
      AddressRange& last = named_[kept - 1];
      last.size = std::max(last.end(), range.end()) - last.begin;
    } else {
      named_[kept++] = range;
    }
  }
  named_.resize(kept);
}

std::uint64_t Coverage::named_in(const AddressRange& range) const noexcept {
  std::uint64_t named = 0;
  auto piece = std::partition_point(named_.begin(), named_.end(),
                                    [&](AddressRange one) { return one.end() <= range.begin; });
  for (; piece != named_.end() && piece->begin < range.end(); ++piece) {
    named += std::min(piece->end(), range.end()) - std::max(piece->begin, range.begin);
  }
  return named;
}

JitMemory Coverage::result(const IsElf& is_elf) {
  unite();
  JitMemory memory;
  memory.executable_hits = hits_;
  for (const Region* region : executable_) {
    const JitRoom room = jit_room(*region);
    if (room == JitRoom::none || is_of_libffi(*region)) continue;
    const std::uint64_t named = named_in(region->range);
    if (room == JitRoom::likely || (named != 0 && !is_elf(*region))) count(*region, named, memory);
  }
  return memory;
}

bool shows_elf(const ProcSource& process, const Region& region) {
  const ProcSource::Seen<Input> file = process.open_region(region);
  return !file || !*file || (*file)->text().starts_with("\177ELF");
}

bool shows_elf(const ProcessTracker::OpenModule& open_module, const Region& region) {
  if (!open_module) return true;
  const auto module = open_module(region, nullptr);
  return module || module.error().code != Errc::bad_format;
}

}  // namespace perfmap
