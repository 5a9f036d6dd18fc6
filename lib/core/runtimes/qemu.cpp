// SPDX-License-Identifier: MIT
// QEMU: guest-0x400123, or tb-0x and the address of the translated block; and its prologue.

#include "runtimes/catalogue.hpp"

namespace perfmap::runtimes {
namespace {

std::optional<DecodedName> decode(std::string_view raw) {
  if (!raw.starts_with("guest-0x") && !raw.starts_with("tb-0x") && raw != "tcg-prologue-buffer") {
    return std::nullopt;
  }
  return DecodedName{.runtime = Runtime::qemu, .function = raw};
}

/// Libraries of the guest lie elsewhere in each run; a program at fixed addresses has shorter ones.
constexpr RunNumber kRunNumbers[] = {{.after = "tb", .mark = "-0x", .is_address = true},
                                     {.after = "guest", .mark = "-0x", .is_address = true}};

}  // namespace

constinit const RuntimeInfo kQemu = {
    .runtime = Runtime::qemu,
    .id = "qemu",
    .title = "QEMU",
    .names = {.decode = decode, .run_numbers = kRunNumbers},
    .guide = {.title = "QEMU (user mode)",
              .start = "qemu-x86_64 -perfmap",
              .writes = "perf map",
              .names = "instructions of the guest",
              .since = "8.0"},
};

}  // namespace perfmap::runtimes
