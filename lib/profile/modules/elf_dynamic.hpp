#pragma once

#include <string_view>

#include "modules/elf_layout.hpp"

namespace perfmap {

/// For a file without section headers: the sections of its dynamic symbols and their names, as
/// PT_DYNAMIC tells where they are loaded; no more than what hash tables count. `dynamic` is that
/// segment's content.
void add_dynamic_symbols(std::string_view file, std::string_view dynamic, ElfLayout& layout);

}  // namespace perfmap
