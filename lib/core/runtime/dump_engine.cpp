#include "runtime/dump_engine.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <mutex>
#include <new>
#include <unistd.h>

#include "bytes/no_cancel.hpp"
#include "formats/jitdump_fields.hpp"
#include "perfmap/jitdump_encode.hpp"
#include "perfmap/written_name.hpp"
#include "runtime/registry.hpp"

namespace perfmap {
namespace {

constexpr std::size_t kZeros = std::size_t{64} << 10;
constexpr std::uint64_t kMostZeros = JitdumpWriter::kMostZeros;

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
      function.code.empty() ? function.size <= kMostZeros : function.code.size() == function.size;
  return code && fits && function.size <= UINT64_MAX - function.start && are_in_order(function)
             ? 0
             : EINVAL;
}

}  // namespace

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
  const bool as_is = is_written_as_is(function.name);
  if (!as_is && options_.names == NamePolicy::refuse) return EILSEQ;
  const std::string changed = as_is ? std::string() : written_name(function.name);
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
  std::array<iovec, 1 + kMostZeros / kZeros> parts;
  std::size_t used = 0;
  parts[used++] = part(bytes_.data(), bytes_.size());
  for (std::uint64_t left = count; left != 0; left -= parts[used++].iov_len) {
    parts[used] = part(zeros, std::min<std::uint64_t>(left, kZeros));
  }
  return append(std::span(parts).first(used), bytes_.size() + count);
}

int DumpEngine::append(std::span<iovec> parts, std::uint64_t total) noexcept {
  const std::uint64_t most = options_.most_bytes;
  if (most != 0 && (file_.size() > most || total > most - file_.size())) return EFBIG;
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
  const bool ours = generation_ == ForkGuard::generation() && !file_.is_lost();
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

}  // namespace perfmap
