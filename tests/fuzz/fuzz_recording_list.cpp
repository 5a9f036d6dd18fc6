// SPDX-License-Identifier: MIT
// Any bytes are a list of recordings, in lines or ended by NUL: what it contains, written as a list
// again, is the list without its empty lines; or the number of the first wrong line is right.

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "perfmap/profile/merged_stacks.hpp"

namespace {

using namespace perfmap;

void require(bool condition) {
  if (!condition) std::abort();
}

std::string without_empty(std::string_view text, char end) {
  std::string left;
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find(end));
    text.remove_prefix(std::min(line.size() + 1, text.size()));
    if (!line.empty()) left.append(line).push_back(end);
  }
  return left;
}

std::string written(const std::vector<ListedRecording>& listed, char end) {
  std::string text;
  for (const ListedRecording& one : listed) {
    require(!one.path.empty());
    require(end == '\0' || one.path.find('\0') == std::string::npos);
    text += one.path;
    for (const auto& [key, value] : one.labels) {
      require(!key.empty() && key.find('=') == std::string::npos);
      text.append("\t").append(key).append("=").append(value);
    }
    text.push_back(end);
  }
  return text;
}

/// The text up to the end of line `number`.
std::string_view up_to_line(std::string_view text, std::uint64_t number) {
  std::size_t end = 0;
  for (; number != 0; --number) {
    require(end < text.size());
    end = std::min(text.find('\n', end), text.size() - 1) + 1;
  }
  return text.substr(0, end);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto with_nul = parse_recording_list(text, true);
  require(with_nul && written(*with_nul, '\0') == without_empty(text, '\0'));

  const auto lines = parse_recording_list(text, false);
  if (lines) {
    require(written(*lines, '\n') == without_empty(text, '\n'));
    return 0;
  }
  const std::uint64_t wrong = lines.error().where.line;
  require(wrong != 0 && lines.error().message().find('\n') == std::string::npos);
  require(!parse_recording_list(up_to_line(text, wrong), false));
  require(parse_recording_list(up_to_line(text, wrong - 1), false).has_value());
  return 0;
}
