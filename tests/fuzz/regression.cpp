// SPDX-License-Identifier: MIT
// Runs a fuzz target on saved inputs without libFuzzer: regression FILE...

#include <cstdint>
#include <fstream>
#include <iostream>
#include <iterator>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

int main(int count, char** files) {
  for (int i = 1; i < count; ++i) {
    std::ifstream file(files[i], std::ios::binary);
    const std::vector<char> bytes{std::istreambuf_iterator<char>(file), {}};
    if (!file) return 1;
    LLVMFuzzerTestOneInput(reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size());
  }
  std::cout << count - 1 << " inputs\n";
  return count > 1 ? 0 : 1;
}
