#pragma once

#include <string>
#include <sys/types.h>

#include "doctor/evidence.hpp"
#include "perfmap/text.hpp"

namespace perfmap {

/// "rm PATH", or "rm -r PATH" for a directory, with sudo where `reader` may not remove it.
std::string remove_command(const std::string& path, uid_t reader);

/// What is known when findings are made.
struct DoctorCase {
  const ProcessView& view;
  const DoctorOptions& options;
  FoundRuntime found = {};
  StartFlags asked = {};
  std::int64_t map_time_ns = 0;
  bool perf_opens_map = false;
  bool knows_arguments = true;  ///< else nothing tells what the process was started with
  bool is_gone = false;         ///< of a recording: the process has ended
  std::string subject = {};     ///< what `perfmap doctor` was given, for a shell; empty: the pid

  /// "The JVM": begins a sentence.
  std::string title() const;
  const RuntimeInfo& runtime() const noexcept { return runtime_info(found.runtime); }
  RuntimeProcess process(bool has_jit = false) const noexcept {
    return {view, asked, found.version, has_jit};
  }
  bool is_too_old() const noexcept { return perfmap::is_too_old(runtime(), found.version); }
  /// It only interprets, and has no code that a map could name.
  bool has_no_code() const noexcept {
    return asked.only_interprets && runtime().doctor.interprets_without_code;
  }
};

/// What makes the living process write its map, such as `jcmd PID Compiler.perfmap`, as it has to
/// be called from here; empty where there is no such command.
std::string live_command(const DoctorCase& facts);
/// The command with which the runtime names its code; `has_jit`: it has made some already.
std::string naming_command(const DoctorCase& facts, bool has_jit);
/// The runtime's own command line, changed so that it names its code when it is started anew; of
/// LuaJIT there is none.
CommandLine naming_command_line(const DoctorCase& facts, bool has_jit);
/// NAME=VALUE that tell a runtime the same, whoever starts it; none where there are no such, or its
/// version does not know them.
std::vector<std::string> naming_variables(const DoctorCase& facts);
/// What makes the runtime keep stacks, without what the process was given.
StackFlags stack_flags(const DoctorCase& facts);
/// The log of a runtime that writes one, as we see it; empty where it does not.
std::string log_of(const DoctorCase& facts);

/// Why there are no names, or that those that are there cannot be relied on: findings that a living
/// process and one of a recording have in common.
void add_name_findings(const DoctorCase& facts, Diagnosis& diagnosis);

/// Where perf does not look into a map.
std::string ignored_text(const JitMemory& memory);
/// A jitdump that is damaged, and what shows where.
std::string damage_text(const LookedFor& file);
std::string damage_fix(const LookedFor& file);

/// The map, or the dump, that is used; null where there is none.
const LookedFor* used_file(const Diagnosis& diagnosis, bool is_dump) noexcept;

std::string visible(std::string_view bytes);
/// "812 B", "13 KiB", "1.2 MiB"
std::string size_text(std::uint64_t bytes);
/// "12 %", "under 1 %".
std::string percent_text(std::uint64_t part, std::uint64_t whole);

}  // namespace perfmap
