#pragma once

#include <cstdint>
#include <memory>
#include <string_view>

#include "base/descriptor.hpp"
#include "perfmap/input.hpp"

namespace perfmap {

/// Whole lines of an input, and where they stand in it.
struct Window {
  std::string_view text;  ///< empty: there are no more
  std::uint64_t offset = 0;
};

/// Goes over the lines of an input from front to back, some hundred KiB at a time. The first that
/// goes over a file reads it through its descriptor: reading into a buffer that stays in the cache
/// takes two thirds of the time of touching every page of the mapping for the first time. All
/// others look at the mapping.
class ChunkReader {
 public:
  /// `text` is the input's, or less of it from the front; `offset` the start of a line.
  ChunkReader(const Input& input, std::string_view text, std::uint64_t offset);

  /// The next lines; the text is valid until the next call. Only the last line of all may have no
  /// newline.
  Window next();

 private:
  std::size_t fill();
  Window rest() noexcept;

  std::string_view text_;
  std::uint64_t offset_;
  Descriptor fd_;
  std::unique_ptr<char[]> buffer_;
  std::size_t have_ = 0;  // bytes in the buffer
  std::size_t used_ = 0;  // of them handed out
};

}  // namespace perfmap
