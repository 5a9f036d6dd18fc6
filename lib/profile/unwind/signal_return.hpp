// SPDX-License-Identifier: MIT
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "perfmap/profile/unwinder.hpp"

namespace perfmap {

/// The code that ends a signal handler with rt_sigreturn(2) or sigreturn(2). The kernel or the C
/// library puts its address on the stack as the handler's return address, so no call precedes it.
bool is_signal_return(Machine machine, std::string_view code) noexcept;

/// Where the kernel saved the registers of the interrupted code.
struct SavedContext {
  std::int16_t offset = 0;  ///< from the stack pointer, or from the pointer
  bool is_pointer = false;  ///< at two words above the stack pointer is a pointer to the ucontext

  friend bool operator==(const SavedContext&, const SavedContext&) = default;
};

/// Of a pc within that code, or right after its system call: `before` and `after` are the bytes
/// around the pc.
struct SignalReturnPlace {
  SavedContext context;
  bool is_at_end = false;  ///< the next function may begin here as well
};
std::optional<SignalReturnPlace> find_signal_return(Machine machine, std::string_view before,
                                                    std::string_view after) noexcept;

/// All that trampolines of one machine have before the system call, each once.
struct SavedContexts {
  std::array<SavedContext, 4> all = {};
  std::size_t count = 0;

  const SavedContext* begin() const noexcept { return all.data(); }
  const SavedContext* end() const noexcept { return all.data() + count; }
};
SavedContexts signal_contexts(Machine machine) noexcept;

}  // namespace perfmap
