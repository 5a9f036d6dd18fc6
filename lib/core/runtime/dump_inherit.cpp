#include <array>
#include <bit>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <unistd.h>

#include "bytes/mapping.hpp"
#include "bytes/whole_file.hpp"
#include "formats/jitdump_fields.hpp"
#include "perfmap/jitdump.hpp"
#include "runtime/dump_file.hpp"

namespace perfmap {
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
