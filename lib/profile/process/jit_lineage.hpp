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

/// What the sources of a program, and of those that it has its memory from, say of an address.
struct LineageAnswer {
  std::optional<ResolvedName> found;
  std::shared_ptr<JitSources> sources;  ///< that found it
  Doubts doubts = {};
  bool is_inherited = false;  ///< the sources are another program's
  /// If nothing was found: why the program's own sources have none. Nothing if it has no sources.
  std::optional<Unresolved> why;
};

/// The JIT sources of one program, and where its memory came from. A child holds its parent's
/// lineage rather than its sources: those may be attached long after the fork, and the parent may
/// have ended by then.
struct JitLineage {
  /// A chain of forks may be of any length; so many of them are asked.
  static constexpr int kMaxGenerations = 64;

  JitLineage() = default;
  JitLineage(const JitLineage&) = delete;
  JitLineage& operator=(const JitLineage&) = delete;
  ~JitLineage();

  /// Calls `ask` with each program whose names count at the address: with this one first, then with
  /// those that it was forked from, as long as the memory there shows the same as in `region` here,
  /// or, where that is null, nothing is known to be mapped. Ends when it answers true. What a
  /// parent did to its memory after `until`, by the clock of jitdumps, is not this program's.
  using Ask =
      std::function<bool(const JitLineage& program, std::uint64_t until, bool was_remapped)>;
  void visit(const Region* region, Address address, const Ask& ask) const;
  /// Asks their sources.
  LineageAnswer find(const Region* region, const Query& query) const;

  enum class Origin : std::uint8_t {
    own,        ///< the program mapped it, or nothing is known of where it comes from
    inherited,  ///< as the parent had it
    remapped,   ///< the parent had the same there, and the program has mapped it again
  };
  /// Where the memory of this program that shows `region`, or nothing if null, comes from.
  Origin origin_of(const Region* region, Address address) const;

  pid_t pid = 0;
  std::uint32_t generation = 0;     // of that pid
  std::uint32_t id = 0;             // Region::mapped_by of what this program mapped
  std::shared_ptr<JitSources> jit;  // its own
  /// Between exec and the first mapping of the new program the memory is the former program's, and
  /// nothing of the new one counts there.
  bool asks_own = true;
  std::uint64_t since = 0;  // when it began
  /// The same by the clock of jitdumps, where that can be known.
  std::uint64_t source_since = ProcessTracker::kNow;
  std::shared_ptr<JitLineage> parent;              // null: it began with no memory
  std::shared_ptr<const AddressSpace> began_with;  // null with a parent: not known
};

}  // namespace perfmap
