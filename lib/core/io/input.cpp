#include "perfmap/input.hpp"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <fcntl.h>
#include <linux/openat2.h>
#include <mutex>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <utility>

#include "base/descriptor.hpp"
#include "io/chunk_reader.hpp"
#include "io/mapping.hpp"

namespace perfmap {

namespace {

constexpr std::size_t kFingerprint = 64;
/// How many of the last settled bytes are compared: a last line that was incomplete, with a long
/// name, must fit.
constexpr std::size_t kSettledEnd = 4096;
/// For smaller files, reading instead of touching the mapping saves only a few page faults.
constexpr std::size_t kWorthReading = std::size_t{256} << 10;

std::string cannot_open(const std::string& name) {
  return "cannot open " + (name.empty() ? "''" : name);
}

/// "it belongs to user 1001, not to user 0 or 1000".
std::string foreign_owner(uid_t owner, std::vector<uid_t> owners) {
  std::sort(owners.begin(), owners.end());
  owners.erase(std::unique(owners.begin(), owners.end()), owners.end());
  std::string text = "it belongs to user " + std::to_string(owner) + ", not to user ";
  for (std::size_t i = 0; i < owners.size(); ++i) {
    if (i != 0) text += i + 1 == owners.size() ? " or " : ", ";
    text += std::to_string(owners[i]);
  }
  return text;
}

/// Why the policy rejects this file, or nothing.
std::string objection(const struct stat& status, const OpenPolicy& policy) {
  if (policy.regular_only && !S_ISREG(status.st_mode)) return "not a regular file";
  const auto& owners = policy.owners;
  if (!owners.empty() && std::find(owners.begin(), owners.end(), status.st_uid) == owners.end()) {
    return foreign_owner(status.st_uid, owners);
  }
  return {};
}

/// The open must not hang on a FIFO without a writer or on a device, if the path was found, not
/// typed.
int flags_of(const OpenPolicy& policy) {
  return O_RDONLY | O_CLOEXEC | O_NOCTTY | (policy.follow_link ? 0 : O_NOFOLLOW) |
         (policy.regular_only ? O_NONBLOCK : 0);
}

/// ELOOP under O_NOFOLLOW means that the path is a link, so it gets another message.
Error open_error(const std::string& name, int sys_errno, const OpenPolicy& policy) {
  if (sys_errno == ELOOP && !policy.follow_link) {
    return {Errc::refused, cannot_open(name) + ": it is a symbolic link", sys_errno, {}};
  }
  return system_error(cannot_open(name), sys_errno);
}

/// Reads a descriptor without a size of its own (a stream) to its end.
Result<std::string> read_stream(int fd, const std::string& name, std::uint64_t max) {
  std::string text;
  constexpr std::size_t kBlock = std::size_t{256} << 10;
  for (;;) {
    const std::size_t have = text.size();
    if (have > max) {
      return Failure({Errc::too_large,
                      "cannot read " + name + ": more than " + std::to_string(max >> 20) +
                          " MiB from what is not a regular file",
                      0,
                      {}});
    }
    text.resize(have + kBlock);
    const ssize_t got = ::read(fd, text.data() + have, kBlock);
    if (got < 0 && errno != EINTR) return Failure(system_error("cannot read " + name, errno));
    text.resize(have + static_cast<std::size_t>(std::max<ssize_t>(got, 0)));
    if (got == 0) return text;
  }
}

/// Keeps the descriptor of a file for its first reader. A process has few descriptors, and a caller
/// that opens thousands of maps must not run out of them.
class UnreadDescriptor {
 public:
  UnreadDescriptor() = default;
  UnreadDescriptor(const UnreadDescriptor&) = delete;
  UnreadDescriptor& operator=(const UnreadDescriptor&) = delete;
  ~UnreadDescriptor() { const Descriptor closed(take()); }

