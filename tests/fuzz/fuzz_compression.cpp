// SPDX-License-Identifier: MIT
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <lzma.h>
#include <optional>
#include <string>
#include <zlib.h>
#include <zstd.h>

#include "elf/compression.hpp"
#include "perfmap/input.hpp"
#include "perfmap/profile/module.hpp"

namespace {

using namespace perfmap;

/// More than one block of expanded text.
constexpr std::size_t kMaxBytes = std::size_t{320} << 10;

void require(bool holds) {
  if (!holds) std::abort();
}

/// The result of a library's function for whole buffers; nothing if it refuses the bytes, or if the
/// text exceeds the bound.
using Reference = std::optional<std::string>;

Reference reference_gzip(std::string_view bytes) {
  std::string text(kMaxBytes, '\0');
  std::size_t used = 0;
  while (bytes.find_first_not_of('\0') != bytes.npos) {
    z_stream stream{};
    require(inflateInit2(&stream, MAX_WBITS + 16) == Z_OK);
    stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
    stream.avail_in = static_cast<uInt>(bytes.size());
    stream.next_out = reinterpret_cast<Bytef*>(text.data() + used);
    stream.avail_out = static_cast<uInt>(text.size() - used);
    const int status = inflate(&stream, Z_FINISH);
    bytes.remove_prefix(stream.total_in);
    used += stream.total_out;
    inflateEnd(&stream);
    if (status != Z_STREAM_END) return std::nullopt;
  }
  text.resize(used);
  return text;
}

Reference reference_xz(std::string_view bytes) {
  std::string text(kMaxBytes, '\0');
  std::uint64_t memory = std::uint64_t{256} << 20;
  std::size_t taken = 0;
  std::size_t made = 0;
  const lzma_ret status = lzma_stream_buffer_decode(
      &memory, LZMA_CONCATENATED, nullptr, reinterpret_cast<const std::uint8_t*>(bytes.data()),
      &taken, bytes.size(), reinterpret_cast<std::uint8_t*>(text.data()), &made, text.size());
  if (status != LZMA_OK) return std::nullopt;
  text.resize(made);
  return text;
}

Reference reference_zstd(std::string_view bytes) {
  std::string text(kMaxBytes, '\0');
  const std::size_t made = ZSTD_decompress(text.data(), text.size(), bytes.data(), bytes.size());
  if (ZSTD_isError(made) != 0) return std::nullopt;
  text.resize(made);
  return text;
}

Reference reference(std::string_view bytes) {
  switch (detect_kind(bytes)) {
    case SourceKind::gzip: return reference_gzip(bytes);
    case SourceKind::xz: return reference_xz(bytes);
    case SourceKind::zstd: return reference_zstd(bytes);
    default: return std::nullopt;
  }
}

/// Whether a frame needs a larger window than a stream is allowed. ZSTD_decompress() needs none.
bool has_large_window(std::string_view bytes) {
  constexpr std::uint64_t kMaxWindow = std::uint64_t{128} << 20;
  while (!bytes.empty()) {
    const std::size_t size = ZSTD_findFrameCompressedSize(bytes.data(), bytes.size());
    if (ZSTD_isError(size) != 0) return false;
    // The frame's header (RFC 8878, 3.1.1.1): if it is not a single segment, one byte gives the
    // window.
    const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(bytes[i]); };
    const bool is_frame = bytes.starts_with("\x28\xb5\x2f\xfd");
    if (is_frame && (byte(4) & 0x20) == 0) {
      const std::uint64_t base = std::uint64_t{1} << (10 + (byte(5) >> 3));
      if (base + base / 8 * (byte(5) & 7) > kMaxWindow) return true;
    }
    bytes.remove_prefix(size);
  }
  return false;
}

Result<Input> expand(const std::string& bytes, std::uint64_t max) {
  return expanded(Input::from_text(bytes, "fuzz"), max);
}

/// Expanding in parts gives the same text. In recordings each record holds a part.
void check_pieces(std::string_view bytes, std::string_view text) {
  ZstdStream stream;
  std::string room(text.size() / 3 + 100, '\0');
  const std::size_t piece = bytes.size() / 5 + 1;
  std::size_t done = 0;
  while (!bytes.empty() || done < text.size()) {
    const auto step = stream.step(bytes.substr(0, piece), room);
    require(!step.is_damaged && (step.taken != 0 || step.made != 0));
    require(text.substr(done, step.made) == std::string_view(room).substr(0, step.made));
    bytes.remove_prefix(step.taken);
    done += step.made;
  }
  require(done == text.size());
}

void check_bounds(const std::string& bytes, std::string_view text) {
  require(text.size() <= kMaxBytes);
  const auto again = expand(bytes, text.size());
  require(again && again->text() == text);
  if (text.empty()) return;
  const auto less = expand(bytes, text.size() - 1);
  require(!less && less.error().code == Errc::too_large);
}

}  // namespace

/// Any bytes expand to the same text as with the library's function for whole buffers, under every
/// sufficient bound, and fail under a smaller one.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string bytes(reinterpret_cast<const char*>(data), size);
  const auto text = expand(bytes, kMaxBytes);
  if (!is_expandable(bytes)) {
    require(text && text->text() == bytes);
    return 0;
  }
  const Reference expected = reference(bytes);
  if (!text) {
    const bool is_bound = text.error().code == Errc::too_large;
    require(is_bound || text.error().code == Errc::bad_format);
    require(!expected || (detect_kind(bytes) == SourceKind::zstd && has_large_window(bytes)));
    return 0;
  }
  require(expected && *expected == text->text());
  check_bounds(bytes, text->text());
  if (detect_kind(bytes) == SourceKind::zstd) check_pieces(bytes, text->text());
  return 0;
}
