#include "answers/loops/loop_images.hpp"

#include <algorithm>

#include "base/hex.hpp"

namespace perfmap {
namespace {

/// PyPy changes four bytes, or writes a jump of thirteen over them. No loop is that short.
constexpr std::uint64_t kMostChanged = 16;

/// Two digits a byte; false where one is none.
bool copy_hex(std::string_view digits, char* to) noexcept {
  for (std::size_t i = 0; i + 1 < digits.size(); i += 2) {
    const int high = hex_digit(digits[i]);
    const int low = hex_digit(digits[i + 1]);
    if (high < 0 || low < 0) return false;
    *to++ = static_cast<char>(high << 4 | low);
  }
  return true;
}

}  // namespace

std::vector<std::uint32_t> placed_loops(std::span<const CompiledLoop> loops) {
  std::vector<std::uint32_t> order;
  for (std::uint32_t i = 0; i < loops.size(); ++i) {
    if (loops[i].code.size != 0) order.push_back(i);
  }
  std::stable_sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) {
    return loops[a].placed < loops[b].placed;
  });
  return order;
}

LoopImages::LoopImages(const CompiledLoops& loops, std::span<const std::uint32_t> order)
    : images_(loops.all().size()) {
  const auto writes = loops.code_bytes();
  auto next = writes.begin();
  const auto write_next = [&] {
    const auto range = AddressRange::clamped(next->address, next->hex.size / 2);
    if (range.size != 0) write({range.begin, range.size, next->hex.offset});
    ++next;
  };
  for (const std::uint32_t number : order) {
    const CompiledLoop& loop = loops.all()[number];
    while (next != writes.end() && next->hex.offset < loop.placed) write_next();
    place(loop.code, number);
  }
  while (next != writes.end()) write_next();
}

/// Makes two of what waits across `at`.
void LoopImages::cut_waiting(Address at) {
  auto before = waiting_.lower_bound(at);
  if (before == waiting_.begin()) return;
  --before;
  const Piece piece = before->second;
  if (piece.end() <= at) return;
  before->second = piece.up_to(at);
  waiting_.emplace(at, piece.from(at));
}

void LoopImages::cut_owners(Address at) {
  auto before = owners_.lower_bound(at);
  if (before == owners_.begin()) return;
  --before;
  const Owner owner = before->second;
  if (owner.end <= at) return;
  before->second.end = at;
  owners_.emplace(at, owner);
}

void LoopImages::write(const Piece& piece) {
  if (piece.size <= kMostChanged) {
    const auto waits = waiting_.upper_bound(piece.begin);
    const bool is_new = waits != waiting_.begin() && piece.begin < std::prev(waits)->second.end();
    const auto owner = owners_.upper_bound(piece.begin);
    if (!is_new && owner != owners_.begin() && piece.begin < std::prev(owner)->second.end) {
      images_[std::prev(owner)->second.loop].pieces.push_back(piece);
      return;
    }
  }
  cut_waiting(piece.begin);
  cut_waiting(piece.end());
  waiting_.erase(waiting_.lower_bound(piece.begin), waiting_.lower_bound(piece.end()));
  waiting_.emplace(piece.begin, piece);
}

void LoopImages::place(const AddressRange& range, std::uint32_t loop) {
  cut_owners(range.begin);
  cut_owners(range.end());
  owners_.erase(owners_.lower_bound(range.begin), owners_.lower_bound(range.end()));
  owners_.emplace(range.begin, Owner{range.end(), loop});
  cut_waiting(range.begin);
  cut_waiting(range.end());
  const auto first = waiting_.lower_bound(range.begin);
  const auto last = waiting_.lower_bound(range.end());
  for (auto at = first; at != last; ++at) {
    images_[loop].pieces.push_back(at->second);
    images_[loop].whole += at->second.size;
  }
  waiting_.erase(first, last);
}

bool LoopImages::append(const CompiledLoop& loop, std::uint32_t number, std::string_view log,
                        std::string& out) const {
  const std::size_t at = out.size();
  out.resize(at + loop.code.size);
  bool whole = images_[number].whole == loop.code.size;
  for (const Piece& piece : images_[number].pieces) {
    const std::uint64_t into = piece.begin - loop.code.begin;
    const std::uint64_t size = std::min(piece.size, loop.code.size - into);
    const bool is_there = piece.hex <= log.size() && 2 * size <= log.size() - piece.hex;
    whole &= is_there && copy_hex(log.substr(piece.hex, 2 * size), out.data() + at + into);
  }
  return whole;
}

}  // namespace perfmap
