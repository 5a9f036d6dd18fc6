#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "perfmap/input.hpp"
#include "perfmap/module.hpp"

namespace perfmap {

/// Where files that belong to a module may be, best first.
class DebugFiles {
 public:
  struct Place {
    std::string root;
    std::string path;
  };
  /// How a candidate is made a module; null where it is no ELF file.
  using Opener = std::function<std::shared_ptr<const Module>(Input, const Place&)>;
  DebugFiles(const ModuleFiles& files, Opener opener)
      : files_(&files), opener_(std::move(opener)) {}

  /// The file that has the module's debug information, or null.
  std::shared_ptr<const Module> find_debug(const Module& module) const;
  /// The one that the module shares with others of its package (dwz), or null.
  std::shared_ptr<const Module> find_alternate(const Module& module) const;

 private:
  std::shared_ptr<const Module> by_build_id(std::string_view build_id) const;
  std::shared_ptr<const Module> by_link(const Module& module) const;
  std::shared_ptr<const Module> fetched(std::string_view build_id) const;
  std::shared_ptr<const Module> open(const Place& place) const;
  /// Below the root, and on the host.
  std::vector<std::string> roots() const;

  const ModuleFiles* files_;
  Opener opener_;
};

}  // namespace perfmap
