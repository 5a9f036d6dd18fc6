// SPDX-License-Identifier: MIT
#include "process/jit_lineage.hpp"

#include <algorithm>
#include <utility>

namespace perfmap {

/// Iterative: a chain of a million forks must not become a million recursive calls.
JitLineage::~JitLineage() {
  std::shared_ptr<JitLineage> next = std::move(parent);
  while (next != nullptr && next.use_count() == 1) next = std::move(next->parent);
}

/// In a recording, mprotect() looks like a new mapping of the same kind, and JITs call it often.
JitLineage::Origin JitLineage::origin_of(const Region* region, Address address) const {
  if (parent == nullptr || began_with == nullptr) return Origin::own;
  const Region* const before = began_with->find(address);
  // If nothing is known in either, the child has what the parent had.
  if (before == nullptr || region == nullptr)
    return before == region ? Origin::inherited : Origin::own;
  if (before->file != region->file) return Origin::own;
  return region->mapped_by == id ? Origin::remapped : Origin::inherited;
}

void JitLineage::visit(const Region* region, Address address, const Ask& ask) const {
  const Region* shown = region;
  const JitLineage* one = this;
  std::uint64_t until = ProcessTracker::kNow;
  bool was_remapped = false;
  for (int i = 0; i < kMaxGenerations; ++i) {
    if (one->asks_own && ask(*one, until, was_remapped)) return;
    if (one->parent == nullptr) return;
    bool is_shared = false;
    if (one->began_with != nullptr) {
      const Origin origin = one->origin_of(shown, address);
      if (origin == Origin::own) return;
      was_remapped = was_remapped || origin == Origin::remapped;
      const Region* const before = one->began_with->find(address);
      is_shared = before != nullptr && before->access.shared && shown->access.shared;
      shown = before;
    } else {
      was_remapped = true;  // assumed: the memory at the fork is unknown
    }
    if (!is_shared) until = std::min(until, one->source_since);
    one = one->parent.get();
  }
}

LineageAnswer JitLineage::find(const Region* region, const Query& query) const {
  LineageAnswer answer;
  const auto ask = [&](const JitLineage& one, std::uint64_t until, bool was_remapped) {
    if (one.jit == nullptr) return false;
    const Resolution resolution = one.jit->find({query.address, std::min(query.time, until)});
    if (&one == this && !one.jit->empty()) answer.why = resolution.why;
    if (!resolution.found) return false;
    answer.found = resolution.found;
    answer.doubts.add(resolution.found->doubts);
    if (was_remapped) answer.doubts.add(Doubt::remapped_memory);
    answer.sources = one.jit;
    answer.is_inherited = &one != this;
    return true;
  };
  visit(region, query.address, std::cref(ask));
  return answer;
}

}  // namespace perfmap
