#pragma once

#include "opened_input.hpp"

namespace perfmap::app {

/// What `info` says of a jitdump, which was a file of `kind`.
ExitCode print_dump_info(Jitdump dump, SourceKind kind, bool as_json, const Console& console);

}  // namespace perfmap::app
