// SPDX-License-Identifier: MIT
#pragma once

#include <array>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <new>
#include <string_view>
#include <utility>

#include "base/jit_record_bytes.hpp"
#include "perfmap/writer_options.hpp"
#include "writer/fork_safe_file.hpp"
#include "writer/mmap_appender.hpp"

#if defined(__x86_64__) || defined(__i386__)
#include <x86intrin.h>
#endif

/// The three writers inside the engine. Their public classes add messages and strings: see
/// writer.cpp. All are thread-safe unless stated otherwise.

namespace perfmap {

/// Creates an object without operator new, which needs libstdc++; nullptr: no memory.
template <class T, class... Arguments>
T* make_object(Arguments&&... arguments) noexcept {
  void* const room = std::aligned_alloc(alignof(T), sizeof(T));
  return room == nullptr ? nullptr : new (room) T(std::forward<Arguments>(arguments)...);
}
template <class T>
void destroy_object(T* object) noexcept {
  if (object == nullptr) return;
  object->~T();
  std::free(object);
}

/// A perf map: that of MapWriter, which a child shares with its parent, or the process's own.
class MapEngine final : public ForkSafeFile {
 public:
  MapEngine() noexcept : ForkSafeFile(steps_of<MapEngine>(), State::closed, State::open) {
    generation_ = ForkHandlers::generation();
  }
  /// The process's own map in that directory.
  constexpr explicit MapEngine(std::string_view directory) noexcept
      : ForkSafeFile(steps_of<MapEngine>(), State::to_be_made, State::silent), is_own_(true) {
    set_own_name(directory, kMapName);
    options_.own_map = true;
  }
  ~MapEngine() {
    close();
    leave_list();
  }

  /// For MapWriter; before it is opened.
  void set_options(const WriterOptions& options) noexcept;
  int open(const char* path) noexcept;
  /// Opens a copy of the descriptor.
  int open(int fd, const char* name) noexcept;

  // The process's own map: see ProcessMap.
  int configure(std::string_view directory, const WriterOptions& options, StaleMap stale,
                ForkPolicy fork) noexcept;
  int set_fork_policy(ForkPolicy policy) noexcept;
  ForkPolicy fork_policy() const noexcept { return fork_.load(); }
  ForkPolicy began_as() noexcept;
  int init() noexcept;
  MapStart start() noexcept;
  /// Writes what is buffered. Threads that still run may continue to write; their entries are no
  /// longer buffered, because no later flush would write them.
  void end_process() noexcept;

  int write(std::uint64_t start, std::uint64_t size, std::string_view name) noexcept;
  /// The argument for which write() answers EINVAL, and why; nullptr if there is none.
  const char* what_is_wrong(std::uint64_t start, std::uint64_t size) const noexcept;
  int copy(const char* path) noexcept;
  int flush() noexcept;
  int close() noexcept;

 private:
  friend class ForkSafeFile;
  static constexpr std::size_t kMaxDirectory = 4000;
  /// returned by write_once() if the size limit is reached
  static constexpr int kAtCap = -1;

  // Steps.
  int make() noexcept;
  int inherit() noexcept;
  void detach() noexcept;
  void prepare_fork() noexcept;

  int open_file(const char* path) noexcept;
  int open_tail(const char* path) noexcept;
  void begin_open() noexcept;
  bool is_lost() const noexcept;
  int prepare() noexcept;
  int write_once(std::uint64_t start, std::uint64_t size, std::string_view name) noexcept;
  int write_escaped(std::uint64_t start, std::uint64_t size, std::string_view name) noexcept;
  // Inlined for the reason that AppendFile::append() is.
  [[gnu::always_inline]] inline int append(std::string_view line) noexcept;
  int append_mapped(std::string_view line) noexcept;
  int append_again(std::string_view line) noexcept;
  int keep(std::string_view line) noexcept;
  int flush_locked() noexcept;
  int close_locked() noexcept;
  bool ask_for_room() noexcept;
  std::uint64_t inherited_size() const noexcept;

