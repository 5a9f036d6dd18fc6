// SPDX-License-Identifier: MIT
#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <sys/mman.h>
#include <sys/statvfs.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/jit_record_bytes.hpp"
#include "base/utf8.hpp"
#include "writer/engines.hpp"
#include "writer/find_writer.hpp"
#include "writer/process_map.hpp"

namespace perfmap {
namespace {

/// Copying so much code costs less than handing it to the kernel as a part of its own.
constexpr std::size_t kCopied = 4096;
constexpr std::size_t kMaxKept = std::size_t{1} << 20;
constexpr std::uint64_t kMaxZeros = LoadRecord::kMaxZeros;
constexpr std::size_t kZeros = std::size_t{64} << 10;
/// Written in place of code that is not given. Not const, so that it takes no space in the library
/// file.
char zeros[kZeros];

iovec part(const char* bytes, std::size_t size) noexcept {
  return {const_cast<char*>(bytes), size};
}

/// Copies bytes and returns the end of the copy.
template <class Bytes>
char* put(char* at, const Bytes& bytes) noexcept {
  return std::copy_n(bytes.data(), bytes.size(), at);
}

void nap() noexcept {
  constexpr timespec kNap{0, 5'000'000};
  ::nanosleep(&kNap, nullptr);
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

/// N of a path that ends in jit-N.dump, else 0.
pid_t pid_of_name(const char* path) noexcept {
  const std::string_view number = kDumpName.number_in(path);
  pid_t pid = 0;
  const auto parsed = std::from_chars(number.data(), number.data() + number.size(), pid);
  return parsed.ec == std::errc() && pid > 0 && parsed.ptr == number.data() + number.size() ? pid
                                                                                            : 0;
}

/// The number at that offset; the bytes must be long enough.
std::uint32_t number_at(std::string_view bytes, std::size_t offset) noexcept {
  std::uint32_t number = 0;
  std::memcpy(&number, bytes.data() + offset, sizeof number);
  return number;
}

/// The header of a dump in this machine's format.
struct Header {
  explicit Header(const AppendFile& file) noexcept
      : complete(::pread(file.descriptor(), bytes.data(), bytes.size(), 0) ==
                 static_cast<ssize_t>(bytes.size())) {}
  std::uint32_t field(std::size_t offset) const noexcept {
    return number_at({bytes.data(), bytes.size()}, offset);
  }
  std::uint32_t pid() const noexcept { return field(20); }
  std::uint64_t time() const noexcept {
    std::uint64_t time = 0;
    std::memcpy(&time, bytes.data() + 24, sizeof time);
    return time;
  }
  bool is_of_our_kind(std::uint64_t file_size) const noexcept {
    return field(4) <= 1 && field(32) == 0 && field(36) == 0 && field(8) >= JitdumpHeader::kSize &&
           field(8) <= file_size;
  }
  HeaderFixed bytes;
  bool complete;
};

/// Why our records cannot be appended to this dump; empty if they can. A pid of 0 accepts any.
std::array<char, 64> why_not(const Header& header, std::uint64_t size, pid_t pid) noexcept {
  std::array<char, 64> why{};
  const auto say = [&](const char* what) { std::snprintf(why.data(), why.size(), "%s", what); };
  if (!header.complete ||
      (header.field(0) != kJitdumpMagic && header.field(0) != __builtin_bswap32(kJitdumpMagic))) {
    say("it is not a jitdump");
  } else if (header.field(0) != kJitdumpMagic) {
    say("it has the other byte order");
  } else if (!header.is_of_our_kind(size)) {
    say("its header differs from the one that this program writes");
  } else if (pid != 0 && header.pid() != static_cast<std::uint32_t>(pid)) {
    std::snprintf(why.data(), why.size(), "it is the jitdump of process %u", header.pid());
  }
  return why;
}

bool fail(DumpFault& fault, int error) noexcept {
  fault.error = error;
  return false;
}

/// What is needed to continue a dump. An incomplete record at the end and a CLOSE do not count.
struct DumpEnd {
  std::uint64_t last_index = 0;
  std::uint64_t offset = 0;
};

std::uint64_t index_of(const JitRecord& record) noexcept {
  if (const auto load = decode_load(record)) return load->code_index;
  if (const auto move = decode_move(record)) return move->code_index;
  return 0;
}

/// Skips damaged bytes, as readers do. `end` begins at the first record.
void find_end(std::string_view dump, DumpEnd& end) noexcept {
  JitRecordHints hints;
  for (std::uint64_t at = end.offset; at < dump.size();) {
    std::optional<JitRecord> record = read_prefix(dump, at, hints.order);
    const bool is_sound = record && (record->bytes.size() >= smallest_size(record->id) ||
                                     could_be_prefix(dump, record->end(), hints));
    if (!is_sound) record = find_record(dump, at + 1, hints);
    if (!record) break;
    end.last_index = std::max(end.last_index, index_of(*record));
    if (!record->is(JitRecordKind::close)) end.offset = record->end();
    if (record->time != 0) hints.time = record->time;
    at = record->end();
  }
}

int find_end(const AppendFile& file, DumpEnd& end) noexcept {
  const std::size_t size = file.size();
  void* const dump = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file.descriptor(), 0);
  if (dump == MAP_FAILED) return errno;
  find_end({static_cast<const char*>(dump), size}, end);
  ::munmap(dump, size);
  return 0;
}

}  // namespace

const char* DumpEngine::what_is_wrong(const JitFunction& function) const noexcept {
  static_assert(kMaxZeros == std::uint64_t{32} << 20);
  const JitUnwinding& unwinding = function.unwinding;
  const std::size_t unwinding_size = unwinding.eh_frame.size() + unwinding.eh_frame_hdr.size();
  if (options_.names == NamePolicy::refuse && options_.names_of == NameOf::runtime) {
    if (function.start == 0) return "start: 0";
    if (function.size == 0) return "size: 0";
  }
  if (function.size > UINT64_MAX - function.start)
    return "start: the function exceeds the address space";
  if (function.code.empty() && function.size > kMaxZeros)
    return "code: missing, and size is above 32 MiB";
  if (!function.code.empty() && function.code.size() != function.size)
    return "code: its size differs from the size of the function";
  if (!are_in_order(function))
    return "lines: their addresses decrease, or lie outside the function";
  if (unwinding.mapped_size != 0 && unwinding.mapped_size < unwinding_size)
    return "mapped_size: less than the size of eh_frame and eh_frame_hdr";
  if (unwinding.mapped_size > UINT32_MAX) return "mapped_size: more than 4 GiB";
  return nullptr;
}

/// Continues the open dump.
bool DumpEngine::append_to(pid_t pid, DumpFault& fault) noexcept {
  const Header header(file_);
  fault.why = why_not(header, file_.size(), pid);
  if (fault.why[0] != '\0') {
    fault.kind = DumpFault::Kind::append;
    return fail(fault, EINVAL);
  }
  DumpEnd end{.last_index = 0, .offset = header.field(8)};
  if (const int error = find_end(file_, end); error != 0) return fail(fault, error);
  pid_ = static_cast<pid_t>(header.pid());
  next_index_ = std::max(next_index_, end.last_index + 1);
  const int error = end.offset == file_.size() ? 0 : file_.cut(end.offset);
  return error == 0 || fail(fault, error);
}

namespace {

constexpr unsigned kOwnRules = AppendFile::regular | AppendFile::ours;

/// Who wrote the file at the path of our own dump.
enum class Begun { before_us, by_us, by_another };

Begun who_began(const AppendFile& file) noexcept {
  // File times have the granularity of a tick, and so has the start time of a process.
  constexpr std::uint64_t kTicks = 30'000'000;
  std::uint64_t age = 0;
  get_process_age(age);
  const std::uint64_t span = age + kTicks;
  struct stat status {};
  ::fstat(file.descriptor(), &status);
  const std::uint64_t written = static_cast<std::uint64_t>(status.st_mtim.tv_sec) * 1'000'000'000 +
                                static_cast<std::uint64_t>(status.st_mtim.tv_nsec);
  if (written + span < now_ns(CLOCK_REALTIME)) return Begun::before_us;
  const Header header(file);
  const std::uint64_t now = monotonic_ns();
  const bool ours = why_not(header, file.size(), ::getpid())[0] == '\0' && header.time() <= now &&
                    now - header.time() <= span;
  return ours ? Begun::by_us : Begun::by_another;
}

/// Removes the file at `path` if a former process of this pid left it; else EBUSY, or the reason
/// why that failed.
int remove_former(const char* path) noexcept {
  AppendFile found;
  const int error = found.open(path, AppendFile::Create::never, kOwnRules);
  if (error != 0) return error == ENOENT ? 0 : error;
  if (who_began(found) != Begun::before_us) return EBUSY;
  return ::unlink(path) == 0 || errno == ENOENT ? 0 : errno;
}

/// Another process that keeps the file open for writing: it has a file position or a buffer of its
/// own. A writer of this library that waits for the lock opens the file for a moment only, which is
/// long if it gets no processor.
int other_writer(FileNumber file) noexcept {
  constexpr int kLooks = 40;  // for 0.2 seconds
  const int self = ::getpid();
  int writer = find_writer(file, "/proc", self);
  for (int i = 0; i < kLooks && writer != 0; ++i) {
    nap();
    if (is_writer(writer, file, "/proc")) continue;
    writer = find_writer(file, "/proc", self);
    i = 0;
  }
  return writer;
}

}  // namespace

/// Opens and locks the file for open_own_locked().
bool DumpEngine::find_own(DumpFault& fault, bool& was_made) noexcept {
  constexpr int kTries = 3;  // others may do the same at the same time
  for (int i = 0; i < kTries; ++i) {
    const int error = file_.open_locked(path_, kOwnRules, was_made);
    if (error != 0) return fail(fault, error);
    const Begun begun = was_made ? Begun::by_us : who_began(file_);
    if (begun == Begun::by_us) return true;
    file_.close();
    if (begun == Begun::by_another) return fail(fault, EBUSY);
    if (::unlink(path_) != 0 && errno != ENOENT) return fail(fault, errno);
  }
  return fail(fault, EEXIST);
}

bool DumpEngine::open_own_locked(DumpFault& fault) noexcept {
  fault = {};
  if (const int error = set_own_path(); error != 0) return fail(fault, error);
  bool was_made = false;
  pid_ = ::getpid();
  const bool found = find_own(fault, was_made) && (was_made || append_to(pid_, fault));
  if (!found) file_.close();
  return found && begin(was_made, was_made, options_.marker, fault);
}

bool DumpEngine::open_own(std::string_view directory, DumpFault& fault) noexcept {
  const Locked locked(mutex_);
  if (locked.is_deadlock() || directory.empty()) {
    return fail(fault, directory.empty() ? EINVAL : EDEADLK);
  }
  if (const int error = set_own_name(directory, kDumpName); error != 0) return fail(fault, error);
  return open_own_locked(fault);
}

bool DumpEngine::open(const char* path, DumpFault& fault) noexcept {
  constexpr std::uint64_t kMaxWait = 30'000'000'000;
  const Locked locked(mutex_);
  if (locked.is_deadlock()) return fail(fault, EDEADLK);
  if (const int error = set_path(path); error != 0) return fail(fault, error);
  bool was_made = false;
  const std::uint64_t begin_ns = monotonic_ns();
  const unsigned rules = options_.own_dump ? kOwnRules : 0;
  int error = file_.open_locked(path, rules, was_made);
  while (error == EBUSY && options_.wait && monotonic_ns() - begin_ns < kMaxWait) {
    nap();
    error = file_.open_locked(path, rules, was_made);
  }
  if (error != 0) return fail(fault, error);
  const bool is_new = file_.size() == 0;
  if (is_new) {
    const pid_t named = options_.pid != 0 ? options_.pid : pid_of_name(path);
    pid_ = named != 0 ? named : ::getpid();
  } else if (const int writer = other_writer(file_.file()); writer != 0) {
    fault.kind = DumpFault::Kind::in_use;
    fault.pid = writer;
    file_.close();
    return fail(fault, EBUSY);
  } else if (!append_to(options_.pid, fault)) {
    file_.close();
    return false;
  }
  return begin(is_new, was_made, options_.marker, fault);
}

bool DumpEngine::open(int fd, const char* name, DumpFault& fault) noexcept {
  const Locked locked(mutex_);
  if (locked.is_deadlock()) return fail(fault, EDEADLK);
  set_path(name);
  if (const int error = file_.open(fd); error != 0) return fail(fault, error);
  const pid_t pid = options_.pid != 0 ? options_.pid : pid_of_name(name);
  pid_ = pid != 0 ? pid : ::getpid();
  return begin(true, false, false, fault);
}

int DumpEngine::map_first_page(const AppendFile& file) noexcept {
  void* const page =
      ::mmap(nullptr, page_size(), PROT_READ | PROT_EXEC, MAP_PRIVATE, file.descriptor(), 0);
  if (page == MAP_FAILED) return errno;
  if (marker_ != nullptr) ::munmap(marker_, page_size());
  marker_ = page;
  return 0;
}

int DumpEngine::close_file() noexcept {
  if (marker_ != nullptr) ::munmap(std::exchange(marker_, nullptr), page_size());
  return file_.close();
}

namespace {

bool forbids_execution(const AppendFile& file) noexcept {
  struct statvfs system {};
  return ::fstatvfs(file.descriptor(), &system) == 0 && (system.f_flag & ST_NOEXEC) != 0;
}

}  // namespace

/// Writes the header and maps the marker. If either fails, a dump that was just made is removed.
bool DumpEngine::begin(bool is_new, bool was_made, bool marker, DumpFault& fault) noexcept {
  is_own_ = pid_ == ::getpid();
  int error = 0;
  fault.kind = DumpFault::Kind::begin;
  if (is_new) {
    const JitdumpHeader header{.elf_mach = kHostElfMachine,
                               .pid = static_cast<std::uint32_t>(pid_),
                               .timestamp = monotonic_ns()};
    error = append_fixed(fixed_part(header, std::endian::native));
  }
  if (error == 0 && marker && file_.is_regular()) {
    error = map_first_page(file_);
    if (error == EPERM && forbids_execution(file_)) fault.kind = DumpFault::Kind::no_exec;
  }
  if (error == 0) {
    state_ = State::open;
    return true;
  }
  if (was_made) ::unlink(path_);
  close_file();
  return fail(fault, error);
}

std::uint32_t DumpEngine::thread() const noexcept {
  struct Known {
    unsigned generation;
    pid_t tid;
  };
  constinit static thread_local Known known{0, 0};
  if (known.tid == 0 || known.generation != generation_) known = {generation_, ::gettid()};
  return static_cast<std::uint32_t>(known.tid);
}

int DumpEngine::load(const JitFunction& function, std::uint64_t& index, bool& in_map) noexcept {
  in_map = false;
  if (const int error = load_record(function, index); error != 0) return error;
  in_map =
      options_.process_map && own_map::write(function.start, function.size, function.name) != 0;
  return in_map ? errno : 0;
}

int DumpEngine::load_record(const JitFunction& function, std::uint64_t& index) noexcept {
  if (what_is_wrong(function) != nullptr) return EINVAL;
  if (options_.names == NamePolicy::refuse && !writes_unchanged(function.name, options_.names_of))
    return EILSEQ;
  WrittenNameRoom room;
  const std::string_view name = written_name(function.name, options_.names_of, room);
  const Held held(mutex_, ForkHandlers::generation());
  if (held.is_deadlock()) return EDEADLK;
  if (const int error = ready(); error != 0 || state_ == State::silent) return error;
  int error = make_records(function, name);
  if (error == 0 && function.code.size() != function.size) {
    error = append_with_zeros(function.size);
  } else if (error == 0 && function.code.size() <= kCopied) {
    error = bytes_.add(function.code, kFirstBytes) ? append_bytes() : ENOMEM;
  } else if (error == 0) {
    std::array<iovec, 2> parts = {part(bytes_.data(), bytes_.size()),
                                  part(function.code.data(), function.code.size())};
    error = append(parts.data(), parts.size(), bytes_.size() + function.code.size());
  }
  if (error == 0) index = next_index_++;
  return error;
}

/// Builds the records, all but the code, which is the end of the last record.
int DumpEngine::make_records(const JitFunction& function, std::string_view name) noexcept {
  if (bytes_.capacity() > kMaxKept) bytes_.release();
  bytes_.clear();
  const std::uint64_t time = function.time != 0 ? function.time : monotonic_ns();
  int error = function.lines.empty() ? 0 : add_lines(function, time);
  if (error == 0) error = add_unwinding(function.unwinding, time);
  if (error != 0) return error;
  char* const begin = make_room(LoadRecord::kFixed + name.size() + 1);
  if (begin == nullptr) return ENOMEM;
  char* end = put(begin + LoadRecord::kFixed, name);
  *end++ = '\0';
  const std::uint64_t size = static_cast<std::uint64_t>(end - begin) + function.size;
  if (function.size > UINT32_MAX || size > UINT32_MAX) return EOVERFLOW;
  LoadRecord load;
  load.range = {function.start, function.size};
  load.pid = static_cast<std::uint32_t>(pid_);
  load.tid = is_own_ ? thread() : load.pid;
  load.vma = function.start;
  load.code_size = function.size;
  load.code_index = next_index_;
  put(begin, fixed_part(load, static_cast<std::uint32_t>(size), time, std::endian::native));
  end_at(end);
  return 0;
}

int DumpEngine::add_unwinding(const JitUnwinding& unwinding, std::uint64_t time) noexcept {
  UnwindingRecord info;
  info.eh_frame = unwinding.eh_frame;
  info.eh_frame_hdr = unwinding.eh_frame_hdr;
  info.mapped_size = unwinding.mapped_size;
  const std::uint64_t size = info.kFixed + info.eh_frame.size() + info.eh_frame_hdr.size();
  if (size == info.kFixed) return 0;
  const std::uint64_t padded = size + jitdump_padding(size);
  if (padded > UINT32_MAX) return EOVERFLOW;
  char* at = make_room(padded);
  if (at == nullptr) return ENOMEM;
  at = put(at, fixed_part(info, static_cast<std::uint32_t>(padded), time, std::endian::native));
  at = put(put(at, info.eh_frame), info.eh_frame_hdr);
  end_at(std::fill_n(at, padded - size, '\0'));
  return 0;
}

int DumpEngine::add_lines(const JitFunction& function, std::uint64_t time) noexcept {
  std::uint64_t size = DebugInfoRecord::kFixed;
  for (const LineRecord& line : function.lines) {
    size += DebugInfoRecord::kSmallestLine + before_nul(line.file).size();
  }
  const std::uint64_t padded = size + jitdump_padding(size);
  if (padded > UINT32_MAX) return EOVERFLOW;
  char* at = make_room(padded);
  if (at == nullptr) return ENOMEM;
  at = put(at, debug_info_part(function.start, function.lines.size(),
                               static_cast<std::uint32_t>(padded), time, std::endian::native));
  for (const LineRecord& line : function.lines) {
    at = put(put(at, fixed_part(line, std::endian::native)), before_nul(line.file));
    *at++ = '\0';
  }
  end_at(std::fill_n(at, padded - size, '\0'));
  return 0;
}

int DumpEngine::append_bytes() noexcept {
  iovec all = part(bytes_.data(), bytes_.size());
  return append(&all, 1, bytes_.size());
}

int DumpEngine::append_with_zeros(std::uint64_t count) noexcept {
  std::array<iovec, 1 + kMaxZeros / kZeros> parts;
  std::size_t used = 0;
  parts[used++] = part(bytes_.data(), bytes_.size());
  for (std::uint64_t left = count; left != 0; left -= parts[used++].iov_len) {
    parts[used] = part(zeros, std::min<std::uint64_t>(left, kZeros));
  }
  return append(parts.data(), used, bytes_.size() + count);
}

int DumpEngine::append(iovec* parts, std::size_t count, std::uint64_t total) noexcept {
  const std::uint64_t max = options_.max_bytes;
  if (max != 0 && (file_.size() > max || total > max - file_.size())) return EFBIG;
  const int error = file_.append(parts, count, total);
  if (error != EBADF || !is_entered() || open_again() != 0) return error;
  return file_.append(parts, count, total);
}

int DumpEngine::open_again() noexcept {
  return file_.open_again(path_, kOwnRules, marker_ != nullptr);
}

const char* DumpEngine::what_is_wrong_with_move(Address from, Address to,
                                                std::uint64_t size) noexcept {
  if (size > UINT64_MAX - from) return "from: the function exceeds the address space";
  if (size > UINT64_MAX - to) return "to: the function exceeds the address space";
  return "code_index: no function has this number";
}

int DumpEngine::move(std::uint64_t index, Address from, Address to, std::uint64_t size) noexcept {
  if (size > UINT64_MAX - from || size > UINT64_MAX - to) return EINVAL;
  const Locked locked(mutex_);
  if (locked.is_deadlock()) return EDEADLK;
  if (const int error = ready(); error != 0 || state_ == State::silent) return error;
  if (index < first_index_ || index >= next_index_) return EINVAL;
  MoveRecord move;
  move.old_address = from;
  move.range = {to, size};
  move.pid = static_cast<std::uint32_t>(pid_);
  move.tid = is_own_ ? thread() : move.pid;
  move.vma = to;
  move.code_size = size;
  move.code_index = index;
  return append_fixed(fixed_part(move, monotonic_ns(), std::endian::native));
}

/// A child does not write a CLOSE to its parent's dump.
int DumpEngine::close() noexcept {
  const Locked locked(mutex_);
  if (locked.is_deadlock()) return EDEADLK;
  state_ = State::closed;
  if (!file_.is_open()) return 0;
  int error = 0;
  const bool ours = is_entered() && (!file_.fd_was_replaced() || open_again() == 0);
  if (options_.close_record && ours) {
    constexpr auto kClose = static_cast<std::uint32_t>(JitRecordKind::close);
    error =
        append_fixed(prefix_part(kClose, JitRecord::kPrefix, monotonic_ns(), std::endian::native));
  }
  // A child may still hold a copy of the descriptor; and the lock belongs to its parent.
  if (ours) file_.unlock();
  const int closed = close_file();
  return error != 0 ? error : closed;
}

/// The indices go on, so that those of the parent do not mean code of the child.
int DumpEngine::make() noexcept {
  DumpFault fault;
  first_index_ = next_index_;
  return open_own_locked(fault) ? 0 : fault.error;
}

void DumpEngine::detach() noexcept {
  close_file();
  // The fork was in the middle of a record: a dump that the child would share cannot be continued.
  if (!is_whole_ && !has_own()) state_ = State::closed;
}

namespace {

bool is(std::string_view record, JitRecordKind kind) noexcept {
  return number_at(record, 0) == static_cast<std::uint32_t>(kind);
}

/// The complete record at the start of `bytes`; empty if there is none.
std::string_view first_record(std::string_view bytes) noexcept {
  constexpr std::size_t kSizeOffset = 4;
  if (bytes.size() < JitRecord::kPrefix) return {};
  const std::uint32_t size = number_at(bytes, kSizeOffset);
  return size >= JitRecord::kPrefix && size <= bytes.size() ? first_bytes(bytes, size)
                                                            : std::string_view();
}

/// Collects records in blocks.
class Copier {
 public:
  Copier(WholeFile& to, std::uint32_t pid) noexcept : to_(to), pid_(pid) {}

