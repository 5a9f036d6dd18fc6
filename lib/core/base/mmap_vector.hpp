// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <new>
#include <sys/mman.h>
#include <type_traits>
#include <utility>

namespace perfmap {

/// A growing array for millions of plain values. New elements are not written, growth moves pages
/// instead of bytes, and large arrays request huge pages, because first touches are the largest
/// cost of loading a map. Throws std::bad_alloc.
template <class T>
class MmapVector {
  static_assert(std::is_trivially_copyable_v<T>);

 public:
  MmapVector() = default;
  explicit MmapVector(std::size_t size) { resize(size); }
  MmapVector(MmapVector&& other) noexcept { swap(other); }
  MmapVector& operator=(MmapVector&& other) noexcept {
    MmapVector taken(std::move(other));
    swap(taken);
    return *this;
  }
  ~MmapVector() {
    if (data_ != nullptr) ::munmap(data_, capacity_ * sizeof(T));
  }

  T* data() noexcept { return data_; }
  const T* data() const noexcept { return data_; }
  std::size_t size() const noexcept { return size_; }
  bool empty() const noexcept { return size_ == 0; }
  T& operator[](std::size_t i) noexcept { return data_[i]; }
  const T& operator[](std::size_t i) const noexcept { return data_[i]; }
  T& back() noexcept { return data_[size_ - 1]; }
  const T& back() const noexcept { return data_[size_ - 1]; }

  void push_back(T value) {
    if (size_ == capacity_) grow(size_ + 1);
    data_[size_++] = value;
  }
  /// Reserves space for `more` elements, which may then be appended unchecked.
  void make_room(std::size_t more) {
    if (capacity_ - size_ < more) grow(size_ + more);
  }
  void append_unchecked(T value) noexcept { data_[size_++] = value; }
  /// New elements are zero on first growth, and unspecified after a resize() to fewer.
  void resize(std::size_t size) {
    if (size > capacity_) grow(size);
    size_ = size;
  }
  /// Releases unused memory. Keeps the elements.
  void shrink() noexcept {
    const std::size_t pages = round_up(size_ * sizeof(T));
    if (data_ == nullptr || pages >= bytes() || pages == 0) return;
    ::munmap(reinterpret_cast<char*>(data_) + pages, bytes() - pages);
    capacity_ = pages / sizeof(T);
  }
  void swap(MmapVector& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
    std::swap(capacity_, other.capacity_);
  }

 private:
  // A multiple of the page size and of every sizeof(T) used, so that capacity_ gives the exact
  // size.
  static constexpr std::size_t kPage = 4096;
  static constexpr std::size_t kHuge = std::size_t{2} << 20;
  static_assert(kPage % sizeof(T) == 0);

  static std::size_t round_up(std::size_t count) noexcept {
    const std::size_t unit = count < kHuge ? kPage : kHuge;
    return (count + unit - 1) / unit * unit;
  }
  std::size_t bytes() const noexcept { return capacity_ * sizeof(T); }

  void grow(std::size_t at_least) {
    if (at_least > (std::size_t{1} << 46) / sizeof(T)) throw std::bad_alloc();
    const std::size_t wanted = at_least < 2 * capacity_ ? 2 * capacity_ : at_least;
    const std::size_t pages = round_up(wanted * sizeof(T));
    void* const fresh =
        data_ == nullptr ? map(pages) : ::mremap(data_, bytes(), pages, MREMAP_MAYMOVE);
    if (fresh == MAP_FAILED) throw std::bad_alloc();
    if (pages >= kHuge) ::madvise(fresh, pages, MADV_HUGEPAGE);
    data_ = static_cast<T*>(fresh);
    capacity_ = pages / sizeof(T);
  }

  /// Zeroed memory. From the size of a huge page on it is aligned to one, which kernels before 6.7
  /// do not do themselves.
  static void* map(std::size_t pages) noexcept {
    const auto take = [](std::size_t size) {
      return ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    };
    if (pages < kHuge) return take(pages);
    void* const taken = take(pages + kHuge);
    if (taken == MAP_FAILED) return taken;
    char* const begin = static_cast<char*>(taken);
    const std::size_t before = -reinterpret_cast<std::uintptr_t>(begin) % kHuge;
    if (before != 0) ::munmap(begin, before);
    ::munmap(begin + before + pages, kHuge - before);
    return begin + before;
  }

  T* data_ = nullptr;
  std::size_t size_ = 0;
  std::size_t capacity_ = 0;
};

}  // namespace perfmap
