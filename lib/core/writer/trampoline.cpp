// From libgcc, which every C++ program has, but which has no header for it. The plain
// __register_frame() does not check whether malloc() failed.
extern "C" void register_frame(const void* frames, void* object) asm("__register_frame_info");
extern "C" void* deregister_frame(const void* frames) asm("__deregister_frame_info");

#include "writer/trampoline.hpp"

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

#include "perfmap/text.hpp"
#include "perfmap/writer.hpp"

namespace perfmap {
namespace {

// DW_CFA_* of DWARF 5, table 7.29; the two in capitals carry a number in their low six bits.
constexpr unsigned char kAdvance = 0x40;
constexpr unsigned char kOffset = 0x80;
constexpr unsigned char kRestore = 0xc0;
constexpr unsigned char kDefCfa = 0x0c;
constexpr unsigned char kDefCfaRegister = 0x0d;
constexpr unsigned char kDefCfaOffset = 0x0e;

constexpr unsigned char kPcrelSdata4 = 0x1b;
constexpr std::size_t kEncodingAt = 8;  // in the CIEs of both machines

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
constexpr unsigned char kX86Cie[] = {
    1, 'z', 'R', 0, 1, 0x78, kX86Return, 1, kPcrelSdata4, kDefCfa, kX86Rsp, 8, kOffset | kX86Return,
    1};
// After push, mov and pop.
constexpr unsigned char kX86Fde[] = {
    kAdvance | 5, kDefCfaOffset, 16,      kOffset | kX86Rbp, 2, kAdvance | 3,      kDefCfaRegister,
    kX86Rbp,      kAdvance | 3,  kDefCfa, kX86Rsp,           8, kRestore | kX86Rbp};
constexpr unsigned char kX86Calling[] = {
    kDefCfa, kX86Rbp, 16, kOffset | kX86Rbp, 2, kOffset | kX86Return, 1};

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
// Advances count instructions: the code alignment is 4.
constexpr unsigned char kArmCie[] = {1,          'z', 'R',          0,       4,      0x78,
                                     kArmReturn, 1,   kPcrelSdata4, kDefCfa, kArmSp, 0};
// After stp, mov and ldp.
constexpr unsigned char kArmFde[] = {kAdvance | 2,
                                     kDefCfaOffset,
                                     16,
                                     kOffset | kArmFrame,
                                     2,
                                     kOffset | kArmReturn,
                                     1,
                                     kAdvance | 1,
                                     kDefCfaRegister,
                                     kArmFrame,
                                     kAdvance | 2,
                                     kRestore | kArmReturn,
                                     kRestore | kArmFrame,
                                     kDefCfa,
                                     kArmSp,
                                     0};
constexpr unsigned char kArmCalling[] = {
    kDefCfa, kArmFrame, 16, kOffset | kArmFrame, 2, kOffset | kArmReturn, 1};

constexpr TrampolineCode kX86Code{kX86, kX86Cie, kX86Fde, kX86Calling};
constexpr TrampolineCode kArmCode{kArm, kArmCie, kArmFde, kArmCalling};

static_assert(kX86Cie[kEncodingAt] == kPcrelSdata4 && kArmCie[kEncodingAt] == kPcrelSdata4);

std::uint32_t padded(std::size_t size, std::size_t to) noexcept {
  return static_cast<std::uint32_t>((size + to - 1) / to * to);
}

/// Appends bytes in order; skipped bytes stay zero.
class Layout {
 public:
  explicit Layout(std::array<char, kTrampolineStride>& bytes) : bytes_(&bytes) {}
  std::uint32_t at() const noexcept { return static_cast<std::uint32_t>(at_); }
  void skip_to(std::size_t at) noexcept { at_ = at; }
  void u32(std::uint32_t value) noexcept { raw(&value, sizeof value); }
  void raw(const void* from, std::size_t size) noexcept {
    // Sizes are compile-time constants; the unit test of the layout checks every copy.
    std::memcpy(bytes_->data() + at_, from, size);
    at_ += size;
  }

