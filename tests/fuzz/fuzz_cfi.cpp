// SPDX-License-Identifier: MIT
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <elf.h>
#include <string_view>

#include "dwarf/cfi_table.hpp"
#include "unwind/expression.hpp"

namespace {

using namespace perfmap;

constexpr Address kFrames = 0x50'0000;
constexpr Address kCode = 0x40'1000;  // used by the saved inputs

void require(bool holds) {
  if (!holds) std::abort();
}

/// Registers and memory whose values depend on their numbers and addresses.
struct SyntheticContext : ExpressionContext {
  std::optional<std::uint64_t> register_value(std::uint64_t number) const override {
    return number < kMaxRegisters ? std::optional(number * 0x1001) : std::nullopt;
  }
  std::optional<std::uint64_t> read(Address address, unsigned size) const override {
    require(size >= 1 && size <= 8);
    if (address % 7 == 0) return std::nullopt;
    return address * 0x9e37'79b9'7f4a'7c15 >> (64 - 8 * size);
  }
};

void check_expression(std::string_view expression, std::string_view frames, const Target& target,
                      std::optional<Address> cfa) {
  require(expression.data() >= frames.data());
  require(expression.data() + expression.size() <= frames.data() + frames.size());
  const ExpressionInput input{target.order, target.address_size(), cfa};
  const auto value = evaluate(expression, input, SyntheticContext());
  require(!value || target.is_64 || *value <= UINT32_MAX);
}

void check_row(const CfiRow& row, Address vaddr, std::string_view frames, const Target& target) {
  require(row.range.contains(vaddr));
  require(row.cfa != CfiRules::Cfa::unknown);
  if (row.cfa == CfiRules::Cfa::expression) {
    check_expression(row.cfa_expression(), frames, target, std::nullopt);
  } else {
    require(row.cfa_register < kMaxRegisters);
  }
  for (const RegisterRule& rule : row.registers) {
    if (rule.how < RegisterHow::expression) continue;
    check_expression(row.expression_of(rule), frames, target, 0x1000);
  }
}

bool is_same(const std::optional<CfiRow>& a, const std::optional<CfiRow>& b) {
  if (!a || !b) return !a && !b;
  return a->range == b->range && a->cfa == b->cfa && a->cfa_number == b->cfa_number &&
         a->registers == b->registers;
}

}  // namespace

/// For any frames: a row covers the requested address, every address that it covers gives the same
/// row, and expressions are within the frames and terminate. The first byte selects the machine.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  Target target{std::endian::little, true, EM_X86_64, 0};
  if ((data[0] & 1) != 0) target.is_64 = false;
  if ((data[0] & 2) != 0) target.order = std::endian::big;
  if ((data[0] & 4) != 0) target.machine = EM_AARCH64;
  const std::string_view frames(reinterpret_cast<const char*>(data) + 1, size - 1);
  const CfiTable table(frames, kFrames, target);
  require(table.bytes_held() <= sizeof table + 2 * size);
  for (Address vaddr = kCode - 4; vaddr < kCode + 0x40; vaddr += 3) {
    const auto row = table.row_at(vaddr);
    if (!row) continue;
    check_row(*row, vaddr, frames, target);
    require(is_same(table.row_at(row->range.begin), row));
    require(is_same(table.row_at(row->range.end() - 1), row));
  }
  return 0;
}
