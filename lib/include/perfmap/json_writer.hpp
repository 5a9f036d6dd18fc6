#pragma once

#include <cstdint>
#include <string_view>

#include "perfmap/address.hpp"
#include "perfmap/export.hpp"
#include "perfmap/output_file.hpp"

namespace perfmap {

/// Writes JSON (RFC 8259) as it goes: nothing is held in memory, commas place themselves. The
/// caller keeps objects and arrays balanced and gives every member of an object a key. At most 64
/// levels.
///
/// Strings are bytes: what is not valid UTF-8 becomes U+FFFD, control characters (DEL and
/// U+0080 to U+009F too) are escaped.
/// Numbers may have all 64 bits; readers that keep numbers as doubles lose bits above 2^53.
/// Addresses are strings for that reason.
class PERFMAP_API JsonWriter {
 public:
  explicit JsonWriter(OutputFile& out) noexcept : out_(out) {}

  void begin_object() { open('{'); }
  void end_object() { close('}'); }
  void begin_array() { open('['); }
  void end_array() { close(']'); }
  /// `name` is plain ASCII without quotes: one of ours.
  void key(std::string_view name);
  void string(std::string_view bytes);
  void number(std::uint64_t value);
  void integer(std::int64_t value);
  /// `value` / 10^`decimals`, exactly: decimal(1500, 6) is 0.0015. At most 18 decimals.
  void decimal(std::uint64_t value, unsigned decimals);
  /// base64 (RFC 4648) of any bytes.
  void base64(std::string_view bytes);
  void boolean(bool value) { literal(value ? "true" : "false"); }
  void null() { literal("null"); }
  /// "0x7f3529fcf759"
  void address(Address value);
  /// A line end, between two documents of a stream or for people's eyes.
  void newline();

  /// A key and its value.
  void member(std::string_view name, std::string_view bytes) {
    key(name);
    string(bytes);
  }
  void member(std::string_view name, std::uint64_t value) {
    key(name);
    number(value);
  }

  /// The members "name" and, where the bytes are not UTF-8, "name_bytes" (base64 of them).
  void name_members(std::string_view bytes) { text_members("name", bytes); }
  /// The same under another name: KEY and KEY_bytes.
  void text_members(std::string_view name, std::string_view bytes);

 private:
  void open(char bracket);
  void close(char bracket);
  void literal(std::string_view text);
  void separate();

  OutputFile& out_;
  std::uint64_t filled_ = 0;  // one bit a level: something precedes on this level
  bool after_key_ = false;
};

}  // namespace perfmap
