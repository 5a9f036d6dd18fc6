// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>

#include "perfmap/diagnostic.hpp"
#include "perfmap/input.hpp"
#include "perfmap/types.hpp"

namespace perfmap {

/// One line of the perfinfo-PID.map that .NET writes beside its perf map; its newest versions do
/// not. The process loaded this image.
///
///     ImageLoad;/usr/lib/dotnet/System.Linq.dll;{5bd14a6f-…};0x7f35297a0000;
///               `-- path                         `-- guid    `-- base
///
/// A path may contain semicolons: the other fields have none. Old versions write no base.
///
/// Source: dotnet/runtime, src/coreclr/vm/perfinfo.cpp.
struct LoadedImage {
  /// Raw bytes: need not be UTF-8, never contains a newline. Borrowed from the input.
  std::string_view path;
  /// The module's version id, as written, with its braces. Borrowed from the input.
  std::string_view guid;
  /// Where an image with precompiled (ReadyToRun) code is loaded; 0 for all others.
  Address base = 0;
  /// Of the line.
  Location where = {};
};

/// Parses one line, without its newline, that starts at `at`. A line is an image, or adds one
/// diagnostic. O(line).
PERFMAP_API std::optional<LoadedImage> parse_image_line(std::string_view line, const Location& at,
                                                        Diagnostics& problems);

/// A list of images: the lines of an input. Stores none of them: they are parsed on demand.
///
/// The list has no names, and no sizes: an address belongs to an image only if the process's
/// mappings say so. They have the image's path, too, so stacks need no list.
///
/// Several threads may use it.
class PERFMAP_API ImageList {
 public:
  explicit ImageList(Input input) noexcept : input_(std::move(input)) {}

  const Input& input() const noexcept { return input_; }
  std::string_view text() const noexcept { return input_.text(); }

  /// Calls `visit(const LoadedImage&)` for every image, in file order. Malformed lines go to
  /// `problems`. O(bytes).
  template <class Visit>
  void for_each(Diagnostics& problems, Visit&& visit) const {
    std::string_view left = text();
    for (Location at{0, 1, 1}; !left.empty(); ++at.line) {
      const std::string_view line = left.substr(0, left.find('\n'));
      if (const auto image = parse_image_line(line, at, problems)) visit(*image);
      const std::size_t step = std::min(line.size() + 1, left.size());
      left.remove_prefix(step);
      at.offset += step;
    }
  }

 private:
  Input input_;
};

/// Statistics of a list.
struct ImageListInfo {
  std::uint64_t images = 0;       ///< loaded; one may be loaded several times
  std::uint64_t precompiled = 0;  ///< those with precompiled code
  std::uint64_t bad_lines = 0;
  Address first = 0;  ///< the lowest base of precompiled code
  Address last = 0;   ///< the highest
};
/// O(bytes).
PERFMAP_API ImageListInfo image_list_info(const ImageList& list);

}  // namespace perfmap
