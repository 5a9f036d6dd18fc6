// SPDX-License-Identifier: MIT
#include "unwind/expression.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "elf/dwarf_cursor.hpp"

namespace perfmap {
namespace {

constexpr std::size_t kMaxPlaces = 64;
constexpr unsigned kMaxSteps = 1000;

/// DW_OP_…; DWARF 5, 7.7.1.
enum Op : std::uint8_t {
  op_addr = 0x03,
  op_deref = 0x06,
  op_const1u = 0x08,
  op_const1s = 0x09,
  op_const2u = 0x0a,
  op_const2s = 0x0b,
  op_const4u = 0x0c,
  op_const4s = 0x0d,
  op_const8u = 0x0e,
  op_const8s = 0x0f,
  op_constu = 0x10,
  op_consts = 0x11,
  op_dup = 0x12,
  op_drop = 0x13,
  op_over = 0x14,
  op_pick = 0x15,
  op_swap = 0x16,
  op_rot = 0x17,
  op_abs = 0x19,
  op_and = 0x1a,
  op_div = 0x1b,
  op_minus = 0x1c,
  op_mod = 0x1d,
  op_mul = 0x1e,
  op_neg = 0x1f,
  op_not = 0x20,
  op_or = 0x21,
  op_plus = 0x22,
  op_plus_uconst = 0x23,
  op_shl = 0x24,
  op_shr = 0x25,
  op_shra = 0x26,
  op_xor = 0x27,
  op_bra = 0x28,
  op_eq = 0x29,
  op_ge = 0x2a,
  op_gt = 0x2b,
  op_le = 0x2c,
  op_lt = 0x2d,
  op_ne = 0x2e,
  op_skip = 0x2f,
  op_lit0 = 0x30,
  op_reg0 = 0x50,
  op_breg0 = 0x70,
  op_regx = 0x90,
  op_bregx = 0x92,
  op_deref_size = 0x94,
  op_nop = 0x96,
  op_call_frame_cfa = 0x9c,
};

template <class Number>
std::uint64_t extended(Number number) noexcept {
  return static_cast<std::uint64_t>(static_cast<std::int64_t>(number));
}

class Evaluation {
 public:
  Evaluation(std::string_view expression, const ExpressionInput& input,
             const ExpressionContext& context) noexcept
      : expression_(expression),
        input_(input),
        context_(context),
        in_(expression, input.order),
        bits_(input.address_size == 4 ? 32 : 64) {}

  std::optional<std::uint64_t> run() {
    if (input_.cfa) push(*input_.cfa);
    for (unsigned step = 0; !in_.at_end(); ++step) {
      if (step == kMaxSteps) return std::nullopt;
      const std::uint8_t op = in_.u8();
      ok_ = do_one(op) && ok_ && in_.ok();
      if (!ok_) return std::nullopt;
    }
    const std::uint64_t top = pop();
    return ok_ ? std::optional(top) : std::nullopt;
  }

 private:
  bool do_one(std::uint8_t op) {
    if (op >= op_lit0 && op < op_reg0) return push(op - op_lit0);
    if (op >= op_breg0 && op < op_regx) return push_register(op - op_breg0);
    if (op >= op_const1u && op <= op_consts) return push_constant(op);
    switch (op) {
      case op_nop: return true;
      case op_addr: return push(in_.sized(input_.address_size));
      case op_bregx: return push_register(in_.uleb());
      case op_call_frame_cfa: return input_.cfa && push(*input_.cfa);
      case op_deref: return dereference(input_.address_size);
      case op_deref_size: return dereference(in_.u8());
      case op_plus_uconst: return push(pop() + in_.uleb());
      case op_abs:
      case op_neg:
      case op_not: return unary(op);
      case op_skip: return jump(in_.u16(), true);
      case op_bra: {
        const std::uint16_t distance = in_.u16();
        return jump(distance, pop() != 0);
      }
      case op_dup:
      case op_drop:
      case op_over:
      case op_pick:
      case op_swap:
      case op_rot: return shuffle(op);
      default: return binary(op);
    }
  }

