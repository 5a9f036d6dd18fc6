#include <atomic>
#include <cstdint>
#include <mutex>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>
#include <utility>

#include "bytes/mapping.hpp"
#include "perfmap/input.hpp"

namespace perfmap {
namespace {

/// What the signal handler may look at: fixed storage, written with atomics only. A mapping that
/// finds no free slot is simply not guarded.
struct Slot {
  std::atomic<bool> taken{false};
  std::atomic<std::uintptr_t> begin{0};
  std::atomic<std::uintptr_t> end{0};
  std::atomic<bool> truncated{false};
};
constexpr int kSlots = 1024;
Slot slots[kSlots];

std::mutex guards_mutex;
int guards = 0;
struct sigaction former;
std::uintptr_t page_size = 4096;

void pass_on(int signal, siginfo_t* info, void* context) {
  if ((former.sa_flags & SA_SIGINFO) != 0) {
    former.sa_sigaction(signal, info, context);
  } else if (former.sa_handler != SIG_DFL && former.sa_handler != SIG_IGN) {
    former.sa_handler(signal);
  } else {
    ::signal(signal, SIG_DFL);  // the faulting instruction runs again, and then it counts
  }
}

/// Puts a page of zeros under the faulting address if it lies in a mapping of ours. mmap(2) is not
/// on POSIX's list of async-signal-safe functions, but on Linux it is a bare system call.
void on_sigbus(int signal, siginfo_t* info, void* context) {
  const auto address = reinterpret_cast<std::uintptr_t>(info->si_addr);
  for (Slot& slot : slots) {
    if (address < slot.begin.load() || address >= slot.end.load()) continue;
    void* const page = reinterpret_cast<void*>(address & ~(page_size - 1));
    if (::mmap(page, page_size, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) ==
        MAP_FAILED) {
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

void describe(int slot, const char* begin, std::size_t size) noexcept {
  if (slot < 0) return;
  slots[slot].end.store(0);  // nobody is inside while the two ends change
  slots[slot].begin.store(reinterpret_cast<std::uintptr_t>(begin));
  slots[slot].end.store(reinterpret_cast<std::uintptr_t>(begin) + size);
}

}  // namespace

TruncationGuard::TruncationGuard() noexcept {
  const std::lock_guard lock(guards_mutex);
  if (guards++ != 0) return;
  page_size = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));
  struct sigaction action {};
  action.sa_sigaction = on_sigbus;
  action.sa_flags = SA_SIGINFO | SA_NODEFER;
  ::sigaction(SIGBUS, &action, &former);
}

TruncationGuard::~TruncationGuard() {
  const std::lock_guard lock(guards_mutex);
  if (--guards == 0) ::sigaction(SIGBUS, &former, nullptr);
}

Mapping::Mapping(int fd, std::size_t size) noexcept {
  void* const begin = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, fd, 0);
  if (begin == MAP_FAILED) return;
  begin_ = static_cast<const char*>(begin);
  size_ = size;
  slot_ = take_slot();
  describe(slot_, begin_, size_);
}

Mapping::Mapping(Mapping&& other) noexcept
    : begin_(std::exchange(other.begin_, nullptr)),
      size_(std::exchange(other.size_, 0)),
      slot_(std::exchange(other.slot_, -1)) {}

Mapping& Mapping::operator=(Mapping&& other) noexcept {
  std::swap(begin_, other.begin_);
  std::swap(size_, other.size_);
  std::swap(slot_, other.slot_);
  return *this;
}

Mapping::~Mapping() {
  if (slot_ >= 0) {
    slots[slot_].end.store(0);
    slots[slot_].begin.store(0);
    slots[slot_].truncated.store(false);
    slots[slot_].taken.store(false);
  }
  if (begin_ != nullptr) ::munmap(const_cast<char*>(begin_), size_);
}

bool Mapping::was_truncated() const noexcept { return slot_ >= 0 && slots[slot_].truncated.load(); }

}  // namespace perfmap
