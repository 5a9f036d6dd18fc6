#include "runtime/trampoline_pool.hpp"

#include <cerrno>
#include <cstring>
#include <mutex>
#include <new>
#include <sys/mman.h>

// libgcc's, which every C++ program has, and no header. The plain __register_frame() does not look
// whether malloc() had any.
extern "C" void register_frame(const void* frames, void* object) asm("__register_frame_info");
extern "C" void* deregister_frame(const void* frames) asm("__deregister_frame_info");

namespace perfmap {
namespace {

/// Readable and executable memory full of trampolines; nullptr and errno where there is none.
char* map_arena(const TrampolineImage& image) noexcept {
  constexpr std::size_t kSize = TrampolinePool::kArenaSize;
  void* const memory =
      ::mmap(nullptr, kSize, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return nullptr;
  char* const arena = static_cast<char*>(memory);
  for (std::size_t at = 0; at < kSize; at += image.bytes.size()) {
    std::memcpy(arena + at, image.bytes.data(), image.bytes.size());
  }
  __builtin___clear_cache(arena, arena + kSize);
  if (::mprotect(arena, kSize, PROT_READ | PROT_EXEC) == 0) return arena;
  const int error = errno;
  ::munmap(arena, kSize);
  errno = error;
  return nullptr;
}

}  // namespace

TrampolinePool::~TrampolinePool() {
  for (Arena& arena : arenas_) {
    if (!arena.frame.empty()) deregister_frame(arena.frame.data());
    ::munmap(arena.begin, kArenaSize);
  }
}

int TrampolinePool::add_arena() {
  Arena& arena = arenas_.emplace_back();
  arena.begin = map_arena(*image_);
  if (arena.begin == nullptr) {
    const int error = errno;
    arenas_.pop_back();
    return error;
  }
  mapped_.fetch_add(kArenaSize, std::memory_order_relaxed);
  if (exceptions_ != nullptr) {
    arena.frame = exception_frame(*exceptions_, arena.begin, kArenaSize);
    register_frame(arena.frame.data(), arena.registration.data());
  }
  used_ = 0;
  return 0;
}

char* TrampolinePool::take() noexcept try {
  const std::lock_guard lock(mutex_);
  if (used_ == kArenaSize && !free_.empty()) {
    char* const place = free_.front();
    free_.pop_front();
    return place;
  }
  if (used_ == kArenaSize) {
    if (const int error = add_arena(); error != 0) {
      errno = error;
      return nullptr;
    }
  }
  char* const place = arenas_.back().begin + used_;
  used_ += kTrampolineStride;
  return place;
} catch (const std::bad_alloc&) {
  errno = ENOMEM;
  return nullptr;
}

void TrampolinePool::give_back(char* place) noexcept try {
  const std::lock_guard lock(mutex_);
  free_.push_back(place);
} catch (const std::bad_alloc&) {
  // The place is lost: it is not worth an error that nobody could act on.
}

}  // namespace perfmap
