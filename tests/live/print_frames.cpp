// SPDX-License-Identifier: MIT
// Prints functions and lines of addresses in llvm-symbolizer's format, for comparison: print_frames
// FILE [OPTION…], with one hexadecimal address per line on standard input.

#include <cstdlib>
#include <iostream>
#include <string>
#include <vector>

#include "perfmap/profile/debug_index.hpp"

namespace {

using namespace perfmap;

struct Wishes {
  unsigned threads = 1;
  bool one_by_one = false;
  bool line_only = false;
  DebugOptions options;
};

Wishes read_wishes(int count, char** arguments) {
  Wishes wishes;
  for (int i = 2; i < count; ++i) {
    const std::string word = arguments[i];
    const std::string value = i + 1 < count ? arguments[i + 1] : "";
    if (word == "--threads") wishes.threads = static_cast<unsigned>(std::stoul(value));
    if (word == "--bytes") wishes.options.max_bytes = std::stoul(value);
    if (word == "--one-by-one") wishes.one_by_one = true;
    if (word == "--line-only") wishes.line_only = true;
    if (word == "--alternate") wishes.options.alternate = Input::open(value).value();
    if (word == "--package") {
      wishes.options.open_package = [value] { return Input::open(value, {.regular_only = true}); };
    }
    if (word == "--split") {
      wishes.options.open_split = [](const std::string& path) {
        return Input::open(path, {.regular_only = true, .bounded = true});
      };
    }
  }
  return wishes;
}

const std::string& or_unknown(const std::string& text) {
  static const std::string unknown = "??";
  return text.empty() ? unknown : text;
}

void print(const std::vector<SourceFrame>& frames) {
  for (const SourceFrame& frame : frames) {
    const std::string& name = frame.linkage_name.empty() ? frame.function : frame.linkage_name;
    std::cout << or_unknown(name) << '\n'
              << or_unknown(frame.file) << ':' << frame.line << ':' << frame.column << '\n';
  }
  if (frames.empty()) std::cout << "??\n??:0:0\n";
}

std::vector<SourceFrame> line_as_frame(const DebugIndex& index, Address vaddr) {
  const auto line = index.find_line(vaddr);
  if (!line) return {};
  return {{"", "", line->file, line->line, line->column, false}};
}

}  // namespace

int main(int count, char** arguments) {
  if (count < 2) return 2;
  const Wishes wishes = read_wishes(count, arguments);
  const auto index = DebugIndex::open(arguments[1], wishes.options);
  if (!index) {
    std::cerr << index.error().message() << '\n';
    return 1;
  }
  std::vector<Address> vaddrs;
  for (std::string word; std::cin >> word;) vaddrs.push_back(std::stoull(word, nullptr, 16));
  std::vector<std::vector<SourceFrame>> found;
  if (!wishes.one_by_one && !wishes.line_only) found = index->find_all(vaddrs, wishes.threads);
  for (std::size_t i = 0; i < vaddrs.size(); ++i) {
    std::cout << std::hex << "0x" << vaddrs[i] << std::dec << '\n';
    if (wishes.line_only) {
      print(line_as_frame(*index, vaddrs[i]));
    } else {
      print(wishes.one_by_one ? index->find(vaddrs[i]) : found[i]);
    }
    std::cout << '\n';
  }
  return 0;
}
