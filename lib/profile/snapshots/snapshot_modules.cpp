#include "perfmap/process_modules.hpp"

namespace perfmap {

using Answer = ModuleCache::Answer;

namespace {

/// Of the snapshot, where it is the one that was told.
Answer open_snapshot_vdso(ModuleCache& cache, const Snapshot& snapshot, std::string_view wanted) {
  Result<std::optional<Input>> vdso = snapshot.vdso();
  if (!vdso) return Failure(std::move(vdso.error()));
  if (!*vdso) return Failure({Errc::not_found, "the snapshot has no [vdso]", 0, {}});
  Answer module = cache.open(**std::move(vdso));
  if (!module || wanted.empty() || (*module)->build_id() == wanted) return module;
  return Failure({Errc::refused, "the snapshot has the [vdso] of another kernel", 0, {}});
}

}  // namespace

ProcessTracker::OpenModule open_of_snapshot(ModuleCache& cache,
                                            std::shared_ptr<const Snapshot> snapshot,
                                            std::string root, ExpectedBuildId expected) {
  auto files = open_below(cache, std::move(root), [snapshot, expected](const std::string& path) {
    std::string told = expected ? expected(path) : std::string();
    return told.empty() ? std::string(snapshot->build_id_of(path)) : told;
  });
  return [&cache, snapshot, expected, files = std::move(files)](
             const Region& region, const ProcSource* process) -> Answer {
    const bool is_vdso = region.file != nullptr && region.file->kind == RegionKind::vdso;
    if (!is_vdso) return files(region, process);
    std::string wanted = region.file->build_id;
    if (wanted.empty() && expected) wanted = expected(region.file->name);
    Answer module = open_snapshot_vdso(cache, *snapshot, wanted);
    return module || !expected ? module : files(region, process);
  };
}

}  // namespace perfmap
