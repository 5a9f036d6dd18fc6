#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "stacks/numbered.hpp"

namespace perfmap {

/// Strings, each copied once, by numbers. Number 0 is that of the empty one.
class StringPool {
 public:
  StringPool() { add(""); }

  std::uint32_t add(std::string_view text) {
    return numbers_.find_or_make(text, [&] { return copy(text); });
  }
  std::string_view operator[](std::uint32_t number) const noexcept { return numbers_[number]; }
  /// The pool's own copy.
  std::string_view keep(std::string_view text) { return numbers_[add(text)]; }
  std::size_t size() const noexcept { return numbers_.size(); }

 private:
  struct HashOf {
    std::size_t operator()(std::string_view text) const noexcept {
      return Hash().add(text).value();
    }
  };

  std::string_view copy(std::string_view text);

  Numbered<std::string_view, HashOf> numbers_;
  std::vector<std::unique_ptr<char[]>> chunks_;
  char* free_ = nullptr;  // in the last ordinary chunk
  std::size_t left_ = 0;
};

}  // namespace perfmap
