#include "writer/dump_file.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <charconv>
#include <cstdint>
#include <cstring>
#include <ctime>
#include <optional>
#include <string>
#include <string_view>
#include <unistd.h>

#include "io/map_start.hpp"
#include "io/mapping.hpp"
#include "io/whole_file.hpp"
#include "jitdump/jitdump_records.hpp"
#include "perfmap/jitdump.hpp"
#include "perfmap/output_file.hpp"

namespace perfmap {

namespace {

// Files carry the time of the last tick, and a process's start is known to a tick.
constexpr std::uint64_t kTicks = 30'000'000;

constexpr long kNap = 5'000'000;
constexpr int kLooks = 3;
constexpr std::uint64_t kMaxWait = 30'000'000'000;

std::uint64_t now_ns(clockid_t clock) noexcept {
  timespec now{};
  ::clock_gettime(clock, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000 +
         static_cast<std::uint64_t>(now.tv_nsec);
}

Failure cannot_open(const std::string& path, int error) {
  return Failure(system_error("cannot open " + path, error));
}

Failure cannot_append(const std::string& path, const std::string& why) {
  return Failure({Errc::bad_format, "cannot append to " + path + ": " + why, EINVAL, {}});
}

/// Why records of ours cannot go behind that header; empty where they can.
std::string why_not(const Jitdump& dump, pid_t pid) {
  const std::optional<JitdumpHeader>& header = dump.header();
  if (!header) return "it is no jitdump";
  if (header->order != std::endian::native) return "it is in the other byte order";
  if (header->version > 1 || header->flags != 0 || header->total_size < JitdumpHeader::kSize ||
      header->total_size > dump.bytes().size()) {
    return "its header is of another kind than ours";
  }
  if (pid != 0 && header->pid != static_cast<std::uint32_t>(pid)) {
    return "it is the jitdump of process " + std::to_string(header->pid);
  }
  return {};
}

std::uint64_t index_of(const JitRecord& record) noexcept {
  if (const auto load = decode_load(record)) return load->code_index;
  if (const auto move = decode_move(record)) return move->code_index;
  return 0;
}

/// What the records leave to go on with; half a record at the end, and a CLOSE, are cut off.
Result<DumpStart> go_on(RecordFile& file, const Jitdump& dump) {
  Diagnostics ignored(0);
  Jitdump::Reader reader(dump);
  std::uint64_t last_index = 0;
  std::uint64_t end = dump.first_record();
  while (const std::optional<JitRecord> record = reader.next(ignored)) {
    last_index = std::max(last_index, index_of(*record));
    if (!record->is(JitRecordKind::close)) end = record->end();
  }
  const DumpStart start{
      .pid = static_cast<pid_t>(dump.header()->pid), .next_index = last_index + 1, .is_new = false};
  if (end == file.size()) return start;
  if (const int error = file.cut(end); error != 0) return cannot_open(dump.input().name(), error);
  return start;
}

Result<DumpStart> append_to(RecordFile& file, const Input& input, pid_t pid) {
  const Jitdump dump(input, {.growing = true});
  const std::string why = why_not(dump, pid);
  return why.empty() ? go_on(file, dump) : Result<DumpStart>(cannot_append(input.name(), why));
}

/// One try; without the lock nothing is open.
int open_locked(RecordFile& file, const std::string& path, bool own, bool& was_made) {
  int error = file.create(path);
  was_made = error == 0;
  if (error == EEXIST) error = file.open(path, own);
  if (error == 0) error = file.lock();
  if (error != 0) file.close();
  return error;
}

void nap() noexcept {
  const timespec pause{0, kNap};
  ::nanosleep(&pause, nullptr);
}

/// Another process that has it open for writing, and for longer than it takes a writer of ours to
/// see that the file is locked. Such a one has a position of its own in the file, or a buffer.
std::optional<int> other_writer(const FileFacts& facts) {
  std::optional<int> writer = find_writer(facts, "/proc", ::getpid());
  for (int i = 0; i < kLooks && writer; ++i) {
    nap();
    const std::optional<int> again = find_writer(facts, "/proc", ::getpid());
    if (again != writer) writer.reset();
  }
  return writer;
}

}  // namespace

std::uint64_t monotonic_ns() noexcept { return now_ns(CLOCK_MONOTONIC); }

Begun who_began(const Input& input) {
  const std::uint64_t age = process_age_ns().value_or(0);
  const std::uint64_t span = age + kTicks;
  const auto written = static_cast<std::uint64_t>(input.facts().mtime_ns);
  if (written + span < now_ns(CLOCK_REALTIME)) return Begun::before_us;
  const Jitdump dump(input, {.growing = true});
  const std::uint64_t now = monotonic_ns();
  const bool ours = why_not(dump, ::getpid()).empty() && dump.header()->timestamp <= now &&
                    now - dump.header()->timestamp <= span;
  return ours ? Begun::by_us : Begun::by_another;
}

pid_t pid_of_name(const std::string& path) noexcept {
  constexpr std::string_view kStart = "jit-";
  const std::string_view name = std::string_view(path).substr(path.rfind('/') + 1);
  pid_t pid = 0;
  if (!name.starts_with(kStart)) return 0;
  const char* const end = name.data() + name.size();
  const auto parsed = std::from_chars(name.data() + kStart.size(), end, pid);
  const std::string_view rest(parsed.ptr, static_cast<std::size_t>(end - parsed.ptr));
  return parsed.ec == std::errc() && pid > 0 && rest == ".dump" ? pid : 0;
}

Result<DumpStart> open_own_dump(RecordFile& file, const std::string& path) {
  constexpr int kTries = 3;  // others may do the same meanwhile
  const pid_t pid = ::getpid();
  int error = 0;
  for (int i = 0; i < kTries; ++i) {
    error = file.create(path);
    if (error == 0) error = file.lock();
    if (error == 0) return DumpStart{.pid = pid, .was_made = true};
    if (error != EEXIST) break;
    error = file.open(path, true);
    if (error == ENOENT) continue;
    if (error == 0) error = file.lock();
    if (error != 0) break;
    const Result<Input> input = Input::from_descriptor(file.descriptor(), path);
    if (!input) return Failure(input.error());
    const Begun begun = who_began(*input);
    if (begun == Begun::by_us) return append_to(file, *input, pid);
    file.close();
    if (begun == Begun::by_another) return cannot_open(path, EBUSY);
    if (::unlink(path.c_str()) != 0 && errno != ENOENT) return cannot_open(path, errno);
  }
  file.close();
  return cannot_open(path, error);
}

Result<DumpStart> open_dump(RecordFile& file, const std::string& path,
                            const JitdumpOptions& options) {
  bool was_made = false;
  const std::uint64_t begin = monotonic_ns();
  int error = open_locked(file, path, options.own_dump, was_made);
  while (error == EBUSY && options.wait && monotonic_ns() - begin < kMaxWait) {
    nap();
    error = open_locked(file, path, options.own_dump, was_made);
  }
  if (error != 0) return cannot_open(path, error);
  if (file.size() != 0) {
    const Result<Input> input = Input::from_descriptor(file.descriptor(), path);
    if (!input) return Failure(input.error());
    if (const auto writer = other_writer(input->facts())) {
      return Failure({Errc::refused,
                      "cannot append to " + path + ": process " + std::to_string(*writer) +
                          " has it open for writing",
                      EBUSY,
                      {}});
    }
    return append_to(file, *input, options.pid);
  }
  const pid_t named = options.pid != 0 ? options.pid : pid_of_name(path);
  return DumpStart{.pid = named != 0 ? named : ::getpid(), .was_made = was_made};
}

namespace {

constexpr std::size_t kBlock = std::size_t{256} << 10;

/// A record as this machine writes it: kind, size, time; in LOAD and MOVE then the pid and the tid.
constexpr std::size_t kPidOffset = JitRecord::kPrefix;
constexpr std::size_t kPidsEnd = kPidOffset + 2 * sizeof(std::uint32_t);

/// A number at that offset of bytes that are long enough.
std::uint32_t number_at(std::string_view bytes, std::size_t offset) noexcept {
  std::uint32_t number = 0;
  std::memcpy(&number, bytes.data() + offset, sizeof number);
  return number;
}

bool is(std::string_view record, JitRecordKind kind) noexcept {
  return number_at(record, 0) == static_cast<std::uint32_t>(kind);
}

/// The whole record at the start of `bytes`; empty where there is none.
std::string_view first_record(std::string_view bytes) noexcept {
  constexpr std::size_t kSizeOffset = 4;
  if (bytes.size() < JitRecord::kPrefix) return {};
  const std::uint32_t size = number_at(bytes, kSizeOffset);
  return size >= JitRecord::kPrefix && size <= bytes.size() ? bytes.substr(0, size)
                                                            : std::string_view();
}

/// Gathers records in blocks.
class Copier {
 public:
  Copier(WholeFile& to, pid_t pid) : to_(to), pid_(static_cast<std::uint32_t>(pid)) {}

