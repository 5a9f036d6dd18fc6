// SPDX-License-Identifier: MIT
// Runs a fuzz target on saved inputs without libFuzzer: fuzz_inputs TARGET FILE...

#include <cstdint>
#include <fstream>
#include <iostream>
#include <iterator>
#include <string_view>
#include <vector>

// The build renames each target's LLVMFuzzerTestOneInput().
#define FUZZ_TARGET(name) extern "C" int fuzz_##name(const std::uint8_t* data, std::size_t size);
#include "fuzz_targets.inc"
#undef FUZZ_TARGET

namespace {

struct Target {
  std::string_view name;
  int (*run)(const std::uint8_t* data, std::size_t size);
};

#define FUZZ_TARGET(name) {#name, fuzz_##name},
constexpr Target kTargets[] = {
#include "fuzz_targets.inc"
};

const Target* find_target(std::string_view name) {
  for (const Target& target : kTargets) {
    if (target.name == name) return &target;
  }
  return nullptr;
}

}  // namespace

int main(int count, char** arguments) {
  const Target* const target = count > 2 ? find_target(arguments[1]) : nullptr;
  if (target == nullptr) {
    std::cerr << "usage: fuzz_inputs TARGET FILE...\n";
    return 2;
  }
  for (int i = 2; i < count; ++i) {
    std::ifstream file(arguments[i], std::ios::binary);
    const std::vector<char> bytes{std::istreambuf_iterator<char>(file), {}};
    if (!file) return 1;
    target->run(reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size());
  }
  std::cout << count - 2 << " inputs\n";
}