  bool push_constant(std::uint8_t op) {
    switch (op) {
      case op_const1u: return push(in_.u8());
      case op_const1s: return push(extended(static_cast<std::int8_t>(in_.u8())));
      case op_const2u: return push(in_.u16());
      case op_const2s: return push(extended(static_cast<std::int16_t>(in_.u16())));
      case op_const4u: return push(in_.u32());
      case op_const4s: return push(extended(static_cast<std::int32_t>(in_.u32())));
      case op_constu: return push(in_.uleb());
      case op_consts: return push(extended(in_.sleb()));
      default: return push(in_.u64());
    }
  }
  bool push_register(std::uint64_t number) {
    const std::uint64_t offset = extended(in_.sleb());
    const std::optional<std::uint64_t> value = context_.register_value(number);
    return value && push(*value + offset);
  }
  bool dereference(unsigned size) {
    if (size == 0 || size > input_.address_size) return false;
    const Address address = pop();
    const std::optional<std::uint64_t> value = ok_ ? context_.read(address, size) : std::nullopt;
    return value && push(*value);
  }

  bool shuffle(std::uint8_t op) {
    switch (op) {
      case op_dup: return pick(0);
      case op_drop: pop(); return true;
      case op_over: return pick(1);
      case op_pick: return pick(in_.u8());
      case op_swap:
        if (size_ < 2) return false;
        std::swap(stack_[size_ - 1], stack_[size_ - 2]);
        return true;
      default:  // DW_OP_rot: the top goes below the two entries below it
        if (size_ < 3) return false;
        std::rotate(&stack_[size_ - 3], &stack_[size_ - 1], &stack_[size_ - 1] + 1);
        return true;
    }
  }
  bool unary(std::uint8_t op) {
    const std::uint64_t value = pop();
    switch (op) {
      case op_abs: return push(as_signed(value) < 0 ? 0 - value : value);
      case op_neg: return push(0 - value);
      default: return push(~value);
    }
  }
  bool binary(std::uint8_t op) {
    const std::uint64_t right = pop();
    const std::uint64_t left = pop();
    switch (op) {
      case op_and: return push(left & right);
      case op_or: return push(left | right);
      case op_xor: return push(left ^ right);
      case op_plus: return push(left + right);
      case op_minus: return push(left - right);
      case op_mul: return push(left * right);
      case op_mod: return right != 0 && push(left % right);
      case op_div: return right != 0 && push(quotient(left, right));
      case op_shl: return push(right < bits_ ? left << right : 0);
      case op_shr: return push(right < bits_ ? left >> right : 0);
      case op_shra:
        return push(extended(as_signed(left) >> std::min<std::uint64_t>(right, bits_ - 1)));
      case op_eq: return push(left == right ? 1 : 0);
      case op_ne: return push(left != right ? 1 : 0);
      case op_ge: return push(as_signed(left) >= as_signed(right) ? 1 : 0);
      case op_gt: return push(as_signed(left) > as_signed(right) ? 1 : 0);
      case op_le: return push(as_signed(left) <= as_signed(right) ? 1 : 0);
      case op_lt: return push(as_signed(left) < as_signed(right) ? 1 : 0);
      default: return false;
    }
  }
  /// Division of the minimum by -1 would overflow.
  std::uint64_t quotient(std::uint64_t left, std::uint64_t right) const noexcept {
    const std::int64_t divisor = as_signed(right);
    return divisor == -1 ? 0 - left : extended(as_signed(left) / divisor);
  }

  bool jump(std::uint16_t distance, bool is_taken) {
    if (!is_taken) return true;
    const std::uint64_t at = in_.position() + extended(static_cast<std::int16_t>(distance));
    if (!in_.ok() || at > expression_.size()) return false;
    in_ = DwarfCursor(expression_, input_.order, at);
    return true;
  }

  bool push(std::uint64_t value) noexcept {
    if (size_ == kMaxPlaces) return false;
    stack_[size_++] = bits_ == 64 ? value : value & UINT32_MAX;
    return true;
  }
  std::uint64_t pop() noexcept {
    if (size_ != 0) return stack_[--size_];
    ok_ = false;
    return 0;
  }
  bool pick(std::size_t depth) noexcept { return depth < size_ && push(stack_[size_ - 1 - depth]); }
  std::int64_t as_signed(std::uint64_t value) const noexcept {
    return bits_ == 64 ? static_cast<std::int64_t>(value)
                       : static_cast<std::int32_t>(static_cast<std::uint32_t>(value));
  }

  std::string_view expression_;
  const ExpressionInput& input_;
  const ExpressionContext& context_;
  DwarfCursor in_;
  const unsigned bits_;
  bool ok_ = true;
  std::size_t size_ = 0;
  std::array<std::uint64_t, kMaxPlaces> stack_;
};

}  // namespace

std::optional<std::uint64_t> evaluate(std::string_view expression, const ExpressionInput& input,
                                      const ExpressionContext& context) {
  return Evaluation(expression, input, context).run();
}

}  // namespace perfmap
