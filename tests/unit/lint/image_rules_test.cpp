// SPDX-License-Identifier: MIT
#include "perfmap/image_list.hpp"
#include "support/catch.hpp"
#include "support/lint_findings.hpp"

namespace perfmap::image_rules_test {
namespace {

const std::string kGuid = "{0c1a2b3c-0000-0000-0000-000000000000}";

ImageList list_of(std::string text) {
  return ImageList(Input::from_text(std::move(text), "perfinfo-7.map"));
}

std::vector<std::string> places_in(std::string text) {
  Diagnostics problems(0);
  lint(list_of(std::move(text)), problems);
  std::vector<std::string> places;
  for (const Diagnostic& one : problems.items()) places.push_back(test::place_of(one));
  return places;
}

std::optional<LoadedImage> image_of(std::string_view line) {
  Diagnostics ignored(0);
  return parse_image_line(line, {0, 1, 1}, ignored);
}

}  // namespace

TEST_CASE("an image has a path, a GUID and a base", "[images]") {
  struct Case {
    std::string line;
    std::string path;
    Address base;
  };
  const auto c = GENERATE(values<Case>({
      {"ImageLoad;/a.dll;" + kGuid + ";0x00007f3529400000;", "/a.dll", 0x7f3529400000},
      {"ImageLoad;/a.dll;" + kGuid + ";7F3529400000;", "/a.dll", 0x7f3529400000},
      {"ImageLoad;/a.dll;" + kGuid + ";(nil);", "/a.dll", 0},
      {"ImageLoad;/a.dll;" + kGuid + ";0x0;", "/a.dll", 0},
      {"ImageLoad;/a.dll;" + kGuid + ";", "/a.dll", 0},  // of an old version
      {"ImageLoad;/a;b;.dll;" + kGuid + ";0x10;", "/a;b;.dll", 0x10},
      {"ImageLoad;;;" + kGuid + ";0x10;", ";", 0x10},
      {"ImageLoad;/a.dll;0c1a2b3c-0000-0000-0000-000000000000;ffffffffffffffff;", "/a.dll",
       UINT64_MAX},
      {"ImageLoad;/a\xff.dll;" + kGuid + ";0x10;", "/a\xff.dll", 0x10},
  }));
  CAPTURE(c.line);
  const auto image = image_of(c.line);
  REQUIRE(image);
  CHECK(image->path == c.path);
  CHECK(image->base == c.base);
  CHECK(image->guid.find("0c1a2b3c") != std::string_view::npos);
}

TEST_CASE("each rule about lists of images reports its place", "[images]") {
  struct Case {
    std::string text;
    std::vector<std::string> places;
  };
  const std::string image = "ImageLoad;/a.dll;" + kGuid + ";0x10;\n";
  const auto c = GENERATE_COPY(values<Case>({
      {image, {}},
      {image + image, {}},  // loaded again
      {image + "ImageUnload;/a.dll;" + kGuid + ";0x10;\n", {"DI101 2:1"}},
      {image + "\n", {"DI101 2:1"}},
      {image + "ImageLoad;\n", {"DI101 2:1"}},
      {image + "ImageLoad;;" + kGuid + ";0x10;\n", {"DI101 2:11"}},
      {image + "ImageLoad;/a.dll;{0c1a2b3c};0x10;\n", {"DI101 2:1"}},
      {image + "ImageLoad;/a.dll;{0c1a2b3g-0000-0000-0000-000000000000};0x10;\n", {"DI101 2:1"}},
      {image + "ImageLoad;/a.dll;" + kGuid + ";0x10\n", {"DI101 2:1"}},
      {image + "ImageLoad;/a.dll;" + kGuid + ";0x1g;\n", {"DI102 2:57"}},
      {image + "ImageLoad;/a.dll;" + kGuid + ";10000000000000000;\n", {"DI102 2:57"}},
      {image + "ImageLoad;/a.dll;" + kGuid + ";-10;\n", {"DI102 2:57"}},
      {image + "ImageLoad;/b.dll;" + kGuid + ";0x10;", {"DI104 2:1", "DI103 2:62"}},
      {image + "ImageLoad;/a\x1b.dll;" + kGuid + ";0x20;\n", {"DI105 2:13"}},
      {image + "ImageLoad;/a" + std::string(1, '\0') + ";" + kGuid + ";0x20;\n", {"DI105 2:13"}},
      {image + "ImageLoad;/torn", {"DI101 2:1", "DI103 2:16"}},
  }));
  CAPTURE(c.text);
  CHECK(places_in(c.text) == c.places);
}

TEST_CASE("an empty list has no findings", "[images]") {
  CHECK(places_in("").empty());
  const ImageListInfo info = image_list_info(list_of(""));
  CHECK(info.images == 0);
  CHECK(info.first == 0);
}

TEST_CASE("a huge line, and a huge list of one base, take linear time", "[images]") {
  CHECK(places_in("ImageLoad;" + std::string(std::size_t{1} << 24, ';') + "\n") ==
        std::vector<std::string>{"DI101 1:1"});
  std::string text;
  for (int i = 0; i < 100'000; ++i) {
    text.append("ImageLoad;/").append(std::to_string(i)).append(";" + kGuid + ";0x10;\n");
  }
  Diagnostics problems(1);
  lint(list_of(text), problems);
  CHECK(problems.count_of(rule::kSharedImageBase) == 99'999);
  const ImageListInfo info = image_list_info(list_of(text));
  CHECK(info.images == 100'000);
  CHECK(info.precompiled == 100'000);
}

TEST_CASE("the statistics of a list of images", "[images]") {
  const ImageListInfo info =
      image_list_info(list_of("ImageLoad;/a.dll;" + kGuid + ";0x30;\nImageLoad;/b.dll;" + kGuid +
                              ";(nil);\ntorn\nImageLoad;/c.dll;" + kGuid + ";0x10;\n"));
  CHECK(info.images == 3);
  CHECK(info.precompiled == 2);
  CHECK(info.bad_lines == 1);
  CHECK(info.first == 0x10);
  CHECK(info.last == 0x30);
}

}  // namespace perfmap::image_rules_test
