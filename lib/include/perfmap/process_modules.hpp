#pragma once

#include <functional>
#include <memory>
#include <string>

#include "perfmap/export.hpp"
#include "perfmap/module_cache.hpp"
#include "perfmap/process_tracker.hpp"
#include "perfmap/snapshot.hpp"

namespace perfmap {

/// For ProcessTracker::Options::open_module: what regions show, by way of a cache that all
/// processes, trackers and threads share. The cache must outlive the answer and its copies.
///
/// A file that the cache knows is recognized by what stat(2) says of it, and not opened; it is
/// found as ProcSource::open_region() finds files, and believed as there. Debug files are looked
/// for below the process's root, and on the host; see ModuleFiles. A vdso is read from the
/// process's memory, and is the same module for all processes that have the same bytes.
///
/// Of a process that is gone, and of a file that may not be looked at, the cache may still know the
/// build-id that the region tells. Fails as ProcSource::open_region() and ModuleCache::open() do,
/// and with not_found where the process is gone. Copies may be used from several threads.
PERFMAP_API ProcessTracker::OpenModule open_through(ModuleCache& cache);

/// Tells the build-id that the file at a path had, raw; empty where that is not known.
using ExpectedBuildId = std::function<std::string(const std::string& path)>;

/// That of this machine's vdso, raw; empty where it has none, or none that can be read. For
/// recordings of this machine that tell no build-id of theirs.
PERFMAP_API std::string own_vdso_build_id();

/// The same for processes of another machine, or that have gone: files are looked for below `root`
/// by the paths that the processes knew; no link leads out of it. Empty: on this machine. A file
/// whose build-id is not the one that the region, `expected`, or the living process's own file
/// tells, is refused. A vdso is our own, where that has the build-id that is told.
PERFMAP_API ProcessTracker::OpenModule open_below(ModuleCache& cache, std::string root,
                                                  ExpectedBuildId expected = {});

/// The same for a snapshot: by the build-ids that it has; its vdso is in it. What `expected` tells,
/// as a recording of the process does, counts before the snapshot.
PERFMAP_API ProcessTracker::OpenModule open_of_snapshot(ModuleCache& cache,
                                                        std::shared_ptr<const Snapshot> snapshot,
                                                        std::string root = {},
                                                        ExpectedBuildId expected = {});

}  // namespace perfmap
