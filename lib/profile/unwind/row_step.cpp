#include "unwind/row_step.hpp"

#include "unwind/expression.hpp"

namespace perfmap {
namespace {

/// The registers and the memory of a frame. Memory is the copy of the stack, and code.
class FrameContext final : public ExpressionContext {
 public:
  FrameContext(const DwarfRegisters& registers, const StackMemory& memory,
               const UnwindSpace::State& space) noexcept
      : registers_(registers), memory_(memory), space_(space) {}

  std::optional<std::uint64_t> register_value(std::uint64_t number) const override {
    if (number >= kMostRegisters || !registers_.has(static_cast<unsigned>(number)))
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

struct Rules {
  const CfiRow& row;
  const FrameContext& context;
  const DwarfRegisters& registers;

  std::optional<Address> cfa() const {
    if (row.cfa == CfiRules::Cfa::expression) return evaluate(row.cfa_expression(), {}, context);
    const auto base = context.register_value(row.cfa_register);
    if (row.cfa != CfiRules::Cfa::register_offset || !base) return std::nullopt;
    return *base + static_cast<std::uint64_t>(row.cfa_number);
  }

  /// Where the caller's value is in memory.
  std::optional<Address> place(const RegisterRule& rule, Address cfa) const {
    if (rule.how == RegisterHow::offset) return cfa + static_cast<std::uint64_t>(rule.number);
    return evaluate(row.expression_of(rule), {.cfa = cfa}, context);
  }

  std::optional<std::uint64_t> value(const RegisterRule& rule, unsigned number, Address cfa) const {
    switch (rule.how) {
      case RegisterHow::undefined: return std::nullopt;
      case RegisterHow::unspecified:
      case RegisterHow::same_value: return context.register_value(number);
      case RegisterHow::value_offset: return cfa + static_cast<std::uint64_t>(rule.number);
      case RegisterHow::in_register:
        return context.register_value(static_cast<std::uint64_t>(rule.number));
      case RegisterHow::value_expression:
        return evaluate(row.expression_of(rule), {.cfa = cfa}, context);
      case RegisterHow::offset:
      case RegisterHow::expression: break;
    }
    const auto at = place(rule, cfa);
    return at ? context.read(*at, 8) : std::nullopt;
  }
};

}  // namespace

template <class Arch>
RowStep step_by_row(const CfiRow& row, const DwarfRegisters& registers, const StackMemory& memory,
                    const UnwindSpace::State& space) {
  const FrameContext context(registers, memory, space);
  const Rules rules{row, context, registers};
  RowStep step;
  const auto cfa = rules.cfa();
  if (!cfa) return step;
  for (unsigned i = 0; i < kMostRegisters; ++i) {
    const auto value = rules.value(row.registers[i], i, *cfa);
    if (value) step.registers.set(i, *value);
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
template RowStep step_by_row<Aarch64>(const CfiRow&, const DwarfRegisters&, const StackMemory&,
                                      const UnwindSpace::State&);

}  // namespace perfmap
