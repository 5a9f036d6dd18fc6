// SPDX-License-Identifier: MIT
#include "dwarf/cfi_table.hpp"
#include "support/catch.hpp"
#include "support/cfi_bytes.hpp"

namespace perfmap::cfi_program_test {
using namespace std::string_literals;
using test::CfiBytes;

namespace {

constexpr Address kCode = 0x40'1000;
constexpr std::uint64_t kSize = 0x100;

/// The row of an FDE with these instructions at an offset in its function.
std::optional<CfiRow> row(const std::string& instructions, std::uint64_t at = 0,
                          const test::TestCie& cie = {}, const Target& target = test::kX86) {
  // Expressions in a row point into the bytes.
  static std::string bytes;
  bytes = CfiBytes(cie, target).fde(kCode, kSize, instructions).text();
  return CfiTable(bytes, 0x50'0000, target).row_at(kCode + at);
}

RegisterRule register_rule(RegisterHow how, std::int64_t number = 0) { return {how, 0, number}; }

}  // namespace

TEST_CASE("rules of the CIE apply unless the FDE changes them", "[cfi]") {
  const auto found = row("");
  REQUIRE(found);
  CHECK(found->cfa == CfiRules::Cfa::register_offset);
  CHECK(found->cfa_register == 7);
  CHECK(found->cfa_number == 8);
  CHECK(found->return_register == 16);
  CHECK(found->registers[16] == register_rule(RegisterHow::offset, -8));
  CHECK(found->registers[6] == register_rule(RegisterHow::unspecified));
  CHECK(found->range == AddressRange{kCode, kSize});
  CHECK_FALSE(found->is_signal_frame);
  CHECK_FALSE(found->from_debug_frame);
  CHECK_FALSE(row("", kSize));
  CHECK_FALSE(row("", UINT64_MAX - kCode + 1));
}

TEST_CASE("rows begin and end where locations advance", "[cfi]") {
  // By 1, 2, 3 and 0x10, each with another CFA offset.
  const std::string program =
      "\x41\x0e\x10\x02\x02\x0e\x18\x03\x03\0\x0e\x20\x04\x10\0\0\0\x0e\x28"s;
  const struct {
    std::uint64_t at, begin, end;
    std::int64_t offset;
  } rows[] = {
      {0, 0, 1, 8},     {1, 1, 3, 16},       {2, 1, 3, 16},           {3, 3, 6, 24},
      {6, 6, 0x16, 32}, {0x15, 6, 0x16, 32}, {0x16, 0x16, kSize, 40}, {kSize - 1, 0x16, kSize, 40}};
  for (const auto& each : rows) {
    CAPTURE(each.at);
    const auto found = row(program, each.at);
    REQUIRE(found);
    CHECK(found->cfa_number == each.offset);
    CHECK(found->range == AddressRange{kCode + each.begin, each.end - each.begin});
  }
}

TEST_CASE("advances are multiplied by the code factor and stay inside the function", "[cfi]") {
  test::TestCie cie;
  cie.code_factor = 4;
  CHECK(row("\x42\x0e\x10", 8, cie)->range == AddressRange{kCode + 8, kSize - 8});
  CHECK(row("\x42\x0e\x10", 7, cie)->range == AddressRange{kCode, 8});
  CHECK(row("\x04\xff\xff\xff\xff\x0e\x10", 7, cie)->range == AddressRange{kCode, kSize});
  const std::string by_8 = "\x1d\0\0\0\0\0\0\0\x40\x0e\x10"s;  // times 4 is 2^64
  CHECK(row(by_8, 7, cie)->range == AddressRange{kCode, kSize});
}

TEST_CASE("DW_CFA_set_loc moves forward, but not back", "[cfi]") {
  TargetBytes set(test::kX86);
  set.u8(1).address(kCode + 0x20).raw("\x0e\x10");
  CHECK(row(std::string(set.view()), 0x1f)->range == AddressRange{kCode, 0x20});
  CHECK(row(std::string(set.view()), 0x20)->cfa_number == 16);
  TargetBytes back(test::kX86);
  back.u8(0x48).u8(1).address(kCode + 7);
  CHECK(row(std::string(back.view()), 7));
  CHECK_FALSE(row(std::string(back.view()), 8));
}

TEST_CASE("each CFA instruction is executed", "[cfi]") {
  const struct {
    std::string program;
    int number;
    std::int64_t offset;
  } all[] = {
      {"\x0c\x06\x90\x01", 6, 144},  // def_cfa
      {"\x12\x06\x7e", 6, 16},       // def_cfa_sf: times -8
      {"\x0d\x06", 6, 8},            // def_cfa_register
      {"\x0e\x90\x01", 7, 144},      // def_cfa_offset
      {"\x13\x7d", 7, 24},           // def_cfa_offset_sf
      {"\x2e\x20", 7, 8},            // GNU_args_size
      {"\0\0"s, 7, 8},               // nop
  };
  for (const auto& each : all) {
    CAPTURE(each.number, each.offset);
    const auto found = row(each.program);
    REQUIRE(found);
    CHECK(found->cfa == CfiRules::Cfa::register_offset);
    CHECK(found->cfa_register == each.number);
    CHECK(found->cfa_number == each.offset);
  }
  const auto found = row("\x0f\x02\x77\x10");  // def_cfa_expression
  REQUIRE(found);
  CHECK(found->cfa == CfiRules::Cfa::expression);
  CHECK(found->cfa_expression() == "\x77\x10");
  CHECK_FALSE(row("\x0f\x02\x77\x10\x0e\x10"));  // an expression has no offset
  CHECK_FALSE(row("\x0f\x02\x77\x10\x0d\x06"));
  CHECK(row("\x0f\x02\x77\x10\x0c\x06\x10")->cfa_number == 16);
}

TEST_CASE("each register instruction is executed", "[cfi]") {
  const struct {
    std::string program;
    RegisterRule expected;
  } all[] = {
      {"\x86\x02", register_rule(RegisterHow::offset, -16)},
      {"\x05\x06\x02", register_rule(RegisterHow::offset, -16)},
      {"\x11\x06\x7e", register_rule(RegisterHow::offset, 16)},
      {"\x2f\x06\x02", register_rule(RegisterHow::offset, 16)},
      {"\x14\x06\x02", register_rule(RegisterHow::value_offset, -16)},
      {"\x15\x06\x7e", register_rule(RegisterHow::value_offset, 16)},
      {"\x07\x06", register_rule(RegisterHow::undefined)},
      {"\x08\x06", register_rule(RegisterHow::same_value)},
      {"\x09\x06\x03", register_rule(RegisterHow::in_register, 3)},
      {"\x86\x02\xc6", register_rule(RegisterHow::unspecified)},      // restore
      {"\x86\x02\x06\x06", register_rule(RegisterHow::unspecified)},  // restore_extended
  };
  for (const auto& each : all) {
    CAPTURE(static_cast<int>(each.expected.how), each.expected.number);
    const auto found = row(each.program);
    REQUIRE(found);
    CHECK(found->registers[6] == each.expected);
    CHECK(found->registers[16] == register_rule(RegisterHow::offset, -8));
  }
  auto found = row("\x10\x06\x02\x77\x10");
  REQUIRE(found);
  CHECK(found->registers[6].how == RegisterHow::expression);
  CHECK(found->expression_of(found->registers[6]) == "\x77\x10");
  found = row("\x16\x06\x01\x9c");
  REQUIRE(found);
  CHECK(found->registers[6].how == RegisterHow::value_expression);
  CHECK(found->expression_of(found->registers[6]) == "\x9c");
  CHECK(row("\x90\x03\xd0")->registers[16] ==
        register_rule(RegisterHow::offset, -8));  // as in the CIE
}

TEST_CASE("the return address of an outermost function is undefined", "[cfi]") {
  CHECK(row("\x07\x10")->registers[16] == register_rule(RegisterHow::undefined));
}

TEST_CASE("rules for registers that a row does not keep are skipped", "[cfi]") {
  const auto found =
      row("\x05\x22\x02\x07\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01\x10\x40\x01\x30"
          "\x16\x41\x01\x30\x06\x40\x86\x02");
  REQUIRE(found);
  CHECK(found->registers[6] == register_rule(RegisterHow::offset, -16));
  CHECK_FALSE(row("\x0d\x22"));  // the CFA register must be one that a row keeps
  CHECK(row("\x0d\x21")->cfa_register == 33);
}

TEST_CASE("states are remembered as a stack, up to a depth of 8", "[cfi]") {
  const std::string program = "\x0a\x0e\x10\x86\x02\x41\x0a\x0e\x18\x41\x0b\x41\x0b";
  CHECK(row(program, 0)->cfa_number == 16);
  CHECK(row(program, 1)->cfa_number == 24);
  CHECK(row(program, 2)->cfa_number == 16);
  CHECK(row(program, 2)->registers[6] == register_rule(RegisterHow::offset, -16));
  CHECK(row(program, 3)->cfa_number == 8);
  CHECK(row(program, 3)->registers[6] == register_rule(RegisterHow::unspecified));
  CHECK_FALSE(row("\x0b"));
  CHECK(row(std::string(8, '\x0a')));
  CHECK_FALSE(row(std::string(9, '\x0a')));
  CHECK(row(std::string(1000, '\x0a') + "\x41", 0).has_value() == false);
}

TEST_CASE("an unknown or truncated instruction invalidates the rows after it", "[cfi]") {
  CHECK_FALSE(row("\x1c"));
  CHECK_FALSE(row("\x3f"));
  CHECK(row("\x41\x3f", 0));  // after the row
  CHECK_FALSE(row("\x41\x3f", 1));
  CHECK_FALSE(row("\x0c\x07"));
  CHECK_FALSE(row("\x0e\x80"));
  CHECK_FALSE(row("\x0f\x05\x77\x10"));
  CHECK_FALSE(row("\x10\x06\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"));
  CHECK_FALSE(row("\x0e" + std::string(30, '\x80')));
  test::TestCie without_cfa;
  without_cfa.instructions = "";
  CHECK_FALSE(row("", 0, without_cfa));
  CHECK(row("\x0c\x06\x10", 0, without_cfa));
  for (const char* const program : {"\xc6", "\x06\x06", "\x41", "\x0b", "\x3f"}) {
    test::TestCie odd;
    odd.instructions += program;
    CHECK_FALSE(row("", 0, odd));
  }
}

TEST_CASE("a row contains whether an aarch64 return address is signed", "[cfi]") {
  test::TestCie cie;
  cie.code_factor = 4;
  cie.return_register = 30;
  cie.instructions = "\x0c\x1f"s + '\0';
  // paciasp; sub sp; remember; autiasp; restore
  const std::string program = "\x41\x2d\x41\x0e\x20\x9e\x02\x41\x0a\x2d\x41\x0b";
  const auto signed_at = [&](std::uint64_t at) {
    return row(program, at, cie, test::kArm)->ra_is_signed;
  };
  CHECK_FALSE(signed_at(0));
  CHECK(signed_at(4));
  CHECK(signed_at(8));
  CHECK_FALSE(signed_at(12));
  CHECK(signed_at(16));
  CHECK(row(program, 8, cie, test::kArm)->registers[30] == register_rule(RegisterHow::offset, -16));
  CHECK(row(program, 4, cie, test::kArm)->registers[30] == register_rule(RegisterHow::unspecified));
  CHECK_FALSE(row("\x2d"));  // ignored on another machine
}

}  // namespace perfmap::cfi_program_test
