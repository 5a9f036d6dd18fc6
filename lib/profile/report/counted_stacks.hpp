// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "perfmap/profile/report.hpp"
#include "stacks/writers.hpp"

namespace perfmap {

/// A node of a tree of callers or callees; see ReportTreeNode.
struct CountedNode {
  std::uint32_t parent = 0;
  std::uint32_t depth = 0;
  std::uint32_t row = 0;
  ReportCounts total = {};
  ReportCounts self = {};
};

/// Distinct stacks of rows, and how often each occurs.
class CountedStacks {
 public:
  /// `rows` are the frames, leaf first.
  void add(std::span<const std::uint32_t> rows, const ReportCounts& counts);

  /// The trees of ProfileReport. `row_count` is above each row.
  std::vector<CountedNode> callers(std::span<const std::uint32_t> rows,
                                   std::size_t row_count) const;
  std::vector<CountedNode> callees(std::span<const std::uint32_t> rows,
                                   std::size_t row_count) const;

 private:
  struct Places;
  Places find_places(std::span<const std::uint32_t> rows, std::size_t row_count) const;
  ReportCounts count(std::uint32_t node) const noexcept {
    return node < counts_.size() ? counts_[node] : ReportCounts();
  }

  StackTree tree_;                    // of rows
  std::vector<ReportCounts> counts_;  // samples that end at a node
};

}  // namespace perfmap
