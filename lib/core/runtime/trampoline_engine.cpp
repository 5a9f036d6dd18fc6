#include "runtime/trampoline_engine.hpp"

#include <array>
#include <cerrno>
#include <cstring>
#include <memory>
#include <new>
#include <sched.h>
#include <unistd.h>
#include <utility>

#include "perfmap/process_map.hpp"
#include "runtime/dump_file.hpp"

namespace perfmap {
namespace {

constexpr auto kMap = static_cast<std::uint32_t>(TrampolineBackend::map);
constexpr auto kDump = static_cast<std::uint32_t>(TrampolineBackend::jitdump);
constexpr std::uint32_t kBackends = kMap | kDump;

constexpr unsigned generation_of(Moment moment) noexcept { return static_cast<unsigned>(moment); }
constexpr std::uint32_t backends_of(Moment moment) noexcept {
  return static_cast<std::uint32_t>(moment >> 32) & kBackends;
}

/// This thread is in settle(), where it calls what may call back.
thread_local bool settling = false;

/// For where there is no WipedWord.
std::atomic<Moment> no_word{0};

/// A lock that a child may take whoever held it: nobody of a former generation is there to give it
/// back. For what is rare enough to wait awake.
class ChildProofLock {
 public:
  explicit ChildProofLock(std::atomic<Moment>& word) noexcept : word_(&word) {
    const Moment mine = Moment{1} << 32 | ForkGuard::generation();
    for (Moment holder = 0; !word_->compare_exchange_weak(holder, mine);) {
      if (holder != mine) continue;
      holder = 0;
      ::sched_yield();
    }
  }
  ~ChildProofLock() { word_->store(0); }
  ChildProofLock(const ChildProofLock&) = delete;
  ChildProofLock& operator=(const ChildProofLock&) = delete;

