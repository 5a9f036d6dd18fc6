// SPDX-License-Identifier: MIT
#pragma once

#include <string>
#include <sys/types.h>

#include "doctor/evidence.hpp"
#include "perfmap/text.hpp"

namespace perfmap {

/// "rm PATH", or "rm -r PATH" for a directory, with sudo if `reader` may not remove it.
std::string remove_command(const std::string& path, uid_t reader);

/// All facts from which findings are made.
struct DoctorCase {
  const ProcessView& view;
  const DoctorOptions& options;
  FoundRuntime found = {};
  StartFlags asked = {};
  std::int64_t map_time_ns = 0;
  bool perf_opens_map = false;
  bool knows_arguments = true;  ///< false: it is unknown how the process was started
  bool is_gone = false;         ///< in a recording: the process has ended
  /// The recording, quoted for a shell; empty: a process is examined.
  std::string recording = {};
  /// The same after the options with which it is read: the end of proposed command lines.
  std::string reading = {};

  /// "the JVM".
  std::string title() const { return std::string(title_of(found.runtime)); }
  const RuntimeInfo& runtime() const noexcept { return runtime_info(found.runtime); }
  RuntimeProcess process(bool has_jit = false) const noexcept {
    return {view, asked, found.version, has_jit};
  }
  bool is_too_old() const noexcept { return perfmap::is_too_old(runtime(), found.version); }
  /// The runtime only interprets, so it has no code that a map could name.
  bool has_no_code() const noexcept {
    return asked.only_interprets && runtime().doctor.interprets_without_code;
  }
};

/// The command that makes the living process write its map, such as `jcmd PID Compiler.perfmap`, in
/// the form needed from here; empty if there is none.
std::string live_command(const DoctorCase& facts);
/// The command after which the runtime names its code; `has_jit`: it has generated code already.
std::string naming_command(const DoctorCase& facts, bool has_jit);
/// The runtime's own command line, changed so that it names its code after a restart; empty for
/// LuaJIT.
CommandLine naming_command_line(const DoctorCase& facts, bool has_jit);
/// NAME=VALUE settings with the same effect, which work with any way of starting the program; empty
/// if there are none, or the version does not support them.
std::vector<std::string> naming_variables(const DoctorCase& facts);
/// The flags that make the runtime's stacks walkable, without those that the process already has.
StackFlags stack_flags(const DoctorCase& facts);
/// The path on our side of the log that the runtime writes; empty if it does not.
std::string log_of(const DoctorCase& facts);

/// Why names are missing or unreliable: the findings shared by living and recorded processes.
void add_name_findings(const DoctorCase& facts, Diagnosis& diagnosis);

/// Why perf ignores a map for this memory.
std::string ignored_text(const JitMemory& memory);
/// Describes a damaged jitdump, with a command that shows the damage.
std::string damage_text(const LookedFor& file);
std::string damage_fix(const LookedFor& file);

/// The map or the dump in use; null if there is none.
const LookedFor* used_file(const Diagnosis& diagnosis, bool is_dump) noexcept;

std::string visible(std::string_view bytes);
/// "812 B", "13 KiB", "1.2 MiB"
std::string size_text(std::uint64_t bytes);
/// "12 %", "under 1 %".
std::string percent_text(std::uint64_t part, std::uint64_t whole);

}  // namespace perfmap
