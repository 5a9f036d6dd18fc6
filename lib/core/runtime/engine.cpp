#include "runtime/engine.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <mutex>
#include <new>

#include "base/filler.hpp"
#include "base/hex.hpp"
#include "bytes/no_cancel.hpp"
#include "perfmap/written_name.hpp"
#include "runtime/registry.hpp"

namespace perfmap {
namespace {

constexpr std::size_t kNumbers = 34;  // two numbers of 16 digits and a blank behind each

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

/// What readers would take for a mapped writer's filler.
bool would_be_filler(std::uint64_t start, std::uint64_t size, std::string_view name) noexcept {
  return size == 0 && start < kMostFillerAddress && name.starts_with('.');
}

}  // namespace

Engine::Engine() noexcept : generation_(ForkGuard::generation()) {}

Engine::~Engine() {
  close();
  Registry::get().remove(this);
}

void Engine::configure(const WriterOptions& options, bool one_process) noexcept {
  const std::lock_guard lock(mutex_);
  one_process_ = one_process;
  options_ = options;
  if (options.mapped) options_.buffer_bytes = 0;
  names_ = options.names;
}

void Engine::write_through() noexcept {
  const std::lock_guard lock(mutex_);
  options_.buffer_bytes = 0;
  options_.mapped = false;
}

template <class Open>
int Engine::open_as(Open open) noexcept {
  if (const int error = ForkGuard::install(); error != 0) return error;
  const std::lock_guard lock(mutex_);
  const NoCancel uncancelled;
  if (file_.is_open() && !file_.is_lost()) return 0;
  generation_ = ForkGuard::generation();
  if (file_.is_open()) {
    tail_.let_go();
    file_.close();
  } else {
    buffer_.clear();
  }
  asked_ = false;
  size_at_fork_ = 0;
  return open();
}

int Engine::open(const char* path, bool empty_stale) noexcept {
  return open_as([&] { return open_file(path, empty_stale); });
}

int Engine::open_file(const char* path, bool empty_stale) noexcept {
  bool mapped = options_.mapped;
  if (mapped && MappedTail::check_unused(path, !options_.own_map) != 0) {
    // Who has the process's own map may be a child that never writes to it.
    if (!one_process_) return EBUSY;
    mapped = false;
  }
  int error = file_.open(path, options_.own_map, empty_stale, mapped);
  if (error != 0) return error;
  // In a pid namespace of its own a child may have its parent's number, and then its file.
  if (file_.is(of_parent_)) error = EBUSY;
  if (error == 0 && mapped) error = open_tail(path);
  if (error != 0) file_.close();
  return error;
}

int Engine::open_tail(const char* path) noexcept {
  const int error = tail_.open(file_.descriptor(), path, file_.wants_newline());
  return one_process_ && error == EBUSY ? 0 : error;
}

int Engine::open(int fd) noexcept {
  return open_as([&] { return file_.open(fd); });
}

bool Engine::is_open() noexcept {
  const std::lock_guard lock(mutex_);
  return file_.is_open();
}

bool Engine::has_file() noexcept {
  const std::lock_guard lock(mutex_);
  return file_.is_open() && !file_.is_lost();
}

MapStart Engine::start() noexcept {
  const std::lock_guard lock(mutex_);
  return file_.start();
}

int Engine::append(std::string_view line) noexcept {
  const unsigned now = ForkGuard::generation();
  mutex_.lock(now);
  const std::lock_guard lock(mutex_, std::adopt_lock);
  if (now != generation_) [[unlikely]] {
    if (one_process_) return EBADF;
    forget_parent();
  }
  if (!file_.is_open()) return EBADF;
  if (tail_.is_open()) return append_mapped(line);
  const NoCancel uncancelled;
  const std::uint64_t size = file_.size() + buffer_.size() + line.size();
  if (options_.most_bytes != 0 && size > options_.most_bytes) [[unlikely]]
    return kAtCap;
  return options_.buffer_bytes == 0 ? file_.append(line) : keep(line);
}

int Engine::append_mapped(std::string_view line) noexcept {
  const std::uint64_t most = options_.most_bytes;
  if (most != 0 && tail_.size() + line.size() > most) [[unlikely]]
    return kAtCap;
  const int error = tail_.append(line);
  if (tail_.is_open()) [[likely]]
    return error;
  const NoCancel uncancelled;
  file_.goes_on(tail_.wants_newline());
  return file_.append(line);
}

int Engine::write(std::uint64_t start, std::uint64_t size, std::string_view name) noexcept try {
  const bool as_is = is_written_as_is(name) && !would_be_filler(start, size, name);
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
  const bool brackets = would_be_filler(start, size, name);
  if (brackets) line += '[';
  append_written_name(line, name);
  line += brackets ? "]\n" : "\n";
  return append(line);
}

bool Engine::ask_for_room() noexcept {
  int (*callback)(void*) = nullptr;
  void* context = nullptr;
  {
    const std::lock_guard lock(mutex_);
    if (asked_ || options_.on_full == nullptr) return false;
    asked_ = true;
    callback = options_.on_full;
    context = options_.on_full_context;
  }
  if (callback(context) == 0) return false;
  const std::lock_guard lock(mutex_);
  asked_ = false;
  file_.look_again();
  return true;
}

/// On failure nothing of the line is kept: who is told so may try it again.
int Engine::keep(std::string_view line) noexcept {
  const std::size_t most = options_.buffer_bytes;
  if (buffer_.size() + line.size() > most) {
    if (const int error = flush_locked(); error != 0) return error;
  }
  if (line.size() > most) return file_.append(line);
  const std::uint64_t limit = options_.flush_after_ns;
  if (limit != 0 && buffer_.empty()) oldest_ns_ = now_ns();
  if (!buffer_.add(line, most)) return ENOMEM;
  const bool late = limit != 0 && now_ns() - oldest_ns_ >= limit;
  const int error = late ? flush_locked() : 0;
  // A pipe may have taken a part of this very line: the rest stays, to be written next.
  if (error == 0 || buffer_.size() < line.size()) return 0;
  buffer_.drop_last(line.size());
  return error;
}

/// What fails stays in the buffer, and is tried again.
int Engine::flush_locked() noexcept {
  if (buffer_.empty()) return 0;
  if (!file_.is_open()) return EBADF;
  flight_.to.store(file_.size());
  flight_.bytes.store(buffer_.size());
  std::string_view rest = buffer_.text();
  const int error = file_.append_from(rest);
  buffer_.drop_first(buffer_.size() - rest.size());
  flight_.bytes.store(0);
  return error;
}

int Engine::copy(const char* path) noexcept {
  const std::lock_guard lock(mutex_);
  const NoCancel uncancelled;
  forget_parent();
  if (!file_.is_open()) return EBADF;
  if (tail_.is_open()) return copy_behind_tail(path);
  if (const int error = flush_locked(); error != 0) return error;
  return file_.copy_from(path, !options_.own_map, options_.most_bytes);
}

int Engine::copy_behind_tail(const char* path) noexcept {
  if (const int error = tail_.cut(); error != 0) return error;
  file_.goes_on(tail_.wants_newline());
  const int error = file_.copy_from(path, !options_.own_map, options_.most_bytes);
  tail_.goes_on_at(file_.size(), file_.wants_newline());
  return error;
}

int Engine::flush() noexcept {
  const std::lock_guard lock(mutex_);
  const NoCancel uncancelled;
  forget_parent();
  return flush_locked();
}

int Engine::close() noexcept {
  const std::lock_guard lock(mutex_);
  const NoCancel uncancelled;
  forget_parent();
  if (!file_.is_open()) return 0;
  const int flushed = tail_.is_open() ? tail_.close() : flush_locked();
  buffer_.clear();
  const int closed = file_.close();
  return flushed != 0 ? flushed : closed;
}

}  // namespace perfmap
