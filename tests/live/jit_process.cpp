// SPDX-License-Identifier: MIT
// Usage: jit_process DUMP. Writes a jitdump of generated code, then stops at a breakpoint in it.
// x86-64 only.

#include <cstdio>
#include <cstring>
#include <string>
#include <sys/mman.h>

#include "support/jitdump_bytes.hpp"

namespace {

using namespace std::string_literals;

/// Allocates room on the stack, and leaves no frame pointer: without unwinding information the
/// caller cannot be found.
const std::string kCode =
    "\x48\x81\xec\x08\x01\x00\x00"  // sub $0x108, %rsp
    "\x55"                          // push %rbp
    "\x31\xed"                      // xor %ebp, %ebp
    "\xcc"                          // int3
    "\x5d"                          // pop %rbp
    "\x48\x81\xc4\x08\x01\x00\x00"  // add $0x108, %rsp
    "\xc3"s;                        // ret

/// What a compiler would write: a CIE, and an FDE relative to its place after the code.
std::string frames() {
  const std::string cie = "\x14\0\0\0\0\0\0\0\x01zR\0\x01\x78\x10\x01\x1b\x0c\x07\x08\x90\x01\0\0"s;
  std::string fde = "\x18\0\0\0\x1c\0\0\0"s;
  const auto back = -static_cast<std::int32_t>(24 + cie.size() + fde.size());
  fde.append(reinterpret_cast<const char*>(&back), sizeof back);
  fde += static_cast<char>(kCode.size());
  // CFA = rsp + 0x110 after the sub, rsp + 0x118 after the push, which saved rbp.
  fde += "\0\0\0\0\x47\x0e\x90\x02\x41\x0e\x98\x02\x86\x23\0"s;
  return cie + fde;
}

}  // namespace

extern "C" [[gnu::noinline]] int call_jit_code(int (*code)()) { return code() + 1; }

int main(int count, char** arguments) {
  if (count != 2) return 2;
  void* const place =
      ::mmap(nullptr, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (place == MAP_FAILED) return 3;
  std::memcpy(place, kCode.data(), kCode.size());
  const auto address = reinterpret_cast<std::uint64_t>(place);

  perfmap::test::DumpBytes dump;
  dump.header().unwinding(1, frames(), 0, 0);
  dump.debug_info(1, address, {{address, 10, 0, "/demo.js"}, {address + 10, 12, 0, "/demo.js"}});
  dump.load(1, address, "jit_code", kCode);
  std::FILE* const file = std::fopen(arguments[1], "wb");
  if (file == nullptr) return 3;
  const std::string bytes = dump.text();
  const bool written = std::fwrite(bytes.data(), 1, bytes.size(), file) == bytes.size();
  if (std::fclose(file) != 0 || !written) return 3;
  return call_jit_code(reinterpret_cast<int (*)()>(place)) == 0 ? 1 : 0;
}
