#include "modules/sha1.hpp"

#include <algorithm>
#include <bit>
#include <cstring>

namespace perfmap {
namespace {

struct Round {
  std::uint32_t mix;
  std::uint32_t constant;
};

Round round_of(unsigned i, std::uint32_t b, std::uint32_t c, std::uint32_t d) noexcept {
  if (i < 20) return {(b & c) | (~b & d), 0x5a827999};
  if (i < 40) return {b ^ c ^ d, 0x6ed9eba1};
  if (i < 60) return {(b & c) | (b & d) | (c & d), 0x8f1bbcdc};
  return {b ^ c ^ d, 0xca62c1d6};
}

std::uint32_t big_endian(const char* bytes) noexcept {
  std::uint32_t word = 0;
  std::memcpy(&word, bytes, sizeof word);
  return std::endian::native == std::endian::little ? __builtin_bswap32(word) : word;
}

}  // namespace

void Sha1::block(const char* bytes) noexcept {
  std::array<std::uint32_t, 80> word;
  for (std::size_t i = 0; i < 16; ++i) word[i] = big_endian(bytes + 4 * i);
  for (std::size_t i = 16; i < 80; ++i) {
    word[i] = std::rotl(word[i - 3] ^ word[i - 8] ^ word[i - 14] ^ word[i - 16], 1);
  }
  auto [a, b, c, d, e] = state_;
  for (unsigned i = 0; i < 80; ++i) {
    const Round round = round_of(i, b, c, d);
    const std::uint32_t next = std::rotl(a, 5) + round.mix + e + round.constant + word[i];
    e = d;
    d = c;
    c = std::rotl(b, 30);
    b = a;
    a = next;
  }
  state_ = {state_[0] + a, state_[1] + b, state_[2] + c, state_[3] + d, state_[4] + e};
}

void Sha1::update(std::string_view bytes) noexcept {
  if (bytes.empty()) return;
  const std::size_t held = size_ % rest_.size();
  size_ += bytes.size();
  if (held != 0) {
    const std::size_t taken = std::min(bytes.size(), rest_.size() - held);
    std::memcpy(rest_.data() + held, bytes.data(), taken);
    bytes.remove_prefix(taken);
    if (held + taken < rest_.size()) return;
    block(rest_.data());
  }
  for (; bytes.size() >= rest_.size(); bytes.remove_prefix(rest_.size())) block(bytes.data());
  if (!bytes.empty()) std::memcpy(rest_.data(), bytes.data(), bytes.size());
}

std::array<char, Sha1::kSize> Sha1::digest() noexcept {
  const std::uint64_t bits = size_ * 8;
  update(std::string_view("\x80", 1));
  while (size_ % rest_.size() != 56) update(std::string_view("\0", 1));
  std::array<char, 8> length;
  for (unsigned i = 0; i < 8; ++i) length[i] = static_cast<char>(bits >> (56 - 8 * i));
  update({length.data(), length.size()});
  std::array<char, kSize> out;
  for (unsigned i = 0; i < kSize; ++i)
    out[i] = static_cast<char>(state_[i / 4] >> (24 - i % 4 * 8));
  return out;
}

}  // namespace perfmap
