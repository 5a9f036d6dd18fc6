#include "modules/section_bytes.hpp"

#include <algorithm>
#include <climits>
#include <elf.h>
#include <utility>
#include <zlib.h>

namespace perfmap {
namespace {

/// Debug information shrinks to a third, its strings to a tenth, runs of zeros to a thousandth.
constexpr std::uint64_t kMostRatio = 64;
constexpr std::uint64_t kSmall = std::uint64_t{64} << 20;

bool next_piece(z_stream& stream, std::string_view from, std::uint64_t& taken) {
  if (stream.avail_in != 0) return true;
  const std::uint64_t piece = std::min<std::uint64_t>(from.size() - taken, UINT_MAX);
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(from.data() + taken));
  stream.avail_in = static_cast<uInt>(piece);
  taken += piece;
  return piece != 0;
}

}  // namespace

std::optional<CompressedSection> read_compression(std::string_view section, bool is_gnu,
                                                  bool is_64_bit, std::endian order) {
  DwarfCursor cursor(section, is_gnu ? std::endian::big : order);
  CompressedSection made;
  if (is_gnu) {
    if (cursor.bytes(4) != "ZLIB") return std::nullopt;
    made.size = cursor.u64();
  } else {
    if (cursor.u32() != ELFCOMPRESS_ZLIB) return std::nullopt;
    if (is_64_bit) cursor.u32();  // padding
    made.size = cursor.sized(is_64_bit ? 8 : 4);
    cursor.sized(is_64_bit ? 8 : 4);  // alignment
  }
  made.deflated = section.substr(cursor.position());
  if (!cursor.ok() || (made.size > kSmall && made.size / kMostRatio > made.deflated.size()))
    return std::nullopt;
  return made;
}

std::uint64_t most_inflated(std::uint64_t file_size) noexcept {
  constexpr std::uint64_t kMostRatioOfAll = 16;
  return file_size > UINT64_MAX / (2 * kMostRatioOfAll) ? UINT64_MAX
                                                        : 4 * kSmall + file_size * kMostRatioOfAll;
}

InflatedSection inflate_section(const CompressedSection& section) {
  auto owned = std::make_unique_for_overwrite<char[]>(section.size);
  z_stream stream{};
  if (::inflateInit(&stream) != Z_OK) throw std::bad_alloc();
  std::uint64_t taken = 0;
  std::uint64_t done = 0;
  while (done < section.size && next_piece(stream, section.deflated, taken)) {
    const std::uint64_t room = std::min<std::uint64_t>(section.size - done, UINT_MAX);
    stream.next_out = reinterpret_cast<Bytef*>(owned.get() + done);
    stream.avail_out = static_cast<uInt>(room);
    const int state = ::inflate(&stream, Z_NO_FLUSH);
    done += room - stream.avail_out;
    if (state != Z_OK) break;
  }
  ::inflateEnd(&stream);
  const std::string_view bytes(owned.get(), done);
  return {std::move(owned), bytes};
}

}  // namespace perfmap
