// SPDX-License-Identifier: MIT
#include <string>

#include "perfmap/input.hpp"
#include "perfmap/profile/process.hpp"
#include "perfmap/profile/process_tracker.hpp"

namespace perfmap {
namespace {

using Answer = ModuleCache::Answer;

bool is_identified(const MappedFile& file) noexcept {
  return !file.build_id.empty() || file.inode != 0;
}

/// The device is not compared: overlayfs and btrfs report another one in events than stat(2) does.
Answer open_by_inode(ModuleCache& cache, const MappedFile& file) {
  Result<Input> input =
      Input::open(file.name, {.regular_only = true, .bounded = true, .keep_descriptor = false});
  if (!input) return failure(input);
  if (input->facts().inode != file.inode) {
    return Failure(Error::cannot("use", file.name, Reason::other_file,
                                 "it is not the file that was mapped: its inode differs"));
  }
  return cache.open(*std::move(input));
}

Answer open_by_path(ModuleCache& cache, const ProcessTracker::OpenModule& below,
                    const Region& region) {
  const MappedFile& file = *region.file;
  const bool goes_by_inode =
      file.is_file() && file.build_id.empty() && file.inode != 0 && file.name.starts_with('/');
  if (goes_by_inode) return open_by_inode(cache, file);
  if (file.kind == RegionKind::deleted_file && !is_identified(file)) {
    return Failure(Error::cannot("open", file.name, Reason::deleted));
  }
  return below(region, nullptr);
}

}  // namespace

ProcessTracker::OpenModule open_here(ModuleCache& cache) {
  return [&cache, through = open_through(cache), below = open_below(cache, "")](
             const Region& region, const ProcSource* process) -> Answer {
    if (region.file == nullptr || process == nullptr) {
      return region.file == nullptr ? through(region, process) : open_by_path(cache, below, region);
    }
    Answer own = through(region, process);
    // The pid may have another owner by now, or the process may not show the file.
    const bool may_be_elsewhere =
        !own && own.error().code != Errc::bad_format && is_identified(*region.file);
    if (!may_be_elsewhere) return own;
    Answer other = open_by_path(cache, below, region);
    return other ? other : own;
  };
}

}  // namespace perfmap
