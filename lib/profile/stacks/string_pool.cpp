#include "stacks/string_pool.hpp"

#include <cstring>

namespace perfmap {

std::string_view StringPool::copy(std::string_view text) {
  constexpr std::size_t kChunk = std::size_t{64} << 10;
  if (text.empty()) return "";
  char* place = nullptr;
  if (text.size() > kChunk / 8) {
    chunks_.push_back(std::make_unique_for_overwrite<char[]>(text.size()));
    place = chunks_.back().get();
  } else {
    if (text.size() > left_) {
      chunks_.push_back(std::make_unique_for_overwrite<char[]>(kChunk));
      free_ = chunks_.back().get();
      left_ = kChunk;
    }
    place = free_;
    free_ += text.size();
    left_ -= text.size();
  }
  std::memcpy(place, text.data(), text.size());
  return {place, text.size()};
}

}  // namespace perfmap