 private:
  std::array<char, kTrampolineStride>* bytes_;
  std::size_t at_ = 0;
};

}  // namespace

TrampolineImage image_of(const TrampolineCode& code) {
  TrampolineImage image;
  image.code_size = code.size();
  image.frame_begin = padded(image.code_size, 8);
  Layout out(image.bytes);
  out.raw(code.instructions.data(), code.instructions.size());

  const auto begin = static_cast<std::uint32_t>(image.frame_begin);
  const std::uint32_t cie_length = padded(4 + code.cie.size(), 4);
  const std::uint32_t fde_length = padded(13 + code.fde.size(), 4);
  const std::uint32_t fde = begin + 4 + cie_length;
  const std::uint32_t end = fde + 4 + fde_length;
  out.skip_to(begin);
  out.u32(cie_length);
  out.u32(0);
  out.raw(code.cie.data(), code.cie.size());
  out.skip_to(fde);
  out.u32(fde_length);
  out.u32(out.at() - begin);
  out.u32(0u - out.at());  // offset to the code from here
  out.u32(static_cast<std::uint32_t>(code.instructions.size()));
  out.skip_to(out.at() + 1);  // no augmentation
  out.raw(code.fde.data(), code.fde.size());
  out.skip_to(end + 4);  // a length of 0 ends .eh_frame

  const std::uint32_t header = out.at();
  constexpr unsigned char kHeader[] = {1, kPcrelSdata4, 0x03, 0x3b};
  out.raw(kHeader, sizeof kHeader);
  out.u32(begin - out.at());
  out.u32(1);
  out.u32(0u - header);
  out.u32(fde - header);
  image.frame_size = header - begin;
  image.header_size = out.at() - header;
  return image;
}

/// One FDE for all trampolines: an exception only ever passes through the middle of their call. Its
/// addresses are absolute, because its own place in memory is not known yet.
std::string exception_frame(const TrampolineCode& code, const void* begin, std::size_t size) {
  std::string out;
  const auto u32 = [&](std::size_t value) {
    const auto narrow = static_cast<std::uint32_t>(value);
    out.append(reinterpret_cast<const char*>(&narrow), sizeof narrow);
  };
  const auto raw = [&](std::span<const unsigned char> bytes) {
    out.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  };
  const std::size_t cie_length = padded(4 + code.cie.size(), 4);
  u32(cie_length);
  u32(0);
  raw(code.cie);
  out[8 + kEncodingAt] = 0;  // DW_EH_PE_absptr
  out.resize(4 + cie_length);
  const std::size_t fde_length = padded(4 + 2 * sizeof begin + 1 + code.calling.size(), 4);
  u32(fde_length);
  u32(out.size());
  out.append(reinterpret_cast<const char*>(&begin), sizeof begin);
  out.append(reinterpret_cast<const char*>(&size), sizeof size);
  out.push_back(0);
  raw(code.calling);
  out.resize(8 + cie_length + fde_length);
  u32(0);
  return out;
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
  // The place leaks: no caller could act on an error.
}

namespace {

/// An activation and a fork generation: what a trampoline was settled for. After a fork, or when an
/// arena is activated again, all trampolines are settled again.
using Epoch = std::uint64_t;

constexpr auto kMap = static_cast<std::uint32_t>(TrampolineBackend::map);
constexpr auto kDump = static_cast<std::uint32_t>(TrampolineBackend::jitdump);
constexpr std::uint32_t kBackends = kMap | kDump;

constexpr unsigned generation_of(Epoch moment) noexcept { return static_cast<unsigned>(moment); }
constexpr std::uint32_t backends_of(Epoch moment) noexcept {
  return static_cast<std::uint32_t>(moment >> 32) & kBackends;
}

/// This thread is in settle(), which calls code that may call back.
thread_local bool settling = false;

/// Used if there is no WipedWord.
std::atomic<Epoch> no_word{0};

}  // namespace

struct Trampoline::Code {
  explicit Code(TrampolineArena::State& made_by) noexcept : arena(&made_by) {}
  ~Code() { give_back(); }
  void give_back() noexcept;

  TrampolineArena::State* arena;
  std::string name;
  std::string file;
  std::int32_t line = 0;

  static constexpr Epoch kNever = ~Epoch{0};

  /// Valid if `settled` is the current epoch; nullptr: the evaluator is called directly.
  std::atomic<TrampolineEntry> entry{nullptr};
  std::atomic<Epoch> settled{kNever};
  /// 0, or the epoch in which a thread began to settle it. If that is of a former generation, the
  /// thread does not exist in this child.
  std::atomic<Epoch> begun{0};
  std::atomic<int> error{0};  // of the last attempt

