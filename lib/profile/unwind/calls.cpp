#include <algorithm>
#include <cstring>

#include "unwind/leaf.hpp"

namespace perfmap {
namespace {

/// Bytes of `call *operand` (ff /2), but for prefixes, by its ModRM and SIB bytes.
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
    if (call[0] != '\xff' || (modrm >> 3 & 7) != 2) continue;
    if (length_of_indirect_call(modrm, sib) == length) return true;
  }
  return false;
}

/// bl, blr and its forms with pointer authentication. Source: Arm Architecture Reference Manual
/// for A-profile, C6.2.
bool ends_with_call_aarch64(std::string_view code) noexcept {
  std::uint32_t word = 0;
  if (code.size() < sizeof word) return false;
  std::memcpy(&word, code.data() + code.size() - sizeof word, sizeof word);
  return (word & 0xfc000000) == 0x94000000 || (word & 0xfefff000) == 0xd63f0000;
}

}  // namespace perfmap
