// SPDX-License-Identifier: MIT
// Any bytes are a list of .NET images: each line is an image or one finding, and an image is made
// of the bytes of its line.

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "perfmap/image_list.hpp"
#include "perfmap/lint.hpp"

namespace {

using namespace perfmap;

void require(bool condition) {
  if (!condition) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const ImageList list(Input::from_text({reinterpret_cast<const char*>(data), size}, "list"));
  const std::string_view text = list.text();
  Diagnostics problems(SIZE_MAX);
  std::uint64_t images = 0;
  std::uint64_t precompiled = 0;
  list.for_each(problems, [&](const LoadedImage& image) {
    ++images;
    precompiled += image.base == 0 ? 0 : 1;
    const std::string_view line = text.substr(image.where.offset);
    require(line.starts_with("ImageLoad;") && line.substr(10).starts_with(image.path));
    require(line.substr(10 + image.path.size() + 1).starts_with(image.guid));
    require(image.path.find('\n') == std::string_view::npos);
  });
  const auto lines = static_cast<std::uint64_t>(std::ranges::count(text, '\n')) +
                     (text.empty() || text.back() == '\n' ? 0 : 1);
  require(images + problems.total() == lines);
  for (const Diagnostic& one : problems.items()) require(one.where.offset <= text.size());
  const ImageListInfo info = image_list_info(list);
  require(info.images == images && info.precompiled == precompiled);
  require(info.bad_lines == problems.total() && info.first <= info.last);
  Diagnostics found(SIZE_MAX);
  lint(list, found);
  require(found.total() >= problems.total());
  return 0;
}
