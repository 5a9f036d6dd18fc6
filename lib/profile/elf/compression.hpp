#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>

struct ZSTD_DCtx_s;

namespace perfmap {

/// Decompresses zstd frames, one after the other, as their bytes come. Holds zstd's window, of 128
/// MiB at most.
class ZstdStream {
 public:
  /// What one step used and made.
  struct Step {
    std::size_t taken = 0;
    std::size_t made = 0;
    bool is_damaged = false;
    bool ends_frame = false;  ///< all of a frame was made
  };

  /// Takes bytes from the front of `from` and writes to the front of `to`. Makes no progress if
  /// there is nothing more to take, or no room. Throws std::bad_alloc.
  Step step(std::string_view from, std::span<char> to);
  /// Begins anew, after damage.
  void reset() noexcept;

 private:
  struct Free {
    void operator()(ZSTD_DCtx_s* context) const noexcept;
  };
  std::unique_ptr<ZSTD_DCtx_s, Free> context_;
};

/// The text that compressed bytes become, which has a bound.
class Expansion {
 public:
  explicit Expansion(std::uint64_t max) : max_(max) {}

  /// Where the next bytes go: never empty.
  std::span<char> room() {
    constexpr std::size_t kLeast = std::size_t{256} << 10;
    text_.resize(used_ + std::max(kLeast, used_ / 2));
    return {text_.data() + used_, text_.size() - used_};
  }
  /// That many of them were written. False where that is more than the bound.
  bool wrote(std::size_t count) noexcept {
    used_ += count;
    return used_ <= max_;
  }
  bool exceeds() const noexcept { return used_ > max_; }

  std::string take() && {
    text_.resize(used_);
    text_.shrink_to_fit();
    return std::move(text_);
  }

 private:
  std::uint64_t max_;
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
