#include <algorithm>
#include <dirent.h>
#include <fcntl.h>
#include <memory>
#include <string_view>

#include "processes/proc_state.hpp"

namespace perfmap {
namespace {

constexpr std::size_t kMostThreads = 4096;  // that are looked at
constexpr std::size_t kMostText = std::size_t{64} << 10;
constexpr int kDirectory = O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;

struct CloseDirectory {
  void operator()(DIR* directory) const noexcept { ::closedir(directory); }
};

bool is_number(std::string_view name) noexcept {
  return name.find_first_not_of("0123456789") == std::string_view::npos;
}

}  // namespace

bool thread_lives(const OwnedFd& thread) {
  const Result<ReadText> read = read_text_at(thread.get(), "stat", "stat", kMostText);
  const std::optional<StatLine> line = read ? parse_stat(read->text) : std::nullopt;
  return line && line->lives();
}

OwnedFd find_living_thread(const OwnedFd& process) {
  const int tasks = ::openat(process.get(), "task", O_RDONLY | kDirectory);
  const std::unique_ptr<DIR, CloseDirectory> all(tasks < 0 ? nullptr : ::fdopendir(tasks));
  if (all == nullptr) {
    const OwnedFd closed(tasks);
    return OwnedFd();
  }
  for (std::size_t i = 0; i < kMostThreads; ++i) {
    const dirent* const entry = ::readdir(all.get());
    if (entry == nullptr) break;
    if (!is_number(entry->d_name)) continue;
    OwnedFd thread(::openat(tasks, entry->d_name, O_PATH | kDirectory));
    if (thread.is_open() && thread_lives(thread)) return thread;
  }
  return OwnedFd();
}

}  // namespace perfmap
