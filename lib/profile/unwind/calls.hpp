#pragma once

#include <optional>
#include <string_view>

#include "perfmap/profile/process_tracker.hpp"
#include "perfmap/profile/unwinder.hpp"

namespace perfmap {

/// Whether the last instruction is a call, near or far, through a register or memory, whatever its
/// prefixes: as far as its bytes tell, which may be a part of another. i386 has one call more than
/// x86-64.
bool ends_with_call_x86(std::string_view code) noexcept;
bool ends_with_call_x86_64(std::string_view code) noexcept;
bool ends_with_call_aarch64(std::string_view code) noexcept;
/// Of any machine; nothing where we do not know its calls.
std::optional<bool> ends_with_call(Machine machine, std::string_view code) noexcept;

/// Whether this code ends a signal's handler by rt_sigreturn(2), as the function does whose address
/// the kernel, or the C library, lets handlers return to: nobody calls it.
bool is_signal_return(Machine machine, std::string_view code) noexcept;

/// UnwindSpace::return_site() of a runtime's code at the end, of which nothing but its sources is
/// known.
ReturnSite return_site_in(const JitSources& sources, Address pc);

}  // namespace perfmap
