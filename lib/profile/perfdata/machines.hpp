#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace perfmap {

/// The ELF machines whose code runs where uname() reports `arch`; the native one first. Empty for
/// an unknown `arch`.
std::span<const std::uint16_t> elf_machines_of(std::string_view arch) noexcept;

}  // namespace perfmap
