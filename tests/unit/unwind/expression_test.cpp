// SPDX-License-Identifier: MIT
#include "unwind/expression.hpp"

#include <map>

#include "support/catch.hpp"

namespace perfmap::expression_test {
using namespace std::string_literals;

namespace {

struct Memory : ExpressionContext {
  std::map<std::uint64_t, std::uint64_t> registers = {{7, 0x7fff'0000}, {16, 0x40'1028}};
  std::map<Address, std::uint64_t> words = {{0x7fff'0000, 0x1122'3344'5566'7788},
                                            {0x10, 0x7fff'0000}};

  std::optional<std::uint64_t> register_value(std::uint64_t number) const override {
    const auto found = registers.find(number);
    return found == registers.end() ? std::nullopt : std::optional(found->second);
  }
  std::optional<std::uint64_t> read(Address address, unsigned size) const override {
    const auto found = words.find(address);
    if (found == words.end()) return std::nullopt;
    return size == 8 ? found->second : found->second & ((std::uint64_t{1} << (8 * size)) - 1);
  }
};

std::optional<std::uint64_t> value(const std::string& expression,
                                   const ExpressionInput& input = {}) {
  return evaluate(expression, input, Memory());
}

constexpr ExpressionInput kNarrow{std::endian::little, 4, {}};

}  // namespace

TEST_CASE("constants are pushed", "[expression]") {
  CHECK(value("\x30") == 0);
  CHECK(value("\x4f") == 31);
  CHECK(value("\x08\xff") == 255);
  CHECK(value("\x09\xff") == UINT64_MAX);
  CHECK(value("\x0a\x34\x12") == 0x1234);
  CHECK(value("\x0b\xfe\xff") == UINT64_MAX - 1);
  CHECK(value("\x0c\x78\x56\x34\x82") == 0x8234'5678);
  CHECK(value("\x0d\x78\x56\x34\x82") == 0xffff'ffff'8234'5678);
  CHECK(value("\x0e\x08\x07\x06\x05\x04\x03\x02\x81") == 0x8102'0304'0506'0708);
  CHECK(value("\x0f\x08\x07\x06\x05\x04\x03\x02\x81") == 0x8102'0304'0506'0708);
  CHECK(value("\x10\x90\x01") == 144);
  CHECK(value("\x11\x7f") == UINT64_MAX);
  CHECK(value("\x03\x08\x07\x06\x05\x04\x03\x02\x01") == 0x0102'0304'0506'0708);
  CHECK(value("\x0a\x12\x34", {std::endian::big, 8, {}}) == 0x1234);
  CHECK(value("\x03\x01\x02\x03\x04", {std::endian::big, 4, {}}) == 0x0102'0304);
}

TEST_CASE("registers and memory are read through the context", "[expression]") {
  CHECK(value("\x77\x08") == 0x7fff'0008);      // breg7
  CHECK(value("\x77\x78") == 0x7ffe'fff8);      // breg7 - 8
  CHECK(value("\x92\x07\x08") == 0x7fff'0008);  // bregx
  CHECK(value("\x77\0\x06"s) == 0x1122'3344'5566'7788);
  CHECK(value("\x77\0\x94\x04"s) == 0x5566'7788);
  CHECK(value("\x77\0\x94\x01"s) == 0x88);
  CHECK(value("\x08\x10\x06\x06") == 0x1122'3344'5566'7788);
  CHECK_FALSE(value("\x76\0"s));       // an unknown register
  CHECK_FALSE(value("\x77\x08\x06"));  // an unknown address
  CHECK_FALSE(value("\x77\0\x94\0"s));
  CHECK_FALSE(value("\x77\0\x94\x09"s));
  CHECK_FALSE(value("\x57"));  // a location, not a value
}

TEST_CASE("the CFA is on the initial stack if it is known", "[expression]") {
  const ExpressionInput with_cfa{std::endian::little, 8, 0x1000};
  CHECK(value("", with_cfa) == 0x1000);
  CHECK(value("\x23\x08", with_cfa) == 0x1008);
  CHECK(value("\x9c\x22", with_cfa) == 0x2000);
  CHECK_FALSE(value(""));
  CHECK_FALSE(value("\x9c"));
}

TEST_CASE("stack operations", "[expression]") {
  CHECK(value("\x31\x32\x12\x1e\x22") == 5);  // dup: 1 + 2 * 2
  CHECK(value("\x31\x32\x13") == 1);          // drop
  CHECK(value("\x31\x32\x14") == 1);          // over
  CHECK(value("\x31\x32\x33\x15\x02") == 1);  // pick
  CHECK(value("\x31\x32\x16\x1c") == 1);      // swap: 2 - 1
  CHECK(value("\x31\x32\x33\x17") == 2);      // rot: 3 1 2
  CHECK(value("\x31\x32\x33\x17\x13") == 1);
  CHECK(value("\x31\x32\x33\x17\x13\x13") == 3);
  CHECK(value("\x31\x32\x33\x17\x13\x13\x13") == std::nullopt);
  CHECK(value("\x31\x32\x33\x17\x22\x22") == 6);
  for (const char* const one :
       {"\x31\x14", "\x31\x16", "\x31\x32\x17", "\x31\x15\x01", "\x13", "\x12"}) {
    CHECK_FALSE(value(one));
  }
}

TEST_CASE("arithmetic uses the machine's word size", "[expression]") {
  const struct {
    const char* expression;
    std::uint64_t expected;
  } all[] = {
      {"\x35\x33\x22", 8},                          // plus
      {"\x33\x35\x1c", UINT64_MAX - 1},             // minus
      {"\x35\x33\x1e", 15},                         // mul
      {"\x3f\x33\x1a", 3},                          // and
      {"\x38\x33\x21", 11},                         // or
      {"\x39\x33\x27", 10},                         // xor
      {"\x30\x20", UINT64_MAX},                     // not
      {"\x31\x1f", UINT64_MAX},                     // neg
      {"\x09\xfb\x19", 5},                          // abs
      {"\x35\x19", 5},                              // abs
      {"\x09\xf9\x32\x1b", UINT64_MAX - 2},         // div: -7 / 2
      {"\x37\x32\x1d", 1},                          // mod
      {"\x09\xff\x3a\x1d", UINT64_MAX % 10},        // mod of unsigned numbers
      {"\x31\x34\x24", 16},                         // shl
      {"\x31\x08\x40\x24", 0},                      // shl by all bits
      {"\x09\xf0\x34\x25", 0x0fff'ffff'ffff'ffff},  // shr
      {"\x09\xf0\x08\x40\x25", 0},                  // shr by all bits
      {"\x09\xf0\x32\x26", UINT64_MAX - 3},         // shra
      {"\x09\xf0\x08\xff\x26", UINT64_MAX},         // shra by more than all bits
  };
  for (const auto& each : all) {
    CAPTURE(each.expected);
    CHECK(value(each.expression) == each.expected);
  }
  CHECK(value("\x35\x23\x05\x96") == 10);  // plus_uconst, nop
  CHECK_FALSE(value("\x31\x30\x1b"));      // division by zero
  CHECK_FALSE(value("\x31\x30\x1d"));
  const std::string least = "\x0e\0\0\0\0\0\0\0\x80"s;
  CHECK(value(least + "\x09\xff\x1b") == std::uint64_t{1} << 63);
  CHECK(value(least + "\x19") == std::uint64_t{1} << 63);
}

TEST_CASE("comparisons are signed", "[expression]") {
  for (const auto& [left, right] : {std::pair{1, 2}, {2, 1}, {1, 1}, {-1, 1}, {1, -1}}) {
    CAPTURE(left, right);
    const std::string both = {'\x09', static_cast<char>(left), '\x09', static_cast<char>(right)};
    CHECK(value(both + '\x29') == (left == right));
    CHECK(value(both + '\x2a') == (left >= right));
    CHECK(value(both + '\x2b') == (left > right));
    CHECK(value(both + '\x2c') == (left <= right));
    CHECK(value(both + '\x2d') == (left < right));
    CHECK(value(both + '\x2e') == (left != right));
  }
}

TEST_CASE("with addresses of four bytes, values wrap and are signed as such", "[expression]") {
  CHECK(value("\x30\x20", kNarrow) == UINT32_MAX);
  CHECK(value("\x31\x1f\x19", kNarrow) == 1);
  CHECK(value("\x09\xf0\x32\x26", kNarrow) == UINT32_MAX - 3);
  CHECK(value("\x09\xff\x30\x2d", kNarrow) == 1);
  CHECK(value("\x31\x08\x20\x24", kNarrow) == 0);
  CHECK(value("\x77\0\x06"s, kNarrow) == 0x5566'7788);
  CHECK_FALSE(value("\x77\0\x94\x08"s, kNarrow));
}

TEST_CASE("branches stay within the expression, and the number of steps is limited",
          "[expression]") {
  CHECK(value("\x31\x2f\x01\0\x32\x33\x22"s) == 4);  // skip over lit2
  CHECK(value("\x31\x31\x28\x01\0\x32"s) == 1);      // bra is taken
  CHECK(value("\x31\x30\x28\x01\0\x32"s) == 2);      // bra is not
  CHECK(value("\x31\x2f\x01\0\x96"s) == 1);          // to the end
  CHECK_FALSE(value("\x31\x2f\x02\0\x96"s));         // beyond the end
  CHECK_FALSE(value("\x31\x2f\xf0\xff\x96"s));       // before the start
  CHECK_FALSE(value("\x31\x2f\xfd\xff"s));           // an endless loop
  CHECK_FALSE(value("\x12"s + std::string(64, '\x12')));
  CHECK(value(std::string(64, '\x31')) == 1);
  CHECK_FALSE(value(std::string(65, '\x31')));
  CHECK(value("\x31" + std::string(999, '\x96')) == 1);
  CHECK_FALSE(value("\x31" + std::string(1000, '\x96')));
  CHECK(value("\x08\x20\x31\x1c\x12\x28\xfa\xff\x31"s) == 1);  // a loop that counts down
}

TEST_CASE("truncated expressions have no value", "[expression]") {
  for (const std::string& cut : {"\x0a\x01"s, "\x0e\0"s, "\x10\x80"s, "\x77"s, "\x31\x28\0"s,
                                 "\x94"s, "\x31\x15"s, "\xff"s, "\x03\0"s}) {
    CAPTURE(cut.size());
    CHECK_FALSE(value(cut));
  }
}

TEST_CASE("the expression of a PLT entry gives the CFA at each byte", "[expression]") {
  // rsp + 8 + ((rip & 15) >= 11) << 3, as linkers write it for entries of 16 bytes.
  const std::string expression = "\x77\x08\x80\0\x3f\x1a\x3b\x2a\x33\x24\x22"s;
  for (std::uint64_t at = 0; at < 16; ++at) {
    CAPTURE(at);
    Memory memory;
    memory.registers[16] = 0x40'1020 + at;
    CHECK(evaluate(expression, {}, memory) == 0x7fff'0008 + (at >= 11 ? 8 : 0));
  }
}

}  // namespace perfmap::expression_test
