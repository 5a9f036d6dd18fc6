#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string_view>

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

}  // namespace perfmap
