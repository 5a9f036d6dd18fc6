// SPDX-License-Identifier: MIT
#include <cerrno>
#include <cstdlib>
#include <mutex>
#include <unistd.h>

#include "module/shared_library.hpp"
#include "perfmap/profile/module.hpp"

namespace perfmap {

/// The library stays loaded: it starts threads and registers handlers of its own.
struct Debuginfod::State {
  using Begin = void* (*)();
  using End = void (*)(void*);
  using Find = int (*)(void*, const unsigned char*, int, char**);

  State() = default;
  State(const State&) = delete;
  State& operator=(const State&) = delete;
  ~State() {
    if (client != nullptr) end(client);
  }

  Begin begin = nullptr;
  End end = nullptr;
  Find find = nullptr;
  void* client = nullptr;
  std::mutex mutex;
  int failed = 0;  ///< an errno value
};

Result<Debuginfod> Debuginfod::open() {
  const Result<SharedLibrary> library = SharedLibrary::open("libdebuginfod.so.1", "libdebuginfod1");
  if (!library) return perfmap::failure(library);
  auto state = std::make_shared<State>();
  const bool is_whole = library->find("debuginfod_begin", state->begin) &&
                        library->find("debuginfod_end", state->end) &&
                        library->find("debuginfod_find_debuginfo", state->find);
  if (is_whole) state->client = state->begin();
  if (state->client == nullptr) {
    return Failure(Error::unsupported("libdebuginfod.so.1 cannot be used"));
  }
  return Debuginfod(std::move(state));
}

std::optional<std::string> Debuginfod::find(std::string_view build_id) const {
  // With length 0, libdebuginfod would take the bytes for hexadecimal text and read up to a NUL.
  constexpr std::size_t kMaxBuildId = 64;
  if (build_id.empty() || build_id.size() > kMaxBuildId) return std::nullopt;
  const std::scoped_lock lock(state_->mutex);
  char* path = nullptr;
  const int fd =
      state_->find(state_->client, reinterpret_cast<const unsigned char*>(build_id.data()),
                   static_cast<int>(build_id.size()), &path);
  const std::unique_ptr<char, decltype(&std::free)> owned(path, &std::free);
  // libdebuginfod returns ENOSYS if no servers are configured.
  state_->failed = fd < 0 && fd != -ENOENT ? -fd : 0;
  if (fd < 0) return std::nullopt;
  ::close(fd);
  return path != nullptr ? std::optional<std::string>(path) : std::nullopt;
}

std::optional<Error> Debuginfod::failure() const {
  const std::scoped_lock lock(state_->mutex);
  if (state_->failed == 0) return std::nullopt;
  if (state_->failed == ENOSYS) {
    return Error::unsupported("DEBUGINFOD_URLS has no server").with_errno(ENOSYS);
  }
  return system_error("cannot ask the servers of DEBUGINFOD_URLS", "", state_->failed);
}

}  // namespace perfmap
