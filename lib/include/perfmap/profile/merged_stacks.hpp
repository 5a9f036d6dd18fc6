// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "perfmap/profile/stack_writer.hpp"

namespace perfmap {

/// The distinct stacks of any number of recordings, with the number of their samples.
///
/// Samples are equal if their labels, event, names of process and thread, program, end, and the
/// functions and lines of all frames are. Pids, times, addresses and the places of mappings do not
/// matter, nor does the file of a map or dump, because they differ in each run. A frame of an ELF
/// file without a name keeps its address in the file, so that it can be named later. A program is
/// identified by its path and its build ID, and so is the mapping of a frame.
///
/// Memory is proportional to the distinct stacks. One thread at a time: to read several recordings
/// at once, make one object of each, and add them to one in a fixed order.
class PERFMAP_API MergedStacks {
 public:
  /// The labels of a recording's samples. A later one replaces an earlier one with its key.
  struct Labels {
    std::vector<std::pair<std::string, std::string>> fixed = {};
    /// Adds the label "build" to the samples of programs with a build ID, unless `fixed` has it.
    bool build = false;
  };

  MergedStacks();
  MergedStacks(MergedStacks&&) noexcept;
  MergedStacks& operator=(MergedStacks&&) noexcept;
  ~MergedStacks();

  /// The next samples are of this recording, and their places are those of the table, which is
  /// borrowed while samples are added.
  void begin(const FrameTable& table, const StackProfile& profile, const Labels& labels);
  /// A sample that stands for `count` samples, whose periods have the sum sample.period. Amortised
  /// O(frames).
  void add(const StackSample& sample, std::uint64_t count = 1);
  /// O(distinct stacks of `other`). The result does not depend on how samples were distributed,
  /// except for the order of the stacks.
  void add(const MergedStacks& other);

  std::size_t recordings() const noexcept;
  std::size_t stacks() const noexcept;
  const FrameTable& table() const noexcept;
  /// Facts that all recordings have in common, and the time from the first to the last sample of
  /// any. Events with the same name are one.
  StackProfile profile() const;
  /// Calls `take` for each distinct stack in the order of first use, for a StackWriter or a
  /// ProfileReport that has table() and profile().
  void visit(const std::function<void(const StackSample& sample)>& take) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// Reads recordings on up to `threads` threads, and adds the result of read(i) to `merged` for each
/// i below `count` in this order, so that the result does not depend on the number of threads.
/// `read` runs on any thread; nothing is added for a recording without a result. `done(i)` is
/// called in order, one at a time, when recording i has been added. At most twice as many results
/// as threads are held. Rethrows an exception of either.
PERFMAP_API void merge_in_order(
    std::size_t count, std::size_t threads,
    const std::function<std::optional<MergedStacks>(std::size_t i)>& read,
    const std::function<void(std::size_t i)>& done, MergedStacks& merged);

/// A key and its value, which may be empty.
using RecordingLabel = std::pair<std::string, std::string>;

/// A recording of a list, and the labels that the list gives it.
struct ListedRecording {
  std::string path;
  std::vector<RecordingLabel> labels = {};
};

/// Reads a list of recordings. Each line has a path, after which labels (KEY=VALUE) may follow,
/// each after a tab. With `ends_with_nul`, as find -print0 prints them, each text that ends with a
/// NUL byte is a path, which may have tabs and newlines. Empty lines are ignored, and the last one
/// needs no end. Fails at the first line that is neither, has a NUL byte, or ends with CR
/// (invalid_argument, with its number in `where`). O(bytes).
PERFMAP_API Result<std::vector<ListedRecording>> parse_recording_list(std::string_view text,
                                                                      bool ends_with_nul);
/// Reads KEY=VALUE; the key ends at the first '='. Fails if there is no key.
PERFMAP_API Result<RecordingLabel> parse_label(std::string_view text);

/// What a recording says about itself, as a label: "host", "arch", "kernel" (its release) or "time"
/// (when it began, as "2026-01-31T12:00:00Z"). Nothing if the recording does not contain it.
PERFMAP_API std::optional<std::string> recorded_label(std::string_view key,
                                                      const StackProfile& profile);
/// The keys of recorded_label(), and "build"; see MergedStacks::Labels.
PERFMAP_API std::span<const std::string_view> recorded_label_keys() noexcept;

}  // namespace perfmap
