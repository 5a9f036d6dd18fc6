#pragma once

#include <functional>
#include <string>
#include <utility>

#include "perfmap/proc_source.hpp"
#include "processes/descriptor.hpp"
#include "processes/proc_text.hpp"
#include "processes/safe_open.hpp"

namespace perfmap {

/// Of /proc/PID/task/TID.
bool thread_lives(const OwnedFd& thread);
/// Some thread of a process that lives; not open where there is none.
OwnedFd find_living_thread(const OwnedFd& process);

struct ProcSource::State {
  OwnedFd directory;  // /proc/PID
  /// Memory and files are shown by each thread. Where the first has ended: one that has not.
  OwnedFd thread;
  std::string name;        // of it
  bool is_procfs = false;  // so that its links are the kernel's
  pid_t pid = 0;
  std::uint64_t start = 0;

  int subject() const noexcept { return (thread.is_open() ? thread : directory).get(); }
  /// The text of /proc/PID/stat; nothing where the process is gone, or is another one.
  Seen<std::string> stat() const;
  /// /proc/PID/root.
  Result<OwnedFd> root() const;
  /// Offers `use` each file that may be the region's, unopened, until it takes one.
  using UseFound = std::function<Result<void>(const OwnedFd& found, const struct stat& status,
                                              const std::string& where)>;
  Result<void> find_mapped(const Region& region, const UseFound& use) const;
  /// Where a link of the directory leads.
  Result<std::string> target_of(const char* link) const;

  /// What `ask` answers, unless the process is gone then: that makes all answers void, and errors,
  /// too. `ask` gives a Result<T>.
  template <class T, class Ask>
  Seen<T> while_alive(Ask&& ask) const {
    Result<T> answer = std::forward<Ask>(ask)();
    const Seen<std::string> still = stat();
    if (!still) return Failure(still.error());
    if (!*still) return std::nullopt;
    if (!answer) return Failure(std::move(answer.error()));
    return std::optional<T>(*std::move(answer));
  }
  Result<ReadText> read(const char* file, std::size_t most) const {
    return read_text_at(subject(), file, name + "/" + file, most);
  }
};

}  // namespace perfmap
