// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <sys/types.h>

#include "perfmap/profile/process.hpp"
#include "perfmap/profile/process_tracker.hpp"

namespace perfmap {

/// The answer for an address from the sources of a program and of its ancestors.
struct LineageAnswer {
  std::optional<ResolvedName> found;
  std::shared_ptr<JitSources> sources;  ///< that found the name
  Doubts doubts = {};
  bool is_inherited = false;  ///< the sources belong to an ancestor
  /// If nothing was found: why the program's own sources have no name. Nothing if it has no
  /// sources.
  std::optional<Unresolved> why;
};

/// The JIT sources of one program, and the origin of its memory. A child refers to its parent's
/// lineage rather than to its sources: those may be attached long after the fork, when the parent
/// may have ended.
struct JitLineage {
  /// A chain of forks may have any length; this many ancestors are asked.
  static constexpr int kMaxGenerations = 64;

  JitLineage() = default;
  JitLineage(const JitLineage&) = delete;
  JitLineage& operator=(const JitLineage&) = delete;
  ~JitLineage();

  /// Calls `ask` for each program whose names are valid at the address: first this one, then its
  /// ancestors, as long as their memory there shows the same as `region`, or, if that is null,
  /// nothing is known to be mapped. Ends when `ask` returns true. Changes that a parent made after
  /// `until`, on the clock of jitdumps, do not apply to this program. Shared memory has no such
  /// moment: what one process writes to it after the fork, the others see.
  using Ask =
      std::function<bool(const JitLineage& program, std::uint64_t until, bool was_remapped)>;
  void visit(const Region* region, Address address, const Ask& ask) const;
  /// Asks the sources of these programs.
  LineageAnswer find(const Region* region, const Query& query) const;

  enum class Origin : std::uint8_t {
    own,        ///< the program mapped it, or its origin is unknown
    inherited,  ///< unchanged since the fork
    remapped,   ///< the parent had the same content there, and the program has mapped it again
  };
  /// The origin of this program's memory that shows `region`, or of unmapped memory if null.
  Origin origin_of(const Region* region, Address address) const;

  pid_t pid = 0;
  std::uint32_t generation = 0;     // of that pid
  std::uint32_t id = 0;             // value of Region::mapped_by for memory that this program
                                    // mapped
  std::shared_ptr<JitSources> jit;  // its own sources
  /// False between exec and the first mapping of the new program: the memory is still that of the
  /// former program.
  bool asks_own = true;
  std::uint64_t since = 0;  // when the program began
  /// The same on the clock of jitdumps, if it can be converted.
  std::uint64_t source_since = ProcessTracker::kNow;
  std::shared_ptr<JitLineage> parent;              // null: it began without memory
  std::shared_ptr<const AddressSpace> began_with;  // null with a parent: unknown
};

}  // namespace perfmap
