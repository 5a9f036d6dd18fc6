#include <cerrno>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>
#include <unistd.h>
#include <utility>

#include "bytes/whole_file.hpp"
#include "formats/jitdump_fields.hpp"
#include "perfmap/jitdump.hpp"
#include "runtime/dump_file.hpp"

namespace perfmap {
namespace {

constexpr std::size_t kBlock = std::size_t{256} << 10;

/// Where LOAD and MOVE have their pid, with the tid behind it.
constexpr std::size_t kPidOffset = JitRecord::kPrefix;
constexpr std::size_t kPidsEnd = kPidOffset + 2 * sizeof(std::uint32_t);

/// Gathers records in blocks.
class Copier {
 public:
  Copier(WholeFile& to, pid_t pid) : to_(to), pid_(static_cast<std::uint32_t>(pid)) {}

  int add(const JitRecord& record) {
    const bool has_pid = record.is(JitRecordKind::load) || record.is(JitRecordKind::move);
    if (!has_pid || record.bytes.size() < kPidsEnd) return add(record.bytes);
    std::array<char, kPidsEnd> begin;
    std::memcpy(begin.data(), record.bytes.data(), begin.size());
    FieldWriter(begin.data() + kPidOffset, record.order).u32(pid_).u32(pid_);
    const int error = add({begin.data(), begin.size()});
    return error != 0 ? error : add(record.bytes.substr(kPidsEnd));
  }
  int add(std::string_view bytes) {
    if (block_.size() + bytes.size() > kBlock) {
      if (const int error = flush(); error != 0) return error;
    }
    if (bytes.size() > kBlock) return to_.append(bytes);
    block_ += bytes;
    return 0;
  }
  int flush() { return to_.append(std::exchange(block_, {})); }

 private:
  WholeFile& to_;
  std::uint32_t pid_;
  std::string block_;
};

/// A child has one thread, whose number is the process's.
int copy_records(WholeFile& to, const Jitdump& dump, std::uint64_t end, pid_t pid) {
  Copier copier(to, pid);
  const JitdumpHeader header{.elf_mach = dump.header()->elf_mach,
                             .pid = static_cast<std::uint32_t>(pid),
                             .timestamp = monotonic_ns()};
  const HeaderFixed bytes = fixed_part(header, std::endian::native);
  int error = copier.add({bytes.data(), bytes.size()});
  Diagnostics ignored(0);
  Jitdump::Reader reader(dump);
  while (error == 0) {
    const std::optional<JitRecord> record = reader.next(ignored);
    if (!record || record->end() > end) break;
    if (!record->is(JitRecordKind::close)) error = copier.add(*record);
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
  const Result<Input> input = Input::from_descriptor(file.descriptor(), path);
  if (!input) return Failure(input.error());
  const Jitdump dump(*input, {.growing = true});
  const pid_t pid = ::getpid();
  WholeFile whole;
  RecordFile made;
  int error = dump.header() ? whole.create(path.c_str()) : EINVAL;
  if (error == 0) error = copy_records(whole, dump, file.size(), pid);
  if (error == 0) error = publish(whole, path);
  if (error == 0) {
    error = made.adopt(whole.take());
    if (error == 0 && marker) error = made.map_first_page();
    if (error != 0) ::unlink(path.c_str());
  }
  if (error != 0) return Failure(system_error("cannot inherit to " + path, error));
  file.swap(made);
  return DumpStart{.pid = pid, .is_new = false, .was_made = true};
}

}  // namespace perfmap
