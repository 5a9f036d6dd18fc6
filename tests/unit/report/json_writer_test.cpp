// SPDX-License-Identifier: MIT
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>

#include "base/text.hpp"
#include "perfmap/json.hpp"
#include "support/catch.hpp"
#include "support/written.hpp"

namespace perfmap::json_writer_test {
namespace {

using test::written;

std::string string_of(std::string_view bytes) {
  return written([&](OutputFile& out) { JsonWriter(out).string(bytes); });
}

}  // namespace

TEST_CASE("commas and colons are inserted automatically", "[json]") {
  const std::string text = written([](OutputFile& out) {
    JsonWriter json(out);
    json.begin_object();
    json.key("a");
    json.begin_array();
    json.number(1);
    json.boolean(false);
    json.null();
    json.begin_object();
    json.end_object();
    json.begin_array();
    json.end_array();
    json.string("x");
    json.end_array();
    json.key("b");
    json.address(0);
    json.end_object();
    json.newline();
    json.number(2);
  });
  CHECK(text == "{\"a\":[1,false,null,{},[],\"x\"],\"b\":\"0x0\"}\n2");
}

TEST_CASE("numbers and addresses keep all 64 bits", "[json]") {
  const std::string text = written([](OutputFile& out) {
    JsonWriter json(out);
    json.begin_array();
    json.number(UINT64_MAX);
    json.address(UINT64_MAX);
    json.end_array();
  });
  CHECK(text == "[18446744073709551615,\"0xffffffffffffffff\"]");
}

TEST_CASE("a decimal number has no trailing zeros", "[json]") {
  const auto decimal = [](std::uint64_t value, unsigned decimals) {
    return written([&](OutputFile& out) { JsonWriter(out).decimal(value, decimals); });
  };
  CHECK(decimal(1'500, 6) == "0.0015");
  CHECK(decimal(12'000'000, 6) == "12");
  CHECK(decimal(3'000'001, 6) == "3.000001");
  CHECK(decimal(0, 6) == "0");
  CHECK(decimal(UINT64_MAX, 18) == "18.446744073709551615");
}

TEST_CASE("quotes, backslashes, control bytes and DEL are escaped in strings", "[json]") {
  CHECK(string_of("a\"b\\c") == R"("a\"b\\c")");
  CHECK(string_of("\n\r\t") == R"("\n\r\t")");
  CHECK(string_of(std::string("\0\x1b\x1f\x7f", 4)) == R"("\u0000\u001b\u001f\u007f")");
}

TEST_CASE("valid UTF-8 is kept, and each invalid byte becomes U+FFFD", "[json]") {
  CHECK(string_of("größe 日本 😀") == "\"größe 日本 😀\"");
  CHECK(string_of("a\xff\xfe z") == "\"a\ufffd\ufffd z\"");
  CHECK(string_of("\xc0\x80") == "\"\ufffd\ufffd\"");            // overlong
  CHECK(string_of("\xed\xa0\x80") == "\"\ufffd\ufffd\ufffd\"");  // a surrogate
  CHECK(string_of("cut \xe6\x97") == "\"cut \ufffd\ufffd\"");
}

TEST_CASE("every byte value is handled right at every position in a block of eight", "[json]") {
  for (std::size_t length = 1; length <= 24; ++length) {
    for (std::size_t at = 0; at < length; ++at) {
      const auto text_with = [&](int byte) {
        std::string text(length, '!');
        text[at] = static_cast<char>(byte);
        return text;
      };
      const std::string lines = written([&](OutputFile& out) {
        JsonWriter json(out);
        for (int byte = 0; byte < 0x100; ++byte) {
          json.string(text_with(byte));
          json.newline();
        }
      });
      std::istringstream stream(lines);
      std::string line;
      for (int byte = 0; byte < 0x100; ++byte) {
        const std::string text = text_with(byte);
        std::string expected = text;
        if (byte >= 0x80) expected.replace(at, 1, "\ufffd");
        const bool is_plain = byte >= 0x20 && byte < 0x7f && byte != '"' && byte != '\\';
        if (!std::getline(stream, line) ||
            nlohmann::json::parse(line).get<std::string>() != expected ||
            (line == "\"" + text + "\"") != is_plain) {
          FAIL("byte " << byte << " at " << at << " of " << length << ": " << line);
        }
      }
    }
  }
}

TEST_CASE("a string longer than the buffer is written whole", "[json]") {
  const std::string plain(3 * OutputFile::kRoom + 5, 'x');
  CHECK(string_of(plain) == "\"" + plain + "\"");
  const std::string odd = plain + "\n" + plain + "\xff" + plain;
  CHECK(string_of(odd) == "\"" + plain + "\\n" + plain + "\ufffd" + plain + "\"");
}

TEST_CASE("a name that is not UTF-8 is followed by its exact bytes", "[json]") {
  const auto members = [](std::string_view name) {
    return written([&](OutputFile& out) {
      JsonWriter json(out);
      json.begin_object();
      json.name_members(name);
      json.end_object();
    });
  };
  CHECK(members("größe") == "{\"name\":\"größe\"}");
  CHECK(members("a\x01") == "{\"name\":\"a\\u0001\"}");
  CHECK(members("a\xff") == "{\"name\":\"a\ufffd\",\"name_bytes\":\"Yf8=\"}");
}

TEST_CASE("the exact bytes of a long name are one base64 string", "[json]") {
  for (const std::size_t length : {12'287u, 12'288u, 12'289u, 30'000u}) {
    const std::string name(length, '\xfe');
    const auto json = nlohmann::json::parse(written([&](OutputFile& out) {
      JsonWriter writer(out);
      writer.begin_object();
      writer.text_members("path", name);
      writer.end_object();
    }));
    CHECK(from_base64(json.at("path_bytes").get<std::string>()) == name);
  }
}

}  // namespace perfmap::json_writer_test
