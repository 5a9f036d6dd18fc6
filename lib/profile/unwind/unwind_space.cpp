#include <algorithm>
#include <atomic>

#include "unwind/code_region.hpp"

namespace perfmap {
namespace {

/// The part of a region that shows a segment's bytes; its end is its begin where there is none.
CodeRegion shown(const Region& region, const LoadSegment& segment, const Module& module) {
  const std::uint64_t first = std::max(region.offset, segment.offset);
  const std::uint64_t size = region.range.size;
  const std::uint64_t region_end =
      size > UINT64_MAX - region.offset ? UINT64_MAX : region.offset + size;
  const std::uint64_t segment_end = segment.file_size > UINT64_MAX - segment.offset
                                        ? UINT64_MAX
                                        : segment.offset + segment.file_size;
  const std::uint64_t last = std::min(region_end, segment_end);
  if (first >= last) return {};
  const Address begin = region.range.begin + (first - region.offset);
  const Address vaddr = segment.range.begin + (first - segment.offset);
  return {begin, begin + (last - first), vaddr - begin, &module};
}

/// A page may show the bytes of two segments, of which one is executable.
void add_segments(const Region& region, const Module& module, std::vector<CodeRegion>& regions) {
  const std::size_t before = regions.size();
  for (const LoadSegment& segment : module.segments()) {
    if (!segment.is_executable) continue;
    const CodeRegion part = shown(region, segment, module);
    if (part.begin != part.end) regions.push_back(part);
  }
  const auto added = regions.begin() + static_cast<std::ptrdiff_t>(before);
  std::sort(added, regions.end(),
            [](const CodeRegion& a, const CodeRegion& b) { return a.begin < b.begin; });
  // Of a hostile file's segments that overlap the first counts.
  Address end = region.range.begin;
  for (auto part = added; part != regions.end(); ++part) {
    part->begin = std::max(part->begin, end);
    part->end = std::max(part->end, part->begin);
    end = part->end;
  }
}

}  // namespace

const CodeRegion* UnwindSpace::State::find(Address address) const noexcept {
  const auto after = std::upper_bound(
      regions.begin(), regions.end(), address,
      [](Address wanted, const CodeRegion& region) { return wanted < region.begin; });
  if (after == regions.begin()) return nullptr;
  const CodeRegion& region = *std::prev(after);
  return address < region.end ? &region : nullptr;
}

std::shared_ptr<const Module> UnwindSpace::State::keeper_of(const Module* module) const noexcept {
  for (const auto& keeper : modules) {
    if (keeper.get() == module) return keeper;
  }
  return nullptr;
}

std::shared_ptr<const UnwindSpace> UnwindSpace::make(const AddressSpace& space,
                                                     const Options& options) {
  static std::atomic<std::uint32_t> made{0};
  auto state = std::make_unique<State>();
  state->id = ++made;
  state->jit = options.jit;
  state->read_code = options.read_code;
  for (const Region& region : space.regions()) {
    if (!region.access.execute) continue;
    const bool is_file = region.file->kind == RegionKind::vdso || region.file->is_file() ||
                         region.file->kind == RegionKind::memfd;
    const auto module = is_file && options.open_module ? options.open_module(region) : nullptr;
    if (module == nullptr) {
      state->regions.push_back(
          {region.range.begin, region.range.begin + region.range.size, 0, nullptr});
      continue;
    }
    if (state->modules.empty())
      state->machine = machine_of(module->machine()).value_or(state->machine);
    add_segments(region, *module, state->regions);
    state->modules.push_back(module);
  }
  return std::shared_ptr<const UnwindSpace>(new UnwindSpace(std::move(state)));
}

UnwindSpace::UnwindSpace(std::unique_ptr<const State> state) noexcept : state_(std::move(state)) {}
UnwindSpace::~UnwindSpace() = default;

}  // namespace perfmap
