#pragma once

#include <array>
#include <cstddef>
#include <cstring>
#include <memory>
#include <string_view>

namespace perfmap {

/// Bytes that are put together for one write, in room that is kept for the next. Like a string but
/// for one thing: nothing is called for what has room.
class RecordBytes {
 public:
  const char* data() const noexcept { return room_.get(); }
  std::size_t size() const noexcept { return size_; }
  void clear() noexcept {
    size_ = 0;
    if (capacity_ > kMostKept) forget();
  }

  void add(std::string_view bytes) {
    if (bytes.size() > capacity_ - size_) [[unlikely]]
      grow(bytes.size());
    if (!bytes.empty()) std::memcpy(room_.get() + size_, bytes.data(), bytes.size());
    size_ += bytes.size();
  }
  template <std::size_t kSize>
  void add(const std::array<char, kSize>& bytes) {
    add({bytes.data(), bytes.size()});
  }
  void add_name(std::string_view name) {
    add(name);
    add(std::array<char, 1>{'\0'});
  }
  /// Replaces what was added at `offset`.
  template <std::size_t kSize>
  void put(std::size_t offset, const std::array<char, kSize>& bytes) noexcept {
    std::memcpy(room_.get() + offset, bytes.data(), bytes.size());
  }

 private:
  static constexpr std::size_t kFirst = 4096;
  static constexpr std::size_t kMostKept = std::size_t{1} << 20;

  void grow(std::size_t more) {
    std::size_t capacity = capacity_ < kFirst ? kFirst : 2 * capacity_;
    if (capacity < size_ + more) capacity = size_ + more;
    std::unique_ptr<char[]> room(new char[capacity]);
    if (size_ != 0) std::memcpy(room.get(), room_.get(), size_);
    room_ = std::move(room);
    capacity_ = capacity;
  }
  void forget() noexcept {
    capacity_ = 0;  // first: a child may be made in between
    room_.reset();
  }

  std::unique_ptr<char[]> room_;
  std::size_t capacity_ = 0;
  std::size_t size_ = 0;
};

}  // namespace perfmap
