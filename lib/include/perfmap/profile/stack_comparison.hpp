// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <memory>

#include "perfmap/output_file.hpp"
#include "perfmap/profile/report_comparison.hpp"
#include "perfmap/profile/stack_writer.hpp"
#include "perfmap/types.hpp"

namespace perfmap {

/// Compares the stacks of two recordings.
///
/// Stacks are equal if the names of their process and thread and all their functions are. A
/// function is identified as by compare_reports(); neither addresses, pids, compiler tiers,
/// directories nor changed lines matter. Memory is proportional to the distinct stacks of each
/// recording. One thread at a time.
class PERFMAP_API StackComparison {
 public:
  enum class Side : std::uint8_t { before, after };

  /// What add() gets for a side has the places of this table. Borrows the table.
  StackComparison(const FrameTable& before_table, StackProfile before,
                  const FrameTable& after_table, StackProfile after);
  ~StackComparison();
  StackComparison(const StackComparison&) = delete;
  StackComparison& operator=(const StackComparison&) = delete;

  /// Adds a sample as ProfileReport::add() does. Amortised O(frames).
  void add(Side side, const StackSample& sample, std::uint64_t count = 1);

  /// Whether write() supports it: folded, html and jsonl.
  static bool supports(StackFormat format) noexcept;

  /// Writes the samples of the events that the normalization names.
  ///
  ///   folded  "comm;root;…;leaf OLD NEW", as difffolded.pl -n writes it: OLD is scaled to the new
  ///           recording and rounded; a stack with two zeros is left out
  ///   html    a page that shows the difference, and each recording
  ///   jsonl   docs/schema/perfmap.stack-comparison-1.json
  ///
  /// Fails with invalid_argument for other formats.
  Result<void> write(StackFormat format, const Normalization& normalization,
                     std::string_view exporter, OutputFile& out) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace perfmap
