#include <algorithm>
#include <limits>
#include <new>
#include <zlib.h>

#include "compression/expansion.hpp"

namespace perfmap {
namespace {

class Inflater {
 public:
  explicit Inflater(std::string_view bytes) : bytes_(bytes) {
    constexpr int kGzip = 16;  // zlib's way to ask for gzip's header instead of its own
    if (inflateInit2(&stream_, MAX_WBITS + kGzip) != Z_OK) throw std::bad_alloc();
  }
  Inflater(const Inflater&) = delete;
  Inflater& operator=(const Inflater&) = delete;
  ~Inflater() { inflateEnd(&stream_); }

  bool done() const noexcept { return bytes_.empty(); }
  bool read_member(Expansion& out) {
    inflateReset(&stream_);
    int status = Z_OK;
    while (status == Z_OK) {
      const std::span<char> room = out.room();
      constexpr std::size_t kMost = std::numeric_limits<uInt>::max();
      const std::size_t given = std::min(bytes_.size(), kMost);
      const std::size_t there = std::min(room.size(), kMost);
      // zlib reads through this pointer, and no more.
      stream_.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes_.data()));
      stream_.avail_in = static_cast<uInt>(given);
      stream_.next_out = reinterpret_cast<Bytef*>(room.data());
      stream_.avail_out = static_cast<uInt>(there);
      status = inflate(&stream_, Z_NO_FLUSH);
      bytes_.remove_prefix(given - stream_.avail_in);
      if (!out.wrote(there - stream_.avail_out)) return false;
    }
    return status == Z_STREAM_END;
  }
  /// Tapes and disks fill the last block up with zeros.
  void skip_zeros() {
    if (bytes_.find_first_not_of('\0') == std::string_view::npos) bytes_ = {};
  }

 private:
  std::string_view bytes_;
  z_stream stream_ = {};
};

}  // namespace

bool expand_gzip(std::string_view bytes, Expansion& out) {
  Inflater inflater(bytes);
  while (!inflater.done()) {
    if (!inflater.read_member(out)) return false;
    inflater.skip_zeros();
  }
  return true;
}

}  // namespace perfmap
