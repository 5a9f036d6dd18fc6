#include "perfmap/jitdump_writer.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <mutex>
#include <new>
#include <span>
#include <string>
#include <string_view>
#include <sys/uio.h>
#include <unistd.h>

#include "base/descriptor.hpp"
#include "io/record_file.hpp"
#include "jitdump/jitdump_records.hpp"
#include "perfmap/jitdump.hpp"
#include "perfmap/process_map.hpp"
#include "perfmap/text.hpp"
#include "writer/dump_file.hpp"
#include "writer/fork_guard.hpp"

namespace perfmap {

namespace {

/// Bytes that are put together for one write, in room that is kept for the next. Like a string but
/// for one thing: nothing is called for what has room.
class RecordBytes {
 public:
  const char* data() const noexcept { return room_.get(); }
  std::size_t size() const noexcept { return size_; }
  void clear() noexcept {
    size_ = 0;
    if (capacity_ > kMaxKept) forget();
  }

  void add(std::string_view bytes) {
    if (bytes.size() > capacity_ - size_) [[unlikely]]
      grow(bytes.size());
    if (!bytes.empty()) std::memcpy(room_.get() + size_, bytes.data(), bytes.size());
    size_ += bytes.size();
  }
  template <std::size_t kSize>
  void add(const std::array<char, kSize>& bytes) {
    add({bytes.data(), bytes.size()});
  }
  void add_name(std::string_view name) {
    add(name);
    add(std::array<char, 1>{'\0'});
  }
  /// Replaces what was added at `offset`.
  template <std::size_t kSize>
  void put(std::size_t offset, const std::array<char, kSize>& bytes) noexcept {
    std::memcpy(room_.get() + offset, bytes.data(), bytes.size());
  }

 private:
  static constexpr std::size_t kFirst = 4096;
  static constexpr std::size_t kMaxKept = std::size_t{1} << 20;

  void grow(std::size_t more) {
    std::size_t capacity = capacity_ < kFirst ? kFirst : 2 * capacity_;
    if (capacity < size_ + more) capacity = size_ + more;
    std::unique_ptr<char[]> room(new char[capacity]);
    if (size_ != 0) std::memcpy(room.get(), room_.get(), size_);
    room_ = std::move(room);
    capacity_ = capacity;
  }
  void forget() noexcept {
    capacity_ = 0;  // first: a child may be made in between
    room_.reset();
  }

  std::unique_ptr<char[]> room_;
  std::size_t capacity_ = 0;
  std::size_t size_ = 0;
};

/// What JitdumpWriter has behind it: a file, a lock, the bytes of the records at hand. All may be
/// called from several threads; load(), move() and close() answer 0 or an errno value.
class DumpEngine final : public ForkAware {
 public:
  explicit DumpEngine(const JitdumpOptions& options) noexcept;
  ~DumpEngine();
  DumpEngine(const DumpEngine&) = delete;
  DumpEngine& operator=(const DumpEngine&) = delete;

  Result<void> open_own(const std::string& directory);
  Result<void> open(const std::string& path);
  Result<void> open(int fd, const std::string& name);
  std::string path() noexcept;
  const JitdumpOptions& options() const noexcept { return options_; }

  int load(const JitFunction& function, std::uint64_t& index) noexcept;
  int move(std::uint64_t index, Address from, Address to, std::uint64_t size) noexcept;
  int close() noexcept;

 private:
  Result<void> begin(const Result<DumpStart>& start, bool marker);
  Result<void> open_own_locked();
  int ready();
  int enter_process();
  int leave_parent() noexcept;
  std::string own_path() const;
  int make_records(const JitFunction& function, std::string_view name);
  int add_info(const JitFunction& function, std::uint64_t time);
  int add_lines(const JitFunction& function, std::uint64_t time);
  int append_with_zeros(std::uint64_t count) noexcept;
  int append(std::span<iovec> parts, std::uint64_t total) noexcept;
  int append_bytes() noexcept;
  std::uint32_t thread() const noexcept;
  bool before_fork() noexcept override { return mutex_.lock_for_fork(); }
  void after_fork(bool is_between) noexcept override {
    if (is_between) mutex_.unlock();
  }
  void begin_child(bool is_between) noexcept override;

