// SPDX-License-Identifier: MIT
// The tree of an address space's regions: it stays balanced in any order of changes, and shares its
// nodes.

#include "process/region_tree.hpp"

#include <algorithm>
#include <cstdlib>
#include <random>
#include <set>
#include <vector>

#include "support/catch.hpp"
#include "unwind/shared_code.hpp"

namespace perfmap::region_tree_test {
namespace {

constexpr Address kPage = 0x1000;

Region page(MappedFiles& files, Address number, std::string_view name = "//anon") {
  Region region;
  region.range = {number * kPage, kPage};
  region.file = files.intern(classify_mapping(name));
  region.access.execute = true;
  return region;
}

/// Checks balance, heights, sizes and order, and returns the height.
int check_node(const RegionNode* node, Address& end) {
  if (node == nullptr) return 0;
  const int left = check_node(node->left.get(), end);
  REQUIRE(node->region.range.begin >= end);
  end = node->region.range.end();
  const int right = check_node(node->right.get(), end);
  REQUIRE(std::abs(left - right) <= 1);
  REQUIRE(node->height == 1 + std::max(left, right));
  const auto size_of = [](const RegionNodePtr& one) { return one ? one->size : 0U; };
  REQUIRE(node->size == 1 + size_of(node->left) + size_of(node->right));
  return node->height;
}
void check_tree(const RegionTree& tree) {
  Address end = 0;
  check_node(tree.root().get(), end);
}

void collect(const RegionNode* node, std::set<const RegionNode*>& nodes) {
  if (node == nullptr) return;
  nodes.insert(node);
  collect(node->left.get(), nodes);
  collect(node->right.get(), nodes);
}
std::set<const RegionNode*> nodes_of(const RegionTree& tree) {
  std::set<const RegionNode*> nodes;
  collect(tree.root().get(), nodes);
  return nodes;
}

}  // namespace

TEST_CASE("a tree of regions stays balanced", "[address-space]") {
  MappedFiles files;
  RegionTree tree;
  constexpr Address kCount = 2000;
  std::mt19937 random(1);
  SECTION("ascending") {
    for (Address i = 0; i < kCount; ++i) tree.apply(page(files, i));
  }
  SECTION("descending") {
    for (Address i = kCount; i-- > 0;) tree.apply(page(files, i));
  }
  SECTION("from the outside") {
    for (Address i = 0; i < kCount / 2; ++i) {
      tree.apply(page(files, i));
      tree.apply(page(files, kCount - 1 - i));
    }
  }
  SECTION("at random, while half of the nodes are shared, and ranges are unmapped") {
    std::vector<RegionTree> copies;
    for (int i = 0; i < 4000; ++i) {
      Region change = page(files, random() % kCount);
      if (i % 5 == 0) {
        change.range.size = (random() % 40) * kPage;
        change.file = nullptr;
      }
      tree.apply(change);
      if (i % 2 == 0) copies.push_back(tree);
      if (i % 100 == 0) check_tree(tree);
    }
    for (const RegionTree& copy : copies) check_tree(copy);
    check_tree(tree);
    return;
  }
  check_tree(tree);
  CHECK(tree.size() == kCount);
  CHECK(tree.root()->height <= 15);  // 1.44 * log2(2002)
}

TEST_CASE("a change of a shared tree makes few nodes, and of an own tree none but its own",
          "[address-space]") {
  MappedFiles files;
  RegionTree tree;
  for (Address i = 0; i < 1000; ++i) tree.apply(page(files, 2 * i));
  const std::set<const RegionNode*> before = nodes_of(tree);
  const auto is_new = [&](const RegionNode* node) { return !before.contains(node); };

  SECTION("own") {
    tree.apply(page(files, 1001));
    const auto after = nodes_of(tree);
    CHECK(std::count_if(after.begin(), after.end(), is_new) == 1);
  }
  SECTION("shared") {
    const RegionTree copy = tree;
    tree.apply(page(files, 1001));
    const auto after = nodes_of(tree);
    CHECK(std::count_if(after.begin(), after.end(), is_new) <= 3 * 15);
    CHECK(nodes_of(copy) == before);
  }
}

TEST_CASE("code is made anew only for the nodes that a change made", "[address-space][unwind]") {
  MappedFiles files;
  RegionTree tree;
  std::size_t opened = 0;
  const UnwindSpace::OpenModule open = [&](const Region&) {
    ++opened;
    return std::shared_ptr<const Module>();
  };
  SharedCode code;
  std::vector<RegionTree> kept;
  constexpr Address kCount = 1000;
  for (Address i = 0; i < kCount; ++i) {
    tree.apply(page(files, i, "/x"));
    opened = 0;
    const auto made = code.of(*tree.root().get(), open);
    REQUIRE(made != nullptr);
    CHECK(made->has_unopened);
    CHECK(opened <= 3 * 15);
    if (i % 3 == 0) kept.push_back(tree);
  }
  opened = 0;
  const auto space = UnwindSpace::State::share(code.of(*tree.root().get(), open), {});
  CHECK(opened == 0);
  for (Address i = 0; i < kCount; ++i) {
    const CodeRegion* const region = space->state().find(i * kPage + 5);
    REQUIRE(region != nullptr);
    CHECK(region->begin == i * kPage);
  }
  CHECK(space->state().find(kCount * kPage) == nullptr);
  SECTION("another maker makes its own") {
    SharedCode other;
    other.of(*tree.root().get(), open);
    CHECK(opened == kCount);
  }
}

}  // namespace perfmap::region_tree_test
