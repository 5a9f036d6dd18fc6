#include <memory>
#include <new>
#include <zstd.h>

#include "compression/expansion.hpp"

namespace perfmap {
namespace {

struct Free {
  void operator()(ZSTD_DCtx* context) const noexcept { ZSTD_freeDCtx(context); }
};

}  // namespace

/// Windows of more than 128 MiB, which `zstd --ultra --long` makes, are refused as by zstd itself.
bool expand_zstd(std::string_view bytes, Expansion& out) {
  const std::unique_ptr<ZSTD_DCtx, Free> context(ZSTD_createDCtx());
  if (context == nullptr) throw std::bad_alloc();
  ZSTD_inBuffer from{bytes.data(), bytes.size(), 0};
  for (;;) {
    const std::span<char> room = out.room();
    ZSTD_outBuffer to{room.data(), room.size(), 0};
    const std::size_t before = from.pos;
    const std::size_t wanted = ZSTD_decompressStream(context.get(), &to, &from);
    if (ZSTD_isError(wanted) != 0 || !out.wrote(to.pos)) return false;
    // 0: a frame has ended, and all of it was written.
    if (wanted == 0 && from.pos == from.size) return true;
    if (to.pos == 0 && from.pos == before) return false;  // it was cut off
  }
}

}  // namespace perfmap
