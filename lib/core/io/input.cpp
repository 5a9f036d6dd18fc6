// SPDX-License-Identifier: MIT
#include "perfmap/input.hpp"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <utility>

#include "base/descriptor.hpp"
#include "base/found_file.hpp"
#include "base/mmap_vector.hpp"
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

std::string shown(const std::string& name) { return name.empty() ? "''" : name; }

Error cannot_open(const std::string& name, int sys_errno) {
  return system_error("cannot open", shown(name), sys_errno);
}

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

Result<void> check_policy(const std::string& name, const struct stat& status,
                          const OpenPolicy& policy) {
  const auto refuse = [&](Reason reason, std::string why = {}) {
    return Failure(Error::cannot("open", shown(name), reason, std::move(why)));
  };
  if (policy.regular_only && !S_ISREG(status.st_mode)) return refuse(Reason::not_regular);
  const auto& owners = policy.owners;
  if (!owners.empty() && std::find(owners.begin(), owners.end(), status.st_uid) == owners.end()) {
    return refuse(Reason::foreign_owner,
                  foreign_owner(status.st_uid, {owners.begin(), owners.end()}, ::geteuid()));
  }
  if (policy.one_name && S_ISREG(status.st_mode) && status.st_nlink > 1) {
    return refuse(Reason::hard_links, hard_links(status.st_nlink));
  }
  if (policy.bounded && is_out_of_bounds(status)) {
    return refuse(Reason::too_large, "it is too large");
  }
  return {};
}

int link_flag(const OpenPolicy& policy) { return policy.follow_link ? 0 : O_NOFOLLOW; }

/// ELOOP under O_NOFOLLOW means that the path is a link, so it gets another message.
Error open_error(const std::string& name, int sys_errno, const OpenPolicy& policy) {
  if (sys_errno == ELOOP && !policy.follow_link) {
    return Error::cannot("open", shown(name), Reason::symbolic_link).with_errno(sys_errno);
  }
  return cannot_open(name, sys_errno);
}

/// Opens a file by `open`, a function of flags for open(2) that returns a descriptor. A file that
/// was found, not typed, is checked before it is opened: opening a device may have effects, and so
/// may reading a file of the kernel's.
template <class Open>
Result<Descriptor> open_by(const Open& open, const std::string& name, const OpenPolicy& policy) {
  if (!policy.regular_only) {
    Descriptor fd(open(O_RDONLY | O_CLOEXEC | O_NOCTTY | link_flag(policy)));
    if (!fd.is_open()) return Failure(open_error(name, errno, policy));
    return fd;
  }
  const Descriptor found(open(O_PATH | O_CLOEXEC | link_flag(policy)));
  if (!found.is_open()) return Failure(open_error(name, errno, policy));
  Result<Descriptor> fd = open_found(found, name);
  if (fd || fd.error().code != Errc::not_found) return fd;
  // There is no /proc to open the checked file by: opened by its path again, if it is the same.
  Descriptor again(open(kReadFound | link_flag(policy)));
  if (!again.is_open()) return Failure(open_error(name, errno, policy));
  if (file_number(again.get()) == file_number(found.get())) return again;
  return Failure(Error::cannot("open", name, Reason::replaced, "it was replaced by another file"));
}

/// Reads a stream to its end.
Result<MmapVector<char>> read_stream(int fd, const std::string& name, const OpenPolicy& policy) {
  MmapVector<char> text;
  StreamLimits limits(policy, name);
  constexpr std::size_t kBlock = std::size_t{256} << 10;
  for (;;) {
    const std::size_t have = text.size();
    text.make_room(kBlock);
    const ssize_t got = ::read(fd, text.data() + have, kBlock);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return Failure(system_error("cannot read", name, errno));
    text.resize(have + static_cast<std::size_t>(got));
    if (got == 0) break;
    const Result<void> fits = limits.look_at({text.data(), text.size()});
    if (!fits) return failure(fits);
  }
  text.shrink();
  return text;
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

}  // namespace