  /// The bytes in flight from the buffer to the file: a child forked in between would write them
  /// twice.
  struct Flight {
    std::atomic<std::uint64_t> to{0};   // where in the file they begin
    std::atomic<std::size_t> from{0};   // where in the buffer
    std::atomic<std::size_t> bytes{0};  // 0: none in flight
  };

  MmapAppender tail_;  // of file_, if options_.mapped is possible
  WriterOptions options_;
  std::atomic<NamePolicy> names_{NamePolicy::escape};  // copy of options_.names, read before the
                                                       // lock is taken
  std::atomic<NameOf> names_of_{NameOf::runtime};      // likewise
  const bool is_own_ = false;
  GrowingBuffer buffer_;
  Flight flight_;
  std::uint64_t oldest_ns_ = 0;     // when the first byte of buffer_ was added
  bool asked_ = false;              // on_full was called since the last successful write
  FileNumber of_parent_;            // the parent's file that this process has detached from, to
                                    // recognize it by path
  std::uint64_t size_at_fork_ = 0;  // of the file, with other writers' entries; 0: unknown
  std::atomic<StaleMap> stale_{StaleMap::empty};
  std::atomic<ForkPolicy> began_as_{ForkPolicy::fresh};  // the policy at the start, unless silent
};

/// Why a dump could not be opened.
struct DumpFault {
  int error = 0;
  enum class Kind : std::uint8_t { open, begin, no_exec, append, in_use } kind = Kind::open;
  int pid = 0;                 // in_use: who has it open for writing
  std::array<char, 64> why{};  // append: what is wrong with the file
};

/// The implementation of JitdumpWriter.
class DumpEngine final : public ForkSafeFile {
 public:
  explicit DumpEngine(const JitdumpOptions& options) noexcept
      : ForkSafeFile(steps_of<DumpEngine>(), State::closed, State::closed), options_(options) {
    fork_ = options.fork;
    generation_ = ForkHandlers::generation();
  }
  ~DumpEngine() {
    close();
    leave_list();
  }

  // See JitdumpWriter.
  bool open_own(std::string_view directory, DumpFault& fault) noexcept;
  bool open(const char* path, DumpFault& fault) noexcept;
  bool open(int fd, const char* name, DumpFault& fault) noexcept;
  const JitdumpOptions& options() const noexcept { return options_; }

  /// `in_map`: on failure, whether it was the process's map that could not be written; then the
  /// record stays.
  int load(const JitFunction& function, std::uint64_t& index, bool& in_map) noexcept;
  /// The member for which load() answers EINVAL, and why; nullptr if there is none.
  const char* what_is_wrong(const JitFunction& function) const noexcept;
  int move(std::uint64_t index, Address from, Address to, std::uint64_t size) noexcept;
  /// The argument for which move() answers EINVAL, and why.
  static const char* what_is_wrong_with_move(Address from, Address to, std::uint64_t size) noexcept;
  int close() noexcept;

 private:
  friend class ForkSafeFile;
  // Steps.
  int make() noexcept;
  int inherit() noexcept;
  void detach() noexcept;

  bool open_own_locked(DumpFault& fault) noexcept;
  bool find_own(DumpFault& fault, bool& was_made) noexcept;
  bool append_to(pid_t pid, DumpFault& fault) noexcept;
  bool begin(bool is_new, bool was_made, bool marker, DumpFault& fault) noexcept;
  int map_first_page(const AppendFile& file) noexcept;
  int close_file() noexcept;
  int open_again() noexcept;
  int load_record(const JitFunction& function, std::uint64_t& index) noexcept;
  int make_records(const JitFunction& function, std::string_view name) noexcept;
  int add_unwinding(const JitUnwinding& unwinding, std::uint64_t time) noexcept;
  int add_lines(const JitFunction& function, std::uint64_t time) noexcept;
  int append_bytes() noexcept;
  int append_with_zeros(std::uint64_t count) noexcept;
  int append(iovec* parts, std::size_t count, std::uint64_t total) noexcept;
  std::uint32_t thread() const noexcept;

