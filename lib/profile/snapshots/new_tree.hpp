#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "perfmap/result.hpp"
#include "processes/descriptor.hpp"

namespace perfmap {

/// A directory that appears under its name when it is whole, and not at all otherwise. Nobody else
/// may look into it or write there: mode 0700, and 0600 for its files.
class NewTree {
 public:
  /// Nothing may be at `path` yet, but an empty directory.
  static Result<NewTree> begin(const std::string& path);
  NewTree(NewTree&& other) noexcept = default;
  NewTree& operator=(NewTree&& other) noexcept = default;
  ~NewTree();

  /// Paths are relative to the tree; directories above are made. No part of one may be "..".
  Result<void> make_directory(std::string_view path);
  /// A new file for writing; refused where there is one of that name.
  Result<OwnedFd> create(std::string_view path);
  /// Blocks of zeros become holes.
  Result<void> write(std::string_view path, std::string_view bytes,
                     std::optional<std::int64_t> mtime_ns = {});
  Result<void> link(std::string_view path, const std::string& target);
  void remove(std::string_view path) noexcept;

  Result<void> publish();

 private:
  NewTree() = default;
  /// The directory above, and the last part of the path.
  struct Place {
    OwnedFd directory;
    std::string name;
  };
  Result<Place> place_of(std::string_view path);
  Error error(std::string_view path, int sys_errno) const;

  std::string final_path_;
  std::string path_;  // of the tree until then; empty once it is published, or moved from
  OwnedFd directory_;
};

}  // namespace perfmap
