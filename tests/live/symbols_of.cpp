// SPDX-License-Identifier: MIT
// Prints the symbols of addresses in an ELF file: symbols_of FILE DEBUG_DIRECTORY < ADDRESSES
// Each line of output: the address, then the symbol's address, size and name, if there is one.

#include <cstdio>
#include <string>

#include "perfmap/profile/module.hpp"

int main(int count, char** words) {
  if (count != 3) return 2;
  const auto module = perfmap::Module::open(words[1], {"", {words[2]}});
  if (!module) {
    std::fprintf(stderr, "%s\n", module.error().message().c_str());
    return 1;
  }
  unsigned long long address = 0;
  while (std::scanf("%llx", &address) == 1) {
    const auto symbol = (*module)->find_symbol(address);
    if (!symbol) {
      std::printf("%llx\n", address);
      continue;
    }
    std::printf("%llx %llx %llx %.*s\n", address,
                static_cast<unsigned long long>(symbol->range.begin),
                static_cast<unsigned long long>(symbol->range.size),
                static_cast<int>(symbol->name.size()), symbol->name.data());
  }
  return 0;
}
