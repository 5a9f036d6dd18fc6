// SPDX-License-Identifier: MIT
#include "elf/section_bytes.hpp"

#include <algorithm>
#include <climits>
#include <cstdint>
#include <elf.h>
#include <string>
#include <utility>
#include <zlib.h>

#include "elf/compression.hpp"

namespace perfmap {

namespace {

/// Debug information shrinks to a third, its strings to a tenth, runs of zeros to a thousandth.
constexpr std::uint64_t kMaxRatio = 64;
constexpr std::uint64_t kSmall = std::uint64_t{64} << 20;

/// Missing in <elf.h> of glibc 2.36.
constexpr std::uint32_t kZstd = 2;  // ELFCOMPRESS_ZSTD

Failure failure(Errc code, std::string text) { return Failure(Error::told(code, std::move(text))); }

bool next_piece(z_stream& stream, std::string_view from, std::uint64_t& taken) {
  if (stream.avail_in != 0) return true;
  const std::uint64_t piece = std::min<std::uint64_t>(from.size() - taken, UINT_MAX);
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(from.data() + taken));
  stream.avail_in = static_cast<uInt>(piece);
  taken += piece;
  return piece != 0;
}

std::uint64_t inflate(const CompressedSection& section, char* to) {
  z_stream stream{};
  if (::inflateInit(&stream) != Z_OK) throw std::bad_alloc();
  std::uint64_t taken = 0;
  std::uint64_t done = 0;
  while (done < section.size && next_piece(stream, section.packed, taken)) {
    const std::uint64_t room = std::min<std::uint64_t>(section.size - done, UINT_MAX);
    stream.next_out = reinterpret_cast<Bytef*>(to + done);
    stream.avail_out = static_cast<uInt>(room);
    const int state = ::inflate(&stream, Z_NO_FLUSH);
    done += room - stream.avail_out;
    if (state != Z_OK) break;
  }
  ::inflateEnd(&stream);
  return done;
}

std::uint64_t expand_zstd(const CompressedSection& section, char* to) {
  ZstdStream stream;
  std::string_view rest = section.packed;
  std::uint64_t done = 0;
  while (done < section.size) {
    const ZstdStream::Step step = stream.step(rest, {to + done, section.size - done});
    rest.remove_prefix(step.taken);
    done += step.made;
    if (step.is_damaged || (step.taken == 0 && step.made == 0)) break;
  }
  return done;
}

}  // namespace

Result<CompressedSection> read_compression(std::string_view section, bool is_gnu, bool is_64_bit,
                                           std::endian order) {
  DwarfCursor cursor(section, is_gnu ? std::endian::big : order);
  CompressedSection made;
  if (is_gnu) {
    if (cursor.bytes(4) != "ZLIB") return failure(Errc::bad_format, "damaged compressed section");
    made.size = cursor.u64();
  } else {
    const std::uint32_t method = cursor.u32();
    if (cursor.ok() && method != ELFCOMPRESS_ZLIB && method != kZstd) {
      return failure(Errc::unsupported,
                     "compressed by method " + std::to_string(method) + ", which is not known");
    }
    made.method = method == kZstd ? CompressedSection::Method::zstd : made.method;
    if (is_64_bit) cursor.u32();  // padding
    made.size = cursor.sized(is_64_bit ? 8 : 4);
    cursor.sized(is_64_bit ? 8 : 4);  // alignment
  }
  made.packed = section.substr(std::min<std::uint64_t>(cursor.position(), section.size()));
  if (!cursor.ok()) return failure(Errc::bad_format, "damaged compressed section");
  if (made.size > kSmall && made.size / kMaxRatio > made.packed.size()) {
    return failure(Errc::bad_format,
                   "damaged compressed section, or one that expands to more than " +
                       std::to_string(kMaxRatio) + " times its size");
  }
  return made;
}

std::uint64_t max_inflated(std::uint64_t file_size) noexcept {
  constexpr std::uint64_t kMaxRatioOfAll = 16;
  return file_size > UINT64_MAX / (2 * kMaxRatioOfAll) ? UINT64_MAX
                                                       : 4 * kSmall + file_size * kMaxRatioOfAll;
}

InflatedSection inflate_section(const CompressedSection& section) {
  auto owned = std::make_unique_for_overwrite<char[]>(section.size);
  const bool is_zstd = section.method == CompressedSection::Method::zstd;
  const std::uint64_t done =
      is_zstd ? expand_zstd(section, owned.get()) : inflate(section, owned.get());
  const std::string_view bytes(owned.get(), done);
  return {std::move(owned), bytes};
}

std::optional<std::string> unpack_symbols(std::string_view xz) {
  constexpr std::uint64_t kMaxBytes = std::uint64_t{128} << 20;
  Expansion out(kMaxBytes);
  if (!expand_first_xz(xz, out)) return std::nullopt;
  return std::move(out).take();
}

}  // namespace perfmap