StreamLimits::StreamLimits(const OpenPolicy& policy, std::string name)
    : check_(policy.check_start == nullptr ? StreamCheck() : *policy.check_start),
      max_bytes_(policy.max_stream_bytes),
      name_(std::move(name)) {}

Result<void> StreamLimits::look_at(std::string_view so_far) {
  const auto refused = [&](const std::string& why) {
    return Failure(Error::too_large("cannot read " + name_ + ": " + why));
  };
  if (check_ && so_far.size() >= next_look_) {
    const Result<StreamStart> start = check_(so_far);
    if (!start) return failure(start);
    if (*start == StreamStart::accepted) check_ = {};
    if (*start == StreamStart::undecided && so_far.size() >= kMaxUndecided) {
      return refused("its first " + std::to_string(kMaxUndecided >> 20) +
                     " MiB have no known format");
    }
    next_look_ = 2 * so_far.size();
  }
  if (so_far.size() <= max_bytes_) return {};
  return refused("more than " + std::to_string(max_bytes_ >> 20) +
                 " MiB, and it is not a regular file");
}

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

/// A mapping, a string or a stream.
struct Input::Storage {
  Mapping mapping;
  std::string text;
  MmapVector<char> stream;
  UnreadDescriptor unread;
};

Result<Input> Input::take(int fd, std::string name, const OpenPolicy& policy, bool by_path) {
  struct stat status {};
  if (::fstat(fd, &status) != 0) return Failure(cannot_open(name, errno));
  if (S_ISDIR(status.st_mode)) return Failure(cannot_open(name, EISDIR));
  if (const Result<void> checked = check_policy(name, status, policy); !checked) {
    return failure(checked);
  }
  Input input;
  input.storage_ = std::make_shared<Storage>();
  input.facts_ = facts_of(status);
  const off_t position = S_ISREG(status.st_mode) ? ::lseek(fd, 0, SEEK_CUR) : -1;
  // Files of /proc and the like are regular and claim size 0. A partly read stdin continues from
  // its position. Both are read as streams.
  if (status.st_size > 0 && position == 0) {
    input.storage_->mapping = Mapping(fd, static_cast<std::size_t>(status.st_size));
    if (!input.storage_->mapping.mapped()) return Failure(system_error("cannot map", name, errno));
    input.text_ = input.storage_->mapping.text();
    if (policy.keep_descriptor && input.text_.size() >= kWorthReading) {
      input.storage_->unread.keep(fd);
    }
  } else {
    Result<MmapVector<char>> text = read_stream(fd, name, policy);
    if (!text) return failure(text);
    input.storage_->stream = *std::move(text);
    input.text_ = {input.storage_->stream.data(), input.storage_->stream.size()};
  }
  input.commit(input.text_.size());
  input.name_ = std::move(name);
  input.policy_ = policy;
  input.policy_.check_start = nullptr;
  input.by_path_ = by_path && S_ISREG(status.st_mode);
  return input;
}

namespace {

Result<Descriptor> open_path(const std::string& path, const OpenPolicy& policy) {
  return open_by([&path](int flags) { return ::open(path.c_str(), flags); }, path, policy);
}

}  // namespace

Result<Input> Input::open(const std::string& path, const OpenPolicy& policy) {
  const Result<Descriptor> fd = open_path(path, policy);
  if (!fd) return failure(fd);
  Result<Input> input = take(fd->get(), path, policy, true);
  struct stat link {};
  if (input && ::lstat(path.c_str(), &link) == 0) input->facts_.was_link = S_ISLNK(link.st_mode);
  return input;
}

