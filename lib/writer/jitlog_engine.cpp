// SPDX-License-Identifier: MIT
#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <pthread.h>
#include <unistd.h>
#include <utility>

#include "base/hash.hpp"
#include "base/utf8.hpp"
#include "writer/engines.hpp"

namespace perfmap {
namespace {

constexpr std::string_view kDigits = "0123456789";
constexpr std::string_view kBlanks = " \t";

std::string_view after_digits(std::string_view text) noexcept {
  return without_first(text, text.find_first_not_of(kDigits));
}

std::string_view after_hex(std::string_view text) noexcept {
  while (!text.empty() && hex_digit(text.front()) >= 0) text.remove_prefix(1);
  return text;
}

/// In a name in PyPy's own form, where the parentheses first close: a `#` inside them is part of
/// the name. Else 0.
std::size_t end_of_loop_name(std::string_view name) noexcept {
  constexpr std::string_view kLoop = "Loop ";
  if (!name.starts_with(kLoop)) return 0;
  const std::string_view rest = after_digits(without_first(name, kLoop.size()));
  const bool numbered = rest.size() < name.size() - kLoop.size();
  return numbered && rest.starts_with(" (") && name.back() == ')' ? name.find(')') : 0;
}

/// Whether readers would take the `#` at `at` for a comment or the end of a thread number.
bool is_misread_hash(std::string_view name, std::size_t at) noexcept {
  if (at < end_of_loop_name(name)) return false;
  const std::string_view before = first_bytes(name, at);
  return before.empty() || kBlanks.find(before.back()) != kBlanks.npos ||
         after_digits(before).empty();
}

/// Whether the name begins like a line with a tick.
bool is_misread_bracket(std::string_view name) noexcept {
  if (!name.starts_with('[')) return false;
  const std::string_view rest = after_hex(without_first(name, 1));
  return rest.size() < name.size() - 1 && rest.starts_with(']');
}

char* add(char* out, std::string_view text) noexcept {
  return std::copy_n(text.data(), text.size(), out);
}

/// For names that have been escaped as needed; without brackets.
char* write_unambiguous(char* out, std::string_view name) noexcept {
  if (is_misread_bracket(name)) {
    out = add(out, "\\x5b");
    name.remove_prefix(1);
  }
  for (std::size_t at = 0; at < name.size(); ++at) {
    if (name[at] == '#' && is_misread_hash(name, at)) {
      out = add(out, "\\x23");
    } else {
      *out++ = name[at];
    }
  }
  return out;
}

template <std::size_t Max>
char* write(char* out, const JitlogPiece<Max>& piece) noexcept {
  std::memcpy(out, piece.bytes.data(), Max);
  return out + piece.size;
}

struct Category {
  JitlogPiece<32> opening;
  JitlogPiece<32> closing;
};
constexpr Category kEnter{JitlogPiece<32>("] {jit-profile-enter\n"),
                          JitlogPiece<32>("] jit-profile-enter}\n")};
constexpr Category kExit{JitlogPiece<32>("] {jit-profile-exit\n"),
                         JitlogPiece<32>("] jit-profile-exit}\n")};
constexpr Category kClock{JitlogPiece<32>("] {jit-profile-clock\n"),
                          JitlogPiece<32>("] jit-profile-clock}\n")};

/// The maximum size of a section with that payload.
constexpr std::size_t room_for_section(std::size_t payload) noexcept {
  constexpr std::size_t kLine =
      sizeof(JitlogPrefix::bytes) + 1 + 16 + sizeof(JitlogPiece<32>::bytes);
  return 3 * kLine + payload;
}

/// Writes a section and returns its end. Bytes after the end, within the room, may change.
char* write_section(char* out, const Category& category, std::uint64_t tick,
                    std::string_view payload, const JitlogPrefix& prefix) noexcept {
  const HexDigits digits(tick);
  char* at = write(out, prefix);
  *at++ = '[';
  at = write(digits.write(at), category.opening);
  at = write(at, prefix);
  std::memcpy(at, payload.data(), payload.size());
  at += payload.size();
  *at++ = '\n';
  at = write(at, prefix);
  *at++ = '[';
  return write(digits.write(at), category.closing);
}

}  // namespace

/// Names shorter than three bytes get no brackets, and names are cut two bytes shorter than in a
/// map: older versions wrote names with a two-letter prefix.
char* write_loop_name(char* out, std::string_view name) noexcept {
  constexpr std::size_t kMax = kMaxPortableName - 2;
  while (name.starts_with(' ')) name.remove_prefix(1);
  while (name.ends_with(' ')) name.remove_suffix(1);
  if (name.empty()) return add(out, "?");
  // Scratch space after the result: a byte becomes at most four.
  char* const escaped = out + 12 * name.size() + 48;
  char* const end = cut_name(escaped, escape_name(escaped, name), kMax);
  return write_unambiguous(out, {escaped, static_cast<std::size_t>(end - escaped)});
}

bool begins_as_jitlog(std::string_view text) noexcept {
  const std::string_view rest = after_digits(text);
  if (rest.size() < text.size() && rest.starts_with("# ")) text = without_first(rest, 2);
  if (!text.starts_with('[')) return false;
  const std::string_view tick = after_hex(without_first(text, 1));
  return tick.size() < text.size() - 1 && tick.starts_with("] {");
}

std::size_t JitlogTicks::write_name(char (&out)[kMaxName]) const noexcept {
  if (script_ != nullptr || (counts_ && kCounter == nullptr)) return 0;
  int size = std::snprintf(out, sizeof out, "%s", counts_ ? kCounter : "CLOCK_MONOTONIC ns");
#if defined(__aarch64__)
  unsigned long long each_second = 0;
  asm volatile("mrs %0, cntfrq_el0" : "=r"(each_second));
  if (counts_) size = std::snprintf(out, sizeof out, "%s %llu Hz", kCounter, each_second);
#endif
  return static_cast<std::size_t>(size);
}

JitlogLoops::~JitlogLoops() {
  const std::uint32_t count = count_.load();
  for (JitlogLoop loop = 1; loop <= count; ++loop) std::free(const_cast<char*>(name(loop).data()));
  for (std::string_view* const chunk : chunks_) std::free(chunk);
  std::free(table_);
}

/// The slot of the name in the table, or the free slot for it.
JitlogLoop* JitlogLoops::find(std::string_view name) const noexcept {
  const std::uint64_t hash = hash_of_bytes(name);
  for (std::size_t at = hash ^ hash >> 32;; ++at) {
    JitlogLoop& place = table_[at & (table_size_ - 1)];
    if (place == 0 || this->name(place) == name) return &place;
  }
}

bool JitlogLoops::grow_table() noexcept {
  const std::size_t size = table_size_ == 0 ? 64 : 2 * table_size_;
  auto* const made = static_cast<JitlogLoop*>(std::calloc(size, sizeof(JitlogLoop)));
  if (made == nullptr) return false;
  std::free(std::exchange(table_, made));
  table_size_ = size;
  const std::uint32_t count = count_.load(std::memory_order_relaxed);
  for (JitlogLoop loop = 1; loop <= count; ++loop) *find(name(loop)) = loop;
  return true;
}

JitlogLoop JitlogLoops::add(std::string_view name) noexcept {
  const JitlogLoop next = count_.load(std::memory_order_relaxed) + 1;
  if (2 * std::size_t{next} > table_size_ && !grow_table()) return 0;
  JitlogLoop* const place = find(name);
  if (*place != 0) return *place;
  const std::size_t chunk = chunk_of(next);
  if (chunk >= kChunks) return 0;
  if (chunks_[chunk] == nullptr) {
    void* const room = std::malloc(sizeof(std::string_view) << chunk);
    chunks_[chunk] = static_cast<std::string_view*>(room);
  }
  auto* const kept = static_cast<char*>(std::malloc(name.size() + 1));
  if (chunks_[chunk] == nullptr || kept == nullptr) {
    std::free(kept);
    return 0;
  }
  std::memcpy(kept, name.data(), name.size());
  chunks_[chunk][next - (std::size_t{1} << chunk)] = {kept, name.size()};
  *place = next;
  count_.store(next, std::memory_order_release);
  return next;  // NOLINT(clang-analyzer-unix.Malloc): the chunk keeps the name
}

namespace {

/// The logs in which the calling thread has recorded; it leaves them when it ends.
struct Joined {
  JitlogEngine* engine;
  JitlogBuffer* buffer;
  unsigned generation;
  Joined* next;
};
constinit thread_local Joined* joined = nullptr;

void leave_logs() noexcept {
  jitlog_here = {};
  for (Joined* at = std::exchange(joined, nullptr); at != nullptr;) {
    at->engine->leave(*at->buffer, at->generation);
    at->engine->release();
    std::free(std::exchange(at, at->next));
  }
}

/// A thread may set this to anything at its end. exit(3) ends its own thread, too.
struct ThreadEnd {
  ThreadEnd() noexcept : has_key(::pthread_key_create(&key, [](void*) { leave_logs(); }) == 0) {}
  pthread_key_t key{};
  bool has_key;
};
const ThreadEnd kThreadEnd;

[[gnu::destructor]] void end_process() {
  leave_logs();
  if (kThreadEnd.has_key) ::pthread_key_delete(kThreadEnd.key);
}

Joined* joined_to(const JitlogEngine& engine) noexcept {
  Joined* at = joined;
  while (at != nullptr && at->engine != &engine) at = at->next;
  return at;
}

/// Without a lock, because a log may be closed at any time.
void forget_closed_logs() noexcept {
  for (Joined** link = &joined; *link != nullptr;) {
    if ((*link)->engine->is_recording()) {
      link = &(*link)->next;
      continue;
    }
    Joined* const gone = std::exchange(*link, (*link)->next);
    gone->engine->release();
    std::free(gone);
  }
}

bool join_log(JitlogEngine& engine, JitlogBuffer& buffer, unsigned generation) noexcept {
  Joined* at = joined_to(engine);
  if (at == nullptr) {
    at = static_cast<Joined*>(std::malloc(sizeof(Joined)));
    if (at == nullptr) return false;
    engine.retain();
    joined = new (at) Joined{&engine, nullptr, 0, joined};
    if (kThreadEnd.has_key) ::pthread_setspecific(kThreadEnd.key, &joined);
  }
  at->buffer = &buffer;
  at->generation = generation;
  return true;
}

std::uint64_t next_serial() noexcept {
  constinit static std::atomic<std::uint64_t> given{0};
  return (given.fetch_add(1, std::memory_order_relaxed) + 1) << 32;
}

bool has_letter(std::uint64_t tick) noexcept {
  for (; tick != 0; tick >>= 4) {
    if ((tick & 15) > 9) return true;
  }
  return false;
}

/// For a file with content.
bool is_log(const AppendFile& file) noexcept {
  std::array<char, 64> begin;
  const ssize_t got = ::pread(file.descriptor(), begin.data(), begin.size(), 0);
  return got > 0 && begins_as_jitlog({begin.data(), static_cast<std::size_t>(got)});
}

constexpr unsigned rules_of(bool own) noexcept {
  return own ? AppendFile::regular | AppendFile::ours | AppendFile::one_name : AppendFile::any;
}

/// Opens an existing log and locks it.
int open_existing(AppendFile& file, const char* path, bool own) noexcept {
  const int error = file.open(path, AppendFile::Create::never, rules_of(own));
  return error != 0 ? error : file.lock();
}

iovec part(std::string_view bytes) noexcept {
  return {const_cast<char*>(bytes.data()), bytes.size()};
}

}  // namespace

struct JitlogEngine::ClockText {
  char bytes[room_for_section(JitlogTicks::kMaxName)];
};

JitlogEngine* JitlogEngine::make_engine(const JitlogOptions& options,
                                        const JitlogTicks& ticks) noexcept {
  auto* const made = make_object<JitlogEngine>(options, ticks);
  if (made != nullptr && made->text_ == nullptr) {
    destroy_object(made);
    return nullptr;
  }
  return made;
}

JitlogEngine::JitlogEngine(const JitlogOptions& options, const JitlogTicks& ticks) noexcept
    : ForkSafeFile(steps_of<JitlogEngine>(), State::closed, State::silent),
      options_(options),
      ticks_(ticks),
      clock_size_(ticks.write_name(clock_)),
      serial_(next_serial()),
      text_(static_cast<char*>(std::malloc(kText))) {
  fork_ = options.fork;
  generation_ = ForkHandlers::generation();
}

JitlogEngine::~JitlogEngine() {
  close();
  leave_list();
  while (first_ != nullptr) std::free(std::exchange(first_, first_->next));
  std::free(text_);
}

int JitlogEngine::open(const char* pattern) noexcept {
  const Locked locked(mutex_);
  if (locked.is_deadlock()) return EDEADLK;
  const int error = set_pattern({}, pattern);
  return error != 0 ? error : make();
}

int JitlogEngine::open(int fd, const char* name) noexcept {
  const Locked locked(mutex_);
  if (locked.is_deadlock()) return EDEADLK;
  set_path(name);
  const int error = file_.open(fd);
  if (error == 0) begin();
  return error;
}

void JitlogEngine::begin() noexcept {
  begun_ = false;
  state_ = State::open;
  key_ = serial_;
}

int JitlogEngine::loop(std::string_view name, JitlogLoop& loop) noexcept {
  char* const room = static_cast<char*>(std::malloc(room_for_loop(name.size())));
  if (room == nullptr) return ENOMEM;
  const std::string_view written(room,
                                 static_cast<std::size_t>(write_loop_name(room, name) - room));
  int error = 0;
  if (options_.names == NamePolicy::refuse && written != name) {
    error = EILSEQ;
  } else {
    const Locked locked(mutex_);
    loop = locked.is_deadlock() ? 0 : loops_.add(written);
    error = locked.is_deadlock() ? EDEADLK : loop != 0 ? 0 : ENOMEM;
  }
  std::free(room);
  return error;
}

int JitlogEngine::record_newly(JitlogLoop loop, bool is_exit) noexcept {
  const NoCancel uncancelled;
  JitlogBuffer* buffer = nullptr;
  forget_closed_logs();
  const int error = enter_thread(buffer);
  return error != 0 || buffer == nullptr ? error : record_in(*buffer, loop, is_exit);
}

/// Without a buffer, events are dropped.
int JitlogEngine::enter_thread(JitlogBuffer*& buffer) noexcept {
  const Locked locked(mutex_);
  if (locked.is_deadlock()) return EDEADLK;
  if (const int error = ready(); error != 0 || state_ == State::silent) return error;
  const Joined* const at = joined_to(*this);
  if (at != nullptr && at->generation == generation_) {
    buffer = at->buffer;
  } else if (const int error = join(buffer); error != 0) {
    return error;
  }
  jitlog_here = {serial_ | generation_, buffer};
  return 0;
}

int JitlogEngine::join(JitlogBuffer*& buffer) noexcept {
  const int tid = ::gettid();
  if (options_.one_thread && owner_ != 0 && owner_ != tid) return EPERM;
  JitlogBuffer* const made = unused_buffer();
  if (made == nullptr || !join_log(*this, *made, generation_)) return ENOMEM;
  made->used = true;
  made->first_tick = clock_size_ == 0 ? 0 : tick_with_letter();
  ++threads_;
  owner_ = tid;
  if (!options_.one_thread) {
    char prefix[16];
    std::snprintf(prefix, sizeof prefix, "%u# ", threads_);
    made->prefix = JitlogPrefix(prefix);
  }
  buffer = made;
  return 0;
}

/// Buffers are never freed here: a child may be forked at any time.
JitlogBuffer* JitlogEngine::unused_buffer() noexcept {
  for (JitlogBuffer* at = first_; at != nullptr; at = at->next) {
    if (!at->used) return at;
  }
  const std::uint32_t wanted = options_.buffer_events;
  JitlogBuffer* const made = JitlogBuffer::make(
      wanted == 0 ? JitlogOptions::kUsualBuffer : std::min(wanted, JitlogOptions::kMaxBuffer));
  if (made == nullptr) return nullptr;
  made->next = first_;
  first_ = made;
  return made;
}

/// Waits until the clock reaches a hexadecimal letter; the time is never altered. A clock that
/// stands still has none.
std::uint64_t JitlogEngine::tick_with_letter() const noexcept {
  constexpr int kTries = 10'000;
  std::uint64_t tick = ticks_.now();
  for (int i = 0; i < kTries && !has_letter(tick); ++i) tick = ticks_.now();
  return tick;
}

/// Formats as many of the pending events as fit.
JitlogEngine::Block JitlogEngine::format(const JitlogBuffer& buffer, std::uint32_t end) noexcept {
  const char* const limit = text_ + kText;
  char* at = text_;
  std::uint32_t i = buffer.written;
  for (; i != end; ++i) {
    const JitlogEvent& event = buffer.events[i];
    const std::string_view name = loops_.name(event.loop);
    const auto room = static_cast<std::size_t>(limit - at);
    if (room_for_section(name.size()) > room) break;
    at = write_section(at, event.is_exit != 0 ? kExit : kEnter, event.tick, name, buffer.prefix);
  }
  return {{text_, static_cast<std::size_t>(at - text_)}, i};
}

/// At the start of the log: the clock that it uses. Empty if the clock is not stated.
std::string_view JitlogEngine::clock_section(const JitlogBuffer& buffer,
                                             ClockText& text) const noexcept {
  if (begun_ || clock_size_ == 0) return {};
  const char* const end =
      write_section(text.bytes, kClock, buffer.first_tick, {clock_, clock_size_}, buffer.prefix);
  return {text.bytes, static_cast<std::size_t>(end - text.bytes)};
}

/// Appends both with one writev(2): complete sections or nothing.
int JitlogEngine::append(std::string_view first, std::string_view second) noexcept {
  const std::size_t total = first.size() + second.size();
  std::array<iovec, 2> parts = {part(first), part(second)};
  return file_.append(parts.data(), parts.size(), total);
}

int JitlogEngine::write_out(JitlogBuffer& buffer) noexcept {
  const std::uint32_t end = buffer.count.load(std::memory_order_acquire);
  ClockText clock;
  int error = 0;
  while (buffer.written != end) {
    const Block block = format(buffer, end);
    error = append(clock_section(buffer, clock), block.text);
    begun_ = begun_ || error == 0;
    if (error != 0) lost_ += end - buffer.written;
    buffer.written = error != 0 ? end : block.end;
  }
  note(error);
  return error;
}

void JitlogEngine::note(int error) noexcept {
  int none = 0;
  if (error != 0) error_.compare_exchange_strong(none, error);
}

int JitlogEngine::write_full(JitlogBuffer& buffer) noexcept {
  const Locked locked(mutex_);
  if (locked.is_deadlock()) return EDEADLK;
  const int error = write_out(buffer);
  buffer.clear();
  return error;
}

void JitlogEngine::write_all() noexcept {
  for (JitlogBuffer* at = first_; at != nullptr; at = at->next) write_out(*at);
}

int JitlogEngine::flush() noexcept {
  const Locked locked(mutex_);
  if (locked.is_deadlock()) return EDEADLK;
  if (is_to_inherit()) return 0;  // what is buffered is the parent's
  enter_process();
  if (state_ == State::open) write_all();
  return error_.load();
}

int JitlogEngine::close() noexcept {
  const Locked locked(mutex_);
  if (locked.is_deadlock()) return EDEADLK;
  if (generation_ != 0 && !is_entered()) leave_parent();  // nothing is copied for a child that ends
  const bool was_open = state_ == State::open;
  key_ = 0;
  state_ = State::closed;  // before the file is closed: a child forked now must see that
  if (!was_open) return error_.load();
  write_all();
  // Another writer may open the log now, even if children still have its descriptor.
  if (!file_.fd_was_replaced()) file_.unlock();
  note(file_.close());
  return error_.load();
}

void JitlogEngine::leave(JitlogBuffer& buffer, unsigned generation) noexcept {
  const Locked locked(mutex_);
  if (locked.is_deadlock()) return;
  // Otherwise the buffers hold the parent's events.
  if (generation != generation_ || !is_entered()) return;
  if (state_ == State::open) {
    write_out(buffer);
    buffer.clear();
  }
  buffer.used = false;
}

void JitlogEngine::refuse_and_note(int error) noexcept {
  refuse(error);
  note(error);
}

int JitlogEngine::make() noexcept {
  int error = set_own_path();
  bool was_made = false;
  if (error == 0) error = file_.open_locked(path_, rules_of(options_.own_log), was_made);
  if (error == 0 && file_.is_regular() && file_.size() != 0) {
    error = is_log(file_) ? file_.cut(0) : EBADMSG;
  }
  if (error == 0) {
    begin();
  } else {
    file_.close();
    refuse_and_note(error == EBADMSG ? EINVAL : error);
  }
  return error;
}

/// Drops the events of threads that the child does not have.
void JitlogEngine::drop_events(JitlogBuffer* kept) noexcept {
  for (JitlogBuffer* at = first_; at != nullptr; at = at->next) {
    at->clear();
    at->used = at == kept;
  }
}

void JitlogEngine::detach() noexcept {
  key_ = 0;
  if (refusal_ == EBADF) {
    lost_ = 0;
    error_ = 0;
  }
  file_.close();
  drop_events(nullptr);
  threads_ = 0;
  owner_ = 0;
}

/// If the log was being written at the fork, its content is unknown, and the child's log begins
/// empty.
int JitlogEngine::inherit() noexcept {
  if (!is_whole_) return kLetGo;
  key_ = 0;
  lost_ = 0;
  error_ = 0;
  if (const int error = inherit_log(); error != 0) {
    refuse_and_note(error == EEXIST ? EINVAL : error);  // it is not a log
    return kLetGo;
  }
  key_ = serial_;
  return 0;
}

int JitlogEngine::inherit_log() noexcept {
  char path[kMaxPath];
  if (const int error = write_own_path(path); error != 0) return error;
  const bool own = options_.own_log;
  WholeFile copy;
  int error = copy.create(path);
  if (error == 0) error = copy.append_lines(file_.descriptor(), file_.size());
  for (JitlogBuffer* at = first_; at != nullptr && error == 0; at = at->next) {
    error = append_events(copy, *at);
  }
  if (error == 0) {
    error = copy.publish_over([&] {  // if a former process of this pid left its log
      AppendFile former;
      const int failed = open_existing(former, path, own);
      if (failed != 0) return failed;
      if (former.size() != 0 && !is_log(former)) return EEXIST;
      return ::unlink(path) == 0 ? 0 : errno;
    });
  }
  AppendFile made;
  if (error == 0) error = open_existing(made, path, own);
  if (error != 0) return error;
  file_.swap(made);
  std::memcpy(path_, path, sizeof path);
  Joined* const at = joined_to(*this);
  JitlogBuffer* const kept = at != nullptr && at->generation == generation_ ? at->buffer : nullptr;
  if (kept != nullptr) at->generation = ForkHandlers::generation();
  owner_ = kept != nullptr ? ::gettid() : 0;
  drop_events(kept);
  return 0;
}

/// Appends what a thread of the parent had recorded but not written.
int JitlogEngine::append_events(WholeFile& copy, JitlogBuffer& buffer) noexcept {
  const std::uint32_t end = buffer.count.load(std::memory_order_acquire);
  ClockText clock;
  int error = 0;
  while (error == 0 && buffer.written < end) {
    const Block block = format(buffer, end);
    error = copy.append(clock_section(buffer, clock));
    if (error == 0) error = copy.append(block.text);
    begun_ = true;
    buffer.written = block.end;
  }
  return error;
}

}  // namespace perfmap
