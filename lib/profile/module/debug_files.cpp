#include "module/debug_files.hpp"

#include <lzma.h>
#include <optional>

#include "module/module_file.hpp"
#include "perfmap/cursor.hpp"

namespace perfmap {
namespace {

constexpr std::size_t kMostLinkName = 255;
constexpr std::size_t kMostPath = 4095;
/// What is larger would take seconds to go over.
constexpr std::size_t kMostChecked = std::size_t{1} << 30;

std::string hex_of(std::string_view bytes) {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  for (const char byte : bytes) {
    text += kDigits[static_cast<unsigned char>(byte) >> 4];
    text += kDigits[static_cast<unsigned char>(byte) & 15];
  }
  return text;
}

/// "DIRECTORY/" of a path; "" where it has none.
std::string directory_of(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  return slash == path.npos ? std::string() : path.substr(0, slash + 1);
}

/// What .gnu_debuglink says: a name, and the checksum of the file it means.
struct DebugLink {
  std::string name;
  std::uint32_t checksum = 0;
};

std::optional<DebugLink> debug_link_of(const Module& module) {
  const std::string_view bytes = module.section_bytes(".gnu_debuglink");
  Cursor in(bytes, module.byte_order());
  const std::string_view name = in.c_string();
  in.skip((4 - in.position() % 4) % 4);
  DebugLink link{std::string(name), in.u32()};
  // It is a name within directories that we choose, never a way out of them.
  const bool plain = !name.empty() && name.size() <= kMostLinkName && name.find('/') == name.npos &&
                     name != "." && name != "..";
  return in.ok() && plain ? std::optional(std::move(link)) : std::nullopt;
}

bool is_same_file(const Module& a, const Module& b) noexcept {
  return a.facts().device == b.facts().device && a.facts().inode == b.facts().inode;
}

std::uint32_t checksum_of(std::string_view bytes) noexcept {
  return lzma_crc32(reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size(), 0);
}

/// Build-ids decide where both have one.
bool belongs(const Module& candidate, const Module& module, const DebugLink& link) noexcept {
  if (is_same_file(candidate, module)) return false;
  if (!module.build_id().empty() && !candidate.build_id().empty()) {
    return candidate.build_id() == module.build_id();
  }
  return candidate.bytes().size() <= kMostChecked &&
         checksum_of(candidate.bytes()) == link.checksum;
}

}  // namespace

std::vector<std::string> DebugFiles::roots() const {
  if (files_->root.empty()) return {""};
  return {files_->root, ""};
}

std::shared_ptr<const Module> DebugFiles::open(const Place& place) const {
  Result<Input> input = open_module_file(place.root, place.path);
  return input ? opener_(*std::move(input), place) : nullptr;
}

std::shared_ptr<const Module> DebugFiles::by_build_id(std::string_view build_id) const {
  if (build_id.size() < 2) return nullptr;
  const std::string hex = hex_of(build_id);
  const std::string name = "/.build-id/" + hex.substr(0, 2) + "/" + hex.substr(2) + ".debug";
  for (const std::string& root : roots()) {
    for (const std::string& directory : files_->debug_directories) {
      auto candidate = open({root, directory + name});
      if (candidate != nullptr && candidate->build_id() == build_id) return candidate;
    }
  }
  return nullptr;
}

std::shared_ptr<const Module> DebugFiles::by_link(const Module& module) const {
  const std::optional<DebugLink> link = debug_link_of(module);
  if (!link || !module.facts().is_file) return nullptr;
  const std::string own = directory_of(module.path());
  const auto look = [&](const std::string& root,
                        const std::string& path) -> std::shared_ptr<const Module> {
    auto candidate = open({root, path});
    return candidate != nullptr && belongs(*candidate, module, *link) ? candidate : nullptr;
  };
  for (const std::string& directory : {own, own + ".debug/"}) {
    if (auto found = look(files_->root, directory + link->name)) return found;
  }
  if (!own.starts_with('/')) return nullptr;
  for (const std::string& root : roots()) {
    for (const std::string& directory : files_->debug_directories) {
      if (auto found = look(root, directory + own + link->name)) return found;
    }
  }
  return nullptr;
}

std::shared_ptr<const Module> DebugFiles::find_debug(const Module& module) const {
  if (files_->debug_directories.empty()) return nullptr;
  auto found = by_build_id(module.build_id());
  if (found != nullptr && is_same_file(*found, module)) found = nullptr;
  if (found == nullptr) found = by_link(module);
  const bool has_dwarf = module.find_section(".debug_info") != nullptr;
  return found != nullptr || has_dwarf ? found : fetched(module.build_id());
}

std::shared_ptr<const Module> DebugFiles::fetched(std::string_view build_id) const {
  if (!files_->fetch || build_id.empty()) return nullptr;
  const std::optional<std::string> path = files_->fetch(build_id);
  auto candidate = path ? open({"", *path}) : nullptr;
  return candidate != nullptr && candidate->build_id() == build_id ? candidate : nullptr;
}

std::shared_ptr<const Module> DebugFiles::find_alternate(const Module& module) const {
  Cursor in(module.section_bytes(".gnu_debugaltlink"), module.byte_order());
  const std::string path(in.c_string());
  const std::string_view build_id = in.rest();
  if (!in.ok() || path.empty() || path.size() > kMostPath || build_id.empty()) return nullptr;
  if (files_->debug_directories.empty()) return nullptr;
  if (auto found = by_build_id(build_id)) return found;
  if (!module.facts().is_file) return fetched(build_id);
  const std::string whole = path.starts_with('/') ? path : directory_of(module.path()) + path;
  auto candidate = open({files_->root, whole});
  const bool is_right = candidate != nullptr && candidate->build_id() == build_id;
  return is_right ? candidate : fetched(build_id);
}

}  // namespace perfmap