  // On cache lines of their own: who waits for the lock is not to slow down who has it.
  alignas(64) SpinMutex mutex_;
  alignas(64) RecordFile file_;
  JitdumpOptions options_;
  std::string path_;
  std::string directory_;  // of open_own(); empty: a child has no dump
  RecordBytes bytes_;      // records on their way, all but the code
  pid_t pid_ = 0;
  bool is_own_ = false;  // pid_ is the process that writes
  std::uint64_t next_index_ = 1;
  unsigned generation_ = 0;
  bool to_be_made_ = false;  // a child's own dump, at its first record
  bool silent_ = false;      // a child's that is not to have one
};

constexpr std::size_t kZeros = std::size_t{64} << 10;
constexpr std::uint64_t kMaxZeros = JitdumpWriter::kMaxZeros;

/// Stands in for code that is not given. Not const, so that it takes no room in the library.
char zeros[kZeros];

constexpr std::string_view kPadding("\0\0\0\0\0\0\0", 7);

iovec part(const char* bytes, std::size_t size) noexcept {
  return {const_cast<char*>(bytes), size};
}

/// Whether the lines ascend and lie within the function.
bool are_in_order(const JitFunction& function) noexcept {
  Address last = function.start;
  for (const LineRecord& line : function.lines) {
    if (line.address < last || line.address - function.start > function.size) return false;
    last = line.address;
  }
  return true;
}

int check(const JitFunction& function) noexcept {
  const JitUnwinding& unwinding = function.unwinding;
  const std::size_t unwinding_size = unwinding.eh_frame.size() + unwinding.eh_frame_hdr.size();
  const bool fits = unwinding.mapped_size == 0 || unwinding.mapped_size >= unwinding_size;
  const bool code =
      function.code.empty() ? function.size <= kMaxZeros : function.code.size() == function.size;
  return code && fits && function.size <= UINT64_MAX - function.start && are_in_order(function)
             ? 0
             : EINVAL;
}

DumpEngine::DumpEngine(const JitdumpOptions& options) noexcept
    : options_(options), generation_(ForkGuard::generation()) {}

DumpEngine::~DumpEngine() {
  close();
  Registry::get().remove(this);
}

Result<void> DumpEngine::open_own(const std::string& directory) {
  const std::lock_guard lock(mutex_);
  const NoCancel uncancelled;
  directory_ = directory;
  return open_own_locked();
}

Result<void> DumpEngine::open_own_locked() {
  path_ = own_path();
  return begin(open_own_dump(file_, path_), options_.marker);
}

Result<void> DumpEngine::open(const std::string& path) {
  const std::lock_guard lock(mutex_);
  const NoCancel uncancelled;
  path_ = path;
  return begin(open_dump(file_, path, options_), options_.marker);
}

Result<void> DumpEngine::open(int fd, const std::string& name) {
  const std::lock_guard lock(mutex_);
  const NoCancel uncancelled;
  path_ = name;
  if (const int error = file_.open(fd); error != 0) {
    return Failure(system_error("cannot open " + name, error));
  }
  const pid_t pid = options_.pid != 0 ? options_.pid : pid_of_name(name);
  return begin(DumpStart{.pid = pid != 0 ? pid : ::getpid()}, false);
}

/// The header, and the marker. Of what cannot be had a dump that was just made is not left behind.
Result<void> DumpEngine::begin(const Result<DumpStart>& start, bool marker) {
  if (!start) {
    file_.close();
    return Failure(start.error());
  }
  pid_ = start->pid;
  is_own_ = pid_ == ::getpid();
  next_index_ = start->next_index;
  int error = 0;
  if (start->is_new) {
    bytes_.clear();
    const JitdumpHeader header{.elf_mach = host_elf_machine(),
                               .pid = static_cast<std::uint32_t>(pid_),
                               .timestamp = monotonic_ns()};
    bytes_.add(fixed_part(header, std::endian::native));
    error = append_bytes();
  }
  if (error == 0 && marker && file_.is_regular()) error = file_.map_first_page();
  if (error == 0) return {};
  if (start->was_made) ::unlink(path_.c_str());
  file_.close();
  return Failure(system_error("cannot begin " + path_, error));
}

std::string DumpEngine::path() noexcept {
  const std::lock_guard lock(mutex_);
  return path_;
}

std::uint32_t DumpEngine::thread() const noexcept {
  struct Known {
    unsigned generation;
    pid_t tid;
  };
  thread_local Known known{0, 0};
  if (known.tid == 0 || known.generation != generation_) known = {generation_, ::gettid()};
  return static_cast<std::uint32_t>(known.tid);
}

int DumpEngine::load(const JitFunction& function, std::uint64_t& index) noexcept try {
  if (const int error = check(function); error != 0) return error;
  const bool as_is = is_plain_map_name(function.name);
  if (!as_is && options_.names == NamePolicy::refuse) return EILSEQ;
  const std::string changed = as_is ? std::string() : escape_map_name(function.name);
  const std::lock_guard lock(mutex_);
  const NoCancel uncancelled;
  if (const int error = ready(); error != 0) return error;
  if (silent_) return 0;
  const std::string_view name = as_is ? function.name : std::string_view(changed);
  int error = make_records(function, name);
  if (error == 0 && function.code.size() != function.size) {
    error = append_with_zeros(function.size);
  } else if (error == 0) {
    std::array<iovec, 2> parts = {part(bytes_.data(), bytes_.size()),
                                  part(function.code.data(), function.code.size())};
    error = append(parts, bytes_.size() + function.code.size());
  }
  if (error == 0) index = next_index_++;
  return error;
} catch (const std::bad_alloc&) {
  return ENOMEM;
}

/// All but the code, which is the end of the last record.
int DumpEngine::make_records(const JitFunction& function, std::string_view name) {
  bytes_.clear();
  const std::uint64_t time = function.time != 0 ? function.time : monotonic_ns();
  if (const int error = add_info(function, time); error != 0) return error;
  const std::uint64_t size = LoadRecord::kFixed + name.size() + 1 + function.size;
  if (function.size > UINT32_MAX || size > UINT32_MAX) return EOVERFLOW;
  LoadRecord load;
  load.range = {function.start, function.size};
  load.pid = static_cast<std::uint32_t>(pid_);
  load.tid = is_own_ ? thread() : load.pid;
  load.vma = function.start;
  load.code_size = function.size;
  load.code_index = next_index_;
  bytes_.add(fixed_part(load, static_cast<std::uint32_t>(size), time, std::endian::native));
  bytes_.add_name(name);
  return 0;
}

int DumpEngine::add_info(const JitFunction& function, std::uint64_t time) {
  if (!function.lines.empty()) {
    if (const int error = add_lines(function, time); error != 0) return error;
  }
  const JitUnwinding& given = function.unwinding;
  UnwindingRecord info;
  info.eh_frame = given.eh_frame;
  info.eh_frame_hdr = given.eh_frame_hdr;
  info.mapped_size = given.mapped_size;
  const std::uint64_t size = info.kFixed + given.eh_frame.size() + given.eh_frame_hdr.size();
  if (size == info.kFixed) return 0;
  const std::uint32_t padding = jitdump_padding(size);
  if (size + padding > UINT32_MAX) return EOVERFLOW;
  bytes_.add(
      fixed_part(info, static_cast<std::uint32_t>(size) + padding, time, std::endian::native));
  bytes_.add(info.eh_frame);
  bytes_.add(info.eh_frame_hdr);
  bytes_.add(kPadding.substr(0, padding));
  return 0;
}

int DumpEngine::add_lines(const JitFunction& function, std::uint64_t time) {
  const auto fixed = [&](std::uint64_t size) {
    return debug_info_part(function.start, function.lines.size(), static_cast<std::uint32_t>(size),
                           time, std::endian::native);
  };
  const std::size_t begin = bytes_.size();
  bytes_.add(fixed(0));
  for (const LineRecord& line : function.lines) {
    bytes_.add(fixed_part(line, std::endian::native));
    bytes_.add_name(before_nul(line.file));
  }
  bytes_.add(kPadding.substr(0, jitdump_padding(bytes_.size() - begin)));
  if (bytes_.size() - begin > UINT32_MAX) return EOVERFLOW;
  bytes_.put(begin, fixed(bytes_.size() - begin));
  return 0;
}

int DumpEngine::append_with_zeros(std::uint64_t count) noexcept {
  std::array<iovec, 1 + kMaxZeros / kZeros> parts;
  std::size_t used = 0;
  parts[used++] = part(bytes_.data(), bytes_.size());
  for (std::uint64_t left = count; left != 0; left -= parts[used++].iov_len) {
    parts[used] = part(zeros, std::min<std::uint64_t>(left, kZeros));
  }
  return append(std::span(parts).first(used), bytes_.size() + count);
}

int DumpEngine::append(std::span<iovec> parts, std::uint64_t total) noexcept {
  const std::uint64_t max = options_.max_bytes;
  if (max != 0 && (file_.size() > max || total > max - file_.size())) return EFBIG;
  return file_.append(parts, total);
}

int DumpEngine::append_bytes() noexcept {
  iovec all = part(bytes_.data(), bytes_.size());
  return append({&all, 1}, bytes_.size());
}

int DumpEngine::move(std::uint64_t index, Address from, Address to, std::uint64_t size) noexcept
    try {
  if (size > UINT64_MAX - from || size > UINT64_MAX - to) return EINVAL;
  const std::lock_guard lock(mutex_);
  const NoCancel uncancelled;
  if (const int error = ready(); error != 0) return error;
  if (silent_) return 0;
  MoveRecord move;
  move.old_address = from;
  move.range = {to, size};
  move.pid = static_cast<std::uint32_t>(pid_);
  move.tid = is_own_ ? thread() : move.pid;
  move.vma = to;
  move.code_size = size;
  move.code_index = index;
  bytes_.clear();
  bytes_.add(fixed_part(move, monotonic_ns(), std::endian::native));
  return append_bytes();
} catch (const std::bad_alloc&) {
  return ENOMEM;
}

/// A child does not end its parent's dump.
int DumpEngine::close() noexcept try {
  const std::lock_guard lock(mutex_);
  const NoCancel uncancelled;
  to_be_made_ = false;
  silent_ = false;
  if (!file_.is_open()) return 0;
  int error = 0;
  const bool ours = generation_ == ForkGuard::generation() && !file_.fd_was_replaced();
  if (options_.close_record && ours) {
    bytes_.clear();
    constexpr auto kClose = static_cast<std::uint32_t>(JitRecordKind::close);
    bytes_.add(prefix_part(kClose, JitRecord::kPrefix, monotonic_ns(), std::endian::native));
    error = append_bytes();
  }
  // A child may still hold a copy of the descriptor; and the lock is its parent's.
  if (ours) file_.unlock();
  const int closed = file_.close();
  return error != 0 ? error : closed;
} catch (const std::bad_alloc&) {
  return ENOMEM;
}

}  // namespace

std::string DumpEngine::own_path() const {
  return directory_ + "/jit-" + std::to_string(::getpid()) + ".dump";
}

int DumpEngine::ready() {
  if (ForkGuard::generation() != generation_) [[unlikely]] {
    if (const int error = enter_process(); error != 0) return error;
  }
  if (to_be_made_) [[unlikely]] {
    const Result<void> opened = open_own_locked();
    if (!opened) return opened.error().sys_errno;
    to_be_made_ = false;
  }
  return file_.is_open() || silent_ ? 0 : EBADF;
}

/// In a child, once: lets go of the parent's dump, as the policy says.
int DumpEngine::enter_process() {
  const bool own = file_.is_open() && !directory_.empty();
  if (!own || options_.fork != ForkPolicy::inherit) return leave_parent();
  const std::string path = own_path();
  const Result<DumpStart> start = inherit_own_dump(file_, path, options_.marker);
  if (!start) return start.error().sys_errno;
  path_ = path;
  pid_ = start->pid;
  is_own_ = true;
  generation_ = ForkGuard::generation();
  return 0;
}

int DumpEngine::leave_parent() noexcept {
  const bool own = file_.is_open() && !directory_.empty();
  generation_ = ForkGuard::generation();
  silent_ = silent_ || (own && options_.fork == ForkPolicy::off);
  to_be_made_ = to_be_made_ || (own && options_.fork == ForkPolicy::fresh);
  file_.close();
  return 0;
}

/// A failure shows at the child's first record, which tries again.
void DumpEngine::begin_child(bool is_between) noexcept try {
  const std::lock_guard lock(mutex_);
  const NoCancel uncancelled;
  if (!is_between) directory_.clear();  // in the middle of a record: nothing to begin a dump with
  enter_process();
} catch (const std::bad_alloc&) {  // as said
}

namespace {

Error failed(const std::string& what, int sys_errno) {
  Error error = system_error(what, sys_errno);
  if (sys_errno == EINVAL) error.code = Errc::invalid_argument;
  if (sys_errno == EOVERFLOW) error.code = Errc::too_large;
  return error;
}

}  // namespace

struct JitdumpWriter::State {
  explicit State(const JitdumpOptions& options) : engine(options) {}
  DumpEngine engine;
};

JitdumpWriter::JitdumpWriter(std::unique_ptr<State> state) : state_(std::move(state)) {}
JitdumpWriter::JitdumpWriter(JitdumpWriter&&) noexcept = default;
JitdumpWriter& JitdumpWriter::operator=(JitdumpWriter&&) noexcept = default;
JitdumpWriter::~JitdumpWriter() = default;

template <class Open>
Result<JitdumpWriter> JitdumpWriter::make(const JitdumpOptions& options, Open open) {
  if (const int error = ForkGuard::install(); error != 0) {
    return Failure(system_error("cannot prepare for fork", error));
  }
  auto state = std::make_unique<State>(options);
  Registry::get().add(&state->engine);
  const Result<void> opened = open(state->engine);
  if (!opened) return Failure(opened.error());
  return JitdumpWriter(std::move(state));
}

Result<JitdumpWriter> JitdumpWriter::open_own(const std::string& directory,
                                              const JitdumpOptions& options) {
  return make(options, [&](DumpEngine& engine) { return engine.open_own(directory); });
}

Result<JitdumpWriter> JitdumpWriter::open(const std::string& path, const JitdumpOptions& options) {
  return make(options, [&](DumpEngine& engine) { return engine.open(path); });
}

Result<JitdumpWriter> JitdumpWriter::to_descriptor(int fd, std::string name,
                                                   const JitdumpOptions& options) {
  return make(options, [&](DumpEngine& engine) { return engine.open(fd, name); });
}

std::string JitdumpWriter::path() const { return state_->engine.path(); }

Result<std::uint64_t> JitdumpWriter::load(const JitFunction& function, MapWriter* map) {
  std::uint64_t index = 0;
  const int error = state_->engine.load(function, index);
  if (error != 0) [[unlikely]]
    return Failure(failed("cannot write " + path(), error));
  if (state_->engine.options().process_map &&
      ProcessMap::write(function.start, function.size, function.name) != 0) {
    return Failure(system_error("cannot write the process's map", errno));
  }
  if (map != nullptr) {
    Result<void> written = map->write(function.start, function.size, function.name);
    if (!written) return Failure(std::move(written).error());
  }
  return index;
}

Result<void> JitdumpWriter::move(std::uint64_t code_index, Address from, Address to,
                                 std::uint64_t size) {
  const int error = state_->engine.move(code_index, from, to, size);
  if (error == 0) return {};
  return Failure(failed("cannot write " + path(), error));
}

Result<void> JitdumpWriter::close() {
  const int error = state_->engine.close();
  if (error == 0) return {};
  return Failure(failed("cannot close " + path(), error));
}

}  // namespace perfmap
