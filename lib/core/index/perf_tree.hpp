#pragma once

#include <cstdint>
#include <vector>

#include "perfmap/address.hpp"

namespace perfmap {

/// perf 6's symbol tree: a red-black tree by start address, equal starts to the right, balanced as
/// the kernel's lib/rbtree.c does it, and a search that stops at the first node on its way down
/// that contains the address. So its answers depend on the order of the lines.
/// Source: tools/perf/util/symbol.c, __symbols__insert and symbols__find.
class PerfTree {
 public:
  void insert(const AddressRange& range, std::uint64_t line);
  /// The line of the symbol that perf would name; UINT64_MAX for none. O(log n).
  std::uint64_t find(Address address) const noexcept;
  std::size_t size() const noexcept { return nodes_.size(); }

 private:
  using Link = std::uint32_t;
  static constexpr Link kNone = UINT32_MAX;
  struct Node {
    std::uint64_t begin;
    std::uint64_t end;  // begin + size, which may wrap: perf does not check
    std::uint64_t line;
    Link child[2] = {kNone, kNone};
    Link parent = kNone;
    bool red = true;
  };

  void rotate(Link pivot, int side) noexcept;
  void rebalance(Link node) noexcept;

  std::vector<Node> nodes_;
  Link root_ = kNone;
};

}  // namespace perfmap
