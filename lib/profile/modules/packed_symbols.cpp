#include "modules/packed_symbols.hpp"

#include <algorithm>
#include <lzma.h>

namespace perfmap {
namespace {

constexpr std::size_t kMostBytes = std::size_t{128} << 20;
constexpr std::size_t kFirstBlock = std::size_t{64} << 10;
/// xz -9 needs 65 MiB.
constexpr std::uint64_t kMostMemory = std::uint64_t{128} << 20;

struct Stream : lzma_stream {
  Stream() : lzma_stream(LZMA_STREAM_INIT) {}
  ~Stream() { lzma_end(this); }
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;
};

}  // namespace

std::optional<std::string> unpack_symbols(std::string_view xz) {
  Stream stream;
  if (lzma_stream_decoder(&stream, kMostMemory, 0) != LZMA_OK) return std::nullopt;
  stream.next_in = reinterpret_cast<const std::uint8_t*>(xz.data());
  stream.avail_in = xz.size();
  std::string out;
  for (;;) {
    const std::size_t have = out.size();
    if (have == kMostBytes) return std::nullopt;
    out.resize(std::clamp(2 * have, kFirstBlock, kMostBytes));
    stream.next_out = reinterpret_cast<std::uint8_t*>(out.data()) + have;
    stream.avail_out = out.size() - have;
    const lzma_ret status = lzma_code(&stream, LZMA_FINISH);
    if (status == LZMA_STREAM_END) break;
    if (status != LZMA_OK || stream.avail_out != 0) return std::nullopt;
  }
  out.resize(out.size() - stream.avail_out);
  out.shrink_to_fit();
  return out;
}

}  // namespace perfmap
