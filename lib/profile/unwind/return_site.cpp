#include "unwind/return_site.hpp"

#include <algorithm>
#include <array>
#include <span>

#include "unwind/calls.hpp"
#include "unwind/code_bytes.hpp"

namespace perfmap {
namespace {

/// Stands for all machines whose calls we do not know.
constexpr Machine kUnknown = Machine::arm;

/// The code up to an address.
struct CodeBefore {
  Machine machine = Machine::x86_64;
  std::array<char, CodeBytes::kBefore> room = {};
  std::string_view bytes;  ///< as many as calls have; empty: nobody has them
};

/// The last bytes of `code` before `offset`.
std::string_view up_to(std::string_view code, std::uint64_t offset) noexcept {
  if (offset > code.size()) return {};
  const std::uint64_t count = std::min<std::uint64_t>(offset, CodeBytes::kBefore);
  return code.substr(static_cast<std::size_t>(offset - count), static_cast<std::size_t>(count));
}

/// Of a segment, which may begin less than that before the address.
std::string_view before_in_module(const Module& module, Address vaddr) noexcept {
  for (std::uint64_t count = CodeBytes::kBefore; count > 0; --count) {
    const std::string_view code = module.bytes_at(vaddr - count);
    if (code.size() >= count) return code.substr(0, static_cast<std::size_t>(count));
  }
  return {};
}

void read(const UnwindSpace::State& space, const CodeRegion& region, Address pc, CodeBefore& code) {
  const auto count = std::min<std::uint64_t>(CodeBytes::kBefore, pc - region.begin);
  const std::span<char> room = std::span(code.room).first(static_cast<std::size_t>(count));
  if (space.read_code(pc - count, room) >= count) code.bytes = {room.data(), room.size()};
}

/// Not every producer knows it.
std::optional<Machine> machine_of_dump(const Jitdump& dump) noexcept {
  const auto header = dump.header();
  if (!header || header->elf_mach > UINT16_MAX) return std::nullopt;
  return machine_of(static_cast<std::uint16_t>(header->elf_mach));
}

bool has_dumps(const UnwindSpace::State& space) noexcept {
  return std::any_of(space.jit.begin(), space.jit.end(),
                     [](const auto& sources) { return !sources->resolver().timelines().empty(); });
}

/// `region` covers the byte before the pc.
void find_bytes(const UnwindSpace::State& space, const CodeRegion& region, Address pc,
                std::uint64_t time, CodeBefore& code) {
  code.machine = space.machine;
  if (region.module != nullptr) {
    code.machine = machine_of(region.module->machine()).value_or(kUnknown);
    code.bytes = before_in_module(*region.module, pc + region.delta);
    return;
  }
  const auto dumped = has_dumps(space) ? find_dumped(space, pc - 1, time) : std::nullopt;
  if (dumped) {
    code.machine = machine_of_dump(*dumped->dump).value_or(code.machine);
    code.bytes = up_to(code_of(*dumped), dumped->offset + 1);
  }
  if (code.bytes.empty() && space.read_code) read(space, region, pc, code);
}

/// Code of runtimes is no signal's trampoline.
bool is_signal_return_at(const CodeRegion& region, Address pc) noexcept {
  if (region.module == nullptr) return false;
  const auto machine = machine_of(region.module->machine());
  return machine && is_signal_return(*machine, region.module->bytes_at(pc + region.delta));
}

/// The function that covers an address, by its name alone.
std::optional<AddressRange> named_range(const UnwindSpace::State& space,
                                        const std::optional<CodeRegion>& region, Address address,
                                        std::uint64_t time) {
  if (!region) return std::nullopt;
  if (region->module != nullptr) {
    const auto symbol = region->module->find_symbol(address + region->delta);
    return symbol ? std::optional(symbol->range) : std::nullopt;
  }
  for (const auto& sources : space.jit) {
    const Resolution found = sources->find({address, time});
    if (found.found) return found.found->range;
  }
  return std::nullopt;
}

}  // namespace

ReturnSite UnwindSpace::return_site(Address pc, std::uint64_t time) const {
  const std::optional<CodeRegion> before = find_code(*state_, pc - 1, time);
  const bool is_one = before && pc < before->end;
  const std::optional<CodeRegion> here = is_one ? before : find_code(*state_, pc, time);
  if (here && is_signal_return_at(*here, pc)) return {false, false};
  if (!before) return {!here, false};
  CodeBefore code;
  find_bytes(*state_, *before, pc, time, code);
  if (!code.bytes.empty()) {
    if (const auto is_call = ends_with_call(code.machine, code.bytes)) return {*is_call, false};
  }
  const auto caller = named_range(*state_, before, pc - 1, time);
  const auto next = named_range(*state_, here, pc, time);
  if (!caller && next) return {false, true};
  return {true, caller && next && *caller != *next};
}

ReturnSite return_site_in(const JitSources& sources, Address pc) {
  Region everything;
  everything.range = {0, UINT64_MAX};
  everything.access.execute = true;
  everything.file = std::make_shared<MappedFile>();
  UnwindSpace::Options options;
  options.jit = {std::shared_ptr<const JitSources>(std::shared_ptr<void>(), &sources)};
  const auto space = AddressSpace::of({&everything, 1});
  return UnwindSpace::make(*space, options)->return_site(pc, Timeline::kEnd);
}

}  // namespace perfmap
