// SPDX-License-Identifier: MIT
#include "unpacked.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <memory>
#include <mutex>
#include <optional>
#include <perfmap/profile/archive.hpp>
#include <string_view>
#include <sys/syscall.h>
#include <unistd.h>
#include <unordered_map>
#include <utility>

namespace perfmap::app {
namespace {

/// Only what a signal handler may do: see signal-safety(7). getdents64(2) is a system call alone.
void remove_files_of(int directory) noexcept {
  struct Entry {  // linux_dirent64
    std::uint64_t inode;
    std::int64_t offset;
    unsigned short size;
    unsigned char type;
    char name[1];
  };
  alignas(Entry) char block[4096];
  for (;;) {
    const long got = ::syscall(SYS_getdents64, directory, block, sizeof block);
    if (got <= 0) return;
    for (long at = 0; at < got;) {
      const auto* const entry = reinterpret_cast<const Entry*>(block + at);
      ::unlinkat(directory, entry->name, 0);  // not "." and ".."
      at += entry->size;
    }
  }
}

/// Removes a directory without subdirectories. Another thread may still add files to it, if a
/// signal interrupts the unpacking.
void remove_directory(const char* path) noexcept {
  constexpr int kTries = 100;
  for (int i = 0; i < kTries; ++i) {
    const int directory = ::open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (directory < 0) return;
    remove_files_of(directory);
    ::close(directory);
    if (::rmdir(path) == 0 || errno != ENOTEMPTY) return;
  }
}

/// Signals that end the program.
constexpr std::array kEnds = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGPIPE};

/// What signal handlers remove. Null: a free place. Who sets a path to null owns its memory; a
/// signal handler cannot free it.
constexpr std::size_t kMaxDirectories = 256;
std::array<std::atomic<const char*>, kMaxDirectories> directories;
static_assert(std::atomic<const char*>::is_always_lock_free);
std::array<struct sigaction, kEnds.size()> handlers_before;

void remove_all() noexcept {
  for (std::atomic<const char*>& one : directories) {
    if (const char* const path = one.exchange(nullptr)) remove_directory(path);
  }
}

extern "C" void remove_all_and_end(int signal) {
  const int error = errno;
  remove_all();
  for (std::size_t i = 0; i < kEnds.size(); ++i) {
    if (kEnds[i] == signal) ::sigaction(signal, &handlers_before[i], nullptr);
  }
  errno = error;
  ::raise(signal);  // delivered to the former handler, or to the default, after this function
}

/// Archives that were unpacked, by their paths, until the end of the program.
class Unpacked {
 public:
  static Unpacked& all() {
    static Unpacked one;
    return one;
  }
  ~Unpacked() {
    for (std::atomic<const char*>& one : directories) {
      if (const char* const path = one.load()) remove_now(path);
    }
  }

  std::optional<std::string> find(const std::string& path) const {
    const std::lock_guard lock(mutex_);
    const auto found = paths_.find(path);
    return found == paths_.end() ? std::nullopt : std::optional<std::string>(found->second);
  }
  Result<std::string> make(const std::string& path);
  void remove(const std::string& path);

  void handle_signals() {
    const std::lock_guard lock(mutex_);
    if (std::exchange(handles_signals_, true)) return;
    for (std::size_t i = 0; i < kEnds.size(); ++i) {
      struct sigaction& before = handlers_before[i];
      if (::sigaction(kEnds[i], nullptr, &before) != 0 || before.sa_handler == SIG_IGN) continue;
      struct sigaction action {};
      action.sa_handler = remove_all_and_end;
      ::sigaction(kEnds[i], &action, nullptr);
    }
  }

 private:
  Unpacked() = default;

  /// Adds it to those that signal handlers remove. False if there are too many.
  static bool add(const char* path) noexcept {
    return std::ranges::any_of(directories, [path](std::atomic<const char*>& one) {
      const char* none = nullptr;
      return one.compare_exchange_strong(none, path);
    });
  }
  static void remove_now(const char* path) noexcept {
    remove_directory(path);
    for (std::atomic<const char*>& one : directories) {
      const char* known = path;
      if (one.compare_exchange_strong(known, nullptr)) return std::free(const_cast<char*>(path));
    }
  }

  mutable std::mutex mutex_;
  std::unordered_map<std::string, const char*> paths_;  // directories
  bool handles_signals_ = false;
};

void Unpacked::remove(const std::string& path) {
  const std::lock_guard lock(mutex_);
  const auto found = paths_.find(path);
  if (found == paths_.end()) return;
  remove_now(found->second);
  paths_.erase(found);
}

/// `error`, if it is due to the directory for temporary files, with what to do.
Failure with_remedy(Error error, const std::string& tmp) {
  error.append(" (in " + tmp + "; set TMPDIR to use another directory)");
  return Failure(std::move(error));
}

Result<std::string> Unpacked::make(const std::string& path) {
  const char* const set = std::getenv("TMPDIR");
  const std::string tmp = set != nullptr && *set != '\0' ? set : "/tmp";
  // Registered before it is made: mkdtemp() writes the name, and then makes the directory.
  char* const kept = ::strdup((tmp + "/perfmap-XXXXXX").c_str());
  if (kept == nullptr) throw std::bad_alloc();
  if (!add(kept)) {
    std::free(kept);
    return Failure(Error::too_large("cannot unpack " + path + ": too many archives"));
  }
  if (::mkdtemp(kept) == nullptr) {
    return with_remedy(
        system_error("cannot unpack", path + ": cannot create a temporary directory", errno), tmp);
  }
  Result<void> done = unpack_archive(path, kept);
  if (done) {
    const std::lock_guard lock(mutex_);
    return paths_.try_emplace(path, kept).first->second;
  }
  remove_now(kept);
  const int reason = done.error().sys_errno;
  if (reason == ENOSPC || reason == EDQUOT) return with_remedy(std::move(done.error()), tmp);
  return failure(done);
}

}  // namespace

Result<std::string> unpacked(const std::string& path, const Console& console) {
  if (const auto known = Unpacked::all().find(path)) return *known;
  if (path == "-" || !is_archive(path)) return path;
  const Step step(console, "unpacking " + path);
  Unpacked::all().handle_signals();
  Result<std::string> directory = Unpacked::all().make(path);
  if (directory) console.show_as(*directory, path);
  return directory;
}

std::string unpacked_directory(const std::string& path) {
  return Unpacked::all().find(path).value_or(path);
}

void remove_unpacked(const std::string& path) { Unpacked::all().remove(path); }

}  // namespace perfmap::app
