#include "writer/engine.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <mutex>
#include <new>
#include <sys/mman.h>

#include "base/descriptor.hpp"
#include "base/filler.hpp"
#include "base/text.hpp"
#include "perfmap/text.hpp"
#include "writer/fork_guard.hpp"

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

bool LineBuffer::add(std::string_view line, std::size_t max) noexcept {
  const std::size_t size = this->size();
  const std::size_t capacity = capacity_.load(std::memory_order_relaxed);
  if (line.size() > capacity - size && !grow(size + line.size(), max)) return false;
  std::memcpy(data_.load(std::memory_order_relaxed) + size, line.data(), line.size());
  set_size(size + line.size());
  return true;
}

bool LineBuffer::grow(std::size_t wanted, std::size_t max) noexcept {
  const std::size_t old_capacity = capacity_.load();
  const std::size_t usual = std::max(std::min(max, kFirst), 2 * old_capacity);
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
  return size == 0 && start < kMaxFillerAddress && name.starts_with('.');
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
  if (file_.is_open() && !file_.fd_was_replaced()) return 0;
  generation_ = ForkGuard::generation();
  if (file_.is_open()) {
    tail_.detach();
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
  return file_.is_open() && !file_.fd_was_replaced();
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
  if (options_.max_bytes != 0 && size > options_.max_bytes) [[unlikely]]
    return kAtCap;
  return options_.buffer_bytes == 0 ? file_.append(line) : keep(line);
}

int Engine::append_mapped(std::string_view line) noexcept {
  const std::uint64_t max = options_.max_bytes;
  if (max != 0 && tail_.size() + line.size() > max) [[unlikely]]
    return kAtCap;
  const int error = tail_.append(line);
  if (tail_.is_open()) [[likely]]
    return error;
  const NoCancel uncancelled;
  file_.resume_at(tail_.wants_newline());
  return file_.append(line);
}

int Engine::write(std::uint64_t start, std::uint64_t size, std::string_view name) noexcept try {
  const bool as_is = is_plain_map_name(name) && !would_be_filler(start, size, name);
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
  append_escaped_map_name(line, name);
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
  file_.restat();
  return true;
}

/// On failure nothing of the line is kept: who is told so may try it again.
int Engine::keep(std::string_view line) noexcept {
  const std::size_t max = options_.buffer_bytes;
  if (buffer_.size() + line.size() > max) {
    if (const int error = flush_locked(); error != 0) return error;
  }
  if (line.size() > max) return file_.append(line);
  const std::uint64_t limit = options_.flush_after_ns;
  if (limit != 0 && buffer_.empty()) oldest_ns_ = now_ns();
  if (!buffer_.add(line, max)) return ENOMEM;
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
  return file_.copy_from(path, !options_.own_map, options_.max_bytes);
}

int Engine::copy_behind_tail(const char* path) noexcept {
  if (const int error = tail_.cut(); error != 0) return error;
  file_.resume_at(tail_.wants_newline());
  const int error = file_.copy_from(path, !options_.own_map, options_.max_bytes);
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

void Engine::forget_parent() noexcept {
  const unsigned now = ForkGuard::generation();
  if (now == generation_) [[likely]]
    return;
  generation_ = now;
  flight_.bytes.store(0);
  buffer_.clear();
  if (!tail_.is_open()) return;
  // Two that write behind the same filler would write into each other's lines.
  tail_.forget();
  file_.close();
}

bool Engine::before_fork() noexcept {
  if (!mutex_.lock_for_fork()) return false;
  // Who has not let go of a parent's file yet knows better what that had at the fork.
  if (one_process_ && file_.is_open() && generation_ == ForkGuard::generation()) {
    size_at_fork_ = file_.fd_was_replaced() ? 0 : file_.size_now();
  }
  return true;
}

/// In the parent and in the child. A child that never writes is not to keep the file from the
/// parent's next mapped writer.
void Engine::after_fork(bool is_between) noexcept {
  if (!is_between) return;
  if (tail_.is_open() && !one_process_) forget_parent();
  mutex_.unlock();
}

void Engine::abandon(const char* own_path) noexcept {
  const std::lock_guard lock(mutex_);
  const NoCancel uncancelled;
  forget_parent();
  buffer_.clear();
  tail_.forget();
  // Only while it is open is its number nobody else's.
  if (file_.is_open()) of_parent_ = file_.leads_to(own_path) ? file_.file() : FileNumber{};
  file_.close();
}

/// How much of the file was there at the fork. Somebody else may have appended, too, and then our
/// last entries are further back than we have counted.
std::uint64_t Engine::inherited_size() const noexcept {
  if (tail_.is_open()) return tail_.size();
  const std::uint64_t seen = std::max(size_at_fork_, file_.size());
  // What the parent wrote after the fork may come along, but not twice.
  return buffer_.empty() ? std::max(seen, file_.position()) : seen;
}

int Engine::inherit(const char* path, bool empty_stale) noexcept {
  const std::lock_guard lock(mutex_);
  const NoCancel uncancelled;
  const std::size_t in_flight = flight_.bytes.load();
  const std::uint64_t size = in_flight != 0 ? flight_.to.load() : inherited_size();
  const std::string_view more =
      in_flight != 0 ? std::string_view(buffer_.text().data(), in_flight) : buffer_.text();
  const int error = file_.inherit(path, size, more, empty_stale);
  if (error != 0) return error;
  tail_.forget();
  forget_parent();
  if (options_.mapped) open_tail(path);  // else, as where that fails, entries go with write(2)
  return 0;
}

}  // namespace perfmap
