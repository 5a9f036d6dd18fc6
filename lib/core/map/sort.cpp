// SPDX-License-Identifier: MIT
#include <algorithm>
#include <array>
#include <bit>
#include <span>
#include <utility>
#include <vector>

#include "map/segments.hpp"

namespace perfmap {
namespace {

/// JIT code lies in few places. If all addresses lie in at most this many blocks of 4 GiB, the
/// number of the block and the low 32 bits make a short key that sorts like the address.
constexpr std::size_t kMaxPieces = 256;
constexpr unsigned kLowBits = 32;

/// Numbers the 4 GiB blocks in use in ascending order. A small hash table, because neighbouring
/// lines often lie in different blocks.
class AddressBlocks {
 public:
  /// False if there are too many.
  bool add(std::uint64_t piece) {
    Slot& slot = slot_of(piece);
    if (slot.piece == piece) return true;
    if (sorted_.size() == kMaxPieces) return false;
    slot.piece = piece;
    sorted_.push_back(piece);
    return true;
  }
  void number() {
    std::sort(sorted_.begin(), sorted_.end());
    for (std::size_t i = 0; i < sorted_.size(); ++i) slot_of(sorted_[i]).number = i;
  }
  std::size_t count() const noexcept { return sorted_.size(); }
  std::uint64_t number_of(std::uint64_t piece) noexcept { return slot_of(piece).number; }
  std::uint64_t operator[](std::uint64_t number) const noexcept { return sorted_[number]; }

 private:
  struct Slot {
    std::uint64_t piece = UINT64_MAX;  // not a valid upper half
    std::uint64_t number = 0;
  };
  static constexpr unsigned kSlotBits = 10;

  /// The slot that holds the block, or the free slot for it; there always is one.
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
  AddressBlocks pieces;
  unsigned position_bits = 0;
  unsigned key_bits = 0;   // of the address part
  unsigned zero_bits = 0;  // low bits that are 0 in all addresses (alignment)

  std::uint64_t key(std::uint64_t address, std::uint64_t position) noexcept {
    const std::uint64_t number = pieces.number_of(address >> kLowBits);
    const std::uint64_t part = (number << kLowBits | (address & UINT32_MAX)) >> zero_bits;
    return part << position_bits | position;
  }
  std::uint64_t position(std::uint64_t key) const noexcept {
    return key & ((std::uint64_t{1} << position_bits) - 1);
  }
  std::uint64_t address(std::uint64_t key) const noexcept {
    const std::uint64_t part = key >> position_bits << zero_bits;
    return pieces[part >> kLowBits] << kLowBits | (part & UINT32_MAX);
  }
};

/// False if address and position need more than 64 bits.
bool choose_packing(const MmapVector<std::uint64_t>& begins, Packing& packing) {
  if (begins.size() >= UINT32_MAX) return false;
  std::uint64_t any = std::uint64_t{1} << (kLowBits - 1);
  for (std::size_t i = 0; i < begins.size(); ++i) {
    any |= begins[i];
    if (!packing.pieces.add(begins[i] >> kLowBits)) return false;
  }
  packing.pieces.number();
  packing.zero_bits = static_cast<unsigned>(std::countr_zero(any));
  packing.position_bits = static_cast<unsigned>(std::bit_width(begins.size() - 1));
  packing.key_bits = kLowBits - packing.zero_bits +
                     static_cast<unsigned>(std::bit_width(packing.pieces.count() - 1));
  return packing.position_bits + packing.key_bits <= 64;
}

/// The line and the size of an entry in one number, if both fit: the gather after a sort reads
/// memory at random, so this halves its cache misses.
struct Payload {
  unsigned offset_bits = 0;
  unsigned line_bits = 0;
  bool fits = false;

  explicit Payload(const Columns& columns) {
    std::uint64_t any_line = 0;
    std::uint32_t any_size = 0;
    for (std::size_t i = 0; i < columns.count(); ++i) {
      any_line |= columns.line[i];
      any_size |= columns.size[i];
    }
    offset_bits = static_cast<unsigned>(std::bit_width(any_line & kOffset));
    line_bits = offset_bits + static_cast<unsigned>(std::bit_width(any_line >> kMapShift));
    fits = line_bits + static_cast<unsigned>(std::bit_width(any_size)) <= 64 && line_bits < 64;
  }
  std::uint64_t pack(std::uint64_t line, std::uint32_t size) const noexcept {
    const std::uint64_t map = line >> kMapShift;
    return std::uint64_t{size} << line_bits | map << offset_bits | (line & kOffset);
  }
  std::uint32_t size(std::uint64_t packed) const noexcept {
    return static_cast<std::uint32_t>(packed >> line_bits);
  }
  std::uint64_t line(std::uint64_t packed) const noexcept {
    const std::uint64_t line = packed & ((std::uint64_t{1} << line_bits) - 1);
    return line >> offset_bits << kMapShift | (line & ((std::uint64_t{1} << offset_bits) - 1));
  }

 private:
  static constexpr std::uint64_t kOffset = (std::uint64_t{1} << kMapShift) - 1;
};

/// A range of bits in a key.
struct Digit {
  unsigned shift;
  unsigned bits;

