#pragma once

#include <memory>
#include <string_view>

#include "perfmap/output_file.hpp"

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

}  // namespace perfmap
