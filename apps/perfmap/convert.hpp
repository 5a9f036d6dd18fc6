// SPDX-License-Identifier: MIT
#pragma once

#include <array>
#include <cstdint>
#include <perfmap/timeline.hpp>
#include <span>
#include <string>

#include "command_line.hpp"
#include "source.hpp"

namespace perfmap::app {

/// The options of to-json, from-json and convert, which are one command with three defaults.
struct ConvertOptions {
  std::vector<Source> sources;  ///< one
  SourceOptions opening;
  std::string output = "-";
  std::string to = {};        ///< perf-map, jitdump, json, jsonl or elf
  std::string standard = {};  ///< the target without --to and a suffix; empty: none
  bool effective = false;
  bool code = false;  ///< JSON of a jitdump contains the code bytes
  std::uint64_t time = Timeline::kEnd;
  Overlap overlap = Overlap::last;
};

/// The suffixes of -o FILE that choose the format of a map.
inline constexpr std::array kMapSuffixes = {
    SuffixFormat{".map", "perf-map"}, SuffixFormat{".json", "json"},
    SuffixFormat{".dump", "jitdump"}, SuffixFormat{".jsonl", "jsonl"},
    SuffixFormat{".o", "elf"},        SuffixFormat{".elf", "elf"},
};

/// Declares all options of these commands; `standard` must be set.
void add_conversion(CommandOptions& command, ConvertOptions& options);
/// Chooses `to`; see CommandOptions::runs().
Result<void> choose_target(ConvertOptions& options, const Console& console);

/// JSON lines have no place for problems, so they go to standard error: so many of each rule.
inline constexpr std::size_t kMaxProblemsSaid = 20;
void say_problems(const Console& console, const Diagnostics& problems, const std::string& name);

ExitCode convert(const ConvertOptions& options, const Console& console);
/// The same for an opened source.
ExitCode convert_inputs(const ConvertOptions& options, std::vector<OpenedInput> opened,
                        const Console& console);
ExitCode convert_map(const ConvertOptions& options, Map map, const Opening& opening,
                     const Console& console);

/// Writes every record as JSON, or with --effective the code that existed at the time.
ExitCode convert_dump_to_json(const ConvertOptions& options, OpenedInput opened,
                              const Console& console);

/// Writes a jitdump of all opened sources. JSON of a jitdump gives the original bytes.
ExitCode convert_to_jitdump(const ConvertOptions& options, std::vector<OpenedInput> opened,
                            const Console& console);

/// The sources as jitdumps. Entries of maps have time 0, and the pid of the file name `output`.
Result<std::vector<Jitdump>> dumps_of(std::vector<OpenedInput> opened, const SourceOptions& options,
                                      const std::string& output, const Console& console);
/// PID of jit-PID.dump, because perf takes it from the name; 0 for other names.
std::uint32_t pid_of_dump(const std::string& path);
/// Prints for how many functions the source has no code. A jitdump has zeros there.
void note_without_code(const Console& console, const std::string& source, std::uint64_t count);
/// Merges dumps, and prints notes about changes.
ExitCode write_merged_dumps(const std::vector<Jitdump>& dumps, OutputFile& out,
                            const Console& console);

/// convert --to elf: one ELF file with the code of a jitdump at `time`.
ExitCode convert_to_elf(const ConvertOptions& options, const Console& console);

/// Whether entries can be printed as they arrive: from a pipe on standard input to JSON lines.
bool may_stream(const ConvertOptions& options);

/// Prints the entries of a map on standard input as JSON lines, each as soon as it arrives, with
/// one line in memory. Sources of other kinds are read completely first.
ExitCode stream_jsonl(const ConvertOptions& options, const Console& console);

}  // namespace perfmap::app
