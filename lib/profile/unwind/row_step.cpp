// SPDX-License-Identifier: MIT
#include "unwind/row_step.hpp"

#include <cstring>

#include "unwind/expression.hpp"

namespace perfmap {
namespace {

/// The registers and the memory of a frame: the copy of the stack, and code.
class FrameContext final : public ExpressionContext {
 public:
  FrameContext(const DwarfRegisters& registers, const StackMemory& memory,
               const UnwindSpace::State& space) noexcept
      : registers_(registers), memory_(memory), space_(space) {}

  std::optional<std::uint64_t> register_value(std::uint64_t number) const override {
    if (number >= kMaxRegisters || !registers_.has(static_cast<unsigned>(number)))
      return std::nullopt;
    return registers_.values[static_cast<std::size_t>(number)];
  }

  std::optional<std::uint64_t> read(Address address, unsigned size) const override {
    std::uint64_t value = 0;
    if (size == 0 || size > sizeof value) return std::nullopt;
    if (memory_.holds(address, size)) {
      memory_.copy(address, &value, size);
      return value;
    }
    const CodeRegion* const region = space_.find(address);
    if (region == nullptr || region->module == nullptr) return std::nullopt;
    const std::string_view bytes = region->module->bytes_at(address + region->delta);
    if (bytes.size() < size) return std::nullopt;
    std::memcpy(&value, bytes.data(), size);
    return value;
  }

 private:
  const DwarfRegisters& registers_;
  const StackMemory& memory_;
  const UnwindSpace::State& space_;
};

template <class Arch>
struct Rules {
  static constexpr std::uint8_t kWord = sizeof(typename Arch::Word);

  const CfiRow& row;
  const FrameContext& context;
  const DwarfRegisters& registers;

  std::optional<Address> cfa() const {
    if (row.cfa == CfiRules::Cfa::expression)
      return evaluate(row.cfa_expression(), {.address_size = kWord}, context);
    const auto base = context.register_value(row.cfa_register);
    if (row.cfa != CfiRules::Cfa::register_offset || !base) return std::nullopt;
    return word<Arch>(moved(*base, row.cfa_number));
  }

  /// The memory address of the caller's value.
  std::optional<Address> place(const RegisterRule& rule, Address cfa) const {
    if (rule.how == RegisterHow::offset) return word<Arch>(moved(cfa, rule.number));
    return evaluate(row.expression_of(rule), {.address_size = kWord, .cfa = cfa}, context);
  }

  /// Of a register that is not kept.
  std::optional<std::uint64_t> value(const RegisterRule& rule, Address cfa) const {
    switch (rule.how) {
      case RegisterHow::undefined:
      case RegisterHow::unspecified:
      case RegisterHow::same_value: return std::nullopt;
      case RegisterHow::value_offset: return word<Arch>(moved(cfa, rule.number));
      case RegisterHow::in_register:
        return context.register_value(static_cast<std::uint64_t>(rule.number));
      case RegisterHow::value_expression:
        return evaluate(row.expression_of(rule), {.address_size = kWord, .cfa = cfa}, context);
      case RegisterHow::offset:
      case RegisterHow::expression: break;
    }
    const auto at = place(rule, cfa);
    return at ? context.read(*at, kWord) : std::nullopt;
  }
};

}  // namespace

template <class Arch>
RowStep step_by_row(const CfiRow& row, const DwarfRegisters& registers, const StackMemory& memory,
                    const UnwindSpace::State& space) {
  const FrameContext context(registers, memory, space);
  const Rules<Arch> rules{row, context, registers};
  RowStep step;
  const auto cfa = rules.cfa();
  if (!cfa) return step;
  // Most registers have no rule.
  step.registers = registers;
  for (unsigned i = 0; i < kMaxRegisters; ++i) {
    if (row.registers[i].is_kept()) continue;
    if (const auto value = rules.value(row.registers[i], *cfa)) {
      step.registers.set(i, word<Arch>(*value));
    } else {
      step.registers.forget(i);
    }
  }
  if (row.registers[Arch::kSp].how == RegisterHow::unspecified) step.registers.set(Arch::kSp, *cfa);
  step.sp = step.registers.has(Arch::kSp) ? step.registers.values[Arch::kSp] : *cfa;
  const RegisterRule& returned = row.registers[row.return_register];
  step.has_caller = step.registers.has(row.return_register);
  if (step.has_caller) {
    step.return_address = step.registers.values[row.return_register];
  } else if (returned.how == RegisterHow::offset || returned.how == RegisterHow::expression) {
    step.unreadable = rules.place(returned, *cfa);
  }
  return step;
}

template RowStep step_by_row<X86_64>(const CfiRow&, const DwarfRegisters&, const StackMemory&,
                                     const UnwindSpace::State&);
template RowStep step_by_row<X86>(const CfiRow&, const DwarfRegisters&, const StackMemory&,
                                  const UnwindSpace::State&);
template RowStep step_by_row<Aarch64>(const CfiRow&, const DwarfRegisters&, const StackMemory&,
                                      const UnwindSpace::State&);
template RowStep step_by_row<Riscv64>(const CfiRow&, const DwarfRegisters&, const StackMemory&,
                                      const UnwindSpace::State&);
template RowStep step_by_row<Arm>(const CfiRow&, const DwarfRegisters&, const StackMemory&,
                                  const UnwindSpace::State&);

}  // namespace perfmap
