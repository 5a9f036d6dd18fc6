// SPDX-License-Identifier: MIT
// Writes the code that exists at the end of a jitdump to one ELF file: to_elf DUMP ELF.

#include <iostream>
#include <perfmap/profile/inject.hpp>

int main(int count, char** arguments) {
  if (count != 3) return 2;
  perfmap::Result<perfmap::Input> input = perfmap::Input::open(arguments[1]);
  if (!input) {
    std::cerr << input.error().message() << '\n';
    return 2;
  }
  perfmap::Diagnostics problems(20);
  const perfmap::Timeline timeline(perfmap::Jitdump(*std::move(input)), problems);
  perfmap::Result<perfmap::OutputFile> out = perfmap::OutputFile::replace(arguments[2]);
  if (!out) return 2;
  const auto counts = perfmap::write_elf_image(timeline, perfmap::Timeline::kEnd, *out);
  if (!counts || !out->commit()) return 2;
  std::cout << counts->functions << " functions\n";
  return 0;
}
