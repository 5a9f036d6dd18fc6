// libgcc's, which every C++ program has, and no header. The plain __register_frame() does not look
// whether malloc() had any.
extern "C" void register_frame(const void* frames, void* object) asm("__register_frame_info");
extern "C" void* deregister_frame(const void* frames) asm("__deregister_frame_info");

#include "perfmap/trampoline.hpp"

#include <array>
#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <memory>
#include <mutex>
#include <new>
#include <sched.h>
#include <string>
#include <sys/mman.h>
#include <unistd.h>
#include <utility>

#include "perfmap/jitdump_writer.hpp"
#include "perfmap/process_map.hpp"
#include "perfmap/text.hpp"
#include "writer/dump_file.hpp"
#include "writer/fork_guard.hpp"
#include "writer/trampoline_code.hpp"
#include "writer/trampoline_pool.hpp"

namespace perfmap {

namespace {

/// Readable and executable memory full of trampolines; nullptr and errno where there is none.
char* map_arena(const TrampolineImage& image) noexcept {
  constexpr std::size_t kSize = TrampolinePool::kArenaSize;
  void* const memory =
      ::mmap(nullptr, kSize, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return nullptr;
  char* const arena = static_cast<char*>(memory);
  for (std::size_t at = 0; at < kSize; at += image.bytes.size()) {
    std::memcpy(arena + at, image.bytes.data(), image.bytes.size());
  }
  __builtin___clear_cache(arena, arena + kSize);
  if (::mprotect(arena, kSize, PROT_READ | PROT_EXEC) == 0) return arena;
  const int error = errno;
  ::munmap(arena, kSize);
  errno = error;
  return nullptr;
}

}  // namespace

TrampolinePool::~TrampolinePool() {
  for (Arena& arena : arenas_) {
    if (!arena.frame.empty()) deregister_frame(arena.frame.data());
    ::munmap(arena.begin, kArenaSize);
  }
}

int TrampolinePool::add_arena() {
  Arena& arena = arenas_.emplace_back();
  arena.begin = map_arena(*image_);
  if (arena.begin == nullptr) {
    const int error = errno;
    arenas_.pop_back();
    return error;
  }
  mapped_.fetch_add(kArenaSize, std::memory_order_relaxed);
  if (exceptions_ != nullptr) {
    arena.frame = exception_frame(*exceptions_, arena.begin, kArenaSize);
    register_frame(arena.frame.data(), arena.registration.data());
  }
  used_ = 0;
  return 0;
}

char* TrampolinePool::take() noexcept try {
  const std::lock_guard lock(mutex_);
  if (used_ == kArenaSize && !free_.empty()) {
    char* const place = free_.front();
    free_.pop_front();
    return place;
  }
  if (used_ == kArenaSize) {
    if (const int error = add_arena(); error != 0) {
      errno = error;
      return nullptr;
    }
  }
  char* const place = arenas_.back().begin + used_;
  used_ += kTrampolineStride;
  return place;
} catch (const std::bad_alloc&) {
  errno = ENOMEM;
  return nullptr;
}

void TrampolinePool::give_back(char* place) noexcept try {
  const std::lock_guard lock(mutex_);
  free_.push_back(place);
} catch (const std::bad_alloc&) {
  // The place is lost: it is not worth an error that nobody could act on.
}

namespace {

/// An activation and a generation of ForkGuard: what a trampoline was settled for. A process that
/// forks, and an arena that is activated again, make all of them look again.
using Epoch = std::uint64_t;

/// What a Trampoline has behind it.
struct CompiledCode {
  std::string name;
  std::string file;
  std::int32_t line = 0;

  static constexpr Epoch kNever = ~Epoch{0};

  /// Holds once `settled` is the present moment; nullptr: the evaluator is called directly.
  std::atomic<TrampolineEntry> entry{nullptr};
  std::atomic<Epoch> settled{kNever};
  /// 0, or when somebody began to settle it. Of a former generation: by a thread that the child
  /// does not have.
  std::atomic<Epoch> begun{0};
  std::atomic<int> error{0};  // of the last time

  // Of whoever has begun:
  TrampolinePool* pool = nullptr;
  char* place = nullptr;
  unsigned generation = 0;      // in which `announced` was last looked at
  std::uint32_t announced = 0;  // bits of TrampolineBackend: who knows its name
};

/// What TrampolineArena has behind it. Free of locks but for the pool's, which a child does not
/// inherit.
class TrampolineEngine {
 public:
  TrampolineEngine(const TrampolineCode& code, TrampolineOptions options);
  ~TrampolineEngine();
  TrampolineEngine(const TrampolineEngine&) = delete;
  TrampolineEngine& operator=(const TrampolineEngine&) = delete;

