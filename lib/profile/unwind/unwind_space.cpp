#include <algorithm>
#include <atomic>

#include "perfmap/profile/process_tracker.hpp"
#include "perfmap/profile/unwinder.hpp"
#include "process/jit_lineage.hpp"
#include "unwind/code_bytes.hpp"

namespace perfmap {

namespace {

/// The part of a region that shows a segment's bytes; empty (end = begin) if there is none.
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

/// A page may show bytes of two segments, only one of them executable.
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
  // If segments of a hostile file overlap, the first wins.
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

namespace {

/// The process's own sources, and those of its ancestors, whose code it may still have.
std::vector<std::shared_ptr<const JitSources>> sources_of(const ProcessTracker& tracker, pid_t pid,
                                                          std::uint64_t time) {
  std::vector<std::shared_ptr<const JitSources>> sources;
  const std::shared_ptr<JitLineage> lineage = tracker.lineage(pid, time);
  const JitLineage* one = lineage.get();
  for (int i = 0; one != nullptr && i < JitLineage::kMaxGenerations; ++i) {
    if (one->asks_own && one->jit != nullptr) sources.push_back(one->jit);
    one = one->parent.get();
  }
  return sources;
}

void note(Error error, std::vector<Error>& failures) {
  // Most memory is not an ELF file, so these errors are expected.
  if (error.code == Errc::bad_format || error.code == Errc::unsupported) return;
  const auto is_known = [&](const Error& known) { return known.message == error.message; };
  if (std::none_of(failures.begin(), failures.end(), is_known))
    failures.push_back(std::move(error));
}

}  // namespace

std::shared_ptr<const UnwindSpace> UnwindSpace::attach(ProcessTracker& tracker, pid_t pid,
                                                       std::uint64_t time, Options options,
                                                       std::vector<Error>* failures) {
  const auto space = tracker.at(pid, time);
  if (space == nullptr) return nullptr;
  if (options.jit.empty()) options.jit = sources_of(tracker, pid, time);
  if (!options.open_module) {
    options.open_module = [&](const Region& region) -> std::shared_ptr<const Module> {
      auto module = tracker.module_of(pid, region);
      if (module) return *std::move(module);
      if (failures != nullptr) note(std::move(module.error()), *failures);
      return nullptr;
    };
  }
  return make(*space, options);
}

}  // namespace perfmap
