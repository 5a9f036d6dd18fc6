#include <algorithm>
#include <array>
#include <bit>
#include <span>
#include <utility>
#include <vector>

#include "index/columns.hpp"

namespace perfmap {
namespace {

/// JIT code lies in few places. When all addresses lie in at most this many pieces of 4 GiB, the
/// number of the piece and the low 32 bits make a short key that sorts as the address does.
constexpr std::size_t kMostPieces = 256;
constexpr unsigned kLowBits = 32;

/// Numbers the pieces of 4 GiB that addresses lie in, in ascending order. A small hash table, as
/// neighbouring lines often lie in different pieces.
class Pieces {
 public:
  /// False where there are too many.
  bool collect(const Column<std::uint64_t>& begins) {
    for (std::size_t i = 0; i < begins.size(); ++i) {
      const std::uint64_t piece = begins[i] >> kLowBits;
      Slot& slot = slot_of(piece);
      if (slot.piece == piece) continue;
      if (sorted_.size() == kMostPieces) return false;
      slot.piece = piece;
      sorted_.push_back(piece);
    }
    std::sort(sorted_.begin(), sorted_.end());
    for (std::size_t i = 0; i < sorted_.size(); ++i) slot_of(sorted_[i]).number = i;
    return true;
  }
  std::size_t count() const noexcept { return sorted_.size(); }
  std::uint64_t number_of(std::uint64_t piece) noexcept { return slot_of(piece).number; }
  std::uint64_t operator[](std::uint64_t number) const noexcept { return sorted_[number]; }

 private:
  struct Slot {
    std::uint64_t piece = UINT64_MAX;  // no upper half
    std::uint64_t number = 0;
  };
  static constexpr unsigned kSlotBits = 10;

  /// The slot that holds the piece, or the free one where it belongs: there is always one.
  Slot& slot_of(std::uint64_t piece) noexcept {
    std::size_t at = piece * 0x9e3779b97f4a7c15 >> (64 - kSlotBits);
    while (slots_[at].piece != piece && slots_[at].piece != UINT64_MAX)
      at = (at + 1) % slots_.size();
    return slots_[at];
  }

  std::array<Slot, std::size_t{1} << kSlotBits> slots_;
  std::vector<std::uint64_t> sorted_;
};

/// How an address and an entry's position share one 64-bit key: address above, position below.
struct Packing {
  Pieces pieces;
  unsigned position_bits = 0;
  unsigned key_bits = 0;   // of the address part
  unsigned zero_bits = 0;  // that every address ends in, as code is aligned

