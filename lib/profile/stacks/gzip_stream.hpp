#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "perfmap/output_file.hpp"
#include "perfmap/types.hpp"

namespace perfmap {

/// Compresses what is written (RFC 1952), without a time and a name, so that equal bytes stay
/// equal. Borrows the output.
class GzipStream {
 public:
  explicit GzipStream(OutputFile& out);
  ~GzipStream();

  void write(std::string_view bytes);
  /// Once, at the end.
  void finish();

 private:
  struct State;
  void deflate(std::string_view bytes, int flush);

  OutputFile& out_;
  std::unique_ptr<State> state_;
};

bool is_gzip(std::string_view bytes) noexcept;

/// What gzip's members hold, one behind the other (RFC 1952). Fails with bad_format, or too_large
/// where that is more than `most` bytes, which are never exceeded.
Result<std::string> gunzip(std::string_view bytes, std::uint64_t max);

}  // namespace perfmap
