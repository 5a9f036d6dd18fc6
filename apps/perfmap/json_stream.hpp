#pragma once

#include "convert.hpp"

namespace perfmap::app {

/// Whether the source is a stream whose entries can be printed as they come: a pipe on standard
/// input, to JSON lines.
bool may_stream(const ConvertOptions& options);

/// Prints the entries of a map on standard input as JSON lines, each as soon as it is there, and
/// holds no more than a line. Of another kind, all is read first.
ExitCode stream_jsonl(const ConvertOptions& options, const Console& console);

}  // namespace perfmap::app
