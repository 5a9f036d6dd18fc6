// SPDX-License-Identifier: MIT
// From libgcc, which has no header for it. Weak: the library needs libc alone, and a
// process without libgcc throws no exceptions. The plain __register_frame() does not check whether
// malloc() failed.
extern "C" [[gnu::weak]] void register_frame(const void* frames,
                                             void* object) asm("__register_frame_info");
extern "C" [[gnu::weak]] void* deregister_frame(const void* frames) asm("__deregister_frame_info");

#include "writer/trampoline.hpp"

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <sched.h>
#include <sys/mman.h>
#include <unistd.h>
#include <utility>

#include "writer/process_map.hpp"

namespace perfmap {
namespace {

// endbr64, because the evaluator's caller jumps here through a pointer; a frame pointer, because
// most profilers follow it.
constexpr unsigned char kX86[] = {
    0xf3, 0x0f, 0x1e, 0xfa,  // endbr64
    0x55,                    // push %rbp
    0x48, 0x89, 0xe5,        // mov %rsp,%rbp
    0xff, 0xd1,              // call *%rcx
    0x5d,                    // pop %rbp
    0xc3,                    // ret
};
constexpr unsigned char kX86Rbp = 6;
constexpr unsigned char kX86Rsp = 7;
constexpr unsigned char kX86Return = 16;
constexpr char kX86Begin[] = {kDefCfa, kX86Rsp, 8, char(kOffset | kX86Return), 1};
// After push, mov and pop.
constexpr char kX86Rest[] = {char(kAdvance | 5),
                             kDefCfaOffset,
                             16,
                             char(kOffset | kX86Rbp),
                             2,
                             char(kAdvance | 3),
                             kDefCfaRegister,
                             kX86Rbp,
                             char(kAdvance | 3),
                             kDefCfa,
                             kX86Rsp,
                             8,
                             char(kRestore | kX86Rbp)};
constexpr char kX86Calling[] = {
    kDefCfa, kX86Rbp, 16, char(kOffset | kX86Rbp), 2, char(kOffset | kX86Return), 1};

constexpr unsigned char kArm[] = {
    0x5f, 0x24, 0x03, 0xd5,  // bti c (hint 34)
    0xfd, 0x7b, 0xbf, 0xa9,  // stp x29, x30, [sp, #-16]!
    0xfd, 0x03, 0x00, 0x91,  // mov x29, sp
    0x60, 0x00, 0x3f, 0xd6,  // blr x3
    0xfd, 0x7b, 0xc1, 0xa8,  // ldp x29, x30, [sp], #16
    0xc0, 0x03, 0x5f, 0xd6,  // ret
};
constexpr unsigned char kArmFrame = 29;
constexpr unsigned char kArmReturn = 30;
constexpr unsigned char kArmSp = 31;
constexpr char kArmBegin[] = {kDefCfa, kArmSp, 0};
// After stp, mov and ldp; an advance counts instructions.
constexpr char kArmRest[] = {char(kAdvance | 2),
                             kDefCfaOffset,
                             16,
                             char(kOffset | kArmFrame),
                             2,
                             char(kOffset | kArmReturn),
                             1,
                             char(kAdvance | 1),
                             kDefCfaRegister,
                             kArmFrame,
                             char(kAdvance | 2),
                             char(kRestore | kArmReturn),
                             char(kRestore | kArmFrame),
                             kDefCfa,
                             kArmSp,
                             0};
constexpr char kArmCalling[] = {
    kDefCfa, kArmFrame, 16, char(kOffset | kArmFrame), 2, char(kOffset | kArmReturn), 1};

template <std::size_t kSize>
constexpr std::string_view text_of(const char (&bytes)[kSize]) noexcept {
  return {bytes, kSize};
}
constexpr TrampolineCode kX86Code{
    kX86,
    {{1, -8, kX86Return}, false, text_of(kX86Begin), text_of(kX86Rest)},
    text_of(kX86Calling)};
constexpr TrampolineCode kArmCode{
    kArm,
    {{4, -8, kArmReturn}, false, text_of(kArmBegin), text_of(kArmRest)},
    text_of(kArmCalling)};

}  // namespace

TrampolineImage image_of(const TrampolineCode& code) noexcept {
  TrampolineImage image;
  image.code_size = code.size();
  image.frame_begin = frame_offset(image.code_size);
  std::memcpy(image.bytes.data(), code.instructions.data(), code.instructions.size());
  // The unit test of the layout checks that it fits.
  const UnwindingSizes sizes =
      write_unwinding(std::span(image.bytes).last(image.mapped_size()), code.rules, image.code_size,
                      code.instructions.size());
  image.frame_size = sizes.frame;
  image.header_size = sizes.header;
  return image;
}

const TrampolineCode& x86_64_trampoline() noexcept { return kX86Code; }
const TrampolineCode& aarch64_trampoline() noexcept { return kArmCode; }

const TrampolineCode* host_trampoline() noexcept {
#if defined(__x86_64__) && defined(__LP64__)
  return &kX86Code;
#elif defined(__aarch64__) && defined(__LP64__) && !defined(__AARCH64EB__)
  return &kArmCode;
#else
  return nullptr;
#endif
}

namespace {

/// Readable and executable memory filled with trampolines; nullptr and errno on failure.
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
  for (Arena* at = newest_; at != nullptr; destroy_object(std::exchange(at, at->older))) {
    if (at->frame_size != 0) deregister_frame(at->frame.data());
    ::munmap(at->begin, kArenaSize);
  }
  std::free(free_);
}

/// Makes the ring of free places large enough for one arena more.
bool TrampolinePool::add_room() noexcept {
  auto** const made = static_cast<char**>(std::malloc((room_ + kPlaces) * sizeof(char*)));
  if (made == nullptr) return false;
  for (std::size_t i = 0; i < free_count_; ++i) made[i] = free_[(first_free_ + i) % room_];
  std::free(std::exchange(free_, made));
  room_ += kPlaces;
  first_free_ = 0;
  return true;
}

int TrampolinePool::add_arena() noexcept {
  Arena* const arena = make_object<Arena>();
  if (arena == nullptr || !add_room()) {
    destroy_object(arena);
    return ENOMEM;
  }
  arena->begin = map_arena(*image_);
  if (arena->begin == nullptr) {
    const int error = errno;
    destroy_object(arena);
    return error;
  }
  mapped_.fetch_add(kArenaSize, std::memory_order_relaxed);
  if (exceptions_ != nullptr && &register_frame != nullptr) {
    // One FDE for all trampolines: an exception only ever passes through the middle of their call.
    FrameRules rules = exceptions_->rules;
    rules.rest = exceptions_->calling;
    arena->frame_size = write_exception_frame(arena->frame, rules, arena->begin, kArenaSize);
    if (arena->frame_size != 0) register_frame(arena->frame.data(), arena->registration.data());
  }
  arena->older = newest_;
  newest_ = arena;
  used_ = 0;
  return 0;
}

char* TrampolinePool::take() noexcept {
  const Locked locked(mutex_);
  if (locked.is_deadlock()) {
    errno = EDEADLK;
    return nullptr;
  }
  if (used_ == kArenaSize && free_count_ != 0) {
    char* const place = free_[first_free_];
    first_free_ = (first_free_ + 1) % room_;
    --free_count_;
    return place;
  }
  if (used_ == kArenaSize) {
    if (const int error = add_arena(); error != 0) {
      errno = error;
      return nullptr;
    }
  }
  char* const place = newest_->begin + used_;
  used_ += kTrampolineStride;
  return place;
}

void TrampolinePool::give_back(char* place) noexcept {
  const Locked locked(mutex_);
  if (locked.is_deadlock()) return;  // the place leaks
  free_[(first_free_ + free_count_++) % room_] = place;
}

namespace {

constexpr auto kMap = static_cast<std::uint32_t>(TrampolineBackend::map);
constexpr auto kDump = static_cast<std::uint32_t>(TrampolineBackend::jitdump);
constexpr std::uint32_t kBackends = kMap | kDump;

constexpr unsigned generation_of(TrampolineEpoch moment) noexcept {
  return static_cast<unsigned>(moment);
}
constexpr std::uint32_t backends_of(TrampolineEpoch moment) noexcept {
  return static_cast<std::uint32_t>(moment >> 32) & kBackends;
}

/// This thread is in settle(), which calls code that may call back.
constinit thread_local bool settling = false;

/// Used if there is no WipedWord.
constinit std::atomic<TrampolineEpoch> no_word{0};

/// The parts, one after the other; nullptr: no memory.
template <class... Parts>
char* join_text(const Parts&... parts) noexcept {
  char* const text = static_cast<char*>(std::malloc((1 + ... + parts.size())));
  char* at = text;
  if (text != nullptr) ((at += parts.copy(at, parts.size())), ...);
  return text;
}

}  // namespace

TrampolineEngine::TrampolineEngine(const TrampolineCode& machine, std::string_view prefix,
                                   std::string_view directory, bool exceptions) noexcept
    : machine_(&machine),
      image_(image_of(machine)),
      exceptions_(exceptions),
      text_(join_text(prefix, directory)),
      prefix_size_(prefix.size()),
      directory_size_(directory.size()),
      moment_(word_.get() != nullptr ? word_.get() : &no_word) {}

TrampolineEngine::~TrampolineEngine() {
  destroy_object(dump_.load());
  for (TrampolinePool* pool = newest_pool_.load(); pool != nullptr;) {
    destroy_object(std::exchange(pool, pool->older()));
  }
  std::free(text_);
}

bool TrampolineEngine::activate(std::uint32_t backends, TrampolineFault& fault) noexcept {
  fault = {};
  if (backends == 0 || backends > kBackends) {
    fault.error = EINVAL;
    return false;
  }
  const Locked locked(activating_);
  if (locked.is_deadlock()) {
    fault.error = EDEADLK;
    fault.kind = TrampolineFault::Kind::map;
    return false;
  }
  if ((backends & kMap) != 0 && own_map::init() != 0) {
    fault.kind = TrampolineFault::Kind::map;
    fault.error = errno;
    return false;
  }
  if ((backends & kDump) != 0 && !open_dump(fault)) return false;
  set_activation(++activations_ << 2 | backends);
  return true;
}

bool TrampolineEngine::open_dump(TrampolineFault& fault) noexcept {
  if (dump_.load() != nullptr) return true;
  fault.kind = TrampolineFault::Kind::dump;
  dump_fork_ = own_map::fork_policy();
  JitdumpOptions options;
  options.fork = dump_fork_;
  auto* const made = make_object<DumpEngine>(options);
  if (made == nullptr) {
    fault.error = ENOMEM;
    return false;
  }
  made->join_list();
  if (!made->open_own(directory(), fault.dump)) {
    made->copy_path(fault.path);
    destroy_object(made);
    fault.error = fault.dump.error;
    return false;
  }
  dump_.store(made);
  return true;
}

TrampolineState TrampolineEngine::state() const noexcept {
  TrampolineState state;
  const std::uint32_t backends = activation_.load() & kBackends;
  state.active = backends != 0;
  if (state.active) state.backend = static_cast<TrampolineBackend>(backends);
  state.compiled = compiled_.load();
  state.failed = failed_.load();
  state.last_errno = last_errno_.load();
  for (const TrampolinePool* pool = newest_pool_.load(); pool != nullptr; pool = pool->older()) {
    state.mapped_bytes += pool->mapped_bytes();
  }
  return state;
}

TrampolineEpoch TrampolineEngine::now() noexcept {
  for (;;) {
    const std::uint32_t activated = activation_.load();
    const TrampolineEpoch present = TrampolineEpoch{activated} << 32 | ForkHandlers::generation();
    if (word_.get() == nullptr) return present;
    if (word_.get()->load() != present) word_.get()->store(present);
    // A thread that changed the activation meanwhile may have cleared the word before that store.
    if (activation_.load() == activated) return present;
  }
}

/// One thread at a time; the others do not wait. `again`: also retries what has failed.
TrampolineEngine::Settled TrampolineEngine::settle(TrampolineSlot& slot, bool again) noexcept {
  const TrampolineEpoch present = now();
  TrampolineEpoch begun = slot.begun_.load();
  if (begun != 0 && generation_of(begun) == generation_of(present)) return Settled::by_another;
  if (!slot.begun_.compare_exchange_strong(begun, present)) return Settled::by_another;
  settle_alone(slot, present, again);
  slot.begun_.store(0);
  return backends_of(present) == 0 ? Settled::inactive : Settled::done;
}

void TrampolineEngine::settle_alone(TrampolineSlot& slot, TrampolineEpoch present,
                                    bool again) noexcept {
  if (slot.settled_.load() == present && !(again && slot.error_.load() != 0)) return;
  slot.entry_.store(nullptr);
  if (backends_of(present) != 0) {
    settling = true;
    const int error = make(slot, present);
    settling = false;
    slot.error_.store(error);
    if (error != 0) {
      failed_.fetch_add(1);
      last_errno_.store(error);
    }
  }
  // Also after a failure, which is retried only with `again` or in another epoch; and while the
  // arena is not active, so that a direct call costs no more than one through a trampoline.
  slot.settled_.store(present);
}

int TrampolineEngine::make(TrampolineSlot& slot, TrampolineEpoch present) noexcept {
  const unsigned generation = generation_of(present);
  if (slot.place_ != nullptr && slot.generation_ != generation) enter_child(slot);
  slot.generation_ = generation;
  if (slot.place_ == nullptr) {
    if (own_map::began_as() == ForkPolicy::off) return 0;
    slot.pool_ = pool(generation);
    if (slot.pool_ == nullptr) return ENOMEM;
    slot.place_ = slot.pool_->take();
    if (slot.place_ == nullptr) return errno;
  }
  const bool is_new = slot.announced_ == 0;
  const int error = announce(slot, backends_of(present) & ~slot.announced_);
  if (error == 0) {
    slot.entry_.store(reinterpret_cast<TrampolineEntry>(slot.place_));
    if (is_new) compiled_.fetch_add(1);
  } else if (slot.announced_ == 0) {
    slot.give_back();
    slot.place_ = nullptr;
  }
  return error;
}

/// What happens to a trampoline made before fork(2): it stays if its name has been inherited; see
/// TrampolineArena.
void TrampolineEngine::enter_child(TrampolineSlot& slot) noexcept {
  const ForkPolicy map = own_map::began_as();
  if (map == ForkPolicy::off) {
    slot.announced_ = kBackends;
    return;
  }
  if (map != ForkPolicy::inherit) slot.announced_ &= ~kMap;
  if (dump_fork_ != ForkPolicy::inherit) slot.announced_ &= ~kDump;
  if (slot.announced_ == 0) slot.place_ = nullptr;
}

int TrampolineEngine::announce(TrampolineSlot& slot, std::uint32_t backends) noexcept {
  if ((backends & kMap) != 0) {
    const auto start = reinterpret_cast<std::uintptr_t>(slot.place_);
    if (own_map::write(start, image_.code_size, slot.name()) != 0) return errno;
    slot.announced_ |= kMap;
  }
  if ((backends & kDump) != 0) {
    if (const int error = load(slot); error != 0) return error;
    slot.announced_ |= kDump;
  }
  return 0;
}

int TrampolineEngine::load(const TrampolineSlot& slot) noexcept {
  std::array<char, kTrampolineStride> bytes = image_.bytes;
  // A child's number must also differ from its parent's.
  const std::uint64_t mark = next_mark_.fetch_add(1) ^ static_cast<std::uint64_t>(::getpid()) << 40;
  static_assert(sizeof mark == TrampolineCode::kMark);
  std::memcpy(bytes.data() + image_.code_size - sizeof mark, &mark, sizeof mark);
  const char* const frame = bytes.data() + image_.frame_begin;
  const auto start = reinterpret_cast<std::uintptr_t>(slot.place_);
  const LineRecord line{.address = start, .line = slot.line_, .file = slot.file()};
  const bool has_line = slot.line_ > 0 && slot.file_size_ != 0;
  std::uint64_t index = 0;
  bool in_map = false;
  return dump_.load()->load({.start = start,
                             .size = image_.code_size,
                             .name = slot.name(),
                             .code = {bytes.data(), image_.code_size},
                             .lines = {&line, has_line ? std::size_t{1} : 0},
                             .unwinding = {{frame, image_.frame_size},
                                           {frame + image_.frame_size, image_.header_size},
                                           image_.mapped_size()}},
                            index, in_map);
}

/// The pool of this process; the child's first trampoline creates one. nullptr: no memory.
TrampolinePool* TrampolineEngine::pool(unsigned generation) noexcept {
  TrampolinePool* newest = newest_pool_.load();
  while (newest == nullptr || newest->generation() != generation) {
    auto* const made =
        make_object<TrampolinePool>(image_, generation, newest, exceptions_ ? machine_ : nullptr);
    if (made == nullptr) return nullptr;
    if (newest_pool_.compare_exchange_strong(newest, made)) return made;
    destroy_object(made);
  }
  return newest;
}

/// The name is `prefix::qualified_name:file`.
TrampolineSlot::TrampolineSlot(TrampolineEngine& engine, const CodeDescription& code) noexcept
    : now_(engine.moment_), engine_(&engine), file_size_(code.file.size()), line_(code.first_line) {
  const std::string_view prefix = engine.prefix();
  const std::string_view scope = prefix.empty() ? "" : "::";
  const std::string_view colon = code.file.empty() ? "" : ":";
  text_ = join_text(prefix, scope, code.qualified_name, colon, code.file, code.file);
  name_size_ =
      prefix.size() + scope.size() + code.qualified_name.size() + colon.size() + code.file.size();
}

TrampolineSlot::~TrampolineSlot() {
  give_back();
  std::free(text_);
}

/// A place of a former generation is never reused: a frame may still return through it.
void TrampolineSlot::give_back() noexcept {
  if (place_ != nullptr && pool_->generation() == ForkHandlers::generation()) {
    pool_->give_back(place_);
  }
}

TrampolineEntry TrampolineSlot::entry() noexcept {
  const bool holds =
      settled_.load(std::memory_order_acquire) == now_->load(std::memory_order_relaxed) ||
      engine_->settle(*this, false) == TrampolineEngine::Settled::done;
  return holds ? entry_.load(std::memory_order_relaxed) : nullptr;
}

void* TrampolineSlot::call_newly(void* first, void* second, void* third, Evaluator evaluator) {
  const TrampolineEntry made = entry();
  if (made == nullptr) return evaluator(first, second, third);
  return made(first, second, third, evaluator);
}

/// Also retries what has failed; if another thread is at it, waits for that.
int TrampolineSlot::compile() noexcept {
  using Settled = TrampolineEngine::Settled;
  for (;;) {
    const Settled settled = engine_->settle(*this, true);
    if (settled == Settled::done) return error_.load();
    if (settled == Settled::inactive) return 0;
    if (settling) return EDEADLK;
    ::sched_yield();
  }
}

}  // namespace perfmap
