// SPDX-License-Identifier: MIT
#include <string>
#include <unistd.h>

#include "base/lazy.hpp"
#include "perfmap/profile/process.hpp"
#include "perfmap/profile/process_tracker.hpp"

namespace perfmap {
namespace {

using Answer = ModuleCache::Answer;

Failure gone(const Region& region) {
  return Failure(Error::cannot("open", region.file->name, Reason::process_ended));
}

Failure no_file() { return Failure(Error::unsupported("the region has no file")); }

/// Each process has its own copy in memory. stat(2) cannot distinguish them, so the bytes are
/// compared.
Answer open_vdso(ModuleCache& cache, const Region& region, const ProcSource& process) {
  ProcSource::Seen<std::string> bytes = process.read_memory(region.range);
  if (!bytes) return failure(bytes);
  if (!*bytes) return gone(region);
  const Input image = Input::from_text(**std::move(bytes), region.file->name);
  const Answer own = Module::open(image);
  if (!own) return own;
  const auto known = cache.find_build_id((*own)->build_id());
  if (known != nullptr && known->bytes() == (*own)->bytes()) return known;
  return cache.open(image);
}

/// A module in the cache that needs no open, or null.
std::shared_ptr<const Module> find_known(ModuleCache& cache, const Region& region,
                                         const ProcSource* process) {
  if (process != nullptr) {
    const ProcSource::Seen<FileFacts> facts = process->region_facts(region);
    if (facts && *facts) {
      const FileFacts& file = **facts;
      return cache.find({file.device, file.inode, file.mtime_ns, file.size});
    }
  }
  return cache.find_build_id(region.file->build_id);
}

Answer open_file(ModuleCache& cache, const Region& region, const ProcSource* process) {
  if (auto known = find_known(cache, region, process)) return known;
  if (process == nullptr) return gone(region);
  ProcSource::Seen<Input> file = process->open_region(region);
  if (!file) return failure(file);
  if (!*file) return gone(region);
  const ProcSource::Seen<std::string> root = process->root_path();
  // Without a safe root, debug files of any user could be found.
  if (!root || !*root) return root ? Answer(gone(region)) : Answer(failure(root));
  return cache.open(**std::move(file), **root);
}

/// Our own vdso: it is only in memory, and the same for all processes of a kernel.
std::shared_ptr<const Module> open_own_vdso(ModuleCache& cache) {
  const ProcSource::Seen<ProcSource> self = ProcSource::open(::getpid());
  MappedFiles files;
  const auto memory = self && *self ? (*self)->memory_map(files) : ProcSource::Seen<MemoryMap>();
  if (!memory || !*memory) return nullptr;
  for (const Region& own : (*memory)->regions) {
    if (own.file->kind != RegionKind::vdso) continue;
    const Answer module = open_vdso(cache, own, **self);
    return module ? *module : nullptr;
  }
  return nullptr;
}

/// Searched once.
class OwnVdso {
 public:
  /// Recordings give a 32-bit process the build id of perf's own vdso, which has 64 bits.
  Answer open(ModuleCache& cache, const Region& region, std::string_view wanted) {
    const bool is_of_32_bits = region.range.end() <= UINT32_MAX;
    if (is_of_32_bits && sizeof(void*) > 4)
      return Failure(Error::unsupported("the vdso of 32-bit processes cannot be read"));
    once_.run([&] { module_ = open_own_vdso(cache); });
    if (module_ != nullptr && !wanted.empty() && module_->build_id() == wanted) return module_;
    return Failure(Error::unsupported("the process had the vdso of another kernel"));
  }

 private:
  Once once_;
  std::shared_ptr<const Module> module_;
};

/// The build id of the file that the process has mapped, if it can be read.
std::string own_build_id(const Region& region, const ProcSource& process) {
  ProcSource::Seen<Input> file = process.open_region(region);
  if (!file || !*file) return {};
  const Answer own = Module::open(**std::move(file));
  return own ? std::string((*own)->build_id()) : std::string();
}

}  // namespace

std::string own_vdso_build_id() {
  ModuleCache cache;
  const auto own = open_own_vdso(cache);
  return own != nullptr ? std::string(own->build_id()) : std::string();
}

ProcessTracker::OpenModule open_through(ModuleCache& cache) {
  return [&cache](const Region& region, const ProcSource* process) -> Answer {
    if (region.file == nullptr) return no_file();
    const bool is_vdso = region.file->kind == RegionKind::vdso;
    return is_vdso && process != nullptr ? open_vdso(cache, region, *process)
                                         : open_file(cache, region, process);
  };
}

ProcessTracker::OpenModule open_below(ModuleCache& cache, std::string root,
                                      ExpectedBuildId expected) {
  return [&cache, below = std::move(root), expected = std::move(expected),
          vdso = std::make_shared<OwnVdso>()](const Region& region,
                                              const ProcSource* process) -> Answer {
    if (region.file == nullptr) return no_file();
    const std::string& path = region.file->name;
    std::string wanted = region.file->build_id;
    if (wanted.empty() && expected) wanted = expected(path);
    if (region.file->kind == RegionKind::vdso) return vdso->open(cache, region, wanted);
    // The first page of a jitdump, which its writer maps so that perf records the path.
    if (!region.file->is_file() || is_dump_path(path)) return no_file();
    if (wanted.empty() && process != nullptr) wanted = own_build_id(region, *process);
    if (!wanted.empty()) {
      if (auto known = cache.find_build_id(wanted)) return known;
    }
    if (below.empty() && !path.starts_with('/')) {
      return Failure(Error::cannot("open", path, Reason::unreachable));
    }
    Answer module = cache.open(path, below);
    if (!module || wanted.empty() || (*module)->build_id() == wanted) return module;
    return Failure(Error::cannot("use", below + path, Reason::other_build,
                                 "its build ID differs from the one in the process"));
  };
}

}  // namespace perfmap
