// SPDX-License-Identifier: MIT
#pragma once

#include <optional>
#include <string_view>

#include "perfmap/profile/process_tracker.hpp"
#include "perfmap/profile/unwinder.hpp"

namespace perfmap {

/// Whether the code ends with a call instruction, near or far, through a register or memory, with
/// any prefixes. Judged by the bytes alone, which may be part of another instruction. i386 has one
/// more call instruction than x86-64.
bool ends_with_call_x86(std::string_view code) noexcept;
bool ends_with_call_x86_64(std::string_view code) noexcept;
bool ends_with_call_aarch64(std::string_view code) noexcept;
bool ends_with_call_riscv64(std::string_view code) noexcept;
bool ends_with_call_arm(std::string_view code) noexcept;
/// For any machine; nothing if its calls are not known.
std::optional<bool> ends_with_call(Machine machine, std::string_view code) noexcept;
/// The target of the call that ends the code at an address, if the instruction has it: on x86 and
/// aarch64.
std::optional<Address> direct_call_target(Machine machine, std::string_view code,
                                          Address end) noexcept;

/// Like UnwindSpace::return_site(), for runtime code at the end of the recording, of which only the
/// sources are known.
ReturnSite return_site_in(const JitSources& sources, Address pc);

}  // namespace perfmap
