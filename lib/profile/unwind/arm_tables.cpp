// SPDX-License-Identifier: MIT
#include "unwind/arm_tables.hpp"

#include <bit>
#include <cstring>
#include <elf.h>

namespace perfmap {
namespace {

constexpr std::uint16_t kSp = 13, kLink = 14, kPc = 15;

std::optional<std::uint32_t> word_at(const Module& module, Address vaddr) {
  const std::string_view bytes = module.bytes_at(vaddr);
  std::uint32_t word = 0;
  if (bytes.size() < sizeof word) return std::nullopt;
  std::memcpy(&word, bytes.data(), sizeof word);
  return word;
}

/// A signed offset of 31 bits from its own address.
Address pointed_at(Address at, std::uint32_t word) noexcept {
  const auto offset = static_cast<std::int32_t>(word << 1) >> 1;
  return static_cast<std::uint32_t>(at + static_cast<Address>(std::int64_t{offset}));
}

/// The bytes of the instructions, from words that have the first one on top.
class Instructions {
 public:
  Instructions(const Module& module, Address word, unsigned skipped, unsigned words)
      : module_(module), base_(word), at_(skipped), end_(4 * words) {}

  /// 0xb0 (finish) after the last one.
  std::uint8_t next() {
    constexpr std::uint8_t kFinish = 0xb0;
    if (at_ >= end_) return kFinish;
    const auto word = word_at(module_, base_ + at_ / 4 * 4);
    is_torn_ = is_torn_ || !word;
    if (!word) return kFinish;
    return static_cast<std::uint8_t>(*word >> (8 * (3 - at_++ % 4)));
  }
  /// The next byte of an instruction that has begun.
  std::uint8_t operand() {
    is_torn_ = is_torn_ || at_ >= end_;
    return next();
  }
  /// Whether a byte was missing: in the file, or after the last instruction.
  bool is_torn() const noexcept { return is_torn_; }

 private:
  const Module& module_;
  Address base_;
  unsigned at_, end_;
  bool is_torn_ = false;
};

/// The index table's entry of a function, and where the next function begins.
struct Entry {
  Address at = 0;
  AddressRange function;
  AddressRange index;
};

std::optional<Entry> find_entry(const Module& module, Address vaddr) {
  constexpr std::uint64_t kSize = 8;
  const ElfSectionFacts* const section = module.find_section(".ARM.exidx");
  if (section == nullptr) return std::nullopt;
  const std::string_view table = module.bytes_of(*section);
  const auto function = [&](std::uint64_t i) {
    std::uint32_t word = 0;
    std::memcpy(&word, table.data() + i * kSize, sizeof word);
    return pointed_at(section->address + i * kSize, word) & ~Address{1};
  };
  std::uint64_t first = 0, count = table.size() / kSize;
  const std::uint64_t all = count;
  while (count > 0) {  // the first function that begins after the address
    const std::uint64_t half = count / 2;
    if (function(first + half) <= vaddr) {
      first += half + 1;
      count -= half + 1;
    } else {
      count = half;
    }
  }
  if (first == 0) return std::nullopt;
  Entry entry;
  entry.at = section->address + (first - 1) * kSize;
  entry.function.begin = function(first - 1);
  const Address end = first < all ? function(first) : vaddr + 2;
  entry.function.size = end - entry.function.begin;
  entry.index = {section->address, table.size()};
  return entry;
}

/// Only three of the personality routines that compact words number exist, and the index has room
/// for the first one's alone.
std::optional<Instructions> instructions_of(const Module& module, const Entry& entry,
                                            std::uint32_t word) {
  constexpr std::uint32_t kCompact = 0x8000'0000;
  const Address at = entry.at + 4;
  if (word >> 24 == 0x80) return Instructions(module, at, 1, 1);  // in the index itself
  if ((word & kCompact) != 0) return std::nullopt;
  const Address extra = pointed_at(at, word);
  const auto first = word_at(module, extra);
  if (!first || entry.index.contains(extra)) return std::nullopt;
  if ((*first & kCompact) == 0) {
    // A personality routine of its own; gcc's have the instructions next, as compact ones do.
    const auto next = word_at(module, extra + 4);
    if (!next) return std::nullopt;
    return Instructions(module, extra + 4, 1, 1 + (*next >> 24));
  }
  switch (*first >> 24) {
    case 0x80: return Instructions(module, extra, 1, 1);
    case 0x81:
    case 0x82: return Instructions(module, extra, 2, 1 + (*first >> 16 & 0xff));
    default: return std::nullopt;
  }
}

/// Runs the instructions, which pop registers from a virtual stack pointer.
class Program {
 public:
  explicit Program(CfiRow& row) : row_(row) {}