  template <std::size_t kSize>
  int append_fixed(std::array<char, kSize> bytes) noexcept {
    iovec all{bytes.data(), kSize};
    return append(&all, 1, kSize);
  }
  /// Space after the content of bytes_; nullptr: no memory.
  char* make_room(std::size_t size) noexcept {
    return bytes_.reserve(size, kFirstBytes) ? bytes_.data() + bytes_.size() : nullptr;
  }
  void end_at(const char* end) noexcept {
    bytes_.set_size(static_cast<std::size_t>(end - bytes_.data()));
  }
  static constexpr std::size_t kFirstBytes = 4096;

  const JitdumpOptions options_;
  GrowingBuffer bytes_;  // pending records without their code; kept for reuse
  void* marker_ = nullptr;
  pid_t pid_ = 0;
  bool is_own_ = false;            // pid_ is the pid of the writing process
  std::uint64_t first_index_ = 1;  // in a child with a new dump, its parent's indices are below
  std::uint64_t next_index_ = 1;
};

/// Writes the name of a loop, at most room_for_loop() bytes, and returns the end.
char* write_loop_name(char* out, std::string_view name) noexcept;
constexpr std::size_t room_for_loop(std::size_t size) noexcept { return 16 * size + 64; }

/// Whether `text`, the start of a file, is that of a PYPYLOG: a tick that opens a section, perhaps
/// after a thread number.
bool begins_as_jitlog(std::string_view text) noexcept;

/// A few bytes that are copied as fast as a number: always Max bytes, with the bytes after them.
template <std::size_t Max>
struct JitlogPiece {
  constexpr JitlogPiece() = default;
  constexpr explicit JitlogPiece(std::string_view given)
      : size(given.copy(bytes.data(), bytes.size())) {}

  std::array<char, Max> bytes{};
  std::size_t size = 0;
};
/// The thread prefix of a line: "4294967295# ", or nothing.
using JitlogPrefix = JitlogPiece<16>;

/// An event as it is recorded.
struct JitlogEvent {
  std::uint64_t tick;
  JitlogLoop loop;
  std::uint32_t is_exit;
};

/// The events that one thread has recorded. Only the owner adds events, without a lock. A thread
/// that holds the log's lock may read and write out those present. Only the owner, with the lock,
/// resets the buffer.
struct JitlogBuffer {
  /// nullptr: no memory. Release with free().
  static JitlogBuffer* make(std::uint32_t capacity) noexcept {
    const std::size_t size = sizeof(JitlogBuffer) + std::size_t{capacity} * sizeof(JitlogEvent);
    void* const room = std::aligned_alloc(kLine, (size + kLine - 1) / kLine * kLine);
    return room == nullptr ? nullptr : new (room) JitlogBuffer(capacity);
  }
  explicit JitlogBuffer(std::uint32_t size) noexcept
      : capacity(size), events(reinterpret_cast<JitlogEvent*>(this + 1)) {}
  void clear() noexcept {
    count.store(0, std::memory_order_release);  // before the rest: a child forked in between sees
                                                // an empty buffer
    written = 0;
  }

  std::atomic<std::uint32_t> count{0};
  const std::uint32_t capacity;
  JitlogEvent* const events;  // in the same allocation, after this object

  static constexpr std::size_t kLine = 64;
  // Protected by the log's lock.
  alignas(kLine) std::uint32_t written = 0;  // number of events
  bool used = false;                         // by a thread
  std::uint64_t first_tick = 0;              // no event of the thread is earlier
  JitlogBuffer* next = nullptr;              // in the log's list
  JitlogPrefix prefix;                       // of each line
};

/// The clock of a log.
class JitlogTicks {
 public:
  using Script = std::uint64_t (*)(void* context);

  explicit JitlogTicks(JitlogClock clock) noexcept : counts_(clock == JitlogClock::counter) {}
  /// A clock played by a test; the log does not state it.
  JitlogTicks(Script script, void* context) noexcept : script_(script), context_(context) {}

