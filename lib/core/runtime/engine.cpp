#include "runtime/engine.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <exception>
#include <mutex>
#include <new>

#include "base/hex.hpp"
#include "perfmap/written_name.hpp"
#include "runtime/registry.hpp"

namespace perfmap {
namespace {

constexpr std::size_t kNumbers = 34;  // two numbers of 16 digits and a blank behind each
constexpr std::size_t kFirstBuffer = std::size_t{1} << 20;  // it grows where that is too small

std::uint64_t now_ns() noexcept {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000 +
         static_cast<std::uint64_t>(now.tv_nsec);
}

char* write_numbers(char* out, std::uint64_t start, std::uint64_t size) noexcept {
  char* at = write_hex(out, start);
  *at++ = ' ';
  at = write_hex(at, size);
  *at++ = ' ';
  return at;
}

}  // namespace

Engine::Engine() noexcept : generation_(ForkGuard::generation()) {}

Engine::~Engine() {
  close();
  Registry::get().remove(this);
}

void Engine::configure(const WriterOptions& options, bool flush_at_fork) noexcept {
  const std::lock_guard lock(mutex_);
  options_ = options;
  if (options.mapped) options_.buffer_bytes = 0;
  names_ = options.names;
  flush_at_fork_ = flush_at_fork;
}

template <class Open>
int Engine::open_as(const std::string& path, Open open) noexcept try {
  if (const int error = ForkGuard::install(); error != 0) return error;
  const std::lock_guard lock(mutex_);
  if (file_.is_open()) return 0;
  path_ = path;
  generation_ = ForkGuard::generation();
  return open();
} catch (const std::bad_alloc&) {
  return ENOMEM;
}

int Engine::open(const std::string& path) noexcept {
  return open_as(path, [&] { return open_file(path); });
}

int Engine::open_file(const std::string& path) noexcept {
  if (options_.mapped) {
    const int used = MappedTail::check_unused(path, !options_.own_map);
    if (used != 0) return used;
  }
  if (const int error = file_.open(path, options_.own_map); error != 0) return error;
  if (!options_.mapped) return 0;
  const int error = tail_.open(file_.descriptor(), path, file_.wants_newline());
  if (error != 0) file_.close();
  return error;
}

int Engine::open(int fd, const std::string& name) noexcept {
  return open_as(name, [&] { return file_.open(fd); });
}

bool Engine::is_open() noexcept {
  const std::lock_guard lock(mutex_);
  return file_.is_open();
}

int Engine::append(std::string_view line) noexcept {
  const std::lock_guard lock(mutex_);
  forget_parent();
  if (!file_.is_open()) return EBADF;
  if (tail_.is_open()) return append_mapped(line);
  const std::uint64_t size = file_.size() + buffer_.size() + line.size();
  if (options_.most_bytes != 0 && size > options_.most_bytes) return EFBIG;
  return options_.buffer_bytes == 0 ? file_.append(line) : keep(line);
}

int Engine::append_mapped(std::string_view line) noexcept {
  if (options_.most_bytes != 0 && tail_.size() + line.size() > options_.most_bytes) return EFBIG;
  const int error = tail_.append(line);
  if (tail_.is_open()) [[likely]]
    return error;
  file_.look_again();
  return file_.append(line);
}

int Engine::write(std::uint64_t start, std::uint64_t size, std::string_view name) noexcept try {
  const bool as_is = is_written_as_is(name);
  if (!as_is && names_.load(std::memory_order_relaxed) == NamePolicy::refuse) return EILSEQ;
  std::array<char, 512> small;
  if (as_is && name.size() + kNumbers + 1 <= small.size()) {
    char* at = write_numbers(small.data(), start, size);
    std::memcpy(at, name.data(), name.size());
    at += name.size();
    *at++ = '\n';
    return append({small.data(), static_cast<std::size_t>(at - small.data())});
  }
  return write_slowly(start, size, name);
} catch (const std::bad_alloc&) {
  return ENOMEM;
}

int Engine::write_slowly(std::uint64_t start, std::uint64_t size, std::string_view name) {
  std::array<char, kNumbers> numbers;
  std::string line(numbers.data(), write_numbers(numbers.data(), start, size));
  append_written_name(line, name);
  line += '\n';
  return append(line);
}

/// On failure nothing of the line is kept: who is told so may try it again.
int Engine::keep(std::string_view line) noexcept try {
  if (buffer_.size() + line.size() > options_.buffer_bytes) {
    if (const int error = flush_locked(); error != 0) return error;
  }
  if (line.size() > options_.buffer_bytes) return file_.append(line);
  if (buffer_.capacity() == 0) buffer_.reserve(std::min(options_.buffer_bytes, kFirstBuffer));
  const std::uint64_t limit = options_.flush_after_ns;
  if (limit != 0 && buffer_.empty()) oldest_ns_ = now_ns();
  buffer_ += line;
  const bool late = limit != 0 && now_ns() - oldest_ns_ >= limit;
  const int error = late ? flush_locked() : 0;
  if (error != 0) buffer_.resize(buffer_.size() - line.size());
  return error;
} catch (const std::exception&) {
  return ENOMEM;
}

/// What fails stays in the buffer, and is tried again.
int Engine::flush_locked() noexcept {
  if (buffer_.empty()) return 0;
  if (!file_.is_open()) return EBADF;
  const int error = file_.append(buffer_);
  if (error == 0) buffer_.clear();
  return error;
}

void Engine::forget_parent() noexcept {
  const unsigned now = ForkGuard::generation();
  if (now == generation_) return;
  generation_ = now;
  buffer_.clear();
  if (!tail_.is_open()) return;
  // Two that write behind the same filler would write into each other's lines.
  tail_.forget();
  file_.close();
}

/// Takes the lock; after_fork() gives it back, in the parent and in the child.
void Engine::before_fork() noexcept {
  mutex_.lock();
  if (!flush_at_fork_) return;
  forget_parent();
  flush_locked();
}

/// A child that never writes is not to keep the file from the parent's next mapped writer. With
/// flush_at_fork_ it wants to know yet what it starts as a copy of.
void Engine::after_fork() noexcept {
  if (tail_.is_open() && !flush_at_fork_) forget_parent();
  mutex_.unlock();
}

int Engine::copy(const std::string& path) noexcept {
  const std::lock_guard lock(mutex_);
  forget_parent();
  if (!file_.is_open()) return EBADF;
  if (tail_.is_open()) return copy_behind_tail(path);
  if (const int error = flush_locked(); error != 0) return error;
  return file_.copy_from(path, !options_.own_map, options_.most_bytes);
}

int Engine::copy_behind_tail(const std::string& path) noexcept {
  if (const int error = tail_.cut(); error != 0) return error;
  file_.look_again();
  const int error = file_.copy_from(path, !options_.own_map, options_.most_bytes);
  tail_.goes_on_at(file_.size(), file_.wants_newline());
  return error;
}

int Engine::flush() noexcept {
  const std::lock_guard lock(mutex_);
  forget_parent();
  return flush_locked();
}

int Engine::close() noexcept {
  const std::lock_guard lock(mutex_);
  forget_parent();
  if (!file_.is_open()) return 0;
  const int flushed = tail_.is_open() ? tail_.close() : flush_locked();
  buffer_.clear();
  const int closed = file_.close();
  return flushed != 0 ? flushed : closed;
}

void Engine::abandon() noexcept {
  const std::lock_guard lock(mutex_);
  generation_ = ForkGuard::generation();
  buffer_.clear();
  tail_.forget();
  file_.close();
}

}  // namespace perfmap