  std::uint64_t position(std::uint64_t key) const noexcept {
    return key & ((std::uint64_t{1} << position_bits) - 1);
  }
  std::uint64_t address(std::uint64_t key) const noexcept {
    const std::uint64_t part = key >> position_bits << zero_bits;
    return pieces[part >> kLowBits] << kLowBits | (part & UINT32_MAX);
  }
};

/// False where address and position need more than 64 bits.
bool choose_packing(const Column<std::uint64_t>& begins, Packing& packing) {
  if (begins.size() >= UINT32_MAX || !packing.pieces.collect(begins)) return false;
  std::uint64_t any = std::uint64_t{1} << (kLowBits - 1);
  for (std::size_t i = 0; i < begins.size(); ++i) any |= begins[i];
  packing.zero_bits = static_cast<unsigned>(std::countr_zero(any));
  packing.position_bits = static_cast<unsigned>(std::bit_width(begins.size() - 1));
  packing.key_bits = kLowBits - packing.zero_bits +
                     static_cast<unsigned>(std::bit_width(packing.pieces.count() - 1));
  return packing.position_bits + packing.key_bits <= 64;
}

/// Replaces each address by its key.
void pack(Packing& packing, Column<std::uint64_t>& keys) {
  for (std::size_t i = 0; i < keys.size(); ++i) {
    const std::uint64_t number = packing.pieces.number_of(keys[i] >> kLowBits);
    const std::uint64_t part = (number << kLowBits | (keys[i] & UINT32_MAX)) >> packing.zero_bits;
    keys[i] = part << packing.position_bits | i;
  }
}

constexpr unsigned kMostDigitBits = 11;

/// Moves `from` to `to` in the order of one digit; equal digits keep their order.
void sort_digit(const Column<std::uint64_t>& from, Column<std::uint64_t>& to, unsigned shift,
                std::span<std::uint32_t> next) {
  const std::uint64_t mask = next.size() - 1;
  std::fill(next.begin(), next.end(), 0);
  for (std::size_t i = 0; i < from.size(); ++i) ++next[from[i] >> shift & mask];
  std::uint32_t sum = 0;
  for (std::uint32_t& start : next) sum += std::exchange(start, sum);
  for (std::size_t i = 0; i < from.size(); ++i) to[next[from[i] >> shift & mask]++] = from[i];
}

/// Least significant digit first. The bits below `low` are sorted already.
void radix_sort(Column<std::uint64_t>& keys, Column<std::uint64_t>& spare, unsigned low,
                unsigned bits) {
  const unsigned passes = (bits + kMostDigitBits - 1) / kMostDigitBits;
  if (passes == 0) return;
  const unsigned digit = (bits + passes - 1) / passes;
  std::array<std::uint32_t, std::size_t{1} << kMostDigitBits> next;
  for (unsigned pass = 0; pass < passes; ++pass) {
    const std::span<std::uint32_t> counts(next.data(), std::size_t{1} << digit);
    sort_digit(keys, spare, low + pass * digit, counts);
    keys.swap(spare);
  }
}

/// The columns take turns in the same memory, so that no more than 28 bytes an entry are in use:
/// begin becomes the keys, the spare of the sort becomes the sorted lines.
void sort_packed(Packing& packing, Columns& columns) {
  const std::size_t count = columns.count();
  Column<std::uint64_t>& keys = columns.begin;
  pack(packing, keys);
  Column<std::uint64_t> spare(count);
  radix_sort(keys, spare, packing.position_bits, packing.key_bits);

  for (std::size_t i = 0; i < count; ++i) spare[i] = columns.line[packing.position(keys[i])];
  columns.line = std::move(spare);
  Column<std::uint32_t> sizes(count);
  for (std::size_t i = 0; i < count; ++i) {
    sizes[i] = columns.size[packing.position(keys[i])];
    keys[i] = packing.address(keys[i]);
  }
  columns.size = std::move(sizes);
}

/// For addresses all over the place, which no JIT writes: plain and slower, O(n log n).
void sort_pairs(Columns& columns) {
  struct Pair {
    std::uint64_t begin;
    std::uint64_t position;
  };
  const std::size_t count = columns.count();
  std::vector<Pair> pairs(count);
  for (std::size_t i = 0; i < count; ++i) pairs[i] = {columns.begin[i], i};
  std::sort(pairs.begin(), pairs.end(), [](const Pair& a, const Pair& b) {
    return a.begin != b.begin ? a.begin < b.begin : a.position < b.position;
  });
  Column<std::uint64_t> lines(count);
  Column<std::uint32_t> sizes(count);
  for (std::size_t i = 0; i < count; ++i) {
    columns.begin[i] = pairs[i].begin;
    lines[i] = columns.line[pairs[i].position];
    sizes[i] = columns.size[pairs[i].position];
  }
  columns.line = std::move(lines);
  columns.size = std::move(sizes);
}

}  // namespace

void sort_columns(Columns& columns) {
  const std::uint64_t* const begins = columns.begin.data();
  if (std::is_sorted(begins, begins + columns.count())) return;
  Packing packing;
  if (choose_packing(columns.begin, packing)) {
    sort_packed(packing, columns);
  } else {
    sort_pairs(columns);
  }
}

}  // namespace perfmap