  /// Whether this machine has the clock.
  bool exists() const noexcept { return !counts_ || kCounter != nullptr; }
  /// The name as the log states it; empty: not stated.
  static constexpr std::size_t kMaxName = 48;
  std::size_t write_name(char (&out)[kMaxName]) const noexcept;
  std::uint64_t now() const noexcept { return counts_ ? counter() : now_elsewhere(); }

 private:
#if defined(__x86_64__) || defined(__i386__)
  static constexpr const char* kCounter = "tsc";
  static std::uint64_t counter() noexcept { return __rdtsc(); }
#elif defined(__aarch64__)
  static constexpr const char* kCounter = "cntvct";
  static std::uint64_t counter() noexcept {
    std::uint64_t ticks = 0;
    asm volatile("mrs %0, cntvct_el0" : "=r"(ticks));
    return ticks;
  }
#else
  static constexpr const char* kCounter = nullptr;
  static std::uint64_t counter() noexcept { return 0; }
#endif

  [[gnu::noinline]] std::uint64_t now_elsewhere() const noexcept {
    return script_ != nullptr ? script_(context_) : monotonic_ns();
  }

  bool counts_ = false;
  Script script_ = nullptr;
  void* context_ = nullptr;
};

/// The loops of a log: escaped names, numbered from 1. An entry never moves, so a name is found
/// without a lock; only one thread at a time may call add().
class JitlogLoops {
 public:
  JitlogLoops() = default;
  JitlogLoops(const JitlogLoops&) = delete;
  JitlogLoops& operator=(const JitlogLoops&) = delete;
  ~JitlogLoops();

  /// The number of that name, new or existing; 0: too many loops, or no memory.
  JitlogLoop add(std::string_view name) noexcept;
  bool has(JitlogLoop loop) const noexcept {
    return loop - 1 < count_.load(std::memory_order_acquire);
  }
  /// Requires has().
  std::string_view name(JitlogLoop loop) const noexcept {
    const auto chunk = chunk_of(loop);
    return chunks_[chunk][loop - (std::size_t{1} << chunk)];
  }

 private:
  /// Chunk n holds 2^n loops.
  static constexpr std::size_t kChunks = 31;
  static std::size_t chunk_of(JitlogLoop loop) noexcept {
    return static_cast<std::size_t>(std::bit_width(loop | 1U)) - 1;
  }
  JitlogLoop* find(std::string_view name) const noexcept;
  bool grow_table() noexcept;

  std::array<std::string_view*, kChunks> chunks_{};
  std::atomic<std::uint32_t> count_{0};
  JitlogLoop* table_ = nullptr;  // hash table, open addressing; 0: free
  std::size_t table_size_ = 0;   // a power of two, at least 2 * count_
};

/// The log in which the calling thread recorded last, in this process, and its buffer there.
struct JitlogHere {
  std::uint64_t key = 0;
  JitlogBuffer* buffer = nullptr;
};
inline constinit thread_local JitlogHere jitlog_here{};

/// The implementation of JitlogWriter: a file, and a buffer for each thread. Threads that have
/// recorded share ownership, so that they may end after the writer.
class JitlogEngine final : public ForkSafeFile {
 public:
  /// nullptr: no memory. The caller must call release().
  static JitlogEngine* make_engine(const JitlogOptions& options, const JitlogTicks& ticks) noexcept;
  JitlogEngine(const JitlogOptions& options, const JitlogTicks& ticks) noexcept;
  ~JitlogEngine();
  void retain() noexcept { users_.fetch_add(1, std::memory_order_relaxed); }
  void release() noexcept {
    if (users_.fetch_sub(1, std::memory_order_acq_rel) == 1) destroy_object(this);
  }

  /// Each `%d` stands for the pid. EBADMSG: the existing file is not a log.
  int open(const char* pattern) noexcept;
  int open(int fd, const char* name) noexcept;
  std::uint64_t lost() const noexcept { return lost_.load(); }

  int loop(std::string_view name, JitlogLoop& loop) noexcept;