  void keep(int fd) noexcept {
    if (kept_.fetch_add(1, std::memory_order_relaxed) < kMaxKept) {
      fd_ = ::fcntl(fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
    }
    if (fd_ < 0) kept_.fetch_sub(1, std::memory_order_relaxed);
  }
  int take() noexcept {
    const int fd = fd_.exchange(-1);
    if (fd >= 0) kept_.fetch_sub(1, std::memory_order_relaxed);
    return fd;
  }

 private:
  static constexpr int kMaxKept = 16;
  static std::atomic<int> kept_;
  std::atomic<int> fd_{-1};
};

std::atomic<int> UnreadDescriptor::kept_{0};

/// See OpenPolicy::bounded.
bool is_out_of_bounds(const struct stat& status) noexcept {
  constexpr off_t kMaxBytes = off_t{64} << 30;
  constexpr off_t kMaxHoles = off_t{1} << 30;
  constexpr off_t kSmall = off_t{16} << 20;
  constexpr off_t kBlock = 512;  // for every file system
  if (!S_ISREG(status.st_mode)) return false;
  const off_t stored =
      status.st_blocks * kBlock;  // also smaller than the size in a compressed file
  return status.st_size > kMaxBytes ||
         (status.st_size > kMaxHoles && stored < status.st_size / 2) ||
         (status.st_size > kSmall && stored < status.st_size / 16);
}

}  // namespace

FileFacts facts_of(const struct stat& status) noexcept {
  FileFacts facts;
  facts.is_file = true;
  facts.was_link = S_ISLNK(status.st_mode);
  facts.is_regular = S_ISREG(status.st_mode);
  facts.device = status.st_dev;
  facts.inode = status.st_ino;
  facts.size = static_cast<std::uint64_t>(status.st_size);
  facts.mtime_ns = status.st_mtim.tv_sec * 1'000'000'000 + status.st_mtim.tv_nsec;
  facts.mode = status.st_mode;
  facts.uid = status.st_uid;
  return facts;
}

/// Either a mapping or a string.
struct Input::Storage {
  Mapping mapping;
  std::string text;
  UnreadDescriptor unread;
};

Result<Input> Input::take(int fd, std::string name, const OpenPolicy& policy, bool by_path) {
  struct stat status {};
  if (::fstat(fd, &status) != 0) return Failure(system_error(cannot_open(name), errno));
  if (S_ISDIR(status.st_mode)) return Failure(system_error(cannot_open(name), EISDIR));
  if (const std::string why = objection(status, policy); !why.empty()) {
    return Failure({Errc::refused, cannot_open(name) + ": " + why, 0, {}});
  }
  if (policy.bounded && is_out_of_bounds(status)) {
    return Failure(
        {Errc::too_large, cannot_open(name) + ": it is too large to be believed", 0, {}});
  }
  Input input;
  input.storage_ = std::make_shared<Storage>();
  input.facts_ = facts_of(status);
  const off_t position = S_ISREG(status.st_mode) ? ::lseek(fd, 0, SEEK_CUR) : -1;
  // Files of /proc and the like are regular and claim size 0. A partly read stdin continues from
  // its position. Both are read as streams.
  if (status.st_size > 0 && position == 0) {
    input.storage_->mapping = Mapping(fd, static_cast<std::size_t>(status.st_size));
    if (!input.storage_->mapping.mapped()) {
      return Failure(system_error("cannot map " + name, errno));
    }
    input.text_ = input.storage_->mapping.text();
    if (policy.keep_descriptor && input.text_.size() >= kWorthReading) {
      input.storage_->unread.keep(fd);
    }
  } else {
    Result<std::string> text = read_stream(fd, name, policy.max_stream_bytes);
    if (!text) return Failure(std::move(text.error()));
    input.storage_->text = *std::move(text);
    input.text_ = input.storage_->text;
  }
  input.commit(input.text_.size());
  input.name_ = std::move(name);
  input.policy_ = policy;
  input.by_path_ = by_path && S_ISREG(status.st_mode);
  return input;
}

Result<Input> Input::open(const std::string& path, const OpenPolicy& policy) {
  const Descriptor fd(::open(path.c_str(), flags_of(policy)));
  if (!fd.is_open()) return Failure(open_error(path, errno, policy));
  Result<Input> input = take(fd.get(), path, policy, true);
  struct stat link {};
  if (input && ::lstat(path.c_str(), &link) == 0) input->facts_.was_link = S_ISLNK(link.st_mode);
  return input;
}

Result<Input> Input::open_below(int root_fd, const std::string& path, std::string name,
                                const OpenPolicy& policy) {
  open_how how{};
  how.flags = static_cast<std::uint64_t>(flags_of(policy));
  how.resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS;
  const long opened = ::syscall(SYS_openat2, root_fd, path.c_str(), &how, sizeof how);
  if (opened < 0) return Failure(open_error(name, errno, policy));
  const Descriptor fd(static_cast<int>(opened));
  return take(fd.get(), std::move(name), policy, false);
}

Result<Input> Input::from_descriptor(int fd, std::string name, const OpenPolicy& policy) {
  return take(fd, std::move(name), policy, false);
}

Input Input::from_text(std::string text, std::string name) {
  Input input;
  input.storage_ = std::make_shared<Storage>();
  input.storage_->text = std::move(text);
  input.text_ = input.storage_->text;
  input.name_ = std::move(name);
  return input;
}

int Input::take_descriptor() const noexcept { return storage_->unread.take(); }

bool Input::was_truncated() const noexcept { return storage_->mapping.was_truncated(); }

void Input::commit(std::size_t size) {
  settled_size_ = size;
  settled_begin_ = text_.substr(0, std::min(size, kFingerprint));
  settled_end_ = text_.substr(size - std::min(size, kSettledEnd), std::min(size, kSettledEnd));
  unsettled_ = text_.substr(size, kFingerprint);
}

bool Input::is_same_file(const FileFacts& now) const noexcept {
  return now.is_regular && now.device == facts_.device && now.inode == facts_.inode;
}

/// A mapped file that is written through another mapping may keep its modification time.
bool Input::is_unchanged(const FileFacts& now) const noexcept {
  if (now.size != text_.size()) return false;
  if (unsettled_.empty()) return now.mtime_ns == facts_.mtime_ns;
  return text_.substr(settled_size_, unsettled_.size()) == unsettled_ && continues(text_);
}

bool Input::continues(std::string_view now) const noexcept {
  return now.size() >= settled_size_ && now.starts_with(settled_begin_) &&
         now.substr(0, settled_size_).ends_with(settled_end_);
}

/// Maps the file again as it is now. The old mapping is never resized, because copies of this input
/// still use it.
Result<Input> Input::take_again() const {
  if (open_again_) {
    Result<Input> fresh = open_again_();
    if (fresh) fresh->open_again_ = open_again_;
    return fresh;
  }
  const Descriptor fd(::open(name_.c_str(), flags_of(policy_)));
  if (!fd.is_open()) return Failure(open_error(name_, errno, policy_));
  struct stat status {};
  if (::fstat(fd.get(), &status) != 0) return Failure(system_error(cannot_open(name_), errno));
  // An unchanged file is not mapped again.
  const FileFacts now = facts_of(status);
  if (is_same_file(now) && is_unchanged(now)) return *this;
  return take(fd.get(), name_, policy_, true);
}

Result<Growth> Input::refresh() {
  if (!by_path_ && !open_again_) return Growth::unchanged;
  Result<Input> fresh = take_again();
  if (!fresh) return Failure(std::move(fresh.error()));
  const std::size_t had = settled_size_;
  const bool same = is_same_file(fresh->facts_);
  if (same && is_unchanged(fresh->facts_)) return Growth::unchanged;
  const bool appended = same && continues(fresh->text_);
  const bool longer = fresh->text_.size() > had;
  *this = *std::move(fresh);
  if (!appended) return Growth::replaced;
  return longer ? Growth::appended : Growth::unchanged;
}

namespace {

/// The signal handler's data: fixed storage, accessed with atomics only. A mapping that finds no
/// free slot is not guarded.
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
    ::signal(signal, SIG_DFL);  // the instruction runs again, and now the signal is fatal
  }
}

/// Maps a page of zeros at the faulting address if that lies in one of our mappings. mmap(2) is not
/// on POSIX's list of async-signal-safe functions, but on Linux it is a plain system call.
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
  slots[slot].end.store(0);  // an empty range while the two ends change
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

struct LineBlocks::State {
  static constexpr std::size_t kBlock = std::size_t{1} << 20;