  const TrampolineOptions& options() const noexcept { return options_; }
  Result<void> activate(TrampolineBackend backend);
  void deactivate() noexcept { set_activation(0); }
  TrampolineState state() const noexcept;

  // Here, because every call of an interpreted function passes through them.
  /// Whether code.entry holds: one that is settled was so while this was active.
  bool is_settled(const CompiledCode& code) const noexcept {
    return code.settled.load(std::memory_order_acquire) == now_->load(std::memory_order_relaxed);
  }
  TrampolineEntry entry(CompiledCode& code) noexcept {
    if (is_settled(code)) return code.entry.load(std::memory_order_relaxed);
    return settle(code) == Settled::done ? code.entry.load() : nullptr;
  }
  /// Settles it now, also what has failed, and where another thread is at it waits for that. 0 or
  /// an errno value; EDEADLK within what this thread does to settle one.
  int compile(CompiledCode& code) noexcept;
  void forget(const CompiledCode& code) noexcept;

 private:
  Result<void> open_dump();
  void set_activation(std::uint32_t activation) noexcept;
  Epoch now() noexcept;
  enum class Settled : std::uint8_t { done, inactive, by_another };
  Settled settle(CompiledCode& code, bool again = false) noexcept;
  int try_to_make(CompiledCode& code, Epoch moment) noexcept;
  int make(CompiledCode& code, Epoch moment);
  void enter_child(CompiledCode& code) noexcept;
  int find_place(CompiledCode& code);
  int announce(CompiledCode& code, std::uint32_t backends);
  int load(const CompiledCode& code);
  TrampolinePool* pool(unsigned generation);

  TrampolineOptions options_;
  const TrampolineCode* code_;
  TrampolineImage image_;
  unsigned birth_;  // the generation that made this
  /// 0 where not active; else a number that grows, and in its low two bits the backend.
  std::atomic<std::uint32_t> activation_{0};
  WipedWord word_;
  std::atomic<Epoch>* now_;           // the present moment, or 0: now() knows it
  std::atomic<Epoch> activating_{0};  // a ChildProofLock's
  std::uint32_t activations_ = 0;     // under that lock
  std::atomic<TrampolinePool*> pool_{nullptr};
  std::atomic<JitdumpWriter*> dump_{nullptr};
  std::atomic<ForkPolicy> dump_fork_{ForkPolicy::fresh};  // of dump_
  std::atomic<std::uint64_t> next_mark_;
  std::atomic<std::uint64_t> compiled_{0};
  std::atomic<std::uint64_t> failed_{0};
  std::atomic<int> last_errno_{0};
};

constexpr auto kMap = static_cast<std::uint32_t>(TrampolineBackend::map);
constexpr auto kDump = static_cast<std::uint32_t>(TrampolineBackend::jitdump);
constexpr std::uint32_t kBackends = kMap | kDump;

constexpr unsigned generation_of(Epoch moment) noexcept { return static_cast<unsigned>(moment); }
constexpr std::uint32_t backends_of(Epoch moment) noexcept {
  return static_cast<std::uint32_t>(moment >> 32) & kBackends;
}

/// This thread is in settle(), where it calls what may call back.
thread_local bool settling = false;

/// For where there is no WipedWord.
std::atomic<Epoch> no_word{0};

/// A lock that a child may take whoever held it: nobody of a former generation is there to give it
/// back. For what is rare enough to wait awake.
class ChildProofLock {
 public:
  explicit ChildProofLock(std::atomic<Epoch>& word) noexcept : word_(&word) {
    const Epoch mine = Epoch{1} << 32 | ForkGuard::generation();
    for (Epoch holder = 0; !word_->compare_exchange_weak(holder, mine);) {
      if (holder != mine) continue;
      holder = 0;
      ::sched_yield();
    }
  }
  ~ChildProofLock() { word_->store(0); }
  ChildProofLock(const ChildProofLock&) = delete;
  ChildProofLock& operator=(const ChildProofLock&) = delete;

