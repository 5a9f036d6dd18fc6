#pragma once

#include <atomic>
#include <cstddef>
#include <string_view>

namespace perfmap {

/// Lines that wait to be written. For one thread at a time; but a copy of it that a child got while
/// another thread was in add() or clear() holds what was there before, or after: bytes are there
/// before they count, and memory goes only when nothing points to it. Uses no malloc(), whose lock
/// a child of a bare clone(2) may find taken.
class LineBuffer {
 public:
  LineBuffer() = default;
  LineBuffer(const LineBuffer&) = delete;
  LineBuffer& operator=(const LineBuffer&) = delete;
  ~LineBuffer();

  std::size_t size() const noexcept { return size_.load(std::memory_order_relaxed); }
  bool empty() const noexcept { return size() == 0; }
  std::string_view text() const noexcept { return {data_.load(), size()}; }
  /// False: no memory, and nothing was added. `most` is how much it is ever going to hold.
  bool add(std::string_view line, std::size_t most) noexcept;
  /// Not for a child to see: of what is no file, which no child inherits, only a part is dropped.
  void drop_first(std::size_t count) noexcept;
  void drop_last(std::size_t count) noexcept { set_size(size() - count); }
  void clear() noexcept { set_size(0); }

 private:
  bool grow(std::size_t wanted, std::size_t most) noexcept;
  void set_size(std::size_t size) noexcept { size_.store(size, std::memory_order_release); }

  std::atomic<char*> data_{nullptr};
  std::atomic<std::size_t> capacity_{0};
  std::atomic<std::size_t> size_{0};
};

}  // namespace perfmap
