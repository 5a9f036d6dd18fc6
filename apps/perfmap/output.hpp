// SPDX-License-Identifier: MIT
#pragma once

#include <optional>
#include <perfmap/index.hpp>
#include <perfmap/jit_paths.hpp>
#include <perfmap/output_file.hpp>
#include <perfmap/writer.hpp>
#include <string>

#include "command_line.hpp"
#include "source.hpp"

namespace perfmap::app {

/// "-" is standard output; anything else is replaced as a whole by commit().
Result<OutputFile> open_output(const std::string& path);

/// Commits the output made from `input`, unless `input` was truncated while it was read.
ExitCode commit_whole(OutputFile& out, const Input& input, const Console& console);

/// At most so many problems of each rule go into a JSON document, because a hostile input may have
/// one in every other byte.
inline constexpr std::size_t kMaxProblemsInJson = 10'000;

/// Why an index must not replace its map: no line of the file is an entry, so the file would become
/// empty. Nothing if it may.
std::optional<Error> objection_to_emptying(const Index& index, const Diagnostics& problems);

/// Writes the entries of the index as a portable perf map or as JSON, commits, and prints notes
/// about changed names and skipped lines.
ExitCode write_merged(Index& index, const Diagnostics& problems, bool as_json, OutputFile& out,
                      const Console& console);

/// The target of write and copy, and how they append to it.
struct AppendOptions {
  std::string pid;
  std::string output;
  bool strict = false;
};
void add_append_options(CommandOptions& command, AppendOptions& options);
/// Whether the options name a file or a process to append to; no_target() is the error if not.
bool has_target(const AppendOptions& options);
Error no_target();

/// A file that a writer appends to. It must live as long as the writer.
struct AppendTarget {
  std::optional<OutputPlace> place;  ///< nothing for standard output
  std::string path;                  ///< for the writer; empty for standard output
};

/// Finds the file, which need not exist. `of_process` makes the file name of --to-pid PID. Fails
/// for a file that another user may have planted; see OutputPlace. Messages of `console` show the
/// path as typed.
Result<AppendTarget> find_target(const AppendOptions& options, const JitFileName& of_process,
                                 const Console& console);

/// Opens a map for appending.
Result<MapWriter> open_target(const AppendOptions& options, const AppendTarget& target,
                              NameOf names_of, std::size_t buffer_bytes);

/// "changed N names for portability, such as 'a' to '[a]'", if there are any. --verbose lists them.
void note_changed_names(const Console& console, const ChangedNames& changed);
/// The same for names that were changed to fit into a map at all.
void note_unwritable_names(const Console& console, const ChangedNames& changed);

/// Whether entries are appended to a terminal. If so, names are written as printable() shows them.
bool goes_to_terminal(const AppendOptions& options, const Console& console);

/// The message of --strict for a name that would be changed: parts of the name before and after,
/// from shortly before the first difference.
std::string refusal(std::string_view name);

}  // namespace perfmap::app
