// SPDX-License-Identifier: MIT
// Prints the code bytes of a machine's trampoline for a disassembler: trampoline_bytes MACHINE

#include <cstdio>
#include <string_view>

#include "writer/trampoline.hpp"

int main(int count, char** arguments) {
  if (count != 2) return 2;
  const bool arm = std::string_view(arguments[1]) == "aarch64";
  const perfmap::TrampolineCode& code =
      arm ? perfmap::aarch64_trampoline() : perfmap::x86_64_trampoline();
  for (const unsigned char byte : code.instructions) std::printf("0x%02x ", byte);
  std::puts("");
  return 0;
}
