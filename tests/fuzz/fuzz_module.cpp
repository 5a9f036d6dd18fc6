// SPDX-License-Identifier: MIT
#include <cstdint>
#include <cstdlib>
#include <string>

#include "perfmap/profile/module.hpp"

namespace {

using perfmap::Address;
using perfmap::Module;

void require(bool truth) {
  if (!truth) std::abort();
}

/// Looks up an address at which results may change, and its neighbours.
void ask(const Module& module, Address address) {
  for (Address near = address - 1; near != address + 2; ++near) {
    const auto symbol = module.find_symbol(near);
    if (!symbol) continue;
    require(symbol->range.contains(near));
    require(symbol->name.size() <= module.bytes().size() + (std::size_t{64} << 20));
    require(module.demangled(*symbol).size() <= symbol->name.size() + (std::size_t{64} << 10));
  }
  module.is_code(address);
  require(module.bytes_at(address).size() <= module.bytes().size());
}

}  // namespace

/// For any file, results are within the file, and a symbol covers the requested address.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::string bytes(reinterpret_cast<const char*>(data), size);
  const auto opened = Module::open(perfmap::Input::from_text(std::move(bytes), "fuzz"));
  if (!opened) return 0;
  const Module& module = **opened;
  require(module.debug_file() == nullptr && module.build_id().size() <= 64);
  for (const auto& segment : module.segments()) {
    ask(module, segment.range.begin);
    ask(module, segment.range.end());
    const auto address = module.file_offset_to_vaddr(segment.offset);
    if (address) module.vaddr_to_file_offset(*address);
  }
  for (const auto& section : module.sections()) {
    ask(module, section.address);
    require(module.bytes_of(section).size() <= module.bytes().size());
    require(section.name.size() <= module.bytes().size());
    if (const auto symbol = module.find_symbol(section.address + section.size / 2)) {
      ask(module, symbol->range.begin);
      ask(module, symbol->range.end());
    }
  }
  require(module.bytes_held() >= module.bytes().size());
  return 0;
}
