// SPDX-License-Identifier: MIT
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <zstd.h>

#include "support/recording_bytes.hpp"

namespace perfmap::test {

/// Compressed records as perf writes them: one zstd stream that is flushed after each record and
/// never ended.
class CompressedRecords {
 public:
  explicit CompressedRecords(const RecordingBytes& bytes)
      : bytes_(bytes), stream_(ZSTD_createCStream(), ZSTD_freeCStream) {}

  /// A COMPRESSED record of any size.
  std::string unaligned(std::string_view plain) { return bytes_.record(81, compress(plain)); }
  /// A COMPRESSED2 record: padded, with the size of its data.
  std::string aligned(std::string_view plain) {
    const std::string packed = compress(plain);
    const std::size_t padding = (8 - packed.size() % 8) % 8;
    return bytes_.record(83, bytes_.bytes().u64(packed.size()).raw(packed).zeros(padding).text());
  }

 private:
  std::string compress(std::string_view plain) {
    std::string packed(ZSTD_compressBound(plain.size()) + 64, '\0');
    ZSTD_inBuffer from{plain.data(), plain.size(), 0};
    ZSTD_outBuffer to{packed.data(), packed.size(), 0};
    ZSTD_compressStream2(stream_.get(), &to, &from, ZSTD_e_flush);
    packed.resize(to.pos);
    return packed;
  }

  RecordingBytes bytes_;
  std::unique_ptr<ZSTD_CStream, std::size_t (*)(ZSTD_CStream*)> stream_;
};

}  // namespace perfmap::test
