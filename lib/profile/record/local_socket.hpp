// SPDX-License-Identifier: MIT
#pragma once

#include <chrono>
#include <cstddef>
#include <string>
#include <string_view>
#include <sys/types.h>

#include "base/descriptor.hpp"
#include "perfmap/types.hpp"

namespace perfmap {

/// Connects to the Unix socket at `path`. Another process may listen on a socket with the right
/// name, so the listener must be `listener`. Does not wait. The message of an error is only the
/// reason, without a subject.
Result<Descriptor> connect_to_process(const std::string& path, pid_t listener);

/// Sends a whole request at once: the requests are small.
Result<void> send_request(const Descriptor& socket, std::string_view request);

/// Reads up to the end, `max_size` bytes, or the end of the time.
std::string read_reply(const Descriptor& socket, std::size_t max_size,
                       std::chrono::steady_clock::time_point until);

}  // namespace perfmap
