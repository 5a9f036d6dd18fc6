// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <string_view>

#include "writer/engines.hpp"
#include "writer/trampoline.hpp"

/// What the C and the C++ interface of the writers say about a failed call. Needs libc alone.

namespace perfmap {

/// One line, and the numbers that go with it.
struct WriterMessage {
  std::int32_t status = 0;  ///< a perfmap_status, which has the numbers of Errc
  int sys_errno = 0;
  std::int32_t reason = 0;  ///< a perfmap_reason, which has the numbers of Reason
  char path[ForkSafeFile::kMaxPath] = {};
  char text[2 * ForkSafeFile::kMaxPath] = {};
};

/// The status of a failed call of a writer.
std::int32_t status_of(int sys_errno) noexcept;

/// "`what` `path`: <what errno means>".
WriterMessage message_of(const char* what, const char* path, int sys_errno) noexcept;
/// `what` alone.
WriterMessage whole_message(const char* what, int sys_errno) noexcept;
WriterMessage argument_message(const char* what) noexcept;
WriterMessage copy_message(const char* from, const char* to, int sys_errno) noexcept;
WriterMessage dump_message(const DumpFault& fault, const char* path) noexcept;
WriterMessage log_message(const char* path, int sys_errno) noexcept;
WriterMessage no_counter_message() noexcept;
WriterMessage activation_message(const TrampolineFault& fault) noexcept;
WriterMessage no_trampolines_message() noexcept;
/// With the name of the code object, without its control bytes.
WriterMessage trampoline_message(std::string_view name, int sys_errno) noexcept;

}  // namespace perfmap
