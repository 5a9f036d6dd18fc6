#include "perfdata/expander.hpp"

#include <cstring>
#include <new>
#include <zstd.h>

namespace perfmap {

void Expander::Free::operator()(ZSTD_DCtx_s* context) const noexcept { ZSTD_freeDCtx(context); }

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
  if (context_ == nullptr) context_.reset(ZSTD_createDCtx());
  if (context_ == nullptr) throw std::bad_alloc();
  make_room();
  ZSTD_inBuffer from{input_.data(), input_.size(), 0};
  ZSTD_outBuffer to{chunks_.back().bytes.get(), kChunk, end_};
  const std::size_t result = ZSTD_decompressStream(context_.get(), &to, &from);
  const bool is_stuck = !input_.empty() && from.pos == 0 && to.pos == end_;
  end_ = to.pos;
  if (ZSTD_isError(result) != 0 || is_stuck) {
    ZSTD_DCtx_reset(context_.get(), ZSTD_reset_session_only);
    dropped_ = input_.size();
    input_ = {};
    output_is_full_ = false;
    return false;
  }
  input_.remove_prefix(from.pos);
  output_is_full_ = to.pos == to.size;
  return true;
}

void Expander::release_before(std::uint64_t round) noexcept {
  while (chunks_.size() > 1 && chunks_.front().round < round) chunks_.pop_front();
}

}  // namespace perfmap
