#include "source_lines.hpp"

namespace perfmap::app {
namespace {

constexpr std::uint64_t kMostBytes = std::uint64_t{16} << 20;
constexpr std::size_t kMostFiles = 64;
constexpr std::size_t kMostText = 200;  // bytes of a line

}  // namespace

SourceLines::File SourceLines::open(const std::string& path) {
  File file;
  if (!path.ends_with(".py")) return file;
  OpenPolicy policy;
  policy.follow_link = false;
  policy.regular_only = true;
  policy.bounded = true;
  policy.keep_descriptor = false;
  Result<Input> input = Input::open(path, policy);
  if (!input || input->facts().size > kMostBytes) return file;
  file.input = *std::move(input);
  const std::string_view text = file.input->text();
  for (std::size_t at = 0; at < text.size();) {
    file.starts.push_back(at);
    at = std::min(text.find('\n', at), text.size() - 1) + 1;
  }
  return file;
}

std::string SourceLines::line(const std::string& path, std::uint32_t number) {
  auto known = files_.find(path);
  if (known == files_.end()) {
    if (files_.size() == kMostFiles) return {};
    known = files_.emplace(path, open(path)).first;
  }
  const File& file = known->second;
  if (number == 0 || number > file.starts.size()) return {};
  const std::string_view text = file.input->text().substr(file.starts[number - 1]);
  const std::string_view line = text.substr(0, text.find('\n'));
  const std::size_t first = line.find_first_not_of(" \t\r");
  if (first == std::string_view::npos) return {};
  return std::string(line.substr(first, line.find_last_not_of(" \t\r") - first + 1))
      .substr(0, kMostText);
}

}  // namespace perfmap::app
