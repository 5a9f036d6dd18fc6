// SPDX-License-Identifier: MIT
#include <algorithm>
#include <map>
#include <string>

#include "perfmap/image_list.hpp"
#include "perfmap/lint.hpp"

namespace perfmap {

namespace {

bool is_control(char byte) noexcept { return static_cast<unsigned char>(byte) < 0x20; }

/// The images that have been loaded where the list is read.
class LoadedBefore {
 public:
  void check(const LoadedImage& image, Diagnostics& problems) {
    if (image.base == 0) return;
    const auto [known, is_new] = images_.try_emplace(image.base, image);
    if (is_new || known->second.path == image.path) return;
    problems.add(rule::kSharedImageBase, image.where,
                 "has the base of the image in line " + std::to_string(known->second.where.line));
    known->second = image;
  }

 private:
  std::map<Address, LoadedImage> images_;
};

void check_path(const LoadedImage& image, std::string_view text, Diagnostics& problems) {
  const auto byte = std::ranges::find_if(image.path, is_control);
  if (byte == image.path.end()) return;
  const auto offset = static_cast<std::uint64_t>(&*byte - text.data());
  problems.add(rule::kControlInImagePath,
               {offset, image.where.line, offset - image.where.offset + 1},
               "a control character in the path");
}

}  // namespace

void lint(const ImageList& list, Diagnostics& problems) {
  LoadedBefore before;
  const std::string_view text = list.text();
  list.for_each(problems, [&](const LoadedImage& image) {
    check_path(image, text, problems);
    before.check(image, problems);
  });
  if (text.empty() || text.back() == '\n') return;
  const auto newlines = static_cast<std::uint64_t>(std::ranges::count(text, '\n'));
  const std::size_t line = text.rfind('\n') + 1;  // npos + 1 is 0
  problems.add(rule::kTornImageLine, {text.size(), newlines + 1, text.size() - line + 1},
               "the last line has no newline");
}

}  // namespace perfmap
