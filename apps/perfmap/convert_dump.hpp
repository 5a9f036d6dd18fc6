#pragma once

#include "convert.hpp"

namespace perfmap::app {

/// Every record as JSON, or with --effective what was there.
ExitCode convert_dump_to_json(const ConvertOptions& options, OpenedInput opened,
                              const Console& console);

/// A jitdump of everything that was opened; what was JSON of one comes out as it was.
ExitCode convert_to_jitdump(const ConvertOptions& options, std::vector<OpenedInput> opened,
                            const Console& console);

/// The jitdumps that these are, a map's entries with time 0; for one that will be called `output`.
Result<std::vector<Jitdump>> dumps_of(std::vector<OpenedInput> opened, const SourceOptions& options,
                                      const std::string& output, const Console& console);
/// PID of jit-PID.dump, which perf goes by; 0 of other names.
std::uint32_t pid_of_dump(const std::string& path);
/// Of how many functions of a jitdump the code is zeros.
void note_without_code(const Console& console, std::uint64_t count);
/// Writes one of several, and says what was changed.
ExitCode write_merged_dumps(const std::vector<Jitdump>& dumps, OutputFile& out,
                            const Console& console);

}  // namespace perfmap::app