  // Owned by the thread that has begun:
  TrampolinePool* pool = nullptr;
  char* place = nullptr;
  unsigned generation = 0;      // the generation in which `announced` was last checked
  std::uint32_t announced = 0;  // bits of TrampolineBackend: those that know its name
};

struct TrampolineArena::State {
  State(const TrampolineCode& host, const TrampolineOptions& given)
      : options(given), machine(&host), image(image_of(host)) {}
  ~State();
  State(const State&) = delete;
  State& operator=(const State&) = delete;

  using Code = Trampoline::Code;
  Result<void> open_dump();
  Epoch now() noexcept;
  enum class Settled : std::uint8_t { done, inactive, by_another };
  Settled settle(Code& code, bool again) noexcept;
  int try_to_make(Code& code, Epoch moment) noexcept;
  int make(Code& code, Epoch moment);
  void enter_child(Code& code) noexcept;
  int announce(Code& code, std::uint32_t backends);
  int load(const Code& code);
  TrampolinePool* pool(unsigned generation);

  void set_activation(std::uint32_t activated) noexcept {
    activation.store(activated);
    if (word.get() != nullptr) word.get()->store(0);
  }
  // Whether its entry is valid: it was settled while this arena was active. Here, because every
  // call of an interpreted function passes through it.
  bool is_settled(const Code& asked) const noexcept {
    return asked.settled.load(std::memory_order_acquire) == moment->load(std::memory_order_relaxed);
  }

