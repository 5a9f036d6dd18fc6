#include "perfmap/input.hpp"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "bytes/descriptor.hpp"
#include "bytes/mapping.hpp"

namespace perfmap {
namespace {

constexpr std::size_t kFingerprint = 64;
/// Of settled bytes: a last line that was not quite there yet, all of it, as names go.
constexpr std::size_t kSettledEnd = 4096;
/// Below, a few page faults are all that there is to save.
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

/// Why a policy does not let this file in, or nothing.
std::string objection(const struct stat& status, const OpenPolicy& policy) {
  if (policy.regular_only && !S_ISREG(status.st_mode)) return "not a regular file";
  const auto& owners = policy.owners;
  if (!owners.empty() && std::find(owners.begin(), owners.end(), status.st_uid) == owners.end()) {
    return foreign_owner(status.st_uid, owners);
  }
  return {};
}

/// A FIFO without writer or a device must not hang the open of a file that was found, not typed.
int flags_of(const OpenPolicy& policy) {
  return O_RDONLY | O_CLOEXEC | O_NOCTTY | (policy.follow_link ? 0 : O_NOFOLLOW) |
         (policy.regular_only ? O_NONBLOCK : 0);
}

/// Blanks out what is not a link problem: ELOOP under O_NOFOLLOW means "is a link".
Error open_error(const std::string& name, int sys_errno, const OpenPolicy& policy) {
  if (sys_errno == ELOOP && !policy.follow_link) {
    return {Errc::refused, cannot_open(name) + ": it is a symbolic link", sys_errno, {}};
  }
  return system_error(cannot_open(name), sys_errno);
}

/// Reads a descriptor without size of its own to its end.
Result<std::string> read_stream(int fd, const std::string& name, std::uint64_t most) {
  std::string text;
  constexpr std::size_t kBlock = std::size_t{256} << 10;
  for (;;) {
    const std::size_t have = text.size();
    if (have > most) {
      return Failure({Errc::too_large,
                      "cannot read " + name + ": more than " + std::to_string(most >> 20) +
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

/// The descriptor of a file that nobody has gone over yet, for the one who does first. A process
/// has few descriptors, and whoever opens thousands of maps shall not run out of them here.
class UnreadDescriptor {
 public:
  UnreadDescriptor() = default;
  UnreadDescriptor(const UnreadDescriptor&) = delete;
  UnreadDescriptor& operator=(const UnreadDescriptor&) = delete;
  ~UnreadDescriptor() { const Descriptor closed(take()); }

  void keep(int fd) noexcept {
    if (kept_.fetch_add(1, std::memory_order_relaxed) < kMostKept) {
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
  static constexpr int kMostKept = 16;
  static std::atomic<int> kept_;
  std::atomic<int> fd_{-1};
};

std::atomic<int> UnreadDescriptor::kept_{0};

/// See OpenPolicy::bounded.
bool is_out_of_bounds(const struct stat& status) noexcept {
  constexpr off_t kMostBytes = off_t{64} << 30;
  constexpr off_t kMostHoles = off_t{1} << 30;
  constexpr off_t kSmall = off_t{16} << 20;
  constexpr off_t kBlock = 512;  // whatever the file system's
  if (!S_ISREG(status.st_mode)) return false;
  const off_t stored =
      status.st_blocks * kBlock;  // less than the size, too, where it is compressed
  return status.st_size > kMostBytes ||
         (status.st_size > kMostHoles && stored < status.st_size / 2) ||
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
  // Files of /proc and the like are regular and claim to be empty; a stdin that was read in part
  // goes on from where it is. Both are streams.
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
    Result<std::string> text = read_stream(fd, name, policy.most_stream_bytes);
    if (!text) return Failure(std::move(text.error()));
    input.storage_->text = *std::move(text);
    input.text_ = input.storage_->text;
  }
  input.settle(input.text_.size());
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

void Input::settle(std::size_t size) {
  settled_size_ = size;
  settled_begin_ = text_.substr(0, std::min(size, kFingerprint));
  settled_end_ = text_.substr(size - std::min(size, kSettledEnd), std::min(size, kSettledEnd));
  unsettled_ = text_.substr(size, kFingerprint);
}

bool Input::is_same_file(const FileFacts& now) const noexcept {
  return now.is_regular && now.device == facts_.device && now.inode == facts_.inode;
}

/// A mapped file that is written through another mapping need not get another time.
bool Input::is_unchanged(const FileFacts& now) const noexcept {
  if (now.size != text_.size()) return false;
  if (unsettled_.empty()) return now.mtime_ns == facts_.mtime_ns;
  return text_.substr(settled_size_, unsettled_.size()) == unsettled_ && goes_on(text_);
}

bool Input::goes_on(std::string_view now) const noexcept {
  return now.size() >= settled_size_ && now.starts_with(settled_begin_) &&
         now.substr(0, settled_size_).ends_with(settled_end_);
}

/// The file as it is now: a fresh mapping, never the old one resized, as copies of this input still
/// look at that.
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
  // Nothing is mapped for a file that is as it was.
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
  const bool appended = same && goes_on(fresh->text_);
  const bool longer = fresh->text_.size() > had;
  *this = *std::move(fresh);
  if (!appended) return Growth::replaced;
  return longer ? Growth::appended : Growth::unchanged;
}

}  // namespace perfmap
