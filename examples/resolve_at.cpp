// SPDX-License-Identifier: MIT
// Prints the name of the code that was at an address at a time: resolve_at JITDUMP ADDRESS
// NANOSECONDS.

#include <cstdlib>
#include <iostream>
#include <perfmap/jitdump.hpp>
#include <perfmap/timeline.hpp>

int main(int count, char** arguments) {
  if (count != 4) return 2;
  perfmap::Result<perfmap::Input> input = perfmap::Input::open(arguments[1]);
  const auto address = perfmap::parse_hex(arguments[2]);
  if (!input || !address) {
    std::cerr << (input ? "no address" : input.error().message()) << '\n';
    return 2;
  }
  perfmap::Diagnostics problems(20);
  const perfmap::Timeline timeline(perfmap::Jitdump(*std::move(input)), problems);
  const auto found = timeline.find(*address, std::strtoull(arguments[3], nullptr, 10));
  if (!found) return 1;
  const auto record = timeline.dump().record_at(found->load);
  const auto load = record ? perfmap::decode_load(*record) : std::nullopt;
  if (!load) return 1;
  std::cout << load->name << "+0x" << std::hex << *address - found->range.begin << '\n';
  return 0;
}
