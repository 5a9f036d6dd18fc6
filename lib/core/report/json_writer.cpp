// SPDX-License-Identifier: MIT
#include <charconv>
#include <cstring>
#include <string>

#include "base/text.hpp"
#include "perfmap/json.hpp"

namespace perfmap {
namespace {

/// Whether a byte can be written unchanged in a string. JSON allows DEL, but terminals interpret
/// it.
constexpr bool is_plain(char c) noexcept {
  const auto byte = static_cast<unsigned char>(c);
  return byte >= 0x20 && byte < 0x7f && c != '"' && c != '\\';
}

/// Checks all bytes, eight at a time.
bool is_plain(std::string_view text) noexcept {
  constexpr std::uint64_t kOnes = 0x0101010101010101;
  constexpr std::uint64_t kTops = 0x8080808080808080;
  const auto equals = [](std::uint64_t v, unsigned char c) {
    const std::uint64_t x = v ^ (kOnes * c);
    return (x - kOnes) & ~x;  // top bit set if a byte is c; false hits are only possible above a
                              // true one
  };
  std::uint64_t odd = 0;
  std::size_t i = 0;
  for (; i + 8 <= text.size(); i += 8) {
    std::uint64_t v;
    std::memcpy(&v, text.data() + i, 8);
    odd |= equals(v, '"') | equals(v, '\\') | equals(v, 0x7f) | (v - kOnes * 0x20) | v;
  }
  if ((odd & kTops) != 0) return false;
  for (; i < text.size(); ++i) {
    if (!is_plain(text[i])) return false;
  }
  return true;
}

void write_hex_escape(OutputFile& out, char c) {
  const auto byte = static_cast<unsigned char>(c);
  const char digits[] = {"0123456789abcdef"[byte >> 4], "0123456789abcdef"[byte & 15]};
  out.write("\\u00");
  out.write({digits, 2});
}

/// Writes the escape of a character that a JSON string cannot hold.
void write_escape(OutputFile& out, char c) {
  switch (c) {
    case '"': return out.write("\\\"");
    case '\\': return out.write("\\\\");
    case '\n': return out.write("\\n");
    case '\r': return out.write("\\r");
    case '\t': return out.write("\\t");
    default: return write_hex_escape(out, c);
  }
}

/// U+0080 to U+009F: terminals interpret them like control bytes.
bool is_c1(std::string_view character) noexcept {
  return character[0] == '\xc2' && static_cast<unsigned char>(character[1]) < 0xa0;
}

/// In chunks, because a name may have any length.
void write_escaped(OutputFile& out, std::string_view text) {
  while (!text.empty()) {
    std::size_t plain = 0;
    while (plain < text.size() && is_plain(text[plain])) ++plain;
    out.write(text.substr(0, plain));
    text.remove_prefix(plain);
    if (text.empty()) return;
    const std::size_t length = utf8_length(text);
    if (length == 0) {
      out.write("\xef\xbf\xbd");
    } else if (length == 1) {
      write_escape(out, text[0]);
    } else if (is_c1(text)) {
      write_hex_escape(out, text[1]);
    } else {
      out.write(text.substr(0, length));
    }
    text.remove_prefix(length == 0 ? 1 : length);
  }
}

void write_base64(OutputFile& out, std::string_view bytes) {
  constexpr std::size_t kPiece =
      std::size_t{3} * 4096;  // complete base64 groups: only the last chunk is padded
  for (; bytes.size() > kPiece; bytes.remove_prefix(kPiece)) {
    out.write(to_base64(bytes.substr(0, kPiece)));
  }
  out.write(to_base64(bytes));
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

void JsonWriter::integer(std::int64_t value) {
  separate();
  char* const at = out_.room(20);
  out_.wrote(static_cast<std::size_t>(std::to_chars(at, at + 20, value).ptr - at));
}

void JsonWriter::decimal(std::uint64_t value, unsigned decimals) {
  for (; decimals > 0 && value % 10 == 0; --decimals) value /= 10;
  std::uint64_t unit = 1;
  for (unsigned i = 0; i < decimals; ++i) unit *= 10;
  number(value / unit);
  if (decimals == 0) return;
  char* const at = out_.room(1 + decimals);
  *at = '.';
  std::uint64_t rest = value % unit;
  for (unsigned i = decimals; i > 0; --i, rest /= 10) at[i] = static_cast<char>('0' + rest % 10);
  out_.wrote(1 + decimals);
}

void JsonWriter::base64(std::string_view bytes) {
  separate();
  out_.write("\"");
  write_base64(out_, bytes);
  out_.write("\"");
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
  if (bytes.size() + 2 <= OutputFile::kRoom) {
    char* const start = out_.room(bytes.size() + 2);
    *start = '"';
    bytes.copy(start + 1, bytes.size());  // data() of an empty view may be null
    // What is checked is the copy: the bytes may be part of a file that another process changes.
    if (is_plain({start + 1, bytes.size()})) {
      start[bytes.size() + 1] = '"';
      out_.wrote(bytes.size() + 2);
      return;
    }
  }
  out_.write("\"");
  write_escaped(out_, bytes);
  out_.write("\"");
}

void JsonWriter::newline() {
  out_.write("\n");
  if (filled_ <= 1) filled_ = 0;  // no comma between documents
}

void JsonWriter::text_members(std::string_view name, std::string_view bytes) {
  key(name);
  string(bytes);
  if (is_plain(bytes) || is_utf8(bytes)) return;
  key(std::string(name) + "_bytes");
  base64(bytes);
}

}  // namespace perfmap
