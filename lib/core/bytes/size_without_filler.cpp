#include <algorithm>
#include <array>
#include <unistd.h>

#include "base/filler.hpp"
#include "bytes/mapped_tail.hpp"

namespace perfmap {
namespace {

constexpr std::size_t kBlock = 2048;

/// Where the last line of the first `size` bytes begins, of which there is one at least.
std::uint64_t last_line(int fd, std::uint64_t size) noexcept {
  std::array<char, kBlock> block;
  std::uint64_t end = size - 1;  // in front of its newline
  while (end != 0) {
    const std::uint64_t have = std::min<std::uint64_t>(end, block.size());
    if (::pread(fd, block.data(), have, static_cast<off_t>(end - have)) !=
        static_cast<ssize_t>(have)) {
      return size;
    }
    const std::string_view text(block.data(), have);
    if (const std::size_t newline = text.rfind('\n'); newline != text.npos) {
      return end - have + newline + 1;
    }
    end -= have;
  }
  return 0;
}

bool begins_as_filler(int fd, std::uint64_t begin, std::uint64_t end) noexcept {
  std::array<char, 2 * MappedTail::kLeast> head;
  const std::uint64_t have = std::min<std::uint64_t>(end - begin, head.size());
  return ::pread(fd, head.data(), have, static_cast<off_t>(begin)) == static_cast<ssize_t>(have) &&
         is_filler({head.data(), have});
}

}  // namespace

std::uint64_t size_without_filler(int fd, std::uint64_t size) noexcept {
  const std::uint64_t with_filler = size;
  std::array<char, kBlock> block;
  while (size != 0) {
    const std::uint64_t have = std::min<std::uint64_t>(size, block.size());
    if (::pread(fd, block.data(), have, static_cast<off_t>(size - have)) !=
        static_cast<ssize_t>(have)) {
      break;
    }
    std::string_view text(block.data(), have);
    // The block may begin inside a line, of which nothing can be said.
    const std::size_t newline = have == size ? text.npos : text.find('\n');
    const std::size_t skipped = have == size ? 0 : newline == text.npos ? have : newline + 1;
    text.remove_prefix(skipped);
    if (text.empty()) {  // a line that is longer than the block
      const std::uint64_t begin = last_line(fd, size);
      if (!begins_as_filler(fd, begin, size)) return size;
      size = begin;
      continue;
    }
    const std::size_t kept = without_filler(text, size != with_filler).size();
    if (kept != 0) return size - text.size() + kept;
    size -= text.size();
  }
  return size;
}

}  // namespace perfmap
