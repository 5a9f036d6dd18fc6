// SPDX-License-Identifier: MIT
#include "elf/compression.hpp"

#include <algorithm>
#include <limits>
#include <lzma.h>
#include <new>
#include <zlib.h>
#include <zstd.h>

#include "perfmap/input.hpp"
#include "perfmap/profile/module.hpp"

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

void GunzipStream::Free::operator()(z_stream_s* stream) const noexcept {
  inflateEnd(stream);
  delete stream;
}

namespace {

constexpr int kGzip = 16;  // added to the window bits, makes zlib expect gzip's header

}  // namespace

ExpansionStep GunzipStream::step(std::string_view from, std::span<char> to) {
  if (stream_ == nullptr) {
    auto made = std::make_unique<z_stream_s>();
    if (inflateInit2(made.get(), MAX_WBITS + kGzip) != Z_OK) throw std::bad_alloc();
    stream_.reset(made.release());
  }
  if (is_at_end_ && !from.empty()) {
    inflateReset(stream_.get());
    is_at_end_ = false;
  }
  if (is_at_end_) return {};
  constexpr std::size_t kMax = std::numeric_limits<uInt>::max();
  const std::size_t given = std::min(from.size(), kMax);
  const std::size_t room = std::min(to.size(), kMax);
  // zlib only reads through this pointer.
  stream_->next_in = reinterpret_cast<Bytef*>(const_cast<char*>(from.data()));
  stream_->avail_in = static_cast<uInt>(given);
  stream_->next_out = reinterpret_cast<Bytef*>(to.data());
  stream_->avail_out = static_cast<uInt>(room);
  const int status = inflate(stream_.get(), Z_NO_FLUSH);
  is_at_end_ = status == Z_STREAM_END;
  // Z_BUF_ERROR: no input, or no space.
  const bool is_damaged = status != Z_OK && status != Z_BUF_ERROR && !is_at_end_;
  return {given - stream_->avail_in, room - stream_->avail_out, is_damaged, is_at_end_};
}

bool expand_gzip(std::string_view bytes, Expansion& out) {
  if (bytes.empty()) return true;
  GunzipStream stream;
  for (;;) {
    const ExpansionStep step = stream.step(bytes, out.room());
    bytes.remove_prefix(step.taken);
    if (step.is_damaged || !out.wrote(step.made)) return false;
    // Tapes and disks pad the last block with zeros.
    if (step.ends_frame && bytes.find_first_not_of('\0') == bytes.npos) return true;
    if (step.made == 0 && step.taken == 0) return false;  // truncated input
  }
}

namespace {

/// xz -9 needs 65 MiB; a header may ask for 4 GiB.
constexpr std::uint64_t kMaxMemory = std::uint64_t{256} << 20;

struct Stream : lzma_stream {
  Stream() : lzma_stream(LZMA_STREAM_INIT) {}
  ~Stream() { lzma_end(this); }
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;
};

bool expand(std::string_view bytes, Expansion& out, std::uint32_t flags) {
  Stream stream;
  if (lzma_stream_decoder(&stream, kMaxMemory, flags) != LZMA_OK) throw std::bad_alloc();
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

/// Windows of more than 128 MiB, which `zstd --ultra --long` makes, are refused, as by zstd itself.
bool expand_zstd(std::string_view bytes, Expansion& out) {
  ZstdStream stream;
  for (;;) {
    const ZstdStream::Step step = stream.step(bytes, out.room());
    bytes.remove_prefix(step.taken);
    if (step.is_damaged || !out.wrote(step.made)) return false;
    if (step.ends_frame && bytes.empty()) return true;
    if (step.made == 0 && step.taken == 0) return false;  // truncated input
  }
}

namespace {

using Expand = bool (*)(std::string_view bytes, Expansion& out);

Expand expander_of(SourceKind kind) noexcept {
  switch (kind) {
    case SourceKind::gzip: return expand_gzip;
    case SourceKind::xz: return expand_xz;
    case SourceKind::zstd: return expand_zstd;
    default: return nullptr;
  }
}

}  // namespace

bool is_expandable(std::string_view bytes) noexcept {
  return expander_of(detect_kind(bytes)) != nullptr;
}

Result<Input> expanded(Input input, std::uint64_t max) {
  const SourceKind kind = detect_kind(input.text());
  const Expand expand = expander_of(kind);
  if (expand == nullptr) return input;
  Expansion out(max);
  const bool done = expand(input.text(), out);
  const auto failure = [&](Errc code, const std::string& why) {
    return Failure(Error::told(code, "cannot expand " + input.name() + ": " + why));
  };
  if (input.was_truncated()) return failure(Errc::io, "it was truncated while it was read");
  if (out.exceeds()) {
    return failure(Errc::too_large,
                   "more than " + std::to_string(max >> 20) + " MiB: unpack it first");
  }
  if (!done) {
    return failure(Errc::bad_format,
                   "its " + std::string(to_string(kind)) + " is damaged or truncated");
  }
  return Input::from_text(std::move(out).take(), input.name());
}

}  // namespace perfmap
