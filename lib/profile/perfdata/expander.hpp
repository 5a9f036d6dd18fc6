#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <string_view>

#include "compression/zstd_stream.hpp"

namespace perfmap {

/// The bytes that compressed records hold: one zstd stream over all of them, and therefore one
/// stream of records, which begin and end anywhere in it.
///
/// What it gives lies in chunks of a MiB, which stay until release() is told that nobody looks at
/// them any more. Besides, zstd holds its window, of 128 MiB at most.
class Expander {
 public:
  Expander() = default;

  /// The next compressed bytes, once those before have been used up. Borrowed until they are.
  void feed(std::string_view compressed) noexcept { input_ = compressed; }
  /// Whether expand() may make more of it available.
  bool has_more() const noexcept { return !input_.empty() || output_is_full_; }

  /// Makes more of the input available. False where it is damaged: what is left of it is dropped,
  /// and the stream begins anew. Allocates.
  bool expand();
  /// How much of the input the last expand() that failed did not use.
  std::uint64_t dropped() const noexcept { return dropped_; }

  /// What has been expanded and not been consumed; in one piece.
  std::string_view available() const noexcept;
  /// At most as much as is available; it stays until release_before().
  void consume(std::size_t size) noexcept {
    if (size == 0) return;
    at_ += size;
    chunks_.back().round = round_;
    chunks_.back().is_used = true;
  }
  /// The same of what nobody looks at any more.
  void skip(std::size_t size) noexcept { at_ += size; }

  /// Bytes in all chunks.
  std::uint64_t held() const noexcept { return chunks_.size() * kChunk; }
  /// From now on chunks are of this round.
  void begin_round(std::uint64_t round) noexcept { round_ = round; }
  /// Forgets what was expanded before that round, as far as it has been consumed.
  void release_before(std::uint64_t round) noexcept;

 private:
  static constexpr std::size_t kChunk = std::size_t{1} << 20;
  struct Chunk {
    std::unique_ptr<char[]> bytes;
    std::uint64_t round = 0;  // the last one that it has records of
    bool is_used = false;     // it has some
  };

  void make_room();

  ZstdStream stream_;
  std::string_view input_;
  std::deque<Chunk> chunks_;
  std::size_t at_ = 0;   // in the last chunk: consumed
  std::size_t end_ = 0;  // in the last chunk: expanded
  std::uint64_t round_ = 0;
  std::uint64_t dropped_ = 0;
  bool output_is_full_ = false;
};

}  // namespace perfmap