 private:
  std::atomic<Epoch>* word_;
};

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

Epoch TrampolineEngine::now() noexcept {
  for (;;) {
    const std::uint32_t activation = activation_.load();
    const Epoch moment = Epoch{activation} << 32 | ForkGuard::generation();
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
  const Epoch moment = now();
  if (backends_of(moment) == 0) return Settled::inactive;
  Epoch begun = code.begun.load();
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

int TrampolineEngine::try_to_make(CompiledCode& code, Epoch moment) noexcept try {
  return make(code, moment);
} catch (const std::bad_alloc&) {
  code.entry.store(nullptr);
  return ENOMEM;
}

int TrampolineEngine::make(CompiledCode& code, Epoch moment) {
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

}  // namespace

struct Trampoline::Code {
  explicit Code(TrampolineEngine& made_by) noexcept : engine(&made_by) {}
  ~Code() { engine->forget(compiled); }
  TrampolineEngine* engine;
  CompiledCode compiled;
};

Trampoline::Trampoline() noexcept = default;
Trampoline::Trampoline(std::unique_ptr<Code> code) : code_(std::move(code)) {}
Trampoline::Trampoline(Trampoline&&) noexcept = default;
Trampoline& Trampoline::operator=(Trampoline&&) noexcept = default;
Trampoline::~Trampoline() = default;

TrampolineEntry Trampoline::entry() noexcept {
  return code_ == nullptr ? nullptr : code_->engine->entry(code_->compiled);
}

namespace {

/// Apart from the usual way, which has no need for a frame of its own then.
[[gnu::noinline, gnu::cold]] void* call_newly(Trampoline& trampoline, void* first, void* second,
                                              void* third, Evaluator evaluator) {
  const TrampolineEntry made = trampoline.entry();
  if (made == nullptr) return evaluator(first, second, third);
  return made(first, second, third, evaluator);
}

}  // namespace

void* Trampoline::call(void* first, void* second, void* third, Evaluator evaluator) {
  if (code_ == nullptr) return evaluator(first, second, third);
  const TrampolineEngine& engine = *code_->engine;
  const CompiledCode& compiled = code_->compiled;
  if (!engine.is_settled(compiled)) [[unlikely]]
    return call_newly(*this, first, second, third, evaluator);
  const TrampolineEntry made = compiled.entry.load(std::memory_order_relaxed);
  if (made == nullptr) [[unlikely]]
    return evaluator(first, second, third);
  return made(first, second, third, evaluator);
}

Result<void> Trampoline::compile() {
  const int error = code_ == nullptr ? 0 : code_->engine->compile(code_->compiled);
  if (error == 0) return {};
  std::string what = "cannot make a trampoline for ";
  append_visible(what, code_->compiled.name);
  return Failure(system_error(what, error));
}

struct TrampolineArena::State {
  State(const TrampolineCode& code, const TrampolineOptions& options) : engine(code, options) {}
  TrampolineEngine engine;
};

TrampolineArena::TrampolineArena(std::unique_ptr<State> state) : state_(std::move(state)) {}
TrampolineArena::TrampolineArena(TrampolineArena&&) noexcept = default;
TrampolineArena& TrampolineArena::operator=(TrampolineArena&&) noexcept = default;
TrampolineArena::~TrampolineArena() = default;

Result<TrampolineArena> TrampolineArena::make(const TrampolineOptions& options) {
  const TrampolineCode* const code = host_trampoline();
  if (code == nullptr) {
    return Failure({Errc::unsupported, "no trampolines for this machine", ENOTSUP, {}});
  }
  if (const int error = ForkGuard::install(); error != 0) {
    return Failure(system_error("cannot prepare for fork", error));
  }
  return TrampolineArena(std::make_unique<State>(*code, options));
}

Result<void> TrampolineArena::activate(TrampolineBackend backend) {
  return state_->engine.activate(backend);
}
void TrampolineArena::deactivate() noexcept { state_->engine.deactivate(); }
TrampolineState TrampolineArena::state() const noexcept { return state_->engine.state(); }

Trampoline TrampolineArena::add(const CodeDescription& description) {
  auto code = std::make_unique<Trampoline::Code>(state_->engine);
  std::string& name = code->compiled.name;
  const std::string& prefix = state_->engine.options().prefix;
  if (!prefix.empty()) name.append(prefix).append("::");
  name.append(description.qualified_name);
  if (!description.file.empty()) name.append(":").append(description.file);
  code->compiled.file = description.file;
  code->compiled.line = description.first_line;
  return Trampoline(std::move(code));
}

}  // namespace perfmap
