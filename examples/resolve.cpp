// SPDX-License-Identifier: MIT
// Prints the name of the code at an address: resolve MAP ADDRESS.

#include <iostream>
#include <perfmap/index.hpp>

int main(int count, char** arguments) {
  if (count != 3) return 2;
  perfmap::Result<perfmap::Input> input = perfmap::Input::open(arguments[1]);
  const auto address = perfmap::parse_hex(arguments[2]);
  if (!input || !address) {
    std::cerr << (input ? "no address" : input.error().message()) << '\n';
    return 2;
  }
  std::vector<perfmap::Map> maps;
  maps.emplace_back(*std::move(input));
  perfmap::Diagnostics problems(20);
  const perfmap::Index index(std::move(maps), perfmap::Overlap::last, problems);
  const auto entry = index.find_entry(*address);
  if (!entry) return 1;
  std::cout << entry->name << "+0x" << std::hex << *address - entry->range.begin << '\n';
  return 0;
}
