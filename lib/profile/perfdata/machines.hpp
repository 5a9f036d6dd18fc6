#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace perfmap {

/// The ELF machines whose code runs on one that uname() calls `arch`: its own first. None of one
/// that is not known.
std::span<const std::uint16_t> elf_machines_of(std::string_view arch) noexcept;

}  // namespace perfmap
