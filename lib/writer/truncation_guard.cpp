// SPDX-License-Identifier: MIT
#include "writer/truncation_guard.hpp"

#include <csignal>
#include <sys/mman.h>
#include <unistd.h>
#include <utility>

#include "writer/fork_safe_file.hpp"

namespace perfmap {
namespace {

/// What the signal handler knows. Beyond that many mappings at once, a file is not guarded.
struct Slot {
  std::atomic<bool> taken{false};
  std::atomic<std::uintptr_t> begin{0};
  std::atomic<std::uintptr_t> end{0};
  std::atomic<bool> writable{false};
  std::atomic<bool> truncated{false};
};
constexpr int kSlots = 1024;
constinit Slot slots[kSlots];

constinit SpinMutex guards_mutex;
int guards = 0;
struct sigaction former;
std::uintptr_t page = 4096;  // its size; a signal handler does not ask

void pass_on(int signal, siginfo_t* info, void* context) {
  if ((former.sa_flags & SA_SIGINFO) != 0) {
    former.sa_sigaction(signal, info, context);
  } else if (former.sa_handler != SIG_DFL && former.sa_handler != SIG_IGN) {
    former.sa_handler(signal);
  } else {
    ::signal(signal, SIG_DFL);  // the instruction runs again, and now the signal is fatal
  }
}

/// Maps a page of zeros at the faulting address if that lies in one of our mappings. mmap(2) is not
/// on POSIX's list of async-signal-safe functions, but on Linux it is a plain system call.
void on_sigbus(int signal, siginfo_t* info, void* context) {
  const auto address = reinterpret_cast<std::uintptr_t>(info->si_addr);
  for (Slot& slot : slots) {
    if (address < slot.begin.load() || address >= slot.end.load()) continue;
    void* const begin = reinterpret_cast<void*>(address & ~(page - 1));
    const int rights = slot.writable.load() ? PROT_READ | PROT_WRITE : PROT_READ;
    if (::mmap(begin, page, rights, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == MAP_FAILED) {
      break;
    }
    slot.truncated.store(true);
    return;
  }
  pass_on(signal, info, context);
}

int take_slot() noexcept {
  for (int i = 0; i < kSlots; ++i) {
    bool expected = false;
    if (slots[i].taken.compare_exchange_strong(expected, true)) return i;
  }
  return -1;
}

}  // namespace

void hold_truncation_guard() noexcept {
  const Locked locked(guards_mutex);
  if (guards++ != 0) return;
  page = page_size();
  struct sigaction action {};
  action.sa_sigaction = on_sigbus;
  action.sa_flags = SA_SIGINFO | SA_NODEFER;
  ::sigaction(SIGBUS, &action, &former);
}

void drop_truncation_guard() noexcept {
  const Locked locked(guards_mutex);
  if (--guards == 0) ::sigaction(SIGBUS, &former, nullptr);
}

GuardedRange::GuardedRange(GuardedRange&& other) noexcept
    : slot_(std::exchange(other.slot_, -1)), truncated_(std::exchange(other.truncated_, nullptr)) {}

GuardedRange& GuardedRange::operator=(GuardedRange&& other) noexcept {
  std::swap(slot_, other.slot_);
  std::swap(truncated_, other.truncated_);
  return *this;
}

void GuardedRange::cover(const char* begin, std::size_t size, bool writable) noexcept {
  if (slot_ < 0) slot_ = take_slot();
  if (slot_ < 0) return;
  Slot& slot = slots[slot_];
  slot.end.store(0);  // an empty range while the two ends change
  slot.writable.store(writable);
  slot.begin.store(reinterpret_cast<std::uintptr_t>(begin));
  slot.end.store(reinterpret_cast<std::uintptr_t>(begin) + size);
  truncated_ = &slot.truncated;
}

void GuardedRange::release() noexcept {
  if (slot_ < 0) return;
  Slot& slot = slots[std::exchange(slot_, -1)];
  slot.end.store(0);
  slot.begin.store(0);
  slot.truncated.store(false);
  truncated_ = nullptr;
  slot.taken.store(false);
}

}  // namespace perfmap