  /// A forked child has one thread, whose tid is its pid.
  int add_record(std::string_view record) noexcept {
    // In native byte order: kind, size, time; in LOAD and MOVE then the pid and the tid.
    constexpr std::size_t kPidOffset = JitRecord::kPrefix;
    constexpr std::size_t kPidsEnd = kPidOffset + 2 * sizeof pid_;
    const bool has_pid = is(record, JitRecordKind::load) || is(record, JitRecordKind::move);
    if (!has_pid || record.size() < kPidsEnd) return add(record);
    std::array<char, kPidsEnd> begin;
    std::memcpy(begin.data(), record.data(), begin.size());
    FieldWriter(begin.data() + kPidOffset, std::endian::native).u32(pid_).u32(pid_);
    const int error = add({begin.data(), begin.size()});
    return error != 0 ? error : add(without_first(record, kPidsEnd));
  }
  int add(std::string_view bytes) noexcept {
    if (block_.size() + bytes.size() > kBlock) {
      if (const int error = flush(); error != 0) return error;
    }
    if (bytes.size() > kBlock) return to_.append(bytes);
    return block_.add(bytes, kBlock) ? 0 : ENOMEM;
  }
  int flush() noexcept {
    const int error = to_.append(block_.text());
    block_.clear();
    return error;
  }

