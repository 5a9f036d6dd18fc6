#pragma once

#include <span>

#include "diagnosis/recorded_samples.hpp"
#include "perfmap/doctor_recording.hpp"
#include "perfmap/recorded_jit.hpp"

namespace perfmap {

/// What findings about a recording are made of.
struct RecordingCase {
  const RecordedSamples& samples;
  const StackStatistics& statistics;
};

/// About perf: how it was called, and what it lost.
void add_recorder_findings(const RecordingCase& facts, RecordingDiagnosis& diagnosis);
/// About the runtimes of processes.
void add_process_findings(RecordingDiagnosis& diagnosis);
/// About maps and dumps that were not used because of their owner, one for each process: code that
/// has no name wants them, and no other flags. After add_process_findings().
void add_foreign_findings(std::span<const ForeignFile> files, RecordingDiagnosis& diagnosis);

/// The size for --call-graph dwarf,N by which most of those stacks would be whole: twice as much as
/// was copied, and where many were cut, more. A multiple of 8, as perf wants it; 0 where it takes
/// no larger one.
std::uint32_t mending_stack_size(std::uint32_t copied, std::uint64_t cut,
                                 std::uint64_t samples) noexcept;

}  // namespace perfmap
