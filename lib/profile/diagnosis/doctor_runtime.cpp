#include "diagnosis/doctor_runtime.hpp"

namespace perfmap {
namespace {

/// By the program's name, else the names of its memory, else those of its libraries.
FoundRuntime recognise(const ProcessView& view) {
  if (const RuntimeInfo* const row = runtime_of_program(view.executable)) {
    return {row->runtime, "executable " + view.executable, {}, true};
  }
  for (const Region& region : view.memory.regions) {
    const std::string& name = region.file->name;
    const RuntimeInfo* const row = region.access.execute ? runtime_of_region(name) : nullptr;
    if (row != nullptr) return {row->runtime, "memory called " + name, {}};
  }
  for (const Region& region : view.memory.regions) {
    const std::string& name = region.file->name;
    const RuntimeInfo* const row = region.file->is_file() ? runtime_of_library(name) : nullptr;
    if (row != nullptr) return {row->runtime, "library " + name, {}};
  }
  return {};
}

/// The digits and points that follow the runtime's name in a file name of the process's: "3.11".
std::string version_in_names(const ProcessView& view, const ProcessSigns& signs) {
  const auto digits = [](std::string_view rest) {
    std::string_view version = rest.substr(0, rest.find_first_not_of("0123456789."));
    while (version.ends_with('.')) version.remove_suffix(1);
    return std::string(version);
  };
  const std::string_view program = base_name(view.executable);
  if (program.starts_with(signs.version_program)) {
    std::string found = digits(program.substr(signs.version_program.size()));
    if (found.find('.') != std::string::npos) return found;
  }
  for (const Region& region : view.memory.regions) {
    const std::string_view name = base_name(region.file->name);
    if (!region.file->is_file() || !name.starts_with(signs.version_library)) continue;
    std::string found = digits(name.substr(signs.version_library.size()));
    if (found.find('.') != std::string::npos) return found;
  }
  return {};
}

std::string_view parent_of(std::string_view path) noexcept {
  const std::size_t slash = path.rfind('/');
  return slash == std::string_view::npos ? std::string_view() : path.substr(0, slash);
}

std::string version_in_release(const ProcSource& process, const std::string& path,
                               const ProcessSigns& signs) {
  constexpr std::uint64_t kMost = 64 << 10;
  const OpenPolicy policy{.follow_link = false, .regular_only = true, .bounded = true};
  const auto file = process.open_below_root(path, policy);
  if (!file || !*file) return {};
  return signs.release_version((*file)->text().substr(0, kMost));
}

/// Above lib/server/libjvm.so, or above jre/lib/amd64/server/libjvm.so.
std::string version_in_release(const ProcSource& process, const ProcessView& view,
                               const ProcessSigns& signs) {
  for (const Region& region : view.memory.regions) {
    if (!region.file->is_file() ||
        !base_name(region.file->name).starts_with(signs.release_library)) {
      continue;
    }
    std::string_view home = parent_of(parent_of(region.file->name));
    for (int up = 0; up < 3; ++up) {
      home = parent_of(home);
      std::string found = version_in_release(process, std::string(home) + "/release", signs);
      if (!found.empty()) return found;
    }
    return {};
  }
  return {};
}

}  // namespace

FoundRuntime find_runtime(const ProcessView& view) {
  FoundRuntime found = recognise(view);
  const ProcessSigns& signs = runtime_info(found.runtime).signs;
  if (!signs.version_library.empty()) found.version = version_in_names(view, signs);
  return found;
}

FoundRuntime find_runtime(const ProcSource& process, const ProcessView& view) {
  FoundRuntime found = find_runtime(view);
  const ProcessSigns& signs = runtime_info(found.runtime).signs;
  if (!signs.release_library.empty()) found.version = version_in_release(process, view, signs);
  return found;
}

}  // namespace perfmap
