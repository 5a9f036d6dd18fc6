// SPDX-License-Identifier: MIT
// Runs a fuzz target on saved inputs without libFuzzer: fuzz_inputs TARGET FILE...

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <fstream>
#include <iostream>
#include <memory>
#include <sstream>
#include <string_view>

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
    std::cerr << arguments[i] << '\n';  // the last one printed is the one that failed
    std::ifstream file(arguments[i], std::ios::binary);
    std::ostringstream text;
    if (!(text << file.rdbuf())) {
      std::cerr << "fuzz_inputs: error: cannot read " << arguments[i] << '\n';
      return 2;
    }
    // Of the exact size, so that ASan sees a read beyond the end.
    const std::size_t size = text.view().size();
    const auto bytes = std::make_unique_for_overwrite<std::uint8_t[]>(size);
    std::copy_n(text.view().begin(), size, bytes.get());
    target->run(bytes.get(), size);
  }
  std::cout << count - 2 << " inputs\n";
}