  Descriptor own;
  int fd = -1;
  std::string name;
  std::string buffer;
  std::size_t size = 0;      // bytes read into it
  std::size_t handed = 0;    // of those, bytes returned by next()
  std::size_t kept = 0;      // of those, bytes present before the last read
  bool is_skipping = false;  // inside a line that was too long
  std::size_t skipped = 0;   // bytes of that line
  bool at_end = false;

  /// Keeps the bytes not returned yet, and reads more after them. The kept bytes hold no line end.
  Result<void> fill() {
    std::memmove(buffer.data(), buffer.data() + handed, size - handed);
    size -= handed;
    handed = 0;
    kept = size;
    if (buffer.size() < size + kBlock) buffer.resize(size + size / 2 + kBlock);
    ssize_t count = 0;
    do {
      count = ::read(fd, buffer.data() + size, kBlock);
    } while (count < 0 && errno == EINTR);
    if (count < 0) return Failure(system_error("cannot read " + name, errno));
    size += static_cast<std::size_t>(count);
    at_end = count == 0;
    return {};
  }

  std::string_view hand_out(std::size_t end) noexcept {
    const std::string_view block = std::string_view(buffer).substr(handed, end - handed);
    handed = end;
    return block;
  }
};

LineBlocks::LineBlocks(std::unique_ptr<State> state) : state_(std::move(state)) {}
LineBlocks::LineBlocks(LineBlocks&&) noexcept = default;
LineBlocks& LineBlocks::operator=(LineBlocks&&) noexcept = default;
LineBlocks::~LineBlocks() = default;

Result<LineBlocks> LineBlocks::open(const std::string& path) {
  const std::string what = "cannot open " + (path.empty() ? "''" : path);
  Descriptor fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY));
  struct stat status {};
  if (!fd.is_open() || ::fstat(fd.get(), &status) != 0) return Failure(system_error(what, errno));
  if (S_ISDIR(status.st_mode)) return Failure(system_error(what, EISDIR));
  LineBlocks blocks = of_descriptor(fd.get(), path);
  blocks.state_->own = std::move(fd);
  return blocks;
}

