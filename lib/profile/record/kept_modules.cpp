// SPDX-License-Identifier: MIT
#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <sys/stat.h>
#include <unistd.h>

#include "base/hex_bytes.hpp"
#include "perfmap/json.hpp"
#include "perfmap/profile/record.hpp"

namespace perfmap {
namespace {

/// Whether packages own the file.
bool is_of_system(std::string_view path) noexcept {
  constexpr std::array<std::string_view, 6> kTrees = {"/usr/",   "/lib/", "/lib32/",
                                                      "/lib64/", "/bin/", "/sbin/"};
  if (path.starts_with("/usr/local/")) return false;
  return std::ranges::any_of(kTrees,
                             [path](std::string_view one) { return path.starts_with(one); });
}

/// What identifies a file, whatever its paths.
std::string key_of(const std::string& path, std::string_view build_id) {
  return build_id.empty() ? path : "id " + hex_of_bytes(build_id);
}

}  // namespace

void ModuleKeeper::add(const MappedFile& file, const std::shared_ptr<const Module>& module) {
  if (!file.is_file()) return;
  const std::scoped_lock lock(mutex_);
  used_.try_emplace(key_of(file.name, module->build_id()), Used{file.name, file.inode, module});
}

void ModuleKeeper::mark(const std::string& path, const std::string& build_id) {
  const std::string marked = key_of(path, build_id);
  for (auto& [key, used] : used_) {
    used.is_marked = used.is_marked || key == marked || used.source == path;
  }
}

bool ModuleKeeper::may_copy(const Used& used, const std::function<bool(uid_t user)>& ran_as) const {
  const FileFacts& facts = used.module->facts();
  // The recording has no build ID of files that were only callers.
  const bool was_replaced =
      facts.mtime_ns >= began_ns_ && used.inode != 0 && used.inode != facts.inode;
  if (!facts.is_regular || was_replaced) return false;
  return ::geteuid() != 0 || (facts.mode & S_IROTH) != 0 || ran_as(facts.uid);
}

void ModuleKeeper::copy(const Used& used) {
  const Module& module = *used.module;
  RecordedModule copy;
  copy.path = std::string(kCopiedModulePrefix) + (module.build_id().empty()
                                                      ? "unknown-" + std::to_string(modules_.size())
                                                      : hex_of_bytes(module.build_id()));
  copy.source = used.source;
  copy.build_id = module.build_id();
  copy.size = module.bytes().size();
  const Result<void> written = directory_.write(copy.path, module.bytes());
  if (written) {
    modules_.push_back(std::move(copy));
  } else {
    failures_.push_back(written.error());
  }
}

void ModuleKeeper::write(const Limits& limits, const std::function<bool(uid_t user)>& ran_as) {
  std::vector<const Used*> order;
  for (const auto& [key, used] : used_) {
    if (used.is_marked && may_copy(used, ran_as)) order.push_back(&used);
  }
  std::ranges::stable_sort(order, {}, [](const Used* used) {
    return std::pair(is_of_system(used->source), used->module->bytes().size());
  });
  std::uint64_t left = limits.max_bytes;
  for (const Used* const used : order) {
    const std::uint64_t size = used->module->bytes().size();
    const bool is_ours = !is_of_system(used->source);
    if (size > (is_ours ? left : std::min(left, limits.max_system_file))) {
      if (is_ours) too_large_.push_back({"", used->source, "", size});
      continue;
    }
    left -= size;
    copy(*used);
  }
  used_.clear();
}

}  // namespace perfmap