Result<Input> Input::open_below(int root_fd, const std::string& path, std::string name,
                                const OpenPolicy& policy) {
  const auto open = [&](int flags) {
    open_how how{};
    how.flags = static_cast<std::uint64_t>(flags);
    how.resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS;
    return static_cast<int>(::syscall(SYS_openat2, root_fd, path.c_str(), &how, sizeof how));
  };
  const Result<Descriptor> fd = open_by(open, name, policy);
  if (!fd) return failure(fd);
  return take(fd->get(), std::move(name), policy, false);
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
  // It was a regular file. A FIFO in its place must not hang us.
  OpenPolicy policy = policy_;
  policy.regular_only = true;
  const Result<Descriptor> fd = open_path(name_, policy);
  if (!fd) return failure(fd);
  struct stat status {};
  if (::fstat(fd->get(), &status) != 0) return Failure(cannot_open(name_, errno));
  // An unchanged file is not mapped again.
  const FileFacts now = facts_of(status);
  if (is_same_file(now) && is_unchanged(now)) return *this;
  Result<Input> fresh = take(fd->get(), name_, policy, true);
  if (fresh) fresh->policy_ = policy_;
  return fresh;
}

Result<Growth> Input::refresh() {
  if (!by_path_ && !open_again_) return Growth::unchanged;
  Result<Input> fresh = take_again();
  if (!fresh) return failure(fresh);
  const std::size_t had = settled_size_;
  const bool same = is_same_file(fresh->facts_);
  if (same && is_unchanged(fresh->facts_)) return Growth::unchanged;
  const bool appended = same && continues(fresh->text_);
  const bool longer = fresh->text_.size() > had;
  *this = *std::move(fresh);
  if (!appended) return Growth::replaced;
  return longer ? Growth::appended : Growth::unchanged;
}

TruncationGuard::TruncationGuard() noexcept { hold_truncation_guard(); }
TruncationGuard::~TruncationGuard() { drop_truncation_guard(); }

Mapping::Mapping(int fd, std::size_t size) noexcept {
  void* const begin = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, fd, 0);
  if (begin == MAP_FAILED) return;
  begin_ = static_cast<const char*>(begin);
  size_ = size;
  range_.cover(begin_, size_, false);
}

Mapping::Mapping(Mapping&& other) noexcept
    : begin_(std::exchange(other.begin_, nullptr)),
      size_(std::exchange(other.size_, 0)),
      range_(std::move(other.range_)) {}

Mapping& Mapping::operator=(Mapping&& other) noexcept {
  std::swap(begin_, other.begin_);
  std::swap(size_, other.size_);
  range_ = std::move(other.range_);
  return *this;
}

Mapping::~Mapping() {
  range_.release();
  if (begin_ != nullptr) ::munmap(const_cast<char*>(begin_), size_);
}

bool Mapping::was_truncated() const noexcept { return range_.was_truncated(); }

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
    if (count < 0) return Failure(system_error("cannot read", name, errno));
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
  Descriptor fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY));
  struct stat status {};
  if (!fd.is_open() || ::fstat(fd.get(), &status) != 0) return Failure(cannot_open(path, errno));
  if (S_ISDIR(status.st_mode)) return Failure(cannot_open(path, EISDIR));
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
    if (!filled) return failure(filled);
    const std::string_view text = std::string_view(state.buffer).substr(0, state.size);
    if (state.is_skipping) {
      const std::size_t newline = text.find('\n');
      state.handed = newline == std::string_view::npos ? text.size() : newline + 1;
      state.is_skipping = newline == std::string_view::npos;
      state.skipped += state.handed;
      if (state.skipped > kEndlessLine) {
        return Failure(Error::too_large("cannot read " + state.name + ": a line of more than " +
                                        std::to_string(kEndlessLine >> 20) + " MiB"));
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

ChunkReader::File ChunkReader::file_of(const Input& input) {
  return std::make_shared<const Descriptor>(input.take_descriptor());
}

ChunkReader::ChunkReader(File file, std::string_view text, std::uint64_t offset)
    : text_(text), offset_(offset), file_(std::move(file)) {
  if (file_->is_open()) buffer_ = std::make_unique_for_overwrite<char[]>(kWindow);
}

/// The rest of the text, from the mapping.
Window ChunkReader::rest() noexcept {
  file_ = {};
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
    const ssize_t got = ::pread(file_->get(), buffer_.get() + have_, max - have_,
                                static_cast<off_t>(offset_ + have_));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) break;
    have_ += static_cast<std::size_t>(got);
  }
  return have_;
}

Window ChunkReader::next() {
  if (!buffer_ || !file_) return rest();
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