 private:
  std::atomic<Moment>* word_;
};

}  // namespace

TrampolineEngine::TrampolineEngine(const TrampolineCode& code, TrampolineOptions options)
    : options_(std::move(options)),
      code_(&code),
      image_(image_of(code)),
      birth_(ForkGuard::generation()),
      now_(word_.get() != nullptr ? word_.get() : &no_word),
      next_mark_(monotonic_ns()) {}

TrampolineEngine::~TrampolineEngine() {
  delete dump_.load();
  for (TrampolinePool* pool = pool_.load(); pool != nullptr;) {
    const std::unique_ptr<TrampolinePool> gone(pool);
    pool = gone->older();
  }
}

Result<void> TrampolineEngine::open_dump() {
  if (dump_.load() != nullptr) return {};
  dump_fork_ = ProcessMap::fork_policy();
  auto opened = JitdumpWriter::open_own(options_.jitdump_directory, {.fork = dump_fork_});
  if (!opened) return Failure(std::move(opened).error());
  dump_.store(new JitdumpWriter(*std::move(opened)));
  return {};
}

Result<void> TrampolineEngine::activate(TrampolineBackend backend) {
  const auto wanted = static_cast<std::uint32_t>(backend);
  if (wanted == 0 || wanted > kBackends) {
    return Failure({Errc::invalid_argument, "no such backend of trampolines", EINVAL, {}});
  }
  const ChildProofLock lock(activating_);
  if ((wanted & kMap) != 0 && ProcessMap::init() != 0) {
    return Failure(system_error("cannot open the process's map", errno));
  }
  if ((wanted & kDump) != 0) {
    if (Result<void> opened = open_dump(); !opened) return opened;
  }
  set_activation(++activations_ << 2 | wanted);
  return {};
}

void TrampolineEngine::set_activation(std::uint32_t activation) noexcept {
  activation_.store(activation);
  if (word_.get() != nullptr) word_.get()->store(0);
}

Moment TrampolineEngine::now() noexcept {
  for (;;) {
    const std::uint32_t activation = activation_.load();
    const Moment moment = Moment{activation} << 32 | ForkGuard::generation();
    if (word_.get() == nullptr) return moment;
    if (word_.get()->load() != moment) word_.get()->store(moment);
    // Who has changed it meanwhile may have cleared the word before that store.
    if (activation_.load() == activation) return moment;
  }
}

TrampolineState TrampolineEngine::state() const noexcept {
  TrampolineState state;
  const std::uint32_t backends = activation_.load() & kBackends;
  state.active = backends != 0;
  if (state.active) state.backend = static_cast<TrampolineBackend>(backends);
  state.compiled = compiled_.load();
  state.failed = failed_.load();
  state.last_errno = last_errno_.load();
  for (const TrampolinePool* pool = pool_.load(); pool != nullptr; pool = pool->older()) {
    state.mapped_bytes += pool->mapped_bytes();
  }
  return state;
}

/// One thread at a time; the others do not wait. `again`: what has failed, too.
TrampolineEngine::Settled TrampolineEngine::settle(CompiledCode& code, bool again) noexcept {
  if (activation_.load(std::memory_order_relaxed) == 0) return Settled::inactive;
  const Moment moment = now();
  if (backends_of(moment) == 0) return Settled::inactive;
  Moment begun = code.begun.load();
  if (begun != 0 && generation_of(begun) == generation_of(moment)) return Settled::by_another;
  if (!code.begun.compare_exchange_strong(begun, moment)) return Settled::by_another;
  if (code.settled.load() != moment || (again && code.error.load() != 0)) {
    settling = true;
    const int error = try_to_make(code, moment);
    settling = false;
    code.error.store(error);
    if (error != 0) {
      failed_.fetch_add(1);
      last_errno_.store(error);
    }
    code.settled.store(moment);
  }
  code.begun.store(0);
  return Settled::done;
}

int TrampolineEngine::compile(CompiledCode& code) noexcept {
  for (;;) {
    switch (settle(code, true)) {
      case Settled::done: return code.error.load();
      case Settled::inactive: return 0;
      case Settled::by_another: break;
    }
    if (settling) return EDEADLK;
    ::sched_yield();
  }
}

int TrampolineEngine::try_to_make(CompiledCode& code, Moment moment) noexcept try {
  return make(code, moment);
} catch (const std::bad_alloc&) {
  code.entry.store(nullptr);
  return ENOMEM;
}

int TrampolineEngine::make(CompiledCode& code, Moment moment) {
  code.entry.store(nullptr);
  const unsigned generation = generation_of(moment);
  if (code.place != nullptr && code.generation != generation) enter_child(code);
  code.generation = generation;
  if (code.place == nullptr) {
    if (ProcessMap::began_as() == ForkPolicy::off) return 0;
    if (const int error = find_place(code); error != 0) return error;
  }
  const bool is_new = code.announced == 0;
  const int error = announce(code, backends_of(moment) & ~code.announced);
  if (error == 0) {
    code.entry.store(reinterpret_cast<TrampolineEntry>(code.place));
    if (is_new) compiled_.fetch_add(1);
  } else if (code.announced == 0) {
    forget(code);
    code.place = nullptr;
  }
  return error;
}

/// What is to become of a trampoline that was made before fork(2): it stays where its name has come
/// along; see TrampolineArena.
void TrampolineEngine::enter_child(CompiledCode& code) noexcept {
  const ForkPolicy map = ProcessMap::began_as();
  if (map == ForkPolicy::off) {
    code.announced = kBackends;
    return;
  }
  if (map != ForkPolicy::inherit) code.announced &= ~kMap;
  if (dump_fork_ != ForkPolicy::inherit) code.announced &= ~kDump;
  if (code.announced == 0) code.place = nullptr;
}

int TrampolineEngine::find_place(CompiledCode& code) {
  code.pool = pool(code.generation);
  code.place = code.pool->take();
  return code.place != nullptr ? 0 : errno;
}

int TrampolineEngine::announce(CompiledCode& code, std::uint32_t backends) {
  if ((backends & kMap) != 0) {
    const auto start = reinterpret_cast<std::uintptr_t>(code.place);
    if (ProcessMap::write(start, image_.code_size, code.name) != 0) return errno;
    code.announced |= kMap;
  }
  if ((backends & kDump) != 0) {
    if (const int error = load(code); error != 0) return error;
    code.announced |= kDump;
  }
  return 0;
}

int TrampolineEngine::load(const CompiledCode& code) {
  const std::string_view bytes(image_.bytes.data(), image_.bytes.size());
  std::string copy(bytes.substr(0, image_.code_size));
  // Nor may a child's number be one of its parent's.
  const std::uint64_t mark = next_mark_.fetch_add(1) ^ static_cast<std::uint64_t>(::getpid()) << 40;
  static_assert(sizeof mark == TrampolineCode::kMark);
  std::memcpy(copy.data() + copy.size() - sizeof mark, &mark, sizeof mark);
  const auto start = reinterpret_cast<std::uintptr_t>(code.place);
  const LineRecord line{.address = start, .line = code.line, .file = code.file};
  const bool has_line = code.line > 0 && !code.file.empty();
  const auto loaded = dump_.load()->load(
      {.start = start,
       .size = copy.size(),
       .name = code.name,
       .code = copy,
       .lines = {&line, has_line ? std::size_t{1} : 0},
       .unwinding = {bytes.substr(image_.frame_begin, image_.frame_size),
                     bytes.substr(image_.frame_begin + image_.frame_size, image_.header_size),
                     image_.mapped_size()}});
  return loaded ? 0 : loaded.error().sys_errno;
}

/// The pool of this process: the child's first trampoline begins one.
TrampolinePool* TrampolineEngine::pool(unsigned generation) {
  TrampolinePool* newest = pool_.load();
  while (newest == nullptr || newest->generation() != generation) {
    auto made = std::make_unique<TrampolinePool>(image_, generation, newest,
                                                 options_.exceptions ? code_ : nullptr);
    if (pool_.compare_exchange_strong(newest, made.get())) return made.release();
  }
  return newest;
}

/// A place of a former generation stays what it is: somebody may yet return through it.
void TrampolineEngine::forget(const CompiledCode& code) noexcept {
  if (code.place != nullptr && code.pool->generation() == ForkGuard::generation()) {
    code.pool->give_back(code.place);
  }
}

}  // namespace perfmap
