// SPDX-License-Identifier: MIT
#include "perfmap/image_list.hpp"

#include <cctype>

#include "perfmap/map.hpp"

namespace perfmap {

namespace {

constexpr std::string_view kImageLoad = "ImageLoad;";

/// The field at the end of `text`, which is removed with the semicolon before it.
std::string_view take_last_field(std::string_view& text) {
  const std::size_t separator = text.rfind(';');
  const std::size_t begin = separator + 1;  // npos + 1 is 0
  const std::string_view field = text.substr(begin);
  text = text.substr(0, separator == std::string_view::npos ? 0 : separator);
  return field;
}

/// "{0c1a2b3c-0000-0000-0000-000000000000}", also without its braces.
bool is_guid(std::string_view text) noexcept {
  constexpr std::string_view kForm = "xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx";
  if (text.starts_with('{') && text.ends_with('}')) text = text.substr(1, text.size() - 2);
  if (text.size() != kForm.size()) return false;
  for (std::size_t i = 0; i < kForm.size(); ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    if (kForm[i] == '-' ? byte != '-' : std::isxdigit(byte) == 0) return false;
  }
  return true;
}

/// C's %p writes no address as "(nil)".
std::optional<Address> parse_base(std::string_view text) noexcept {
  return text == "(nil)" ? Address{0} : parse_hex(text);
}

}  // namespace

std::optional<LoadedImage> parse_image_line(std::string_view line, const Location& at,
                                            Diagnostics& problems) {
  const auto refuse = [&](const Rule& rule, std::size_t column, std::string_view why) {
    problems.add(rule, {at.offset + column, at.line, column + 1}, std::string(why));
    return std::nullopt;
  };
  if (!line.starts_with(kImageLoad) || !line.ends_with(';')) {
    return refuse(rule::kNotImageLine, 0, "not ImageLoad;PATH;GUID;BASE;");
  }
  std::string_view rest = line.substr(kImageLoad.size());
  rest.remove_suffix(rest.empty() ? 0 : 1);
  LoadedImage image;
  image.where = at;
  std::string_view last = take_last_field(rest);
  if (!is_guid(last)) {
    const std::optional<Address> base = parse_base(last);
    const auto column = static_cast<std::size_t>(last.data() - line.data());
    last = take_last_field(rest);
    if (!is_guid(last)) {
      return refuse(rule::kNotImageLine, 0, "no GUID before the base, or at the end");
    }
    if (!base) {
      return refuse(rule::kBadImageBase, column,
                    "the base is not a hexadecimal number of at most 64 bits");
    }
    image.base = *base;
  }
  image.guid = last;
  image.path = rest;
  if (rest.empty()) return refuse(rule::kNotImageLine, kImageLoad.size(), "the path is empty");
  return image;
}

ImageListInfo image_list_info(const ImageList& list) {
  ImageListInfo info;
  Diagnostics problems(0);
  list.for_each(problems, [&info](const LoadedImage& image) {
    ++info.images;
    if (image.base == 0) return;
    info.first = info.precompiled == 0 ? image.base : std::min(info.first, image.base);
    info.last = std::max(info.last, image.base);
    ++info.precompiled;
  });
  info.bad_lines = problems.total();
  return info;
}

}  // namespace perfmap
