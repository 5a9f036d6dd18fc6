// SPDX-License-Identifier: MIT
#include "unwind/riscv_prologue.hpp"

#include <algorithm>

namespace perfmap {
namespace {

constexpr std::uint16_t kRa = 1, kSp = 2, kS0 = 8, kS1 = 9, kS2 = 18, kS11 = 27;

/// What an instruction does to the frame.
struct Effect {
  std::int64_t moved = 0;   ///< of the stack pointer
  unsigned saved = 0;       ///< a register; 0: none
  std::int64_t offset = 0;  ///< where, from the stack pointer
  bool is_end = false;      ///< a return or a jump: what follows is reached from elsewhere
  bool is_unknown = false;  ///< the stack pointer becomes unknown
};

constexpr std::int64_t sign_extended(std::uint32_t value, unsigned bits) noexcept {
  return static_cast<std::int32_t>(value << (32 - bits)) >> (32 - bits);
}

constexpr std::uint32_t bits(std::uint32_t word, unsigned from, unsigned count) noexcept {
  return word >> from & ((1U << count) - 1);
}

/// Of 16 bits.
Effect effect_of_compressed(std::uint32_t h) noexcept {
  Effect effect;
  if ((h & 0xef83) == 0x6101) {  // c.addi16sp
    const std::uint32_t by = bits(h, 12, 1) << 9 | bits(h, 6, 1) << 4 | bits(h, 5, 1) << 6 |
                             bits(h, 3, 2) << 7 | bits(h, 2, 1) << 5;
    effect.moved = sign_extended(by, 10);
  } else if ((h & 0xef83) == 0x0101) {  // c.addi sp
    effect.moved = sign_extended(bits(h, 12, 1) << 5 | bits(h, 2, 5), 6);
  } else if ((h & 0xe003) == 0xe002) {  // c.sdsp
    effect.saved = bits(h, 2, 5);
    effect.offset = bits(h, 10, 3) << 3 | bits(h, 7, 3) << 6;
  } else if ((h & 0xf07f) == 0x8002 || (h & 0xe003) == 0xa001) {  // c.jr, c.j
    effect.is_end = true;
  } else if (const std::uint32_t kind = h & 0xe003;
             (h & 0xf003) == 0x8002 || (h & 0xf003) == 0x9002 ||    // c.mv, c.add
             kind == 0x2001 || kind == 0x4001 ||                    // c.addiw, c.li
             kind == 0x0002 || kind == 0x4002 || kind == 0x6002) {  // c.slli, c.lwsp, c.ldsp
    effect.is_unknown = bits(h, 7, 5) == kSp;
  }
  return effect;
}

/// Of 32 bits.
Effect effect_of(std::uint32_t w) noexcept {
  constexpr std::uint32_t kStore = 0x23, kJal = 0x6f, kJalr = 0x67, kBranch = 0x63;
  const std::uint32_t opcode = bits(w, 0, 7), written = bits(w, 7, 5), read = bits(w, 15, 5);
  Effect effect;
  if ((w & 0xfffff) == 0x00010113) {  // addi sp,sp
    effect.moved = sign_extended(bits(w, 20, 12), 12);
  } else if (opcode == kStore) {
    if (bits(w, 12, 3) != 3 || read != kSp) return effect;  // sd
    effect.saved = bits(w, 20, 5);
    effect.offset = sign_extended(bits(w, 25, 7) << 5 | written, 12);
  } else if (opcode == kJal || opcode == kJalr) {
    effect.is_end = written == 0;
    effect.is_unknown = written == kSp;
  } else if (opcode != kBranch) {
    effect.is_unknown = written == kSp;
  }
  return effect;
}

bool is_callee_saved(unsigned number) noexcept {
  return number == kRa || number == kS0 || number == kS1 || (number >= kS2 && number <= kS11);
}

/// The rules count from the caller's stack pointer, `depth` above the current one.
class Frame {
 public:
  bool take(const Effect& effect) noexcept {
    if (effect.is_unknown) return false;
    depth_ -= effect.moved;
    if (depth_ < 0) return false;
    if (depth_ == 0) rules_ = {};
    if (is_callee_saved(effect.saved) && effect.offset < depth_) {
      RegisterRule& rule = rules_.registers[effect.saved];
      // The body may use the place again.
      if (rule.how != RegisterHow::offset) rule = {RegisterHow::offset, 0, effect.offset - depth_};
    }
    return true;
  }
  bool is_deeper_than(const Frame& other) const noexcept { return depth_ > other.depth_; }
  CfiRules rules() const noexcept {
    CfiRules rules = rules_;
    rules.cfa = CfiRules::Cfa::register_offset;
    rules.cfa_register = kSp;
    rules.cfa_number = depth_;
    return rules;
  }

 private:
  std::int64_t depth_ = 0;
  CfiRules rules_;
};

}  // namespace

std::optional<CfiRules> riscv_prologue_rules(std::string_view code) noexcept {
  Frame frame, body;
  while (code.size() >= 2) {
    std::uint32_t word = 0;
    const std::size_t length = (static_cast<unsigned char>(code[0]) & 3) == 3 ? 4 : 2;
    if (code.size() < length) return std::nullopt;
    for (std::size_t i = length; i-- > 0;) word = word << 8 | static_cast<unsigned char>(code[i]);
    const Effect effect = length == 4 ? effect_of(word) : effect_of_compressed(word);
    if (!frame.take(effect)) return std::nullopt;
    // Registers are saved right after the stack pointer was moved.
    if (!body.is_deeper_than(frame)) body = frame;
    if (effect.is_end) frame = body;
    code.remove_prefix(length);
  }
  return code.empty() ? std::optional(frame.rules()) : std::nullopt;
}

}  // namespace perfmap
