// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <sys/types.h>
#include <utility>
#include <vector>

#include "perfmap/types.hpp"

namespace perfmap {

/// The rights with which a process opens files.
///
/// A process chooses what is at a path below its root: an unprivileged one may, in namespaces of
/// its own, mount /etc/shadow over /tmp/perf-PID.map. So a file that was found through a process is
/// opened with the rights of that process, by threads that may do so: those with CAP_SETUID and
/// CAP_SETGID, such as root's. Other callers keep their own rights, which are all that they have.
///
/// The rights are those of the real user and group and of the supplementary groups: a set-user-ID
/// program reads what its caller may read. Capabilities that override permissions count only for
/// user 0 of our own user namespace, and only if the process has them. So a process that reads
/// files by capabilities of its own user namespace, or of its program file, is refused here.
///
/// A value; several threads may use it. 64 bytes, and 4 for each supplementary group.
class PERFMAP_API ProcessRights {
 public:
  /// The caller's own.
  ProcessRights() = default;

  /// Those of the process with this directory of /proc, for which an O_PATH descriptor suffices.
  /// The descriptor belongs to one process for ever, so the rights are never those of another
  /// process with the same pid. The caller's own rights for a directory that is not in the kernel's
  /// procfs, and for a caller without the two capabilities. Fails with not_found if the process has
  /// ended.
  ///
  /// Open the process's root first, then call this: a process may lose rights and then change what
  /// is below its root. O(groups).
  static Result<ProcessRights> of(int proc_directory);

  /// Calls `open`, which returns a Result, with these rights, and returns its result. A file that
  /// the process may not read is Errc::refused, "process 123 may not read it".
  ///
  /// Changes the credentials of the calling thread alone, and restores them before it returns: its
  /// user and group for file systems, its groups and effective capabilities, and "dumpable" and
  /// the signal for the parent's death, which the kernel resets with them. Signal handlers that run
  /// on this thread meanwhile have the rights of the process, too. About ten system calls; none if
  /// the rights are the caller's own.
  template <class Open>
  auto with(Open&& open) const -> decltype(open()) {
    const Borrowed borrowed(*this);
    if (borrowed.error()) return Failure(*borrowed.error());
    auto result = std::forward<Open>(open)();
    if (!result && !is_own_) explain(result.error());
    return result;
  }

  bool is_own() const noexcept { return is_own_; }
  friend bool operator==(const ProcessRights&, const ProcessRights&) = default;

 private:
  /// While it exists, the thread has the rights.
  class PERFMAP_API Borrowed {
   public:
    explicit Borrowed(const ProcessRights& rights);
    ~Borrowed();
    Borrowed(const Borrowed&) = delete;
    Borrowed& operator=(const Borrowed&) = delete;
    const std::optional<Error>& error() const noexcept { return error_; }

   private:
    bool take(const ProcessRights& rights);

    bool is_taken_ = false;
    std::optional<Error> error_;
    std::vector<gid_t> groups_;
    uid_t user_ = 0;
    gid_t group_ = 0;
    std::uint64_t capabilities_ = 0;
    int dumpable_ = 0;
    int death_signal_ = 0;
  };
  void explain(Error& error) const;

  bool is_own_ = true;
  pid_t pid_ = 0;
  uid_t user_ = 0;
  gid_t group_ = 0;
  std::uint64_t dropped_ = 0;  // capabilities, as bits
  std::vector<gid_t> groups_;
};

/// ProcessRights::with() for the process of a directory of /proc. If its rights changed meanwhile,
/// calls `open` again with the new ones, a few times, and then fails with refused. Open the
/// process's root first.
template <class Open>
auto open_as_process(int proc_directory, const Open& open) -> decltype(open()) {
  constexpr int kMaxAttempts = 4;
  Result<ProcessRights> rights = ProcessRights::of(proc_directory);
  for (int attempt = 0; attempt < kMaxAttempts; ++attempt) {
    if (!rights) return failure(rights);
    auto result = rights->with(open);
    if (rights->is_own()) return result;
    Result<ProcessRights> now = ProcessRights::of(proc_directory);
    // A process that has ended cannot have changed them.
    if (!now || *now == *rights) return result;
    rights = std::move(now);
  }
  return Failure(Error::refused("cannot open a file of a process that changes its user"));
}

}  // namespace perfmap
