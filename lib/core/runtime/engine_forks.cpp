#include <algorithm>
#include <mutex>

#include "bytes/no_cancel.hpp"
#include "runtime/engine.hpp"

namespace perfmap {

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
    size_at_fork_ = file_.is_lost() ? 0 : file_.size_now();
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