  const TrampolineOptions options;
  const TrampolineCode* const machine;
  const TrampolineImage image;
  /// 0 if not active; else a growing number, with the backend in its low two bits.
  std::atomic<std::uint32_t> activation{0};
  WipedWord word;
  /// The current epoch, or 0: call now().
  std::atomic<Epoch>* const moment = word.get() != nullptr ? word.get() : &no_word;
  SpinMutex activating;
  std::uint32_t activations = 0;  // protected by the lock
  std::atomic<TrampolinePool*> newest_pool{nullptr};
  std::atomic<JitdumpWriter*> dump{nullptr};
  std::atomic<ForkPolicy> dump_fork{ForkPolicy::fresh};  // of the dump
  std::atomic<std::uint64_t> next_mark{monotonic_ns()};
  std::atomic<std::uint64_t> compiled{0};
  std::atomic<std::uint64_t> failed{0};
  std::atomic<int> last_errno{0};
};

TrampolineArena::State::~State() {
  delete dump.load();
  for (TrampolinePool* pool = newest_pool.load(); pool != nullptr;) {
    const std::unique_ptr<TrampolinePool> gone(pool);
    pool = gone->older();
  }
}

Result<void> TrampolineArena::State::open_dump() {
  if (dump.load() != nullptr) return {};
  dump_fork = ProcessMap::fork_policy();
  auto opened = JitdumpWriter::open_own(options.jitdump_directory, {.fork = dump_fork});
  if (!opened) return Failure(std::move(opened).error());
  dump.store(new JitdumpWriter(*std::move(opened)));
  return {};
}

Epoch TrampolineArena::State::now() noexcept {
  for (;;) {
    const std::uint32_t activated = activation.load();
    const Epoch present = Epoch{activated} << 32 | ForkHandlers::generation();
    if (word.get() == nullptr) return present;
    if (word.get()->load() != present) word.get()->store(present);
    // A thread that changed the activation meanwhile may have cleared the word before that store.
    if (activation.load() == activated) return present;
  }
}

/// One thread at a time; the others do not wait. `again`: also retries what has failed.
TrampolineArena::State::Settled TrampolineArena::State::settle(Code& code, bool again) noexcept {
  if (activation.load(std::memory_order_relaxed) == 0) return Settled::inactive;
  const Epoch present = now();
  if (backends_of(present) == 0) return Settled::inactive;
  Epoch begun = code.begun.load();
  if (begun != 0 && generation_of(begun) == generation_of(present)) return Settled::by_another;
  if (!code.begun.compare_exchange_strong(begun, present)) return Settled::by_another;
  if (code.settled.load() != present || (again && code.error.load() != 0)) {
    settling = true;
    const int error = try_to_make(code, present);
    settling = false;
    code.error.store(error);
    if (error != 0) {
      failed.fetch_add(1);
      last_errno.store(error);
    }
    // Also after a failure, which is retried only with `again` or in another epoch.
    code.settled.store(present);
  }
  code.begun.store(0);
  return Settled::done;
}

int TrampolineArena::State::try_to_make(Code& code, Epoch present) noexcept try {
  code.entry.store(nullptr);
  return make(code, present);
} catch (const std::bad_alloc&) {
  return ENOMEM;
}

int TrampolineArena::State::make(Code& code, Epoch present) {
  const unsigned generation = generation_of(present);
  if (code.place != nullptr && code.generation != generation) enter_child(code);
  code.generation = generation;
  if (code.place == nullptr) {
    if (ProcessMap::began_as() == ForkPolicy::off) return 0;
    code.pool = pool(generation);
    code.place = code.pool->take();
    if (code.place == nullptr) return errno;
  }
  const bool is_new = code.announced == 0;
  const int error = announce(code, backends_of(present) & ~code.announced);
  if (error == 0) {
    code.entry.store(reinterpret_cast<TrampolineEntry>(code.place));
    if (is_new) compiled.fetch_add(1);
  } else if (code.announced == 0) {
    code.give_back();
    code.place = nullptr;
  }
  return error;
}

/// What happens to a trampoline made before fork(2): it stays if its name has been inherited; see
/// TrampolineArena.
void TrampolineArena::State::enter_child(Code& code) noexcept {
  const ForkPolicy map = ProcessMap::began_as();
  if (map == ForkPolicy::off) {
    code.announced = kBackends;
    return;
  }
  if (map != ForkPolicy::inherit) code.announced &= ~kMap;
  if (dump_fork != ForkPolicy::inherit) code.announced &= ~kDump;
  if (code.announced == 0) code.place = nullptr;
}

int TrampolineArena::State::announce(Code& code, std::uint32_t backends) {
  if ((backends & kMap) != 0) {
    const auto start = reinterpret_cast<std::uintptr_t>(code.place);
    if (ProcessMap::write(start, image.code_size, code.name) != 0) return errno;
    code.announced |= kMap;
  }
  if ((backends & kDump) != 0) {
    if (const int error = load(code); error != 0) return error;
    code.announced |= kDump;
  }
  return 0;
}

int TrampolineArena::State::load(const Code& code) {
  const std::string_view bytes(image.bytes.data(), image.bytes.size());
  std::string copy(bytes.substr(0, image.code_size));
  // A child's number must also differ from its parent's.
  const std::uint64_t mark = next_mark.fetch_add(1) ^ static_cast<std::uint64_t>(::getpid()) << 40;
  static_assert(sizeof mark == TrampolineCode::kMark);
  std::memcpy(copy.data() + copy.size() - sizeof mark, &mark, sizeof mark);
  const auto start = reinterpret_cast<std::uintptr_t>(code.place);
  const LineRecord line{.address = start, .line = code.line, .file = code.file};
  const bool has_line = code.line > 0 && !code.file.empty();
  const auto loaded = dump.load()->load(
      {.start = start,
       .size = copy.size(),
       .name = code.name,
       .code = copy,
       .lines = {&line, has_line ? std::size_t{1} : 0},
       .unwinding = {bytes.substr(image.frame_begin, image.frame_size),
                     bytes.substr(image.frame_begin + image.frame_size, image.header_size),
                     image.mapped_size()}});
  return loaded ? 0 : loaded.error().sys_errno;
}

/// The pool of this process; the child's first trampoline creates one.
TrampolinePool* TrampolineArena::State::pool(unsigned generation) {
  TrampolinePool* newest = newest_pool.load();
  while (newest == nullptr || newest->generation() != generation) {
    auto made = std::make_unique<TrampolinePool>(image, generation, newest,
                                                 options.exceptions ? machine : nullptr);
    if (newest_pool.compare_exchange_strong(newest, made.get())) return made.release();
  }
  return newest;
}

/// A place of a former generation is never reused: a frame may still return through it.
void Trampoline::Code::give_back() noexcept {
  if (place != nullptr && pool->generation() == ForkHandlers::generation()) pool->give_back(place);
}

Trampoline::Trampoline() noexcept = default;
Trampoline::Trampoline(std::unique_ptr<Code> code) : code_(std::move(code)) {}
Trampoline::Trampoline(Trampoline&&) noexcept = default;
Trampoline& Trampoline::operator=(Trampoline&&) noexcept = default;
Trampoline::~Trampoline() = default;

TrampolineEntry Trampoline::entry() noexcept {
  if (code_ == nullptr) return nullptr;
  TrampolineArena::State& arena = *code_->arena;
  const bool holds = arena.is_settled(*code_) ||
                     arena.settle(*code_, false) == TrampolineArena::State::Settled::done;
  return holds ? code_->entry.load(std::memory_order_relaxed) : nullptr;
}

namespace {

/// Out of line, so that the fast path needs no stack frame.
[[gnu::noinline, gnu::cold]] void* call_newly(Trampoline& trampoline, void* first, void* second,
                                              void* third, Evaluator evaluator) {
  const TrampolineEntry made = trampoline.entry();
  if (made == nullptr) return evaluator(first, second, third);
  return made(first, second, third, evaluator);
}

}  // namespace

void* Trampoline::call(void* first, void* second, void* third, Evaluator evaluator) {
  if (code_ == nullptr) return evaluator(first, second, third);
  if (!code_->arena->is_settled(*code_)) [[unlikely]]
    return call_newly(*this, first, second, third, evaluator);
  const TrampolineEntry made = code_->entry.load(std::memory_order_relaxed);
  if (made == nullptr) [[unlikely]]
    return evaluator(first, second, third);
  return made(first, second, third, evaluator);
}

/// Also retries what has failed; if another thread is at it, waits for that.
Result<void> Trampoline::compile() {
  using Settled = TrampolineArena::State::Settled;
  int error = 0;
  while (code_ != nullptr) {
    const Settled settled = code_->arena->settle(*code_, true);
    if (settled == Settled::done) error = code_->error.load();
    if (settled != Settled::by_another) break;
    if (settling) {
      error = EDEADLK;
      break;
    }
    ::sched_yield();
  }
  if (error == 0) return {};
  std::string what = "cannot make a trampoline for ";
  append_visible(what, code_->name);
  return Failure(system_error(what, error));
}

TrampolineArena::TrampolineArena(std::unique_ptr<State> state) : state_(std::move(state)) {}
TrampolineArena::TrampolineArena(TrampolineArena&&) noexcept = default;
TrampolineArena& TrampolineArena::operator=(TrampolineArena&&) noexcept = default;
TrampolineArena::~TrampolineArena() = default;

Result<TrampolineArena> TrampolineArena::make(const TrampolineOptions& options) {
  const TrampolineCode* const code = host_trampoline();
  if (code == nullptr) {
    return Failure({Errc::unsupported, "no trampolines for this machine", ENOTSUP, {}});
  }
  if (const int error = ForkHandlers::install(); error != 0) {
    return Failure(system_error("cannot prepare for fork", error));
  }
  return TrampolineArena(std::make_unique<State>(*code, options));
}

Result<void> TrampolineArena::activate(TrampolineBackend backend) {
  const auto wanted = static_cast<std::uint32_t>(backend);
  if (wanted == 0 || wanted > kBackends) {
    return Failure({Errc::invalid_argument, "no such backend of trampolines", EINVAL, {}});
  }
  const std::lock_guard lock(state_->activating);
  if ((wanted & kMap) != 0 && ProcessMap::init() != 0) {
    return Failure(system_error("cannot open the process's map", errno));
  }
  if ((wanted & kDump) != 0) {
    if (Result<void> opened = state_->open_dump(); !opened) return opened;
  }
  state_->set_activation(++state_->activations << 2 | wanted);
  return {};
}

void TrampolineArena::deactivate() noexcept { state_->set_activation(0); }

TrampolineState TrampolineArena::state() const noexcept {
  TrampolineState state;
  const std::uint32_t backends = state_->activation.load() & kBackends;
  state.active = backends != 0;
  if (state.active) state.backend = static_cast<TrampolineBackend>(backends);
  state.compiled = state_->compiled.load();
  state.failed = state_->failed.load();
  state.last_errno = state_->last_errno.load();
  for (const TrampolinePool* pool = state_->newest_pool.load(); pool != nullptr;
       pool = pool->older()) {
    state.mapped_bytes += pool->mapped_bytes();
  }
  return state;
}

Trampoline TrampolineArena::add(const CodeDescription& description) {
  auto code = std::make_unique<Trampoline::Code>(*state_);
  const std::string& prefix = state_->options.prefix;
  if (!prefix.empty()) code->name.append(prefix).append("::");
  code->name.append(description.qualified_name);
  if (!description.file.empty()) code->name.append(":").append(description.file);
  code->file = description.file;
  code->line = description.first_line;
  return Trampoline(std::move(code));
}

}  // namespace perfmap
