#include "perfdata/expander.hpp"

#include <cstring>

namespace perfmap {

std::string_view Expander::available() const noexcept {
  if (chunks_.empty()) return {};
  return {chunks_.back().bytes.get() + at_, end_ - at_};
}

/// A record has at most 64 KiB, so that what is left of one always fits into the next chunk.
void Expander::make_room() {
  constexpr std::size_t kLeast = 1024;
  if (!chunks_.empty() && kChunk - end_ >= kLeast) return;
  const std::string_view rest = available();
  if (!chunks_.empty() && !chunks_.back().is_used) {
    std::memmove(chunks_.back().bytes.get(), rest.data(), rest.size());
    at_ = 0;
    end_ = rest.size();
    return;
  }
  Chunk next{std::make_unique_for_overwrite<char[]>(kChunk), round_, false};
  if (!rest.empty()) std::memcpy(next.bytes.get(), rest.data(), rest.size());
  chunks_.push_back(std::move(next));
  at_ = 0;
  end_ = rest.size();
}

bool Expander::expand() {
  make_room();
  const ZstdStream::Step step =
      stream_.step(input_, {chunks_.back().bytes.get() + end_, kChunk - end_});
  const bool is_stuck = !input_.empty() && step.taken == 0 && step.made == 0;
  end_ += step.made;
  if (step.is_damaged || is_stuck) {
    stream_.reset();
    dropped_ = input_.size();
    input_ = {};
    output_is_full_ = false;
    return false;
  }
  input_.remove_prefix(step.taken);
  output_is_full_ = end_ == kChunk;
  return true;
}

void Expander::release_before(std::uint64_t round) noexcept {
  while (chunks_.size() > 1 && chunks_.front().round < round) chunks_.pop_front();
}

}  // namespace perfmap
