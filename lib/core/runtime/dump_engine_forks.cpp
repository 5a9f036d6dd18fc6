#include <mutex>
#include <new>
#include <unistd.h>

#include "bytes/no_cancel.hpp"
#include "runtime/dump_engine.hpp"

namespace perfmap {

std::string DumpEngine::own_path() const {
  return directory_ + "/jit-" + std::to_string(::getpid()) + ".dump";
}

int DumpEngine::ready() {
  if (ForkGuard::generation() != generation_) [[unlikely]] {
    if (const int error = enter_process(); error != 0) return error;
  }
  if (to_be_made_) [[unlikely]] {
    const Result<void> opened = open_own_locked();
    if (!opened) return opened.error().sys_errno;
    to_be_made_ = false;
  }
  return file_.is_open() || silent_ ? 0 : EBADF;
}

/// In a child, once: lets go of the parent's dump, as the policy says.
int DumpEngine::enter_process() {
  const bool own = file_.is_open() && !directory_.empty();
  if (!own || options_.fork != ForkPolicy::inherit) return leave_parent();
  const std::string path = own_path();
  const Result<DumpStart> start = inherit_own_dump(file_, path, options_.marker);
  if (!start) return start.error().sys_errno;
  path_ = path;
  pid_ = start->pid;
  is_own_ = true;
  generation_ = ForkGuard::generation();
  return 0;
}

int DumpEngine::leave_parent() noexcept {
  const bool own = file_.is_open() && !directory_.empty();
  generation_ = ForkGuard::generation();
  silent_ = silent_ || (own && options_.fork == ForkPolicy::off);
  to_be_made_ = to_be_made_ || (own && options_.fork == ForkPolicy::fresh);
  file_.close();
  return 0;
}

/// A failure shows at the child's first record, which tries again.
void DumpEngine::begin_child(bool is_between) noexcept try {
  const std::lock_guard lock(mutex_);
  const NoCancel uncancelled;
  if (!is_between) directory_.clear();  // in the middle of a record: nothing to begin a dump with
  enter_process();
} catch (const std::bad_alloc&) {  // as said
}

}  // namespace perfmap
