// SPDX-License-Identifier: MIT
#include "stacks/gzip_stream.hpp"

#include <algorithm>
#include <limits>
#include <new>
#include <utility>
#include <zlib.h>

#include "elf/compression.hpp"

namespace perfmap {

struct GzipStream::State {
  z_stream stream = {};
};

GzipStream::GzipStream(OutputFile& out) : out_(out), state_(std::make_unique<State>()) {
  constexpr int kGzip = 16;  // added to the window bits, makes zlib write gzip's header
  constexpr int kMemory = 8;
  if (deflateInit2(&state_->stream, Z_DEFAULT_COMPRESSION, Z_DEFLATED, MAX_WBITS + kGzip, kMemory,
                   Z_DEFAULT_STRATEGY) != Z_OK) {
    throw std::bad_alloc();
  }
}

GzipStream::~GzipStream() { deflateEnd(&state_->stream); }

void GzipStream::write(std::string_view bytes) {
  constexpr std::size_t kMax = std::numeric_limits<uInt>::max();
  for (; !bytes.empty(); bytes.remove_prefix(std::min(bytes.size(), kMax))) {
    deflate(bytes.substr(0, kMax), Z_NO_FLUSH);
  }
}

void GzipStream::finish() { deflate({}, Z_FINISH); }

void GzipStream::deflate(std::string_view bytes, int flush) {
  z_stream& stream = state_->stream;
  // zlib only reads through this pointer.
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
  stream.avail_in = static_cast<uInt>(bytes.size());
  do {
    char* const room = out_.room(OutputFile::kRoom);
    stream.next_out = reinterpret_cast<Bytef*>(room);
    stream.avail_out = OutputFile::kRoom;
    ::deflate(&stream, flush);
    out_.wrote(OutputFile::kRoom - stream.avail_out);
  } while (stream.avail_out == 0);
}

bool is_gzip(std::string_view bytes) noexcept { return bytes.starts_with("\x1f\x8b"); }

Result<std::string> gunzip(std::string_view bytes, std::uint64_t max) {
  Expansion text(max);
  const bool done = expand_gzip(bytes, text);
  if (text.exceeds()) {
    return Failure(
        Error::too_large("it is more than " + std::to_string(max) + " bytes when expanded"));
  }
  if (!done) return Failure(Error::bad_format("its compressed data is damaged or truncated"));
  return std::move(text).take();
}

}  // namespace perfmap
