#include "compression/zstd_stream.hpp"

#include <new>
#include <zstd.h>

namespace perfmap {

void ZstdStream::Free::operator()(ZSTD_DCtx_s* context) const noexcept { ZSTD_freeDCtx(context); }

ZstdStream::Step ZstdStream::step(std::string_view from, std::span<char> to) {
  if (context_ == nullptr) context_.reset(ZSTD_createDCtx());
  if (context_ == nullptr) throw std::bad_alloc();
  ZSTD_inBuffer in{from.data(), from.size(), 0};
  ZSTD_outBuffer out{to.data(), to.size(), 0};
  const std::size_t result = ZSTD_decompressStream(context_.get(), &out, &in);
  return {in.pos, out.pos, ZSTD_isError(result) != 0, result == 0};
}

void ZstdStream::reset() noexcept {
  if (context_ != nullptr) ZSTD_DCtx_reset(context_.get(), ZSTD_reset_session_only);
}

}  // namespace perfmap
