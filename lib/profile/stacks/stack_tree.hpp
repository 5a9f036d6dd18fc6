#pragma once

#include "stacks/numbered.hpp"

namespace perfmap {

/// A step of a stack, away from where stacks begin.
struct StackNode {
  std::uint32_t parent = 0;
  std::uint32_t frame = 0;  ///< whatever the owner of the tree numbers

  friend bool operator==(const StackNode&, const StackNode&) = default;
};

/// Stacks that begin alike share that part. Node 0 is where all begin; a parent's number is below
/// that of its children.
class StackTree {
 public:
  StackTree() { nodes_.add({UINT32_MAX, UINT32_MAX}); }

  std::uint32_t child(std::uint32_t parent, std::uint32_t frame) {
    return nodes_.add({parent, frame});
  }
  const StackNode& operator[](std::uint32_t node) const noexcept { return nodes_[node]; }
  std::size_t size() const noexcept { return nodes_.size(); }

 private:
  struct HashOf {
    std::size_t operator()(const StackNode& node) const noexcept {
      return Hash().add(std::uint64_t{node.parent} << 32 | node.frame).value();
    }
  };
  Numbered<StackNode, HashOf> nodes_;
};

}  // namespace perfmap
