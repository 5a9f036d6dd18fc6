#include "perfmap/process_modules.hpp"

namespace perfmap {

using Answer = ModuleCache::Answer;

ProcessTracker::OpenModule open_of_snapshot(ModuleCache& cache,
                                            std::shared_ptr<const Snapshot> snapshot,
                                            std::string root) {
  auto files = open_below(cache, std::move(root), [snapshot](const std::string& path) {
    return std::string(snapshot->build_id_of(path));
  });
  return [&cache, snapshot, files = std::move(files)](const Region& region,
                                                      const ProcSource* process) -> Answer {
    const bool is_vdso = region.file != nullptr && region.file->kind == RegionKind::vdso;
    if (!is_vdso) return files(region, process);
    Result<std::optional<Input>> vdso = snapshot->vdso();
    if (!vdso) return Failure(std::move(vdso.error()));
    return *vdso ? cache.open(**std::move(vdso))
                 : Answer(Failure({Errc::not_found, "the snapshot has no [vdso]", 0, {}}));
  };
}

}  // namespace perfmap
