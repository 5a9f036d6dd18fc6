// SPDX-License-Identifier: MIT
#include <algorithm>
#include <atomic>

#include "base/machines.hpp"
#include "perfmap/profile/process_tracker.hpp"
#include "perfmap/profile/unwinder.hpp"
#include "process/failure_list.hpp"
#include "process/jit_lineage.hpp"
#include "process/region_tree.hpp"
#include "unwind/code_bytes.hpp"
#include "unwind/shared_code.hpp"

namespace perfmap {

namespace {

/// The part of a region that shows a segment's bytes; empty (end = begin) if there is none.
CodeRegion shown(const Region& region, const LoadSegment& segment, const Module& module) {
  const std::uint64_t first = std::max(region.offset, segment.offset);
  const std::uint64_t size = region.range.size;
  const std::uint64_t region_end =
      size > UINT64_MAX - region.offset ? UINT64_MAX : region.offset + size;
  const std::uint64_t segment_end = segment.file_size > UINT64_MAX - segment.offset
                                        ? UINT64_MAX
                                        : segment.offset + segment.file_size;
  const std::uint64_t last = std::min(region_end, segment_end);
  if (first >= last) return {};
  const Address begin = region.range.begin + (first - region.offset);
  const Address vaddr = segment.range.begin + (first - segment.offset);
  return {begin, begin + (last - first), vaddr - begin, &module};
}

/// A page may show bytes of two segments, only one of them executable.
void add_segments(const Region& region, const Module& module, std::vector<CodeRegion>& regions) {
  const std::size_t before = regions.size();
  for (const LoadSegment& segment : module.segments()) {
    if (!segment.is_executable) continue;
    const CodeRegion part = shown(region, segment, module);
    if (part.begin != part.end) regions.push_back(part);
  }
  const auto added = regions.begin() + static_cast<std::ptrdiff_t>(before);
  std::sort(added, regions.end(),
            [](const CodeRegion& a, const CodeRegion& b) { return a.begin < b.begin; });
  // If segments of a hostile file overlap, the first wins.
  Address end = region.range.begin;
  for (auto part = added; part != regions.end(); ++part) {
    part->begin = std::max(part->begin, end);
    part->end = std::max(part->end, part->begin);
    end = part->end;
  }
}

}  // namespace

namespace {

/// The last node that begins at or before the address, and the first that begins after it: null if
/// there is none.
struct Around {
  const CodeNode* at = nullptr;
  const CodeNode* next = nullptr;
};

Around around(const CodeNode* node, Address address) noexcept {
  Around found;
  while (node != nullptr) {
    const bool has_begun = node->begin <= address;
    (has_begun ? found.at : found.next) = node;
    node = (has_begun ? node->right : node->left).get();
  }
  return found;
}

/// In a subtree; null if it has no code.
const CodeNode* last_with_code(const CodeNode* node) noexcept {
  for (; node != nullptr; node = node->left.get()) {
    if (const CodeNode* const above = last_with_code(node->right.get())) return above;
    if (node->has_code()) return node;
  }
  return nullptr;
}
const CodeNode* first_with_code(const CodeNode* node) noexcept {
  for (; node != nullptr; node = node->right.get()) {
    if (const CodeNode* const below = first_with_code(node->left.get())) return below;
    if (node->has_code()) return node;
  }
  return nullptr;
}

bool covers(const CodeRegion& region, Address address) noexcept {
  return address - region.begin < region.end - region.begin;
}

}  // namespace

const CodeRegion* UnwindSpace::State::find(Address address) const noexcept {
  const CodeNode* const node = around(code.get(), address).at;
  if (node == nullptr) return nullptr;
  if (covers(node->first, address)) return &node->first;
  for (const CodeRegion& region : node->more) {
    if (covers(region, address)) return &region;
  }
  return nullptr;
}

void UnwindSpace::State::clip(Address address, CodeRegion& found) const noexcept {
  const auto clip_by = [&](const CodeRegion& region) {
    if (region.begin <= address) {
      found.begin = std::max(found.begin, region.end);
    } else {
      found.end = std::min(found.end, region.begin);
    }
  };
  auto [at, next] = around(code.get(), address);
  if (at != nullptr && !at->has_code()) at = last_with_code(at->left.get());
  if (next != nullptr && !next->has_code()) next = first_with_code(next->right.get());
  for (const CodeNode* const node : {at, next}) {
    if (node == nullptr) continue;
    clip_by(node->first);
    for (const CodeRegion& region : node->more) clip_by(region);
  }
}

std::shared_ptr<const Module> UnwindSpace::State::module_at(Address address) const noexcept {
  const CodeNode* const node = around(code.get(), address).at;
  return node != nullptr ? node->module : nullptr;
}

std::optional<Machine> machine_of(const Module& module) noexcept {
  const auto machine = machine_of(module.machine());
  if (!machine || !can_unwind(*machine)) return machine;
  if (!is_unwound(module.machine(), module.is_64(), module.byte_order())) return std::nullopt;
  return machine;
}

std::shared_ptr<const UnwindSpace> UnwindSpace::State::share(
    std::shared_ptr<const CodeNode> code, std::vector<std::shared_ptr<const JitSources>> jit,
    std::function<std::size_t(Address, std::span<char>)> read_code) {
  static std::atomic<std::uint32_t> made{0};
  auto state = std::make_unique<State>();
  state->id = ++made;
  if (code != nullptr && code->first_module != nullptr) {
    state->machine = machine_of(*code->first_module);
    state->is_unwound = state->machine || !machine_of(code->first_module->machine());
  }
  for (const CodeNode* node = code.get(); node != nullptr; node = node->right.get()) {
    state->highest = std::max({state->highest, node->begin, node->first.end});
    for (const CodeRegion& region : node->more)
      state->highest = std::max(state->highest, region.end);
  }
  state->code = std::move(code);
  state->jit = std::move(jit);
  state->read_code = std::move(read_code);
  return std::shared_ptr<const UnwindSpace>(new UnwindSpace(std::move(state)));
}

namespace {

using CodeNodePtr = std::shared_ptr<const CodeNode>;

/// What a program's or library's runtime does in a way of its own; null if it does nothing so.
const RuntimeStacks* stacks_of(std::string_view path) {
  const RuntimeInfo* runtime = runtime_of_program(path);
  if (runtime == nullptr) runtime = runtime_of_library(path);
  if (runtime == nullptr) return nullptr;
  const RuntimeStacks& stacks = runtime->stacks;
  return stacks.has_own_stacks() || !stacks.small_frames.empty() ? &stacks : nullptr;
}

void take_region(const Region& region, const UnwindSpace::OpenModule& open_module, CodeNode& node) {
  const bool is_file = region.file->kind == RegionKind::vdso || region.file->is_file() ||
                       region.file->kind == RegionKind::memfd;
  node.module = is_file && open_module ? open_module(region) : nullptr;
  if (is_file) node.runtime_stacks = stacks_of(region.file->name);
  if (node.module == nullptr) {
    node.first = {region.range.begin, region.range.end(), 0, nullptr};
    const JitRegionKind kind = jit_region_kind(region);
    node.has_jit_room = kind == JitRegionKind::likely;
    node.has_unopened = kind == JitRegionKind::unless_elf;
    return;
  }
  // A memfd may have code of a runtime although it is an ELF file.
  node.has_jit_room = jit_region_kind(region) == JitRegionKind::likely;
  add_segments(region, *node.module, node.more);
  std::erase_if(node.more, [](const CodeRegion& part) { return part.begin == part.end; });
  if (node.more.empty()) return;
  node.first = node.more.front();
  node.more.erase(node.more.begin());
}

/// Null if there is no code in the subtree.
template <class Visit>
CodeNodePtr code_of(const RegionNode& from, const UnwindSpace::OpenModule& open_module,
                    const Visit& visit) {
  const auto of_child = [&](const RegionNodePtr& child) {
    return child ? visit(*child.get()) : nullptr;
  };
  CodeNode node;
  node.begin = from.region.range.begin;
  node.left = of_child(from.left);
  if (from.region.access.execute) take_region(from.region, open_module, node);
  node.right = of_child(from.right);
  const bool matters = node.has_code() || node.has_jit_room || node.module != nullptr;
  if (!matters && (node.left == nullptr || node.right == nullptr))
    return node.left != nullptr ? node.left : node.right;
  node.first_module = node.module.get();
  for (const CodeNode* const child : {node.right.get(), node.left.get()}) {
    if (child == nullptr) continue;
    node.has_jit_room |= child->has_jit_room;
    node.has_unopened |= child->has_unopened;
    if (child->runtime_stacks != nullptr) node.runtime_stacks = child->runtime_stacks;
  }
  if (node.left != nullptr && node.left->first_module != nullptr) {
    node.first_module = node.left->first_module;
  } else if (node.first_module == nullptr && node.right != nullptr) {
    node.first_module = node.right->first_module;
  }
  return std::make_shared<const CodeNode>(std::move(node));
}

/// All of it anew.
CodeNodePtr code_of_all(const RegionNode& from, const UnwindSpace::OpenModule& open_module) {
  return code_of(from, open_module,
                 [&](const RegionNode& child) { return code_of_all(child, open_module); });
}

}  // namespace

namespace {

std::uint32_t next_maker() noexcept {
  static std::atomic<std::uint32_t> makers{0};
  return ++makers;
}

}  // namespace

SharedCode::SharedCode() : maker_(next_maker()) {}

CodeNodePtr SharedCode::of(const RegionNode& from, const UnwindSpace::OpenModule& open_module) {
  if (from.made_by != maker_) {
    from.made =
        code_of(from, open_module, [&](const RegionNode& child) { return of(child, open_module); });
    from.made_by = maker_;
  }
  return std::static_pointer_cast<const CodeNode>(from.made);
}

std::shared_ptr<const UnwindSpace> UnwindSpace::make(const AddressSpace& space,
                                                     const Options& options) {
  const RegionTree tree(space);
  CodeNodePtr code = tree.root() ? code_of_all(*tree.root().get(), options.open_module) : nullptr;
  return State::share(std::move(code), options.jit, options.read_code);
}

UnwindSpace::UnwindSpace(std::unique_ptr<const State> state) noexcept : state_(std::move(state)) {}
UnwindSpace::~UnwindSpace() = default;

std::optional<Machine> UnwindSpace::machine() const noexcept { return state_->machine; }
bool UnwindSpace::is_unwound() const noexcept { return state_->is_unwound; }

/// The process's own sources, and those of its ancestors, whose code it may still have.
std::vector<std::shared_ptr<const JitSources>> sources_of(const ProcessTracker& tracker, pid_t pid,
                                                          std::uint64_t time) {
  std::vector<std::shared_ptr<const JitSources>> sources;
  const std::shared_ptr<JitLineage> lineage = tracker.lineage(pid, time);
  const JitLineage* one = lineage.get();
  for (int i = 0; one != nullptr && i < JitLineage::kMaxGenerations; ++i) {
    if (one->asks_own && one->jit != nullptr) sources.push_back(one->jit);
    one = one->parent.get();
  }
  return sources;
}

std::shared_ptr<const UnwindSpace> UnwindSpace::attach(ProcessTracker& tracker, pid_t pid,
                                                       std::uint64_t time, Options options,
                                                       std::vector<Error>* failures) {
  const auto space = tracker.at(pid, time);
  if (space == nullptr) return nullptr;
  if (options.jit.empty()) options.jit = sources_of(tracker, pid, time);
  FailureList noted;
  if (failures != nullptr) {
    for (Error& error : *failures) noted.add(std::move(error));
  }
  if (!options.open_module) {
    options.open_module = [&](const Region& region) -> std::shared_ptr<const Module> {
      auto module = tracker.module_of(pid, region);
      if (module) return *std::move(module);
      noted.add_unexpected(std::move(module.error()));
      return nullptr;
    };
  }
  auto made = make(*space, options);
  if (failures != nullptr) failures->assign(noted.errors().begin(), noted.errors().end());
  return made;
}

}  // namespace perfmap
