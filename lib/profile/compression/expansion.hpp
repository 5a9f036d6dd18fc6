#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>

namespace perfmap {

/// The text that compressed bytes become, which has a bound.
class Expansion {
 public:
  explicit Expansion(std::uint64_t most) : most_(most) {}

  /// Where the next bytes go: never empty.
  std::span<char> room() {
    constexpr std::size_t kLeast = std::size_t{256} << 10;
    text_.resize(used_ + std::max(kLeast, used_ / 2));
    return {text_.data() + used_, text_.size() - used_};
  }
  /// That many of them were written. False where that is more than the bound.
  bool wrote(std::size_t count) noexcept {
    used_ += count;
    return used_ <= most_;
  }
  bool exceeds() const noexcept { return used_ > most_; }

  std::string take() && {
    text_.resize(used_);
    text_.shrink_to_fit();
    return std::move(text_);
  }

 private:
  std::uint64_t most_;
  std::size_t used_ = 0;
  std::string text_;
};

// Each expands all members or frames of `bytes`. False where they are damaged, cut off, or exceed
// the bound.
bool expand_gzip(std::string_view bytes, Expansion& out);
bool expand_xz(std::string_view bytes, Expansion& out);
bool expand_zstd(std::string_view bytes, Expansion& out);
/// Only the first stream, whatever lies behind it.
bool expand_first_xz(std::string_view bytes, Expansion& out);

}  // namespace perfmap