  /// A child has one thread, whose number is the process's.
  int add_record(std::string_view record) {
    const bool has_pid = is(record, JitRecordKind::load) || is(record, JitRecordKind::move);
    if (!has_pid || record.size() < kPidsEnd) return add(record);
    std::array<char, kPidsEnd> begin;
    std::memcpy(begin.data(), record.data(), begin.size());
    FieldWriter(begin.data() + kPidOffset, std::endian::native).u32(pid_).u32(pid_);
    const int error = add({begin.data(), begin.size()});
    return error != 0 ? error : add(record.substr(kPidsEnd));
  }
  int add(std::string_view bytes) {
    if (block_.size() + bytes.size() > kBlock) {
      if (const int error = flush(); error != 0) return error;
    }
    if (bytes.size() > kBlock) return to_.append(bytes);
    block_ += bytes;
    return 0;
  }
  int flush() {
    const int error = to_.append(block_);
    block_.clear();
    return error;
  }

 private:
  WholeFile& to_;
  std::uint32_t pid_;
  std::string block_;
};

/// Up to what is no whole record, and without CLOSE, as more will come.
int copy_records(WholeFile& to, std::string_view dump, pid_t pid) {
  constexpr std::size_t kHeaderSizeOffset = 8;
  constexpr std::size_t kMachineOffset = 12;
  const std::size_t first =
      dump.size() < JitdumpHeader::kSize ? SIZE_MAX : number_at(dump, kHeaderSizeOffset);
  if (first < JitdumpHeader::kSize || first > dump.size()) return EINVAL;
  Copier copier(to, pid);
  const JitdumpHeader header{.elf_mach = number_at(dump, kMachineOffset),
                             .pid = static_cast<std::uint32_t>(pid),
                             .timestamp = monotonic_ns()};
  const HeaderFixed bytes = fixed_part(header, std::endian::native);
  int error = copier.add({bytes.data(), bytes.size()});
  for (std::string_view rest = dump.substr(first); error == 0;) {
    const std::string_view record = first_record(rest);
    if (record.empty()) break;
    if (!is(record, JitRecordKind::close)) error = copier.add_record(record);
    rest.remove_prefix(record.size());
  }
  return error != 0 ? error : copier.flush();
}

/// Makes room at `path` where a former process of this pid has left its dump; else EBUSY, or why it
/// cannot be.
int remove_former(const std::string& path) {
  RecordFile found;
  if (const int error = found.open(path, true); error != 0) return error == ENOENT ? 0 : error;
  const Result<Input> input = Input::from_descriptor(found.descriptor(), path);
  if (!input) return input.error().sys_errno;
  if (who_began(*input) != Begun::before_us) return EBUSY;
  return ::unlink(path.c_str()) == 0 || errno == ENOENT ? 0 : errno;
}

int publish(WholeFile& whole, const std::string& path) {
  constexpr int kTries = 3;  // others may do the same meanwhile
  int error = whole.publish();
  for (int i = 0; error == EEXIST && i < kTries; ++i) {
    error = remove_former(path);
    if (error == 0) error = whole.publish();
  }
  return error;
}

}  // namespace

Result<DumpStart> inherit_own_dump(RecordFile& file, const std::string& path, bool marker) {
  const Mapping dump(file.descriptor(), file.size());
  const pid_t pid = ::getpid();
  WholeFile whole;
  RecordFile made;
  int error = dump.mapped() ? whole.create(path.c_str()) : errno;
  if (error == 0) error = copy_records(whole, dump.text(), pid);
  if (error == 0) error = publish(whole, path);
  if (error == 0) {
    // Again, by its name: what began without one has none in the event that the marker makes.
    error = made.open(path, true);
    if (error == 0) error = made.lock();
    if (error == 0 && marker) error = made.map_first_page();
    if (error != 0 && error != EBUSY) ::unlink(path.c_str());
  }
  if (error != 0) return Failure(system_error("cannot inherit to " + path, error));
  file.swap(made);
  return DumpStart{.pid = pid, .is_new = false, .was_made = true};
}

}  // namespace perfmap
