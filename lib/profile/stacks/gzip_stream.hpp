// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "perfmap/output_file.hpp"
#include "perfmap/types.hpp"

namespace perfmap {

/// Compresses what is written (RFC 1952), without time and name, so that equal input gives equal
/// output. Borrows the output.
class GzipStream {
 public:
  explicit GzipStream(OutputFile& out);
  ~GzipStream();

  void write(std::string_view bytes);
  /// Call once, at the end.
  void finish();

 private:
  struct State;
  void deflate(std::string_view bytes, int flush);

  OutputFile& out_;
  std::unique_ptr<State> state_;
};

bool is_gzip(std::string_view bytes) noexcept;

/// The concatenated content of all gzip members (RFC 1952). Fails with bad_format, or with
/// too_large if that is more than `max` bytes; never produces more.
Result<std::string> gunzip(std::string_view bytes, std::uint64_t max);

}  // namespace perfmap
