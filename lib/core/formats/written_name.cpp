#include "perfmap/written_name.hpp"

#include "base/utf8.hpp"

namespace perfmap {
namespace {

constexpr std::size_t kShortest = 3;

bool is_control(char byte) noexcept {
  return static_cast<unsigned char>(byte) < 0x20 || byte == 0x7f;
}

std::string_view without_end_blanks(std::string_view name) noexcept {
  const std::size_t first = name.find_first_not_of(' ');
  if (first == std::string_view::npos) return {};
  return name.substr(first, name.find_last_not_of(' ') - first + 1);
}

void append_escaped(std::string& out, std::string_view name) {
  while (!name.empty()) {
    const std::size_t length = is_control(name[0]) ? 0 : utf8_length(name);
    if (length == 0) {
      const auto byte = static_cast<unsigned char>(name[0]);
      out += "\\x";
      out += "0123456789abcdef"[byte >> 4];
      out += "0123456789abcdef"[byte & 15];
    } else {
      out += name.substr(0, length);
    }
    name.remove_prefix(length == 0 ? 1 : length);
  }
}

/// Cuts what was appended from `start` on to at most `most` bytes, between two characters, of which
/// \xNN is one.
void cut(std::string& out, std::size_t start, std::size_t most) {
  std::size_t end = start + most;
  while (end > start && (static_cast<unsigned char>(out[end]) & 0xc0) == 0x80) --end;
  for (std::size_t back = 1; back < 4 && back <= end - start; ++back) {
    if (out[end - back] == '\\') {
      end -= back;
      break;
    }
  }
  out.resize(end);
  out += "…";
}

}  // namespace

bool is_written_as_is(std::string_view name) noexcept {
  if (name.size() < kShortest || name.front() == ' ' || name.back() == ' ') return false;
  if (is_plain_ascii(name)) return true;
  while (!name.empty()) {
    const std::size_t length = is_control(name[0]) ? 0 : utf8_length(name);
    if (length == 0) return false;
    name.remove_prefix(length);
  }
  return true;
}

void append_written_name(std::string& out, std::string_view name) {
  if (is_written_as_is(name)) {
    out += name;
    return;
  }
  const std::string_view kept = without_end_blanks(name);
  const std::size_t start = out.size();
  append_escaped(out, kept);
  if (out.size() - start >= kShortest) return;
  out.insert(start, 1, '[');
  out += kept.empty() ? "?]" : "]";
}

std::string written_name(std::string_view name) {
  std::string out;
  append_written_name(out, name);
  return out;
}

void append_portable_name(std::string& out, std::string_view name) {
  const std::size_t start = out.size();
  append_written_name(out, name);
  if (out.size() - start > kMostPortableName) cut(out, start, kMostPortableName);
}

}  // namespace perfmap