  int record(JitlogLoop loop, bool is_exit) noexcept {
    const JitlogHere& here = jitlog_here;
    const std::uint64_t key = key_.load(std::memory_order_relaxed) | ForkHandlers::generation();
    if (here.key != key) [[unlikely]]
      return record_newly(loop, is_exit);
    return record_in(*here.buffer, loop, is_exit);
  }

  int flush() noexcept;
  int close() noexcept;

  /// False if an event would be refused or dropped.
  bool is_recording() const noexcept { return key_.load(std::memory_order_relaxed) != 0; }
  /// Called when a thread that joined in that fork generation ends.
  void leave(JitlogBuffer& buffer, unsigned generation) noexcept;

 private:
  friend class ForkSafeFile;
  template <class T, class... Arguments>
  friend T* make_object(Arguments&&...) noexcept;

  // Steps.
  int make() noexcept;
  int inherit() noexcept;
  void detach() noexcept;

  int record_in(JitlogBuffer& buffer, JitlogLoop loop, bool is_exit) noexcept {
    const std::uint32_t count = buffer.count.load(std::memory_order_relaxed);
    // A full buffer here means: a signal handler records while its thread is writing the buffer.
    if (!loops_.has(loop) || count >= buffer.capacity) [[unlikely]]
      return loops_.has(loop) ? EDEADLK : EINVAL;
    buffer.events[count] = {ticks_.now(), loop, is_exit ? 1U : 0U};
    buffer.count.store(count + 1, std::memory_order_release);
    if (count + 1 == buffer.capacity) [[unlikely]]
      return write_full(buffer);
    return 0;
  }
  // Out of line, so that the fast path needs no stack frame.
  [[gnu::noinline, gnu::cold]] int record_newly(JitlogLoop loop, bool is_exit) noexcept;
  [[gnu::noinline, gnu::cold]] int write_full(JitlogBuffer& buffer) noexcept;
  int enter_thread(JitlogBuffer*& buffer) noexcept;
  int join(JitlogBuffer*& buffer) noexcept;
  JitlogBuffer* unused_buffer() noexcept;
  std::uint64_t tick_with_letter() const noexcept;

  void begin() noexcept;
  void refuse_and_note(int error) noexcept;
  int inherit_log() noexcept;
  int append_events(WholeFile& copy, JitlogBuffer& buffer) noexcept;
  void drop_events(JitlogBuffer* kept) noexcept;

  /// The usual content of a thread's buffer: file systems use larger blocks for longer writes, so
  /// that a byte costs half as much as in writes of 64 KiB.
  static constexpr std::size_t kText = std::size_t{512} << 10;
  struct Block {
    std::string_view text;
    std::uint32_t end;  // end index of its events
  };
  Block format(const JitlogBuffer& buffer, std::uint32_t end) noexcept;
  struct ClockText;
  std::string_view clock_section(const JitlogBuffer& buffer, ClockText& text) const noexcept;
  int append(std::string_view first, std::string_view second) noexcept;
  int write_out(JitlogBuffer& buffer) noexcept;
  void write_all() noexcept;
  void note(int error) noexcept;

  const JitlogOptions options_;
  const JitlogTicks ticks_;
  char clock_[JitlogTicks::kMaxName];  // the clock name that the log states
  const std::size_t clock_size_;
  const std::uint64_t serial_;  // of this log, in the high half
  std::atomic<std::uint32_t> users_{1};
  JitlogLoops loops_;
  std::atomic<std::uint64_t> key_{0};  // serial_ while events are accepted
  std::atomic<std::uint64_t> lost_{0};
  std::atomic<int> error_{0};  // the first one

  JitlogBuffer* first_ = nullptr;  // list of all buffers, which live as long as the engine
  std::uint32_t threads_ = 0;      // threads that have joined
  int owner_ = 0;                  // tid of the only thread that may record
  char* text_ = nullptr;           // formatted, on its way to the file
  bool begun_ = false;             // the log has content
};

}  // namespace perfmap
