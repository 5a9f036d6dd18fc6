// SPDX-License-Identifier: MIT
#include "process/region_tree.hpp"

#include <iterator>

namespace perfmap {

Region part_of(const Region& region, Address begin, Address end) {
  Region part = region;
  part.range.begin = std::max(begin, region.range.begin);
  part.range.size = std::min(end, region.range.end()) - part.range.begin;
  if (region.file != nullptr && has_offsets(*region.file))
    part.offset += part.range.begin - region.range.begin;
  return part;
}

namespace {

/// A node that only its holder owns, and may therefore change.
using OwnNode = std::unique_ptr<RegionNode>;

int height_of(const RegionNodePtr& tree) noexcept { return tree ? tree->height : 0; }
std::uint32_t size_of(const RegionNodePtr& tree) noexcept { return tree ? tree->size : 0; }

/// The node itself if it has no other owner, else a copy.
OwnNode own(RegionNodePtr tree) {
  if (tree.is_sole_owner()) {
    OwnNode node(const_cast<RegionNode*>(tree.release()));
    node->made = nullptr;
    node->made_by = 0;
    return node;
  }
  auto copy = std::make_unique<RegionNode>(tree->region);
  copy->left = tree->left;
  copy->right = tree->right;
  return copy;
}

RegionNodePtr with(OwnNode node, RegionNodePtr left, RegionNodePtr right) noexcept {
  node->left = std::move(left);
  node->right = std::move(right);
  node->size = 1 + size_of(node->left) + size_of(node->right);
  node->height =
      static_cast<std::uint8_t>(1 + std::max(height_of(node->left), height_of(node->right)));
  return RegionNodePtr(node.release());
}

RegionNodePtr rotated_left(OwnNode node, RegionNodePtr left, RegionNodePtr right) {
  OwnNode top = own(std::move(right));
  RegionNodePtr inner = std::move(top->left);
  RegionNodePtr outer = std::move(top->right);
  return with(std::move(top), with(std::move(node), std::move(left), std::move(inner)),
              std::move(outer));
}

RegionNodePtr rotated_right(OwnNode node, RegionNodePtr left, RegionNodePtr right) {
  OwnNode top = own(std::move(left));
  RegionNodePtr inner = std::move(top->right);
  RegionNodePtr outer = std::move(top->left);
  return with(std::move(top), std::move(outer),
              with(std::move(node), std::move(inner), std::move(right)));
}

/// The heights of both sides differ by two at most.
RegionNodePtr balanced(OwnNode node, RegionNodePtr left, RegionNodePtr right) {
  if (height_of(right) > height_of(left) + 1) {
    if (height_of(right->left) > height_of(right->right)) {
      OwnNode high = own(std::move(right));
      RegionNodePtr inner = std::move(high->left);
      RegionNodePtr outer = std::move(high->right);
      right = rotated_right(std::move(high), std::move(inner), std::move(outer));
    }
    return rotated_left(std::move(node), std::move(left), std::move(right));
  }
  if (height_of(left) > height_of(right) + 1) {
    if (height_of(left->right) > height_of(left->left)) {
      OwnNode high = own(std::move(left));
      RegionNodePtr outer = std::move(high->left);
      RegionNodePtr inner = std::move(high->right);
      left = rotated_left(std::move(high), std::move(outer), std::move(inner));
    }
    return rotated_right(std::move(node), std::move(left), std::move(right));
  }
  return with(std::move(node), std::move(left), std::move(right));
}

/// All of `left` is below `middle`, all of `right` above it. O(difference of the heights).
RegionNodePtr joined(RegionNodePtr left, OwnNode middle, RegionNodePtr right) {
  if (height_of(left) > height_of(right) + 1) {
    OwnNode node = own(std::move(left));
    RegionNodePtr inner = std::move(node->right);
    RegionNodePtr outer = std::move(node->left);
    return balanced(std::move(node), std::move(outer),
                    joined(std::move(inner), std::move(middle), std::move(right)));
  }
  if (height_of(right) > height_of(left) + 1) {
    OwnNode node = own(std::move(right));
    RegionNodePtr inner = std::move(node->left);
    RegionNodePtr outer = std::move(node->right);
    return balanced(std::move(node), joined(std::move(left), std::move(middle), std::move(inner)),
                    std::move(outer));
  }
  return with(std::move(middle), std::move(left), std::move(right));
}

struct Halves {
  RegionNodePtr below;  ///< regions that begin below the address
  RegionNodePtr rest;
};

Halves split(RegionNodePtr tree, Address address) {
  if (!tree) return {};
  OwnNode node = own(std::move(tree));
  RegionNodePtr left = std::move(node->left);
  RegionNodePtr right = std::move(node->right);
  if (node->region.range.begin < address) {
    Halves inner = split(std::move(right), address);
    return {joined(std::move(left), std::move(node), std::move(inner.below)),
            std::move(inner.rest)};
  }
  Halves inner = split(std::move(left), address);
  return {std::move(inner.below), joined(std::move(inner.rest), std::move(node), std::move(right))};
}

struct WithoutLast {
  RegionNodePtr others;
  OwnNode last;
};

/// The tree is not empty.
WithoutLast without_last(RegionNodePtr tree) {
  OwnNode node = own(std::move(tree));
  RegionNodePtr left = std::move(node->left);
  if (!node->right) return {std::move(left), std::move(node)};
  WithoutLast inner = without_last(std::move(node->right));
  return {joined(std::move(left), std::move(node), std::move(inner.others)), std::move(inner.last)};
}

RegionNodePtr joined(RegionNodePtr left, RegionNodePtr right) {
  if (!left) return right;
  WithoutLast parts = without_last(std::move(left));
  return joined(std::move(parts.others), std::move(parts.last), std::move(right));
}

const RegionNode& last_of(const RegionNodePtr& tree) noexcept {
  const RegionNode* node = tree.get();
  while (node->right) node = node->right.get();
  return *node;
}

RegionNodePtr built(std::span<const Region> regions) {
  if (regions.empty()) return {};
  const std::size_t middle = regions.size() / 2;
  return with(std::make_unique<RegionNode>(regions[middle]), built(regions.first(middle)),
              built(regions.subspan(middle + 1)));
}

}  // namespace

RegionTree RegionTree::of_sorted(std::span<const Region> regions) {
  RegionTree tree;
  tree.root_ = built(regions);
  return tree;
}

void RegionTree::apply(const Region& change) {
  const AddressRange range = AddressRange::clamped(change.range.begin, change.range.size);
  if (range.size == 0) return;
  Halves low = split(std::move(root_), range.begin);
  Halves high = split(std::move(low.rest), range.end());
  // Of a region that covers the change only in part, the rest stays.
  OwnNode before;
  OwnNode after;
  if (low.below && last_of(low.below).region.range.end() > range.begin) {
    WithoutLast parts = without_last(std::move(low.below));
    low.below = std::move(parts.others);
    before = std::move(parts.last);
    const Region whole = before->region;
    before->region = part_of(whole, whole.range.begin, range.begin);
    if (whole.range.end() > range.end())
      after = std::make_unique<RegionNode>(part_of(whole, range.end(), whole.range.end()));
  }
  if (high.below) {
    const Region& last = last_of(high.below).region;
    if (last.range.end() > range.end())
      after = std::make_unique<RegionNode>(part_of(last, range.end(), last.range.end()));
  }
  RegionNodePtr left = std::move(low.below);
  RegionNodePtr right = std::move(high.rest);
  if (before != nullptr) left = joined(std::move(left), std::move(before), {});
  if (after != nullptr) right = joined({}, std::move(after), std::move(right));
  if (change.file == nullptr) {
    root_ = joined(std::move(left), std::move(right));
    return;
  }
  auto own_change = std::make_unique<RegionNode>(change);
  own_change->region.range = range;
  root_ = joined(std::move(left), std::move(own_change), std::move(right));
}

const RegionNode* last_begun(const RegionNode* root, Address address) noexcept {
  const RegionNode* found = nullptr;
  for (const RegionNode* node = root; node != nullptr;) {
    const bool has_begun = node->region.range.begin <= address;
    if (has_begun) found = node;
    node = has_begun ? node->right.get() : node->left.get();
  }
  return found;
}

const RegionNode* next_begun(const RegionNode* root, Address address) noexcept {
  const RegionNode* found = nullptr;
  for (const RegionNode* node = root; node != nullptr;) {
    const bool has_begun = node->region.range.begin <= address;
    if (!has_begun) found = node;
    node = has_begun ? node->right.get() : node->left.get();
  }
  return found;
}

const RegionNode* first_ending_after(const RegionNode* root, Address address) noexcept {
  const RegionNode* const begun = last_begun(root, address);
  const bool lasts = begun != nullptr && begun->region.range.end() > address;
  return lasts ? begun : next_begun(root, address);
}

// An address space has the root of such a tree, and is one of its owners.

RegionTree::RegionTree(const AddressSpace& space) noexcept {
  AddressSpace copy(space);
  root_ = RegionNodePtr(std::exchange(copy.root_, nullptr));
}

std::shared_ptr<const AddressSpace> RegionTree::share() const {
  auto space = std::make_shared<AddressSpace>();
  space->root_ = RegionNodePtr(root_).release();
  return space;
}

AddressSpace::AddressSpace(const AddressSpace& other) noexcept : root_(other.root_) {
  if (root_ != nullptr) root_->owners.fetch_add(1, std::memory_order_relaxed);
}
AddressSpace& AddressSpace::operator=(AddressSpace other) noexcept {
  std::swap(root_, other.root_);
  return *this;
}
AddressSpace::~AddressSpace() { const RegionNodePtr last(root_); }

std::shared_ptr<const AddressSpace> AddressSpace::changed(std::shared_ptr<const AddressSpace> from,
                                                          std::span<const Region> changes) {
  if (changes.empty()) return from;
  RegionTree tree(*from);
  for (const Region& change : changes) tree.apply(change);
  return tree.share();
}

namespace {

bool is_in_order(std::span<const Region> regions) noexcept {
  for (std::size_t i = 0; i < regions.size(); ++i) {
    const AddressRange& range = regions[i].range;
    if (regions[i].file == nullptr || range.size == 0 || range.end() < range.begin) return false;
    if (i > 0 && range.begin < regions[i - 1].range.end()) return false;
  }
  return true;
}

}  // namespace

std::shared_ptr<const AddressSpace> AddressSpace::of(std::span<const Region> regions) {
  if (!is_in_order(regions)) return changed(std::make_shared<AddressSpace>(), regions);
  return RegionTree::of_sorted(regions).share();
}

const Region* AddressSpace::find(Address address) const noexcept {
  const RegionNode* const node = last_begun(root_, address);
  return node != nullptr && node->region.range.contains(address) ? &node->region : nullptr;
}

AddressSpace::Regions::Iterator AddressSpace::Regions::from(Address address) const noexcept {
  return Iterator(root_, first_ending_after(root_, address));
}

bool operator==(const AddressSpace& a, const AddressSpace& b) {
  if (a.root_ == b.root_) return true;
  return a.regions().size() == b.regions().size() &&
         std::equal(a.regions().begin(), a.regions().end(), b.regions().begin());
}

std::size_t AddressSpace::Regions::size() const noexcept {
  return root_ != nullptr ? root_->size : 0;
}

const Region& AddressSpace::Regions::operator[](std::size_t index) const noexcept {
  const RegionNode* node = root_;
  for (;;) {
    const std::size_t before = size_of(node->left);
    if (index == before) return node->region;
    if (index < before) {
      node = node->left.get();
    } else {
      index -= before + 1;
      node = node->right.get();
    }
  }
}

AddressSpace::Regions::Iterator AddressSpace::Regions::begin() const noexcept {
  const RegionNode* first = root_;
  while (first != nullptr && first->left) first = first->left.get();
  return Iterator(root_, first);
}

const Region& AddressSpace::Regions::Iterator::operator*() const noexcept { return at_->region; }

AddressSpace::Regions::Iterator& AddressSpace::Regions::Iterator::operator++() noexcept {
  const RegionNode* next = at_->right.get();
  if (next == nullptr) {
    at_ = next_begun(root_, at_->region.range.begin);
    return *this;
  }
  while (next->left) next = next->left.get();
  at_ = next;
  return *this;
}

}  // namespace perfmap
