// SPDX-License-Identifier: MIT
#include "unwind/calls.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <span>

#include "unwind/code_bytes.hpp"
#include "unwind/signal_return.hpp"

namespace perfmap {

namespace {

using namespace std::string_view_literals;

/// The length of `call *operand` (ff /2, and ff /3 for memory) without prefixes, from its ModRM and
/// SIB bytes.
std::size_t length_of_indirect_call(unsigned char modrm, unsigned char sib) noexcept {
  const unsigned mode = modrm >> 6;
  const unsigned base = modrm & 7;
  if (mode == 3) return 2;
  const std::size_t operand = base == 4 ? 3 : 2;
  if (mode == 1) return operand + 1;
  if (mode == 2) return operand + 4;
  const bool has_displacement = base == 5 || (base == 4 && (sib & 7) == 5);
  return operand + (has_displacement ? 4 : 0);
}

/// A far call has no register operand.
bool is_indirect_call(unsigned char modrm) noexcept {
  const unsigned which = modrm >> 3 & 7;
  return which == 2 || (which == 3 && modrm >> 6 != 3);
}

/// The last four bytes. Instructions are little-endian, also if the data is big-endian.
std::uint32_t last_word(std::string_view code) noexcept {
  code.remove_prefix(code.size() - 4);
  std::uint32_t word = 0;
  for (std::size_t i = sizeof word; i-- > 0;)
    word = word << 8 | static_cast<unsigned char>(code[i]);
  return word;
}

/// Stands for all machines whose calls are not known.
constexpr Machine kUnknown = Machine::s390x;

/// The code before an address.
struct CodeBefore {
  Machine machine = kUnknown;
  std::array<char, CodeAround::kBefore> room = {};
  std::string_view bytes;  ///< as many as a call can have; empty: not available
};

/// The last bytes of `code` before `offset`.
std::string_view up_to(std::string_view code, std::uint64_t offset) noexcept {
  if (offset > code.size()) return {};
  const std::uint64_t count = std::min<std::uint64_t>(offset, CodeAround::kBefore);
  return code.substr(static_cast<std::size_t>(offset - count), static_cast<std::size_t>(count));
}

/// From a segment, which may begin fewer bytes before the address.
std::string_view before_in_module(const Module& module, Address vaddr) noexcept {
  for (std::uint64_t count = CodeAround::kBefore; count > 0; --count) {
    const std::string_view code = module.bytes_at(vaddr - count);
    if (code.size() >= count) return code.substr(0, static_cast<std::size_t>(count));
  }
  return {};
}

void read(const UnwindSpace::State& space, const CodeRegion& region, Address pc, CodeBefore& code) {
  const auto count = std::min<std::uint64_t>(CodeAround::kBefore, pc - region.begin);
  const std::span<char> room = std::span(code.room).first(static_cast<std::size_t>(count));
  if (space.read_code(pc - count, room) >= count) code.bytes = {room.data(), room.size()};
}

/// Nothing if the dump does not state it: some producers do not know it.
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
  code.machine = space.machine.value_or(space.is_unwound ? Machine::x86_64 : kUnknown);
  if (region.module != nullptr) {
    code.machine = machine_of(*region.module).value_or(kUnknown);
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

/// Code of runtimes never is a signal trampoline.
bool is_signal_return_at(const CodeRegion& region, Address pc) noexcept {
  if (region.module == nullptr) return false;
  const auto machine = machine_of(*region.module);
  return machine && is_signal_return(*machine, region.module->bytes_at(pc + region.delta));
}

/// The function that covers an address, by names alone.
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

/// Source: Intel 64 and IA-32 Architectures Software Developer's Manual, volume 2, "CALL".
bool ends_with_call_x86_64(std::string_view code) noexcept {
  constexpr std::size_t kRelative = 5;
  constexpr std::size_t kLongest = 7;
  if (code.size() >= kRelative && code[code.size() - kRelative] == '\xe8') return true;
  for (std::size_t length = 2; length <= std::min(kLongest, code.size()); ++length) {
    const std::string_view call = code.substr(code.size() - length);
    const auto modrm = static_cast<unsigned char>(call[1]);
    const auto sib = static_cast<unsigned char>(length > 2 ? call[2] : 0);
    if (call[0] != '\xff' || !is_indirect_call(modrm)) continue;
    if (length_of_indirect_call(modrm, sib) == length) return true;
  }
  return false;
}

bool ends_with_call_x86(std::string_view code) noexcept {
  constexpr std::size_t kFar = 7;  // lcall $segment,$address
  if (code.size() >= kFar && code[code.size() - kFar] == '\x9a') return true;
  return ends_with_call_x86_64(code);
}

/// bl, blr, and blraa, blrab, blraaz, blrabz of pointer authentication. Source: Arm Architecture
/// Reference Manual for A-profile, C6.2.
bool ends_with_call_aarch64(std::string_view code) noexcept {
  constexpr std::size_t kLength = 4;
  if (code.size() < kLength) return false;
  const std::uint32_t word = last_word(code);
  const bool is_bl = (word & 0xfc00'0000) == 0x9400'0000;
  const bool is_blr = (word & 0xffff'fc1f) == 0xd63f'0000;
  const bool is_blr_zero = (word & 0xffff'f81f) == 0xd63f'081f;
  const bool is_blr_signed = (word & 0xffff'f800) == 0xd73f'0800;
  return is_bl || is_blr || is_blr_zero || is_blr_signed;
}

/// jal and jalr that write ra, or t0 as calls of millicode do, and c.jalr. Source: The RISC-V
/// Instruction Set Manual, volume I, 2.5 and 26.5.
bool ends_with_call_riscv64(std::string_view code) noexcept {
  if (code.size() < 2) return false;
  const auto high = static_cast<unsigned char>(code[code.size() - 1]);
  const auto low = static_cast<unsigned char>(code[code.size() - 2]);
  const bool has_register = (high & 0xf) != 0 || (low & 0x80) != 0;
  if ((high & 0xf0) == 0x90 && (low & 0x7f) == 0x02 && has_register) return true;
  if (code.size() < 4) return false;
  const std::uint32_t word = last_word(code);
  const std::uint32_t written = word & 0xfff;
  const bool is_jalr = (word & 0x7000) == 0 && (written == 0x0e7 || written == 0x2e7);
  return is_jalr || written == 0x0ef || written == 0x2ef;
}

/// bl and blx of Arm and of Thumb code. Source: Arm Architecture Reference Manual for A-profile,
/// F5.1.
bool ends_with_call_arm(std::string_view code) noexcept {
  if (code.size() < 2) return false;
  const auto half = [&](std::size_t from_end) {
    const std::string_view at = code.substr(code.size() - from_end);
    return static_cast<unsigned>(static_cast<unsigned char>(at[1]) << 8 |
                                 static_cast<unsigned char>(at[0]));
  };
  if ((half(2) & 0xff87) == 0x4780) return true;  // blx register, in Thumb code
  if (code.size() < 4) return false;
  if ((half(4) & 0xf800) == 0xf000 && (half(2) & 0xc000) == 0xc000) return true;
  const std::uint32_t word = last_word(code);
  const bool is_bl = (word & 0x0f00'0000) == 0x0b00'0000;
  const bool is_blx = (word & 0xfe00'0000) == 0xfa00'0000;
  const bool is_blx_register = (word & 0x0fff'fff0) == 0x012f'ff30;
  return is_bl || is_blx || is_blx_register;
}

std::optional<bool> ends_with_call(Machine machine, std::string_view code) noexcept {
  switch (machine) {
    case Machine::x86_64: return ends_with_call_x86_64(code);
    case Machine::x86: return ends_with_call_x86(code);
    case Machine::aarch64: return ends_with_call_aarch64(code);
    case Machine::riscv64: return ends_with_call_riscv64(code);
    case Machine::arm: return ends_with_call_arm(code);
    default: return std::nullopt;
  }
}

std::optional<Address> direct_call_target(Machine machine, std::string_view code,
                                          Address end) noexcept {
  if (machine == Machine::aarch64) {
    if (code.size() < 4 || (last_word(code) & 0xfc00'0000) != 0x9400'0000) return std::nullopt;
    // 26 bits, in instructions
    const auto distance = static_cast<std::int32_t>(last_word(code) << 6) >> 4;
    return end - 4 + static_cast<Address>(std::int64_t{distance});
  }
  const bool is_x86 = machine == Machine::x86 || machine == Machine::x86_64;
  if (!is_x86 || code.size() < 5 || code[code.size() - 5] != '\xe8') return std::nullopt;
  const Address target =
      end + static_cast<Address>(std::int64_t{static_cast<std::int32_t>(last_word(code))});
  return machine == Machine::x86 ? target & 0xffff'ffff : target;
}

ReturnSite UnwindSpace::return_site(Address pc, std::uint64_t time) const {
  const std::optional<CodeRegion> before = find_code(*state_, pc - 1, time);
  const bool is_one = before && pc < before->end;
  const std::optional<CodeRegion> here = is_one ? before : find_code(*state_, pc, time);
  if (here && is_signal_return_at(*here, pc)) return {false, false, true};
  if (!before) return {!here, false, false};
  CodeBefore code;
  find_bytes(*state_, *before, pc, time, code);
  if (!code.bytes.empty()) {
    if (const auto is_call = ends_with_call(code.machine, code.bytes))
      return {*is_call, false, before->module != nullptr};
  }
  const auto caller = named_range(*state_, before, pc - 1, time);
  const auto next = named_range(*state_, here, pc, time);
  if (!caller && next) return {false, true, false};
  return {true, caller && next && *caller != *next, false};
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
