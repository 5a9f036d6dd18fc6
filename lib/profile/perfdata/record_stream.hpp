#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string_view>

#include "elf/compression.hpp"
#include "perfdata/file_header.hpp"
#include "perfdata/record_header.hpp"
#include "perfmap/diagnostic.hpp"

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

/// A record where it was found.
struct FoundRecord {
  RecordHeader header;
  bool was_compressed = false;
  std::uint64_t offset = 0;  ///< in the file; of a compressed one, that of what holds it
  std::string_view bytes;
};

/// The records of a recording one after the other, as they were written: those of compressed ones
/// in their place, and without the bytes that stand behind some of them. O(1) a record.
class RecordStream {
 public:
  /// Borrows the file.
  RecordStream(std::string_view file, const RecordBytes& where, bool swapped, bool is_pipe) noexcept
      : file_(file), where_(where), at_(where.begin), swapped_(swapped), is_pipe_(is_pipe) {}

  std::optional<FoundRecord> next(Diagnostics& problems) {
    if (!expander_.has_more() && expander_.available().empty()) {
      FoundRecord found;
      if (take_plain(found)) [[likely]]
        return found;
    }
    return next_slowly(problems);
  }

  std::uint64_t position() const noexcept { return at_; }
  std::uint64_t lost_bytes() const noexcept { return lost_; }
  /// There was a compressed record.
  bool has_compressed() const noexcept { return holder_ != 0; }
  Expander& expander() noexcept { return expander_; }

 private:
  /// False where that is none, or one that needs a closer look.
  bool take_plain(FoundRecord& found) noexcept {
    if (where_.end - at_ < kRecordHeader) return false;
    const RecordHeader header = read_header(file_.data() + at_, swapped_);
    if (!header.is_sane() || header.size > where_.end - at_ || has_more_to(header)) return false;
    found = {header, false, at_, file_.substr(at_, header.size)};
    at_ += header.size;
    return true;
  }
  bool has_more_to(const RecordHeader& header) const noexcept {
    return header.is(RecordType::compressed) || header.is(RecordType::compressed2) ||
           header.is(RecordType::auxtrace) || (is_pipe_ && header.is(RecordType::tracing_data));
  }
  std::optional<FoundRecord> next_slowly(Diagnostics& problems);
  std::optional<FoundRecord> next_expanded(Diagnostics& problems);
  void skip_expanded_damage(Diagnostics& problems);
  void drop_expanded(Diagnostics& problems, const char* why);
  std::optional<FoundRecord> next_in_file(Diagnostics& problems);
  std::optional<FoundRecord> take_with_payload(const RecordHeader& header, Diagnostics& problems);
  void feed(const RecordHeader& header) noexcept;
  void finish(Diagnostics& problems);
  void lose(Diagnostics& problems, std::uint64_t offset, std::uint64_t count, const char* why);

  std::string_view file_;
  RecordBytes where_;
  std::uint64_t at_;
  std::uint64_t lost_ = 0;
  std::uint64_t holder_ = 0;  // offset of the last compressed record
  Expander expander_;
  bool swapped_;
  bool is_pipe_;
  bool is_broken_ = false;  // what is available does not go on in the next compressed record
  bool is_astray_ = false;  // what is available may not begin with a record
  bool is_finished_ = false;
};

}  // namespace perfmap