  std::size_t values() const noexcept { return std::size_t{1} << bits; }
  std::size_t of(std::uint64_t key) const noexcept { return key >> shift & (values() - 1); }
};

constexpr unsigned kMaxDigitBits = 11;

/// Turns the counts of values into the first position of each value.
void make_starts(std::span<std::uint32_t> counts) noexcept {
  std::uint32_t sum = 0;
  for (std::uint32_t& count : counts) sum += std::exchange(count, sum);
}

void move_by_digit(std::span<const std::uint64_t> from, std::uint64_t* to, Digit digit,
                   std::uint32_t* next) noexcept {
  for (const std::uint64_t key : from) to[next[digit.of(key)]++] = key;
}

/// LSD radix sort by the bits below `high`. The keys are already in the order of their positions,
/// which begin at bit `low`. Returns the number of passes, which depends only on the bits: the
/// result is in `keys`, or in `spare` if that number is odd.
unsigned sort_by_low_digits(std::span<std::uint64_t> keys, std::span<std::uint64_t> spare,
                            unsigned low, unsigned high) noexcept {
  const unsigned passes = (high - low + kMaxDigitBits - 1) / kMaxDigitBits;
  if (passes == 0) return 0;
  const unsigned bits = (high - low + passes - 1) / passes;
  std::array<std::uint32_t, (std::size_t{64} / kMaxDigitBits + 1) << kMaxDigitBits> counts;
  std::fill_n(counts.begin(), std::size_t{passes} << bits, 0);
  for (const std::uint64_t key : keys) {
    for (unsigned pass = 0; pass < passes; ++pass) {
      ++counts[(std::size_t{pass} << bits) + Digit{low + pass * bits, bits}.of(key)];
    }
  }
  for (unsigned pass = 0; pass < passes; ++pass) {
    const std::span<std::uint32_t> next(counts.data() + (std::size_t{pass} << bits),
                                        std::size_t{1} << bits);
    make_starts(next);
    move_by_digit(keys, spare.data(), {low + pass * bits, bits}, next.data());
    std::swap(keys, spare);
  }
  return passes;
}

/// More keys than this are first distributed by their highest digit, so that all further passes
/// stay within the cache.
constexpr std::size_t kInCache = std::size_t{1} << 19;

/// Sorts by the bits from `low` up to `high`. `spare` must be as long.
void radix_sort(MmapVector<std::uint64_t>& keys, MmapVector<std::uint64_t>& spare, unsigned low,
                unsigned high) {
  const std::size_t count = keys.size();
  if (count <= kInCache || high - low <= kMaxDigitBits) {
    if (sort_by_low_digits({keys.data(), count}, {spare.data(), count}, low, high) % 2 != 0) {
      keys.swap(spare);
    }
    return;
  }
  constexpr unsigned kTopBits = 10;
  const Digit top{high - kTopBits, kTopBits};
  std::array<std::uint32_t, std::size_t{1} << kTopBits> ends{};
  for (std::size_t i = 0; i < count; ++i) ++ends[top.of(keys[i])];
  make_starts(ends);
  move_by_digit({keys.data(), count}, spare.data(), top, ends.data());
  keys.swap(spare);
  unsigned passes = 0;
  std::size_t begin = 0;
  for (const std::size_t end : ends) {
    passes = sort_by_low_digits({keys.data() + begin, end - begin},
                                {spare.data() + begin, end - begin}, low, top.shift);
    begin = end;
  }
  // Each bucket had the same number of passes, so all of them ended in the same buffer.
  if (passes % 2 != 0) keys.swap(spare);
}

constexpr std::size_t kAhead = 160;  // entries; as many fetches as memory serves at once

/// Puts lines and sizes into the order of the keys, and turns the keys back into addresses. `lines`
/// is as long as the columns.
void gather_packed(const Packing& packing, const Payload& payload, Columns& columns,
                   MmapVector<std::uint64_t>& lines) {
  std::uint64_t* const keys = columns.begin.data();
  std::uint64_t* const packed = columns.line.data();
  const std::size_t count = columns.count();
  for (std::size_t i = 0; i < count; ++i) packed[i] = payload.pack(packed[i], columns.size[i]);
  for (std::size_t i = 0; i < count; ++i) {
    __builtin_prefetch(packed + packing.position(keys[std::min(i + kAhead, count - 1)]));
    const std::uint64_t both = packed[packing.position(keys[i])];
    lines[i] = payload.line(both);
    columns.size[i] = payload.size(both);
    keys[i] = packing.address(keys[i]);
  }
}

void gather(const Packing& packing, Columns& columns, MmapVector<std::uint64_t>& lines) {
  MmapVector<std::uint64_t>& keys = columns.begin;
  MmapVector<std::uint32_t> sizes(keys.size());
  for (std::size_t i = 0; i < keys.size(); ++i) {
    lines[i] = columns.line[packing.position(keys[i])];
    sizes[i] = columns.size[packing.position(keys[i])];
    keys[i] = packing.address(keys[i]);
  }
  columns.size = std::move(sizes);
}

/// The columns share memory in turns, so that at most 28 bytes an entry are in use (32 with sizes
/// that do not fit): begin becomes the keys, the sort's spare buffer becomes the sorted lines.
void sort_packed(Packing& packing, Columns& columns) {
  const std::size_t count = columns.count();
  MmapVector<std::uint64_t>& keys = columns.begin;
  for (std::size_t i = 0; i < count; ++i) keys[i] = packing.key(keys[i], i);
  MmapVector<std::uint64_t> spare(count);
  radix_sort(keys, spare, packing.position_bits, packing.position_bits + packing.key_bits);
  const Payload payload(columns);
  if (payload.fits) {
    gather_packed(packing, payload, columns, spare);
  } else {
    gather(packing, columns, spare);
  }
  columns.line = std::move(spare);
}

/// For addresses spread all over, which no JIT produces: plain and slower, O(n log n).
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
  MmapVector<std::uint64_t> lines(count);
  MmapVector<std::uint32_t> sizes(count);
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
