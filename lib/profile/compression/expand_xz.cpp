#include <lzma.h>
#include <new>

#include "compression/expansion.hpp"

namespace perfmap {
namespace {

/// xz -9 needs 65 MiB; a header may ask for 4 GiB.
constexpr std::uint64_t kMostMemory = std::uint64_t{256} << 20;

struct Stream : lzma_stream {
  Stream() : lzma_stream(LZMA_STREAM_INIT) {}
  ~Stream() { lzma_end(this); }
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;
};

bool expand(std::string_view bytes, Expansion& out, std::uint32_t flags) {
  Stream stream;
  if (lzma_stream_decoder(&stream, kMostMemory, flags) != LZMA_OK) throw std::bad_alloc();
  stream.next_in = reinterpret_cast<const std::uint8_t*>(bytes.data());
  stream.avail_in = bytes.size();
  lzma_ret status = LZMA_OK;
  while (status == LZMA_OK) {
    const std::span<char> room = out.room();
    stream.next_out = reinterpret_cast<std::uint8_t*>(room.data());
    stream.avail_out = room.size();
    status = lzma_code(&stream, LZMA_FINISH);
    if (!out.wrote(room.size() - stream.avail_out)) return false;
  }
  return status == LZMA_STREAM_END;
}

}  // namespace

bool expand_xz(std::string_view bytes, Expansion& out) {
  return expand(bytes, out, LZMA_CONCATENATED);
}

bool expand_first_xz(std::string_view bytes, Expansion& out) { return expand(bytes, out, 0); }

}  // namespace perfmap
