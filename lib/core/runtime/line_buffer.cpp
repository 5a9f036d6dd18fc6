#include "runtime/line_buffer.hpp"

#include <algorithm>
#include <cstring>
#include <sys/mman.h>

namespace perfmap {
namespace {

constexpr std::size_t kPage = 4096;
constexpr std::size_t kFirst = std::size_t{1} << 20;  // it grows where that is too small

}  // namespace

LineBuffer::~LineBuffer() {
  if (char* const data = data_.load(); data != nullptr) ::munmap(data, capacity_.load());
}

void LineBuffer::drop_first(std::size_t count) noexcept {
  char* const data = data_.load();
  if (count < size()) std::memmove(data, data + count, size() - count);
  set_size(size() - count);
}

bool LineBuffer::add(std::string_view line, std::size_t most) noexcept {
  const std::size_t size = this->size();
  const std::size_t capacity = capacity_.load(std::memory_order_relaxed);
  if (line.size() > capacity - size && !grow(size + line.size(), most)) return false;
  std::memcpy(data_.load(std::memory_order_relaxed) + size, line.data(), line.size());
  set_size(size + line.size());
  return true;
}

bool LineBuffer::grow(std::size_t wanted, std::size_t most) noexcept {
  const std::size_t old_capacity = capacity_.load();
  const std::size_t usual = std::max(std::min(most, kFirst), 2 * old_capacity);
  const std::size_t capacity = (std::max(usual, wanted) + kPage - 1) / kPage * kPage;
  void* const made =
      ::mmap(nullptr, capacity, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (made == MAP_FAILED) return false;
  char* const old = data_.load();
  if (!empty()) std::memcpy(made, old, size());
  data_.store(static_cast<char*>(made));
  capacity_.store(capacity);
  if (old != nullptr) ::munmap(old, old_capacity);
  return true;
}

}  // namespace perfmap