LineBlocks LineBlocks::of_descriptor(int fd, std::string name) {
  auto state = std::make_unique<State>();
  state->fd = fd;
  state->name = std::move(name);
  return LineBlocks(std::move(state));
}

Result<std::string_view> LineBlocks::next() {
  State& state = *state_;
  while (!state.at_end) {
    const Result<void> filled = state.fill();
    if (!filled) return Failure(filled.error());
    const std::string_view text = std::string_view(state.buffer).substr(0, state.size);
    if (state.is_skipping) {
      const std::size_t newline = text.find('\n');
      state.handed = newline == std::string_view::npos ? text.size() : newline + 1;
      state.is_skipping = newline == std::string_view::npos;
      state.skipped += state.handed;
      if (state.skipped > kEndlessLine) {
        return Failure({Errc::too_large,
                        "cannot read " + state.name + ": a line of more than " +
                            std::to_string(kEndlessLine >> 20) + " MiB",
                        0,
                        {}});
      }
      continue;
    }
    const std::size_t newline = text.substr(state.kept).rfind('\n');
    if (newline != std::string_view::npos) return state.hand_out(state.kept + newline + 1);
    if (text.size() > kMaxLine) {
      state.is_skipping = true;
      state.skipped = text.size();
      state.buffer[state.size - 1] = '\n';
      return state.hand_out(text.size());
    }
  }
  return state.hand_out(state.size);
}

const std::string& LineBlocks::name() const noexcept { return state_->name; }

namespace {

constexpr std::size_t kWindow = std::size_t{256} << 10;

}  // namespace

ChunkReader::ChunkReader(const Input& input, std::string_view text, std::uint64_t offset)
    : text_(text), offset_(offset), fd_(input.take_descriptor()) {
  if (fd_.is_open()) buffer_ = std::make_unique_for_overwrite<char[]>(kWindow);
}

/// The rest of the text, from the mapping.
Window ChunkReader::rest() noexcept {
  fd_ = {};
  const Window window{text_.substr(offset_), offset_};
  offset_ = text_.size();
  return window;
}

/// Fills the buffer; returns how many bytes it holds.
std::size_t ChunkReader::fill() {
  std::memmove(buffer_.get(), buffer_.get() + used_, have_ - used_);
  have_ -= used_;
  used_ = 0;
  const std::uint64_t max = std::min<std::uint64_t>(kWindow, text_.size() - offset_);
  while (have_ < max) {
    const ssize_t got =
        ::pread(fd_.get(), buffer_.get() + have_, max - have_, static_cast<off_t>(offset_ + have_));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) break;
    have_ += static_cast<std::size_t>(got);
  }
  return have_;
}

Window ChunkReader::next() {
  if (!fd_.is_open()) return rest();
  const bool last = fill() == text_.size() - offset_;
  const void* const newline = ::memrchr(buffer_.get(), '\n', have_);
  const std::size_t whole =
      newline == nullptr
          ? 0
          : static_cast<std::size_t>(static_cast<const char*>(newline) - buffer_.get()) + 1;
  used_ = last ? have_ : whole;
  // The line is longer than the buffer, or the file became shorter: use the mapping, which has the
  // line or notices the truncation.
  if (used_ == 0) return rest();
  const Window window{{buffer_.get(), used_}, offset_};
  offset_ += used_;
  return window;
}

}  // namespace perfmap
