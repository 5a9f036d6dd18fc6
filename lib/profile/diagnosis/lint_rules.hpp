#pragma once

#include <span>
#include <string>
#include <vector>

#include "perfmap/address_space.hpp"
#include "perfmap/lint_process.hpp"
#include "perfmap/proc_source.hpp"

namespace perfmap::process_lint {

/// The process whose files are checked.
struct Subject {
  const ProcSource& process;
  ProcessStatus status;
  std::shared_ptr<const AddressSpace> memory;  ///< never null
  const ProcessLintOptions& options;

  /// As the process itself knows it.
  pid_t inner_pid() const noexcept {
    return status.namespace_tgids.empty() ? process.pid() : status.namespace_tgids.back();
  }
};

inline const Input& input_of(const LintedFile& file) noexcept {
  return file.map != nullptr ? file.map->input() : file.dump->input();
}

/// A finding about a whole file: a map has lines, a dump offsets.
inline Location whole_file(bool is_dump) noexcept {
  return is_dump ? Location{0, 0, 0} : Location{0, 1, 1};
}

std::string map_name(pid_t pid);
std::string dump_name(pid_t pid);
/// Whether a path ends in the name of a dump.
bool is_dump_path(std::string_view path) noexcept;

/// PM060, PM062 to PM064, PM066, PM067, XF003: the files as such. Answers with those that were not
/// read, and about which there is something to say.
std::vector<UnreadFile> check_files(const Subject& subject, std::span<const LintedFile> files,
                                    const Diagnostics& wanted);

/// PM111, PM112, JD110: what is mapped where the files say that there is code.
void check_memory(const Subject& subject, std::span<const LintedFile> files);

/// PM091, PM092, PM094: how the runtime was started. PM094 is about a map that is not there.
void check_runtime(const Subject& subject, std::span<const LintedFile> files,
                   const Diagnostics& wanted, std::vector<UnreadFile>& unread);

}  // namespace perfmap::process_lint
