#pragma once

#include "pypylog_read.hpp"

namespace perfmap::app {

/// Tables of loops, categories and, if there are several, threads.
void write_loop_tables(const PypylogOptions& options, const LoopProfile& profile,
                       const std::optional<SampledLoops>& samples, OutputFile& out);

/// A loop's operations by the lines of the program that they are of; false where the log names no
/// such loop.
bool write_annotated(const std::string& name, const LogSource& source, const LoopProfile& profile,
                     OutputFile& out);
/// What there is instead of a loop that there is not.
std::string names_instead(const std::string& name, const LoopProfile& profile);

/// The log's spans, or the samples in its loops, in a format of stacks.
Result<void> write_loop_stacks(const PypylogOptions& options, LogSource& source,
                               const LoopProfile& profile,
                               const std::optional<SampledLoops>& samples, OutputFile& out,
                               const Console& console);

}  // namespace perfmap::app