  /// False for what is not expressed as offsets from one register.
  bool run(Instructions in) {
    constexpr unsigned kMost = 4 * 256;
    for (unsigned i = 0; i < kMost; ++i) {
      const unsigned op = in.next();
      if (in.is_torn()) return false;
      if (op == 0xb0) return finish();
      if (!step(op, in)) return false;
    }
    return false;
  }

 private:
  bool step(unsigned op, Instructions& in) {
    if (op < 0x80) {  // vsp = vsp +- (x * 4 + 4)
      const auto by = static_cast<std::int32_t>((op & 0x3f) * 4 + 4);
      offset_ += op < 0x40 ? by : -by;
      return true;
    }
    if (op < 0x90) {
      const unsigned mask = (op & 0xf) << 8 | in.operand();
      return mask != 0 && pop(mask << 4);
    }
    if (op < 0xa0) return move(op & 0xf);
    if (op < 0xb0) return pop(((2U << (op & 7)) - 1) << 4 | ((op & 8) != 0 ? 1U << kLink : 0));
    return step_rare(op, in);
  }

  bool step_rare(unsigned op, Instructions& in) {
    const auto doubles = [](unsigned operand) {
      return 8 * (static_cast<std::int32_t>(operand & 0xf) + 1);
    };
    if (op == 0xb1) {
      const unsigned mask = in.operand();
      return mask != 0 && mask < 0x10 && pop(mask);
    }
    if (op == 0xb2) return grow_much(in);
    if (op == 0xb3) {
      offset_ += doubles(in.operand()) + 4;
    } else if (op == 0xb4) {
      offset_ += 4;  // the authentication code of the return address
    } else if (op >= 0xb8 && op < 0xc0) {
      offset_ += doubles(op & 7) + 4;
    } else if (op == 0xc8 || op == 0xc9) {
      offset_ += doubles(in.operand());
    } else if (op >= 0xd0 && op < 0xd8) {
      offset_ += doubles(op & 7);
    } else {
      return false;
    }
    return true;
  }

  bool grow_much(Instructions& in) {
    constexpr std::int64_t kBegin = 0x204, kMost = 1 << 24;
    std::int64_t value = 0;
    for (unsigned shift = 0; shift < 28; shift += 7) {
      const unsigned byte = in.operand();
      value |= std::int64_t{byte & 0x7f} << shift;
      if ((byte & 0x80) != 0) continue;
      if (value > kMost) return false;
      offset_ += kBegin + value * 4;
      return true;
    }
    return false;
  }

  bool move(unsigned number) {
    if (number == kSp || number == kPc || has_popped_) return false;
    row_.cfa_register = static_cast<std::uint16_t>(number);
    offset_ = 0;
    return true;
  }

  /// Ascending registers at ascending addresses.
  bool pop(unsigned mask) {
    if ((mask >> kSp & 1) != 0) return false;
    has_popped_ = true;
    for (unsigned number = 0; number <= kPc; ++number) {
      if ((mask >> number & 1) == 0) continue;
      RegisterRule& rule = row_.registers[number == kPc ? kLink : number];
      rule.how = RegisterHow::offset;
      rule.number = offset_;
      offset_ += 4;
    }
    return true;
  }

  bool finish() {
    row_.cfa_number = offset_;
    for (RegisterRule& rule : row_.registers) {
      if (rule.how == RegisterHow::offset) rule.number -= offset_;
    }
    return true;
  }

  CfiRow& row_;
  std::int64_t offset_ = 0;  // of the virtual stack pointer from the register
  bool has_popped_ = false;
};

}  // namespace

std::optional<CfiRow> arm_table_row(const Module& module, Address vaddr) {
  constexpr std::uint32_t kCannotUnwind = 1;
  if (module.machine() != EM_ARM || module.byte_order() != std::endian::native) return std::nullopt;
  const auto entry = find_entry(module, vaddr);
  if (!entry) return std::nullopt;
  const auto word = word_at(module, entry->at + 4);
  if (!word || *word == kCannotUnwind) return std::nullopt;
  CfiRow row;
  row.range = entry->function;
  row.return_register = kLink;
  row.cfa = CfiRules::Cfa::register_offset;
  row.cfa_register = kSp;
  const auto instructions = instructions_of(module, *entry, *word);
  if (!instructions || !Program(row).run(*instructions)) return std::nullopt;
  return row;
}

}  // namespace perfmap
