#include "stacks/injected_code.hpp"

#include <algorithm>

#include "perfdata/machines.hpp"

namespace perfmap {
namespace {

class Mappings {
 public:
  Mappings(const Timeline& timeline, const std::vector<CodeInElf>& code)
      : timeline_(timeline), code_(code) {}

  void take(const JitRecord& record) {
    const std::uint64_t time = timeline_.time_of(record);
    if (const auto load = decode_load(record)) {
      add(time, load->range, record.offset);
    } else if (const auto move = decode_move(record)) {
      const auto moved = timeline_.moved_by(record.offset);
      if (!moved) return;
      take_away(time, *moved);
      add(time, move->range, moved->load);
    }
  }

  std::vector<CodeMapping> take_all() {
    std::stable_sort(found_.begin(), found_.end(),
                     [](const CodeMapping& a, const CodeMapping& b) { return a.time < b.time; });
    return std::move(found_);
  }

 private:
  const CodeInElf* find(std::uint64_t load) const noexcept {
    const auto found = std::lower_bound(
        code_.begin(), code_.end(), load,
        [](const CodeInElf& code, std::uint64_t wanted) { return code.load < wanted; });
    return found == code_.end() || found->load != load ? nullptr : &*found;
  }

  void add(std::uint64_t time, const AddressRange& range, std::uint64_t load) {
    const CodeInElf* const code = find(load);
    if (code == nullptr) return;
    const auto there = AddressRange::clamped(range.begin, std::min(range.size, code->size));
    if (there.size != 0) found_.push_back({time, there, code->offset, 0});
  }

  /// Newer code may have taken some of it already.
  void take_away(std::uint64_t time, const MovedCode& moved) {
    const CodeInElf* const code = find(moved.load);
    if (code == nullptr) return;
    const AddressRange range = AddressRange::clamped(moved.from, code->size);
    if (range.size == 0) return;
    if (timeline_.find(range.begin, time) || timeline_.find(range.end() - 1, time)) return;
    found_.push_back({time, range, CodeMapping::kNothing, 0});
  }

  const Timeline& timeline_;
  const std::vector<CodeInElf>& code_;
  std::vector<CodeMapping> found_;
};

}  // namespace

std::vector<CodeMapping> code_mappings(const Timeline& timeline, const std::vector<CodeInElf>& code,
                                       bool is_timed, std::uint64_t otherwise) {
  Mappings mappings(timeline, code);
  Diagnostics ignored(1);  // the timeline was made with these
  timeline.dump().for_each(ignored, [&](const JitRecord& record) { mappings.take(record); });
  std::vector<CodeMapping> all = mappings.take_all();
  if (!is_timed) {
    for (CodeMapping& mapping : all) mapping.time = otherwise;
  }
  return all;
}

std::optional<CodeMapping> frames_mapping(const std::vector<CodeMapping>& mappings,
                                          const ElfOfAllCode& elf) {
  const AddressRange place{elf.frames_in_memory, elf.frames.size};
  if (place.size == 0 || place.begin == 0 || place.begin > UINT64_MAX - place.size) return {};
  std::optional<std::uint64_t> first;
  for (const CodeMapping& mapping : mappings) {
    first = std::min(first.value_or(mapping.time), mapping.time);
    const AddressRange& code = mapping.range;
    if (code.begin < place.end() && place.begin < code.end()) return std::nullopt;
  }
  if (!first) return std::nullopt;
  return CodeMapping{*first, place, elf.frames.begin, 0};
}

std::optional<std::uint16_t> machine_recorded(const Jitdump& dump, std::string_view arch) noexcept {
  const auto machines = elf_machines_of(arch);
  if (machines.empty()) return std::nullopt;
  const std::uint32_t said = dump.header() ? dump.header()->elf_mach : 0;
  if (std::find(machines.begin(), machines.end(), said) != machines.end()) return std::nullopt;
  return machines.front();
}

}  // namespace perfmap
