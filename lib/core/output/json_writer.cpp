#include "perfmap/json_writer.hpp"

#include <charconv>
#include <cstring>
#include <string>

#include "base/base64.hpp"
#include "base/hex.hpp"
#include "base/utf8.hpp"

namespace perfmap {
namespace {

/// True for printable ASCII without quotes and backslashes: what a JSON string holds as it is.
bool is_plain(std::string_view text) noexcept {
  constexpr std::uint64_t kOnes = 0x0101010101010101;
  constexpr std::uint64_t kTops = 0x8080808080808080;
  const auto equals = [](std::uint64_t v, unsigned char c) {
    const std::uint64_t x = v ^ (kOnes * c);
    return (x - kOnes) & ~x;  // top bit set where a byte is c; other hits lie above a true one
  };
  std::uint64_t odd = 0;
  std::size_t i = 0;
  for (; i + 8 <= text.size(); i += 8) {
    std::uint64_t v;
    std::memcpy(&v, text.data() + i, 8);
    odd |= equals(v, '"') | equals(v, '\\') | (v - kOnes * 0x20) | v;
  }
  if ((odd & kTops) != 0) return false;
  for (; i < text.size(); ++i) {
    const auto c = static_cast<unsigned char>(text[i]);
    if (c < 0x20 || c >= 0x80 || c == '"' || c == '\\') return false;
  }
  return true;
}

void append_escape(std::string& out, char c) {
  switch (c) {
    case '"':
    case '\\':
      out += '\\';
      out += c;
      return;
    case '\n': out += "\\n"; return;
    case '\r': out += "\\r"; return;
    case '\t': out += "\\t"; return;
    default:
      out += "\\u00";
      out += "0123456789abcdef"[static_cast<unsigned char>(c) >> 4];
      out += "0123456789abcdef"[c & 15];
  }
}

std::string escaped(std::string_view text) {
  std::string out;
  out.reserve(text.size() + 8);
  while (!text.empty()) {
    const std::size_t length = utf8_length(text);
    const auto first = static_cast<unsigned char>(text[0]);
    if (length == 0) {
      out += "\xef\xbf\xbd";
    } else if (first < 0x20 || first == '"' || first == '\\') {
      append_escape(out, text[0]);
    } else {
      out += text.substr(0, length);
    }
    text.remove_prefix(length == 0 ? 1 : length);
  }
  return out;
}

}  // namespace

void JsonWriter::separate() {
  if (!after_key_ && (filled_ & 1) != 0) out_.write(",");
  filled_ |= 1;
  after_key_ = false;
}

void JsonWriter::open(char bracket) {
  separate();
  filled_ <<= 1;
  out_.write({&bracket, 1});
}

void JsonWriter::close(char bracket) {
  filled_ >>= 1;
  out_.write({&bracket, 1});
}

void JsonWriter::key(std::string_view name) {
  char* at = out_.room(name.size() + 4);
  char* const start = at;
  if ((filled_ & 1) != 0) *at++ = ',';
  *at++ = '"';
  at += name.copy(at, name.size());
  *at++ = '"';
  *at++ = ':';
  out_.wrote(static_cast<std::size_t>(at - start));
  filled_ |= 1;
  after_key_ = true;
}

void JsonWriter::literal(std::string_view text) {
  separate();
  out_.write(text);
}

void JsonWriter::number(std::uint64_t value) {
  separate();
  char* const at = out_.room(20);
  out_.wrote(static_cast<std::size_t>(std::to_chars(at, at + 20, value).ptr - at));
}

void JsonWriter::address(Address value) {
  separate();
  char* const start = out_.room(20);
  std::memcpy(start, "\"0x", 3);
  char* at = write_hex(start + 3, value);
  *at++ = '"';
  out_.wrote(static_cast<std::size_t>(at - start));
}

void JsonWriter::string(std::string_view bytes) {
  separate();
  if (bytes.size() + 2 <= OutputFile::kRoom && is_plain(bytes)) {
    char* const start = out_.room(bytes.size() + 2);
    *start = '"';
    std::memcpy(start + 1, bytes.data(), bytes.size());
    start[bytes.size() + 1] = '"';
    out_.wrote(bytes.size() + 2);
    return;
  }
  out_.write("\"");
  out_.write(escaped(bytes));
  out_.write("\"");
}

void JsonWriter::newline() {
  out_.write("\n");
  if (filled_ <= 1) filled_ = 0;  // between documents no comma is due
}

void JsonWriter::text_members(std::string_view name, std::string_view bytes) {
  key(name);
  string(bytes);
  if (is_plain(bytes) || is_utf8(bytes)) return;
  key(std::string(name) + "_bytes");
  string(to_base64(bytes));
}

}  // namespace perfmap