 private:
  static constexpr std::size_t kBlock = std::size_t{256} << 10;
  WholeFile& to_;
  std::uint32_t pid_;
  GrowingBuffer block_;
};

/// Copies up to the first incomplete record, without CLOSE, because more records follow.
int copy_records(WholeFile& to, std::string_view dump) noexcept {
  constexpr std::size_t kHeaderSizeOffset = 8;
  constexpr std::size_t kMachineOffset = 12;
  const std::size_t first =
      dump.size() < JitdumpHeader::kSize ? SIZE_MAX : number_at(dump, kHeaderSizeOffset);
  if (first < JitdumpHeader::kSize || first > dump.size()) return EINVAL;
  const auto pid = static_cast<std::uint32_t>(::getpid());
  Copier copier(to, pid);
  const JitdumpHeader header{
      .elf_mach = number_at(dump, kMachineOffset), .pid = pid, .timestamp = monotonic_ns()};
  const HeaderFixed bytes = fixed_part(header, std::endian::native);
  int error = copier.add({bytes.data(), bytes.size()});
  for (std::string_view rest = without_first(dump, first); error == 0;) {
    const std::string_view record = first_record(rest);
    if (record.empty()) break;
    if (!is(record, JitRecordKind::close)) error = copier.add_record(record);
    rest.remove_prefix(record.size());
  }
  return error != 0 ? error : copier.flush();
}

}  // namespace

/// The child's dump appears complete under its name. On failure nothing changes. If the fork was in
/// the middle of a record, the size that was known then ends before it.
int DumpEngine::inherit() noexcept {
  if (file_.fd_was_replaced()) return kLetGo;
  char path[kMaxPath];
  if (const int error = write_own_path(path); error != 0) return error;
  const std::size_t size = file_.size();
  void* const dump = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file_.descriptor(), 0);
  if (dump == MAP_FAILED) return errno;
  WholeFile whole;
  int error = whole.create(path);
  if (error == 0) error = copy_records(whole, {static_cast<const char*>(dump), size});
  ::munmap(dump, size);
  if (error == 0) error = whole.publish_over([&] { return remove_former(path); });
  if (error != 0) return error;
  // Opened again by its name: a file created without a name has no path in the mmap event of the
  // marker.
  AppendFile made;
  error = made.open(path, AppendFile::Create::never, kOwnRules);
  if (error == 0) error = made.lock();
  if (error == 0 && options_.marker) error = map_first_page(made);
  if (error != 0 && error != EBUSY) ::unlink(path);
  if (error != 0) return error;
  if (!options_.marker && marker_ != nullptr)
    ::munmap(std::exchange(marker_, nullptr), page_size());
  file_.swap(made);
  std::memcpy(path_, path, sizeof path);
  pid_ = ::getpid();
  is_own_ = true;
  return 0;
}

}  // namespace perfmap
