// SPDX-License-Identifier: MIT
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <libelf.h>

#include "support/elf_of.hpp"

/// The ELF file of any dump can be opened, and is not much larger than the dump.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string dump(reinterpret_cast<const char*>(data), size);
  perfmap::test::ElfOf made(dump);
  if (made.bytes.size() > 64 * size + (std::size_t{2} << 20)) std::abort();
  elf_version(EV_CURRENT);
  Elf* const elf = elf_memory(made.bytes.data(), made.bytes.size());
  std::size_t sections = 0;
  if (elf == nullptr || elf_getshdrnum(elf, &sections) != 0 || sections < 3) std::abort();
  elf_end(elf);
  return 0;
}
