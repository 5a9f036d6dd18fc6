#pragma once

#include <functional>
#include <string>

#include "diagnosis/recorded_case.hpp"

namespace perfmap {

/// What findings about a recording are made of.
struct RecordingCase {
  const RecordingContext& context;
  const StackStatistics& statistics;
  /// By pid, of those that have samples.
  const std::map<pid_t, RecordedView>& views;
};

/// Collects findings. Those for which the recording has to be made again have one command line:
/// perf's, with what all warnings ask for, so that it has to be pasted once.
class RecordingAdvice {
 public:
  using Change = std::function<void(RecordCommand&)>;

  RecordingAdvice(RecordCommand base, RecordingDiagnosis& diagnosis)
      : base_(std::move(base)), diagnosis_(diagnosis) {}

  /// `fix` is a command of its own.
  void add(std::string_view id, Severity severity, std::string message, std::string fix = {},
           pid_t pid = 0);
  /// The change is for all findings; an info has it for itself alone.
  void add_change(std::string_view id, Severity severity, std::string message, const Change& change,
                  pid_t pid = 0);
  /// A change that would do harm to other processes: only in this finding's command.
  void add_own_change(std::string_view id, Severity severity, std::string message,
                      const Change& change, pid_t pid = 0);
  /// Sorts the findings: those that cost names first.
  void finish();

 private:
  RecordCommand base_;
  RecordingDiagnosis& diagnosis_;
  std::vector<std::pair<std::size_t, Change>> changes_;  // position among the findings
};

/// The command that would make the recording again on this machine: processes that have ended are
/// looked for by name.
RecordCommand command_to_repeat(const RecordingCase& facts, const RecordingDiagnosis& diagnosis);

/// About perf: how it was called, and what it lost.
void add_recorder_findings(const RecordingCase& facts, RecordingAdvice& advice);
/// About the names of processes' code, and what was looked for.
void add_process_findings(const RecordingCase& facts, const RecordingDiagnosis& diagnosis,
                          RecordingAdvice& advice);
/// About stacks that end early.
void add_end_findings(const RecordingCase& facts, const RecordingDiagnosis& diagnosis,
                      RecordingAdvice& advice);

/// "12 %", "under 1 %".
std::string percent_text(std::uint64_t part, std::uint64_t whole);
/// Less than one in a hundred is not worth another recording.
bool matters(std::uint64_t part, std::uint64_t whole) noexcept;
std::string process_title(const RecordedProcessState& process);
/// Whether files of that process were looked for: it, or one that it has memory from.
bool uses_files_of(const RecordedProcessState& process, pid_t pid) noexcept;
/// Whether samples have the copies of stacks that --call-graph dwarf makes.
bool has_stack_copies(const RecordedSamples& samples) noexcept;
bool has_stacks(const RecordedSamples& samples) noexcept;

/// Whether the recording was made on a machine of this one's name, as far as it tells.
bool is_of_this_machine(const RecordedSamples& samples);

/// The size for --call-graph dwarf,N by which most of those stacks would be whole: twice as much as
/// was copied, and where many were cut, more. A multiple of 8, as perf wants it; 0 where it takes
/// no larger one.
std::uint32_t mending_stack_size(std::uint32_t copied, std::uint64_t cut,
                                 std::uint64_t samples) noexcept;

/// A command line that gets the ELF files of a recording's processes from the machine that made
/// it, and examines the recording with them; empty where it would be too long to paste. It gets all
/// of them, as --symfs is for all.
std::string fetch_command(const RecordingContext& context);

}  // namespace perfmap
