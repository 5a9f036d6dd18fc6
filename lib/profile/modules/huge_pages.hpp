#pragma once

#include <cstddef>
#include <new>
#include <sys/mman.h>

namespace perfmap {

/// For what is looked into at random: large blocks ask for large pages, of which a processor finds
/// more without a walk through its page tables.
template <class T>
struct HugePages {
  using value_type = T;
  static constexpr std::size_t kPage = std::size_t{2} << 20;

  HugePages() = default;
  template <class U>
  HugePages(const HugePages<U>&) noexcept {}

  T* allocate(std::size_t count) {
    const std::size_t bytes = count * sizeof(T);
    if (bytes < kPage) return static_cast<T*>(::operator new(bytes));
    void* const block = ::operator new(bytes, std::align_val_t{kPage});
    ::madvise(block, bytes, MADV_HUGEPAGE);  // whether it is heard is the kernel's affair
    return static_cast<T*>(block);
  }
  void deallocate(T* block, std::size_t count) noexcept {
    if (count * sizeof(T) < kPage) return ::operator delete(block);
    ::operator delete(block, std::align_val_t{kPage});
  }
  friend bool operator==(HugePages, HugePages) noexcept { return true; }
};

}  // namespace perfmap
