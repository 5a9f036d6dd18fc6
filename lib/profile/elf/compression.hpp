// SPDX-License-Identifier: MIT
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
struct z_stream_s;

namespace perfmap {

/// How many bytes one step of a stream used and produced.
struct ExpansionStep {
  std::size_t taken = 0;
  std::size_t made = 0;
  bool is_damaged = false;
  bool ends_frame = false;  ///< a frame, or a member of gzip, was completed
};

/// Decompresses concatenated zstd frames as a stream. Uses a window of at most 128 MiB.
class ZstdStream {
 public:
  using Step = ExpansionStep;

  /// Reads from the front of `from` and writes to the front of `to`. No progress if there is no
  /// input left or no space. Throws std::bad_alloc.
  Step step(std::string_view from, std::span<char> to);
  /// Starts again after damage.
  void reset() noexcept;

 private:
  struct Free {
    void operator()(ZSTD_DCtx_s* context) const noexcept;
  };
  std::unique_ptr<ZSTD_DCtx_s, Free> context_;
};

/// The same for the members of gzip.
class GunzipStream {
 public:
  /// As ZstdStream::step().
  ExpansionStep step(std::string_view from, std::span<char> to);

 private:
  struct Free {
    void operator()(z_stream_s* stream) const noexcept;
  };
  std::unique_ptr<z_stream_s, Free> stream_;
  bool is_at_end_ = false;  // of a member
};

/// Decompressed output with a size limit.
class Expansion {
 public:
  explicit Expansion(std::uint64_t max) : max_(max) {}

  /// Space for the next bytes: never empty.
  std::span<char> room() {
    constexpr std::size_t kLeast = std::size_t{256} << 10;
    text_.resize(used_ + std::max(kLeast, used_ / 2));
    return {text_.data() + used_, text_.size() - used_};
  }
  /// Adds that many written bytes. False if that exceeds the limit.
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

// Each expands all members or frames of `bytes`. False if they are damaged or truncated, or exceed
// the limit.
bool expand_gzip(std::string_view bytes, Expansion& out);
bool expand_xz(std::string_view bytes, Expansion& out);
bool expand_zstd(std::string_view bytes, Expansion& out);
/// Only the first stream; what follows is ignored.
bool expand_first_xz(std::string_view bytes, Expansion& out);

}  // namespace perfmap
