#include "stacks/gunzip.hpp"

#include <algorithm>
#include <limits>
#include <new>
#include <zlib.h>

namespace perfmap {
namespace {

class Inflater {
 public:
  Inflater() {
    constexpr int kGzip = 16;  // zlib's way to ask for gzip's header instead of its own
    if (inflateInit2(&stream_, MAX_WBITS + kGzip) != Z_OK) throw std::bad_alloc();
  }
  Inflater(const Inflater&) = delete;
  Inflater& operator=(const Inflater&) = delete;
  ~Inflater() { inflateEnd(&stream_); }

  /// One member: takes its bytes away from the front. False where they are none.
  bool read_member(std::string_view& bytes, std::string& text, std::uint64_t most) {
    inflateReset(&stream_);
    int status = Z_OK;
    while (status == Z_OK && text.size() <= most) status = read_some(bytes, text);
    return status == Z_STREAM_END || text.size() > most;
  }

 private:
  int read_some(std::string_view& bytes, std::string& text) {
    constexpr std::size_t kRoom = std::size_t{256} * 1024;
    const std::size_t given = std::min<std::size_t>(bytes.size(), std::numeric_limits<uInt>::max());
    // zlib reads through this pointer, and no more.
    stream_.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
    stream_.avail_in = static_cast<uInt>(given);
    const std::size_t had = text.size();
    text.resize(had + kRoom);
    stream_.next_out = reinterpret_cast<Bytef*>(text.data() + had);
    stream_.avail_out = kRoom;
    const int status = inflate(&stream_, Z_NO_FLUSH);
    text.resize(had + kRoom - stream_.avail_out);
    bytes.remove_prefix(given - stream_.avail_in);
    return status;
  }

  z_stream stream_ = {};
};

}  // namespace

bool is_gzip(std::string_view bytes) noexcept { return bytes.starts_with("\x1f\x8b"); }

Result<std::string> gunzip(std::string_view bytes, std::uint64_t most) {
  Inflater inflater;
  std::string text;
  while (!bytes.empty()) {
    if (!inflater.read_member(bytes, text, most)) {
      return Failure(Error{Errc::bad_format, "its compressed data is damaged or cut off", 0, {}});
    }
    if (text.size() > most) {
      return Failure(Error{Errc::too_large,
                           "it is more than " + std::to_string(most) + " bytes when expanded",
                           0,
                           {}});
    }
  }
  return text;
}

}  // namespace perfmap
