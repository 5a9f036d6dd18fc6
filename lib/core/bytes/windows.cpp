#include "bytes/windows.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace perfmap {
namespace {

constexpr std::size_t kWindow = std::size_t{256} << 10;

}  // namespace

Windows::Windows(const Input& input, std::string_view text, std::uint64_t offset)
    : text_(text), offset_(offset), fd_(input.take_descriptor()) {
  if (fd_.is_open()) buffer_ = std::make_unique_for_overwrite<char[]>(kWindow);
}

/// What is left of the text, from the mapping.
Window Windows::rest() noexcept {
  fd_ = {};
  const Window window{text_.substr(offset_), offset_};
  offset_ = text_.size();
  return window;
}

/// Fills the buffer up; how much is in it.
std::size_t Windows::fill() {
  std::memmove(buffer_.get(), buffer_.get() + used_, have_ - used_);
  have_ -= used_;
  used_ = 0;
  const std::uint64_t most = std::min<std::uint64_t>(kWindow, text_.size() - offset_);
  while (have_ < most) {
    const ssize_t got = ::pread(fd_.get(), buffer_.get() + have_, most - have_,
                                static_cast<off_t>(offset_ + have_));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) break;
    have_ += static_cast<std::size_t>(got);
  }
  return have_;
}

Window Windows::next() {
  if (!fd_.is_open()) return rest();
  const bool last = fill() == text_.size() - offset_;
  const void* const newline = ::memrchr(buffer_.get(), '\n', have_);
  const std::size_t whole =
      newline == nullptr
          ? 0
          : static_cast<std::size_t>(static_cast<const char*>(newline) - buffer_.get()) + 1;
  used_ = last ? have_ : whole;
  // A line that is longer than the buffer, or a file that became shorter: the mapping has it, or
  // notices.
  if (used_ == 0) return rest();
  const Window window{{buffer_.get(), used_}, offset_};
  offset_ += used_;
  return window;
}

}  // namespace perfmap
