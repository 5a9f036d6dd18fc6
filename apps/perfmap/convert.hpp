#pragma once

#include <array>
#include <cstdint>
#include <perfmap/timeline.hpp>
#include <span>
#include <string>

#include "command_line.hpp"
#include "source.hpp"

namespace perfmap::app {

/// What to-json, from-json and convert have in common.
struct ConvertOptions {
  std::vector<Source> sources;  ///< one
  SourceOptions opening;
  std::string output = "-";
  std::string to = {};                          ///< perf-map, jitdump, json, jsonl or elf
  std::span<const SuffixFormat> suffixes = {};  ///< of -o FILE
  std::string standard = {};                    ///< without --to and a suffix; empty: none
  bool effective = false;
  bool code = false;  ///< JSON of a jitdump has its code
  std::uint64_t time = Timeline::kEnd;
  Overlap overlap = Overlap::last;
};

/// By which suffix of -o FILE a map's format is chosen.
inline constexpr std::array kMapSuffixes = {
    SuffixFormat{".map", "perf-map"}, SuffixFormat{".json", "json"},
    SuffixFormat{".dump", "jitdump"}, SuffixFormat{".jsonl", "jsonl"},
    SuffixFormat{".o", "elf"},        SuffixFormat{".elf", "elf"},
};

/// All options of these commands, by `suffixes` and `standard`.
void add_conversion(CommandOptions& command, ConvertOptions& options);
/// Chooses `to`; see CommandOptions::runs().
Result<void> choose_target(ConvertOptions& options, const Console& console);

/// JSON lines have no room for problems: they go to standard error, so many of each rule.
inline constexpr std::size_t kMaxProblemsSaid = 20;
void say_problems(const Console& console, const Diagnostics& problems, const std::string& name);

ExitCode convert(const ConvertOptions& options, const Console& console);
/// The same of what was opened already.
ExitCode convert_inputs(const ConvertOptions& options, std::vector<OpenedInput> opened,
                        const Console& console);
ExitCode convert_map(const ConvertOptions& options, Map map, const Opening& opening,
                     const Console& console);

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
/// For how many functions the source has no code, which is zeros in a jitdump.
void note_without_code(const Console& console, const std::string& source, std::uint64_t count);
/// Writes one of several, and says what was changed.
ExitCode write_merged_dumps(const std::vector<Jitdump>& dumps, OutputFile& out,
                            const Console& console);

/// convert --to elf: one ELF file of a jitdump, as of `time`.
ExitCode convert_to_elf(const ConvertOptions& options, const Console& console);

/// Whether the source is a stream whose entries can be printed as they come: a pipe on standard
/// input, to JSON lines.
bool may_stream(const ConvertOptions& options);

/// Prints the entries of a map on standard input as JSON lines, each as soon as it is there, and
/// holds no more than a line. Of another kind, all is read first.
ExitCode stream_jsonl(const ConvertOptions& options, const Console& console);

}  // namespace perfmap::app
