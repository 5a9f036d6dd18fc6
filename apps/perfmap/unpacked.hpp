// SPDX-License-Identifier: MIT
#pragma once

#include <perfmap/types.hpp>
#include <string>

#include "console.hpp"

namespace perfmap::app {

/// The path to read a recording from: `path`, or, if it is an archive of a recording directory, a
/// private temporary directory with its files, below TMPDIR or /tmp. The directory is removed at
/// the end of the program, also if a signal ends it. Unpacks an archive once. From then on messages
/// name the archive in the place of the directory. Fails as unpack_archive(). Two threads may not
/// unpack the same archive at a time.
Result<std::string> unpacked(const std::string& path, const Console& console);

/// The directory of an archive that was unpacked; `path` for all else.
std::string unpacked_directory(const std::string& path);

/// Removes the directory of an archive now. Does nothing for all else.
void remove_unpacked(const std::string& path);

}  // namespace perfmap::app
