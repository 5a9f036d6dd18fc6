// SPDX-License-Identifier: MIT
#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <ctime>

#include "base/filler.hpp"
#include "base/utf8.hpp"
#include "writer/engines.hpp"

namespace perfmap {
namespace {

constexpr std::size_t kFirstBuffer = std::size_t{1} << 20;  // grows if needed
constexpr std::size_t kNumbers = 34;  // two numbers of 16 digits, each with a blank

char* write_numbers(char* out, std::uint64_t start, std::uint64_t size) noexcept {
  char* at = HexDigits(start).write(out);
  *at++ = ' ';
  at = HexDigits(size).write(at);
  *at++ = ' ';
  return at;
}

}  // namespace

void MapEngine::set_options(const WriterOptions& options) noexcept {
  options_ = options;
  options_.own_map = options.own_map || is_own_;
  if (options.mapped) options_.buffer_bytes = 0;
  names_ = options.names;
  names_of_ = options.names_of;
}

void MapEngine::begin_open() noexcept {
  if (file_.is_open()) {  // other code has closed our descriptor, or removed the file
    tail_.close();
    file_.close();
  } else {
    buffer_.clear();
  }
  asked_ = false;
  size_at_fork_ = 0;
}

int MapEngine::open(const char* path) noexcept {
  if (const int error = ForkHandlers::install(); error != 0) return error;
  const Locked locked(mutex_);
  if (locked.is_deadlock()) return EDEADLK;
  begin_open();
  int error = set_path(path);
  if (error == 0) error = open_file(path);
  if (error == 0) state_ = State::open;
  return error;
}

int MapEngine::open(int fd, const char* name) noexcept {
  if (const int error = ForkHandlers::install(); error != 0) return error;
  const Locked locked(mutex_);
  if (locked.is_deadlock()) return EDEADLK;
  begin_open();
  set_path(name);
  const int error = file_.open(fd);
  if (error == 0) state_ = State::open;
  return error;
}

int MapEngine::make() noexcept {
  begin_open();
  const int error = set_own_path();
  return error != 0 ? error : open_file(path_);
}

int MapEngine::open_file(const char* path) noexcept {
  bool mapped = options_.mapped;
  if (mapped && MmapAppender::check_unused(path, !options_.own_map) != 0) {
    // The process that holds our own map may be a child that never writes to it.
    if (!is_own_) return EBUSY;
    mapped = false;
  }
  int error = file_.open_map(path, {.own = options_.own_map,
                                    .of_process = is_own_,
                                    .empty_stale = stale_ == StaleMap::empty,
                                    .alone = mapped});
  if (error != 0) return error;
  // In another pid namespace a child may have its parent's pid, and so its path.
  if (file_.is(of_parent_)) error = EBUSY;
  if (error == 0 && mapped) error = open_tail(path);
  if (error != 0) file_.close();
  return error;
}

int MapEngine::open_tail(const char* path) noexcept {
  const int error = tail_.open(file_.descriptor(), path, file_.wants_newline());
  return is_own_ && error == EBUSY ? 0 : error;
}

/// Whether other code has closed our descriptor, or unlinked or renamed the file. A relative path
/// may lead elsewhere because of chdir(2), which does not lose the file.
bool MapEngine::is_lost() const noexcept {
  const bool is_absolute = path_[0] == '/';
  return file_.fd_was_replaced() || (is_absolute && file_.is_regular() && !file_.leads_to(path_));
}

/// Opens the process's own map again if it is lost.
int MapEngine::prepare() noexcept {
  const int error = ready();
  return error == 0 && state_ == State::open && is_own_ && is_lost() ? make() : error;
}

int MapEngine::configure(std::string_view directory, const WriterOptions& options, StaleMap stale,
                         ForkPolicy fork) noexcept {
  const Locked locked(mutex_);
  if (locked.is_deadlock()) return EDEADLK;
  if (is_to_inherit()) return EBUSY;
  if (const int error = enter_process(); error != 0) return error;
  if (file_.is_open()) return EBUSY;
  if (directory.empty()) return EINVAL;
  if (directory.size() >= kMaxDirectory) return ENAMETOOLONG;
  set_own_name(directory, kMapName);
  set_options(options);
  stale_ = stale;
  fork_ = fork;
  began_as_ = ForkPolicy::fresh;
  state_ = State::to_be_made;
  return 0;
}

int MapEngine::set_fork_policy(ForkPolicy policy) noexcept {
  const Locked locked(mutex_);
  if (locked.is_deadlock()) return EDEADLK;
  const int error = enter_process();
  fork_ = policy;
  return error;
}

ForkPolicy MapEngine::began_as() noexcept {
  const Locked locked(mutex_);
  if (locked.is_deadlock() || is_to_inherit()) return ForkPolicy::inherit;
  if (enter_process() != 0) return ForkPolicy::inherit;
  return state_ == State::silent ? ForkPolicy::off : began_as_.load();
}

int MapEngine::init() noexcept {
  const Locked locked(mutex_);
  if (locked.is_deadlock()) return EDEADLK;
  return prepare();
}

MapStart MapEngine::start() noexcept {
  const Locked locked(mutex_);
  return !locked.is_deadlock() && is_entered() ? file_.start() : MapStart::none;
}

int MapEngine::write(std::uint64_t start, std::uint64_t size, std::string_view name) noexcept {
  int error = write_once(start, size, name);
  if (error != kAtCap) [[likely]]
    return error;
  // No lock is held: the callback may use the map.
  if (ask_for_room()) error = write_once(start, size, name);
  return error == kAtCap ? EFBIG : error;
}

/// Calls the callback; returns whether to try again.
bool MapEngine::ask_for_room() noexcept {
  int (*callback)(void*) = nullptr;
  void* context = nullptr;
  {
    const Locked locked(mutex_);
    if (asked_ || options_.on_full == nullptr) return false;
    asked_ = true;
    callback = options_.on_full;
    context = options_.on_full_context;
  }
  if (callback(context) == 0) return false;
  const Locked locked(mutex_);
  asked_ = false;
  file_.restat();
  return true;
}

int MapEngine::append(std::string_view line) noexcept {
  const unsigned now = ForkHandlers::generation();
  const Held held(mutex_, now);
  if (held.is_deadlock()) [[unlikely]]
    return EDEADLK;
  if (now != generation_ || state_ != State::open) [[unlikely]] {
    const int error = ready();
    if (error != 0 || state_ == State::silent) return error;
  }
  if (tail_.is_open()) return append_mapped(line);
  const std::uint64_t size = file_.size() + buffer_.size() + line.size();
  if (options_.max_bytes != 0 && size > options_.max_bytes) [[unlikely]]
    return kAtCap;
  const int error = options_.buffer_bytes == 0 ? file_.append(line) : keep(line);
  return error == EBADF ? append_again(line) : error;
}

int MapEngine::append_mapped(std::string_view line) noexcept {
  const std::uint64_t max = options_.max_bytes;
  if (max != 0 && tail_.size() + line.size() > max) [[unlikely]]
    return kAtCap;
  int error = tail_.append(line);
  if (tail_.is_open()) [[likely]]
    return error;
  const NoCancel uncancelled;
  file_.goes_on(tail_.wants_newline());
  if (error == EIO) return error;
  error = file_.append(line);
  return error == EBADF ? append_again(line) : error;
}

/// Called if our descriptor was closed.
int MapEngine::append_again(std::string_view line) noexcept {
  const NoCancel uncancelled;
  if (!is_own_ || !file_.fd_was_replaced()) return EBADF;
  if (const int error = make(); error != 0) return error;
  if (tail_.is_open()) return tail_.append(line);
  return options_.buffer_bytes == 0 ? file_.append(line) : keep(line);
}

int MapEngine::write_once(std::uint64_t start, std::uint64_t size, std::string_view name) noexcept {
  if (what_is_wrong(start, size) != nullptr) return EINVAL;
  const NameOf names_of = names_of_.load(std::memory_order_relaxed);
  const bool as_is = writes_unchanged(name, names_of) && !would_be_filler(start, size, name);
  if (!as_is && names_.load(std::memory_order_relaxed) == NamePolicy::refuse) return EILSEQ;
  std::array<char, 512> small;
  if (as_is && name.size() + kNumbers + 1 <= small.size()) {
    char* at = write_numbers(small.data(), start, size);
    std::memcpy(at, name.data(), name.size());
    at += name.size();
    *at++ = '\n';
    return append({small.data(), static_cast<std::size_t>(at - small.data())});
  }
  return write_escaped(start, size, name);
}

int MapEngine::write_escaped(std::uint64_t start, std::uint64_t size,
                             std::string_view name) noexcept {
  WrittenNameRoom room;
  name = written_name(name, names_of_, room);
  char line[kNumbers + kMaxPortableName + sizeof "[\u2026]\n"];
  char* at = write_numbers(line, start, size);
  const bool brackets = would_be_filler(start, size, name);
  if (brackets) *at++ = '[';
  at = std::copy_n(name.data(), name.size(), at);
  if (brackets) *at++ = ']';
  *at++ = '\n';
  return append({line, static_cast<std::size_t>(at - line)});
}

/// On failure nothing of the line is kept, so the caller may try it again.
int MapEngine::keep(std::string_view line) noexcept {
  const std::size_t max = options_.buffer_bytes;
  if (buffer_.size() + line.size() > max) {
    if (const int error = flush_locked(); error != 0) return error;
  }
  if (line.size() > max) return file_.append(line);
  const std::uint64_t limit = options_.flush_after_ns;
  if (limit != 0 && buffer_.empty()) oldest_ns_ = now_ns(CLOCK_MONOTONIC_COARSE);
  if (!buffer_.add(line, std::min(max, kFirstBuffer))) return ENOMEM;
  const bool late = limit != 0 && now_ns(CLOCK_MONOTONIC_COARSE) - oldest_ns_ >= limit;
  const int error = late ? flush_locked() : 0;
  // A pipe may have accepted part of this line: the rest stays in the buffer, and is written next.
  if (error == 0 || buffer_.text().size() < line.size()) return 0;
  buffer_.set_size(buffer_.size() - line.size());
  return error;
}

/// What fails stays in the buffer for the next try.
int MapEngine::flush_locked() noexcept {
  const NoCancel uncancelled;
  if (buffer_.empty()) return 0;
  if (!file_.is_open()) return EBADF;
  if (is_own_ && is_lost()) {
    if (const int error = make(); error != 0) return error;
  }
  flight_.to.store(file_.size());
  flight_.from.store(buffer_.begin());
  std::string_view rest = buffer_.text();
  flight_.bytes.store(rest.size());
  const int error = file_.append_from(rest);
  buffer_.drop_first(buffer_.text().size() - rest.size());
  flight_.bytes.store(0);
  return error;
}

int MapEngine::flush() noexcept {
  const Locked locked(mutex_);
  if (locked.is_deadlock()) return EDEADLK;
  if (is_to_inherit()) return 0;  // what is buffered is the parent's
  if (const int error = enter_process(); error != 0) return error;
  if (is_own_ && state_ == State::open && buffer_.empty() && is_lost()) return make();
  return flush_locked();
}

const char* MapEngine::what_is_wrong(std::uint64_t start, std::uint64_t size) const noexcept {
  if (size != 0 && size - 1 > UINT64_MAX - start)
    return "start: the range exceeds the address space";
  if (names_ == NamePolicy::refuse && names_of_ == NameOf::runtime) {
    if (start == 0) return "start: 0";
    if (size == 0) return "size: 0";
  }
  return nullptr;
}

int MapEngine::copy(const char* path) noexcept {
  const Locked locked(mutex_);
  if (locked.is_deadlock()) return EDEADLK;
  if (const int error = prepare(); error != 0 || state_ == State::silent) return error;
  const bool mapped = tail_.is_open();
  if (const int error = mapped ? tail_.cut() : flush_locked(); error != 0) return error;
  if (mapped) file_.goes_on(tail_.wants_newline());
  const int error = file_.copy_from(path, !options_.own_map, options_.max_bytes);
  if (mapped) tail_.goes_on_at(file_.size(), file_.wants_newline());
  return error;
}

int MapEngine::close_locked() noexcept {
  if (!file_.is_open()) return 0;
  // The filler is cut through an open descriptor.
  if (tail_.is_open() && is_own_ && file_.fd_was_replaced() && file_.leads_to(path_)) make();
  const int flushed = tail_.is_open() ? tail_.close() : flush_locked();
  buffer_.clear();
  const bool was_closed = is_own_ && file_.fd_was_replaced();  // after all entries were written
  const int error = file_.close();
  const int closed = was_closed ? 0 : error;
  state_ = is_own_ ? State::to_be_made : State::closed;
  return flushed != 0 ? flushed : closed;
}

int MapEngine::close() noexcept {
  const Locked locked(mutex_);
  if (locked.is_deadlock()) return EDEADLK;
  if (generation_ != 0 && !is_entered()) leave_parent();  // nothing is copied for a child that ends
  return close_locked();
}

void MapEngine::end_process() noexcept {
  const Locked locked(mutex_);
  if (locked.is_deadlock() || generation_ == 0) return;
  if (!is_entered()) leave_parent();
  close_locked();
  options_.buffer_bytes = 0;
  options_.mapped = false;
}

void MapEngine::detach() noexcept {
  flight_.bytes.store(0);
  buffer_.clear();
  // Two writers with mapped tails after the same filler would overwrite each other's lines.
  if (tail_.is_open()) {
    tail_.forget();
    file_.close();
    if (!is_own_) state_ = State::closed;
  }
  if (!is_own_) return;
  // The file number is unique only while the file is open.
  if (file_.is_open()) {
    const bool same = set_own_path() == 0 && file_.leads_to(path_);
    of_parent_ = same ? file_.file() : FileNumber{};
  }
  file_.close();
  began_as_ = ForkPolicy::fresh;
}

/// Children inherit from a descriptor, so the map is opened again if other code has closed it. A
/// child that has not detached from its parent's file yet already knows the size at the fork.
void MapEngine::prepare_fork() noexcept {
  if (!is_own_ || !is_entered() || !file_.is_open()) return;
  if (fork_ == ForkPolicy::inherit && file_.fd_was_replaced()) make();
  if (file_.is_open()) size_at_fork_ = file_.fd_was_replaced() ? 0 : file_.size_now();
}

/// The size of the file at the fork. Other processes may have appended, too, so our last entries
/// may lie beyond the size that we counted.
std::uint64_t MapEngine::inherited_size() const noexcept {
  if (tail_.is_open()) return tail_.size();
  if (knows_fork_ && size_at_fork_ != 0) return size_at_fork_;
  const std::uint64_t seen = std::max(size_at_fork_, file_.size());
  // Entries that the parent wrote after the fork may be copied, but none twice.
  return buffer_.empty() ? std::max(seen, file_.position()) : seen;
}

int MapEngine::inherit() noexcept {
  if (!file_.is_open() || file_.fd_was_replaced()) return kLetGo;
  if (const int error = set_own_path(); error != 0) return error;
  const std::size_t in_flight = flight_.bytes.load();
  const std::uint64_t size = in_flight != 0 ? flight_.to.load() : inherited_size();
  const std::string_view more =
      in_flight != 0 ? std::string_view(buffer_.data() + flight_.from.load(), in_flight)
                     : buffer_.text();
  const int error = file_.inherit_map(path_, size, more, stale_ == StaleMap::empty);
  if (error != 0) return error;
  tail_.forget();
  flight_.bytes.store(0);
  buffer_.clear();
  began_as_ = ForkPolicy::inherit;
  if (options_.mapped) open_tail(path_);  // otherwise, and if this fails, entries use write(2)
  return 0;
}

}  // namespace perfmap
