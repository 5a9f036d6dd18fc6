// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>

#include "base/descriptor.hpp"
#include "perfmap/input.hpp"

namespace perfmap {

/// Whole lines of an input, and their offset in it.
struct Window {
  std::string_view text;  ///< empty at the end
  std::uint64_t offset = 0;
};

/// Iterates over the lines of an input in chunks of some hundred KiB. The first pass over a file
/// reads through its descriptor: reading into a buffer that stays in the cache takes two thirds of
/// the time of touching each page of the mapping for the first time. All later passes use the
/// mapping.
class ChunkReader {
 public:
  /// The descriptor of an input that was not read before; a closed one if it was. Readers of parts
  /// of the input share it.
  using File = std::shared_ptr<const Descriptor>;
  static File file_of(const Input& input);

  /// `text` is the input's text or a prefix of it; `offset` is the start of a line.
  ChunkReader(const Input& input, std::string_view text, std::uint64_t offset)
      : ChunkReader(file_of(input), text, offset) {}
  ChunkReader(File file, std::string_view text, std::uint64_t offset);

  /// The next lines; the text is valid until the next call. Only the last line of the input may
  /// have no newline.
  Window next();

 private:
  std::size_t fill();
  Window rest() noexcept;

  std::string_view text_;
  std::uint64_t offset_;
  File file_;
  std::unique_ptr<char[]> buffer_;
  std::size_t have_ = 0;  // bytes in the buffer
  std::size_t used_ = 0;  // of those, bytes returned
};

}  // namespace perfmap
