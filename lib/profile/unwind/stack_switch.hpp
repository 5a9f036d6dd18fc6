// SPDX-License-Identifier: MIT
#pragma once

#include <optional>
#include <string_view>

#include "perfmap/profile/module.hpp"
#include "perfmap/profile/unwinder.hpp"
#include "unwind/code_bytes.hpp"
#include "unwind/leaf.hpp"

namespace perfmap {

// Code in which a thread leaves its stack for another one.

/// Whether the first function of a coroutine returns to this code, so that it has no caller:
/// glibc's makecontext() and Boost.Context. `before` and `after` are the bytes around the address.
bool is_coroutine_root(Machine machine, std::string_view before, std::string_view after) noexcept;

/// Within jump_fcontext() and ontop_fcontext() of Boost.Context, which have no unwinding
/// information: the caller on the stack that the stack pointer is on, which is the one that is left
/// or the one that is resumed.
std::optional<LeafFrame> fiber_switch_frame(Machine machine, const CodeAround& code) noexcept;

/// A function that calls another one on another stack than its own.
struct StackSwitch {
  std::string_view function;
  /// It switches between these calls only: others are made on its own stack.
  bool is_indirect = false;
  /// The caller waits for the callee, whose first frame pointer is the caller's.
  bool keeps_fp = false;
};

/// Whether `vaddr` is the last byte of such a call, in Go's runtime. The unwinding information
/// there is that of the function's own stack. Reads the symbols of Go programs, and of no others.
std::optional<StackSwitch> stack_switch(const Module& module, Machine machine, Address vaddr);

/// Whether the address is in such a function, whose rules are wrong while it has the other stack.
bool switches_stacks(const Module& module, Machine machine, Address vaddr);

}  // namespace perfmap
