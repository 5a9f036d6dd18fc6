#include "writer/fork_guard.hpp"

#include <cstddef>
#include <ctime>
#include <mutex>
#include <new>
#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>
#include <utility>

#include "base/descriptor.hpp"

namespace perfmap {
namespace {

/// How many generations have been given out; SpinMutex has room for so many.
constexpr unsigned kMax = (1U << 30) - 1;
std::atomic<unsigned> given{0};

/// Without the page: whose generation it is in the high half, the generation in the low one.
std::atomic<std::uint64_t> owner{0};
std::atomic<bool> no_page{false};

unsigned next_generation() noexcept {
  unsigned next = 0;
  while (next == 0) next = (given.fetch_add(1, std::memory_order_relaxed) + 1) & kMax;
  return next;
}

/// An emulator that says yes to every advice, as qemu-user does, also to one that there is not,
/// wipes nothing.
bool wipes_on_fork(void* page, std::size_t size) noexcept {
  constexpr int kNoAdvice = 4711;
  return ::madvise(page, size, kNoAdvice) != 0 && ::madvise(page, size, MADV_WIPEONFORK) == 0;
}

std::size_t page_size() noexcept { return static_cast<std::size_t>(::sysconf(_SC_PAGESIZE)); }

unsigned renew_by_pid() noexcept {
  const auto pid = static_cast<std::uint64_t>(::getpid());
  std::uint64_t known = owner.load();
  while (known >> 32 != pid) {
    const std::uint64_t wanted = pid << 32 | next_generation();
    if (owner.compare_exchange_strong(known, wanted)) known = wanted;
  }
  return static_cast<unsigned>(known);
}

void enter_child() noexcept {
  owner.store(0);  // a child in a new namespace may have its parent's number
  Registry::get().begin_child();
}

}  // namespace

WipedWord::WipedWord() noexcept {
  const std::size_t size = page_size();
  void* const page =
      ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (page == MAP_FAILED) return;
  if (wipes_on_fork(page, size)) {
    word_ = new (page) std::atomic<std::uint64_t>(0);
  } else {
    ::munmap(page, size);
  }
}

WipedWord::~WipedWord() {
  if (word_ != nullptr) ::munmap(word_, page_size());
}

std::atomic<std::uint64_t>* WipedWord::release() noexcept { return std::exchange(word_, nullptr); }

ForkGuard::Word ForkGuard::no_word_{0};
std::atomic<ForkGuard::Word*> ForkGuard::word_{&no_word_};

/// The word is 0: it was wiped, or there is none yet, or there never will be.
unsigned ForkGuard::renew() noexcept {
  if (no_page.load()) return renew_by_pid();
  Word* word = word_.load();
  if (word == &no_word_) {
    WipedWord made;
    if (made.get() == nullptr) {
      no_page.store(true);
      return renew_by_pid();
    }
    if (word_.compare_exchange_strong(word, made.get())) word = made.release();
  }
  // The count goes up first: a child that is made in between must not count to the same number.
  const unsigned next = next_generation();
  std::uint64_t now = 0;
  return word->compare_exchange_strong(now, next) ? next : static_cast<unsigned>(now);
}

/// When the library is loaded, for two reasons. Handlers of who comes later, and uses the library,
/// then run before ours take the locks and after they have given them back. And a child that is
/// made while another thread sets things up would wait for that for ever.
const int ForkGuard::installed_ = [] {
  generation();
  return ::pthread_atfork([] { Registry::get().before_fork(); },
                          [] { Registry::get().after_fork(); }, enter_child);
}();

int ForkGuard::install() noexcept { return installed_; }

constinit Registry Registry::registry_;

/// What is there already a child has from a thread that was about to make it.
void Registry::add(ForkAware* engine) noexcept {
  const std::lock_guard lock(mutex_);
  for (const ForkAware* at = first_.load(); at != nullptr; at = at->next_.load()) {
    if (at == engine) return;
  }
  engine->next_.store(first_.load());
  first_.store(engine);
}

void Registry::remove(ForkAware* engine) noexcept {
  const std::lock_guard lock(mutex_);
  std::atomic<ForkAware*>* link = &first_;
  while (link->load() != nullptr && link->load() != engine) link = &link->load()->next_;
  if (link->load() == engine) link->store(engine->next_.load());
}

void Registry::before_fork() noexcept {
  const bool is_set_up = setup_mutex_.lock_for_fork();
  mutex_.lock();
  is_set_up_ = is_set_up;  // of one fork at a time
  for_each([](ForkAware& engine) { engine.is_between_ = engine.before_fork(); });
}

void Registry::after_fork() noexcept {
  for_each([](ForkAware& engine) { engine.after_fork(engine.is_between_); });
  const bool is_set_up = is_set_up_;
  mutex_.unlock();
  if (is_set_up) setup_mutex_.unlock();
}

void Registry::begin_child() noexcept {
  after_fork();
  for_each([](ForkAware& engine) { engine.begin_child(engine.is_between_); });
}

bool SpinMutex::lock_for_fork() noexcept {
  constexpr int kLooks = 100;
  constexpr timespec kMoment{0, 1'000'000};
  const NoCancel uncancelled;
  for (int i = 0; i < kLooks; ++i) {
    if (take(ForkGuard::generation() << kBits, kTaken)) return true;
    ::nanosleep(&kMoment, nullptr);
  }
  return false;
}

}  // namespace perfmap
