// SPDX-License-Identifier: MIT
#include "line_input.hpp"

#include <cerrno>
#include <poll.h>
#include <unistd.h>

namespace perfmap::app {

bool LineInput::next(std::string_view& line) {
  std::size_t searched = start_;
  std::size_t newline;
  while ((newline = buffer_.find('\n', searched)) == std::string::npos) {
    searched = buffer_.size();
    if (at_end_ || buffer_.size() - start_ > kMaxLine) break;
    buffer_.erase(0, start_);
    searched -= start_;
    start_ = 0;
    if (!fill()) at_end_ = true;
  }
  ended_in_newline_ = newline != std::string::npos;
  if (!ended_in_newline_ && start_ == buffer_.size()) return false;
  const std::size_t end = ended_in_newline_ ? newline : buffer_.size();
  line = std::string_view(buffer_).substr(start_, end - start_);
  start_ = end + (ended_in_newline_ ? 1 : 0);
  if (!is_cut_) ++line_number_;
  is_cut_ = !ended_in_newline_ && !at_end_;
  return true;
}

void LineInput::skip_rest() {
  std::string_view piece;
  for (std::size_t skipped = 0; is_cut_ && next(piece); skipped += piece.size()) {
    if (skipped <= kEndlessLine) continue;
    error_ = EFBIG;
    at_end_ = true;
    buffer_.clear();
    start_ = 0;
    return;
  }
}

bool LineInput::fill() {
  pollfd waiting{fd_, POLLIN, 0};
  if (::poll(&waiting, 1, 0) == 0 && !before_wait_()) return false;
  constexpr std::size_t kBlock = std::size_t{64} << 10;
  const std::size_t have = buffer_.size();
  buffer_.resize(have + kBlock);
  ssize_t got;
  do {
    got = ::read(fd_, buffer_.data() + have, kBlock);
  } while (got < 0 && errno == EINTR);
  if (got < 0) error_ = errno;
  buffer_.resize(have + (got > 0 ? static_cast<std::size_t>(got) : 0));
  return got > 0;
}

}  // namespace perfmap::app
