#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

#include "perfmap/export.hpp"
#include "perfmap/result.hpp"

namespace perfmap {

/// What can be read only once, such as a pipe, in blocks of whole lines: for what is too long to be
/// kept. A line of more than kMostLine bytes loses its end; one of more than kEndlessLine is no
/// text, and a device such as /dev/zero has no other end. One thread at a time.
class PERFMAP_API LineBlocks {
 public:
  static constexpr std::size_t kMostLine = std::size_t{64} << 20;
  static constexpr std::size_t kEndlessLine = std::size_t{1} << 30;

  /// Fails as Input::open() does.
  static Result<LineBlocks> open(const std::string& path);
  /// Reads what the descriptor has from its present position on. Does not close it.
  static LineBlocks of_descriptor(int fd, std::string name);
  LineBlocks(LineBlocks&&) noexcept;
  LineBlocks& operator=(LineBlocks&&) noexcept;
  ~LineBlocks();

  /// The next block, which is empty at the end; only the last line of all may lack its newline.
  /// Valid until the next call. Fails with too_large at an endless line.
  Result<std::string_view> next();

  const std::string& name() const noexcept;

 private:
  struct State;
  explicit LineBlocks(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace perfmap
