// SPDX-License-Identifier: MIT
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <sys/types.h>
#include <vector>

#include "perfmap/diagnostic.hpp"
#include "perfmap/input.hpp"
#include "perfmap/profile/process_tracker.hpp"
#include "perfmap/timeline.hpp"
#include "perfmap/types.hpp"

namespace perfmap {

/// 64-bit words in a record: unaligned, in either byte order. Borrowed.
class Words {
 public:
  Words() = default;
  Words(std::string_view bytes, bool swapped) noexcept : bytes_(bytes), swapped_(swapped) {}

  std::size_t size() const noexcept { return bytes_.size() / 8; }
  bool empty() const noexcept { return size() == 0; }
  /// Of the recording.
  std::endian order() const noexcept {
    const bool is_little = (std::endian::native == std::endian::little) != swapped_;
    return is_little ? std::endian::little : std::endian::big;
  }
  /// `i` must be less than size().
  std::uint64_t operator[](std::size_t i) const noexcept {
    std::uint64_t word = 0;
    std::memcpy(&word, bytes_.data() + 8 * i, sizeof word);
    return swapped_ ? __builtin_bswap64(word) : word;
  }

 private:
  std::string_view bytes_;
  bool swapped_ = false;
};

/// Record types; other types keep their number. Source: Linux, include/uapi/linux/perf_event.h,
/// enum perf_event_type, and tools/lib/perf/include/perf/event.h from 64 on.
enum class RecordType : std::uint32_t {
  mmap = 1,
  lost = 2,
  comm = 3,
  exit = 4,
  throttle = 5,
  unthrottle = 6,
  fork = 7,
  sample = 9,
  mmap2 = 10,
  aux = 11,
  lost_samples = 13,
  context_switch = 14,
  namespaces = 16,
  ksymbol = 17,
  cgroup = 19,
  text_poke = 20,
  callchain_deferred = 22,
  header_attr = 64,
  tracing_data = 66,
  build_id = 67,
  finished_round = 68,
  id_index = 69,
  auxtrace = 71,
  event_update = 78,
  time_conv = 79,
  header_feature = 80,
  compressed = 81,
  finished_init = 82,
  compressed2 = 83,
};

/// A recorded event: its name, and the fields of perf_event_attr that are needed to read its
/// samples.
struct RecordedEvent {
  std::string name;  ///< "cpu-clock:u"; made from type and config if the recording has none
  std::uint32_t type = 0;
  std::uint64_t config = 0;
  std::uint64_t period = 0;  ///< or, with `is_frequency`, samples a second
  bool is_frequency = false;
  std::uint64_t sample_type = 0;  ///< PERF_SAMPLE_…
  /// Whether samples have a time of their own (PERF_SAMPLE_TIME).
  bool has_times() const noexcept { return (sample_type & (std::uint64_t{1} << 2)) != 0; }
  std::uint64_t read_format = 0;
  std::uint64_t branch_sample_type = 0;
  std::uint64_t user_registers = 0;  ///< mask
  std::uint64_t interrupt_registers = 0;
  std::uint32_t user_stack = 0;       ///< requested bytes of each sample's stack
  bool has_sample_ids = false;        ///< records that are not samples have a trailer
  bool has_build_ids = false;         ///< MMAP2 records contain build-ids
  std::optional<std::int32_t> clock;  ///< CLOCK_…, if the recording chose one
  std::vector<std::uint64_t> ids;
};

/// The build-id that a file had when it was recorded.
struct RecordedBuildId {
  pid_t pid = 0;         ///< -1: any
  std::string build_id;  ///< raw bytes
  std::string path;
  bool is_kernel = false;
};

/// Facts that the recording contains about itself; empty or 0 if it does not.
struct RecordingFacts {
  bool is_pipe = false;     ///< written as a stream: the header has no sizes
  bool was_killed = false;  ///< the recorder was killed: sizes and features are missing
  bool is_swapped = false;  ///< from a machine with the other byte order
  bool is_compressed = false;
  std::string hostname, os_release, version, arch, cpu;
  std::vector<std::string> command_line;
  std::uint32_t cpus = 0;  ///< online at the time
  std::vector<RecordedBuildId> build_ids;
  std::optional<TimeConversion> time_conversion;
  /// The same moment by two clocks: CLOCK_REALTIME and the recording's clock.
  std::uint64_t wall_ns = 0, clock_ns = 0;
  std::uint64_t first_sample = 0, last_sample = 0;
};

/// A record of the recording, in time order. Borrowed until the next call of the reader.
struct RecordView {
  /// From its sample id. If it has none, or 0, as for records that the recorder synthesized, the
  /// latest time of the records before it in the file.
  std::uint64_t time = 0;
  /// in the file; for a compressed record, that of the record that contains it
  std::uint64_t offset = 0;
  /// Position in events(); 0 if unknown, or if a damaged recording has no events.
  std::uint32_t event = 0;
  std::uint16_t misc = 0;  ///< PERF_RECORD_MISC_…
  RecordType type = RecordType::sample;
  bool is_swapped = false;
  std::string_view bytes;  ///< the whole record, with the 8 bytes of its header
};

enum class CpuMode : std::uint8_t { unknown, kernel, user, hypervisor, guest_kernel, guest_user };

/// Registers of a thread in a sample.
struct SampledRegisters {
  std::uint64_t abi = 0;   ///< PERF_SAMPLE_REGS_ABI_…: 0 none, 1 32-bit process, 2 64-bit process
  std::uint64_t mask = 0;  ///< bit n: register n of Linux, arch/*/include/uapi/asm/perf_regs.h
  Words values;            ///< one per bit, ascending
  /// Nothing if it was not sampled.
  std::optional<std::uint64_t> find(unsigned number) const noexcept {
    if (number > 63 || (mask >> number & 1) == 0) return std::nullopt;
    const auto at =
        static_cast<std::size_t>(std::popcount(mask & ((std::uint64_t{1} << number) - 1)));
    if (at >= values.size()) return std::nullopt;
    return values[at];
  }
};

/// PERF_RECORD_SAMPLE. Borrowed, like its RecordView.
struct RecordedSample {
  std::uint64_t time = 0;
  std::uint64_t ip = 0;
  pid_t pid = 0;
  pid_t tid = 0;
  std::uint32_t cpu = UINT32_MAX;  ///< UINT32_MAX: not recorded
  std::uint64_t period = 1;
  std::uint64_t address = 0;  ///< PERF_SAMPLE_ADDR
  std::uint64_t id = 0;
  std::uint32_t event = 0;  ///< position in Recording::events()
  CpuMode mode = CpuMode::unknown;
  /// The leaf first, with PERF_CONTEXT_… markers among the addresses.
  Words callchain;
  SampledRegisters user;
  SampledRegisters interrupted;
  std::string_view user_stack;        ///< the copy of the stack, from the stack pointer on
  std::uint64_t user_stack_room = 0;  ///< maximum size of the copy
  /// The copy has its maximum size: the stack may continue.
  bool is_stack_full() const noexcept { return user_stack.size() >= user_stack_room; }
  std::string_view raw;  ///< PERF_SAMPLE_RAW
};

struct LostRecord {
  std::uint64_t count = 0;
};
struct NamespacesRecord {
  pid_t pid = 0, tid = 0;
  struct Namespace {
    std::uint64_t device = 0, inode = 0;
  };
  std::vector<Namespace> namespaces;  ///< net, uts, ipc, pid, user, mnt, cgroup
};
struct KsymbolRecord {
  AddressRange range;
  std::uint16_t type = 0;  ///< 1: BPF, 2: out of line
  bool unregister = false;
  std::string_view name;
};
struct DeferredCallchain {
  /// From its sample id, of which they are the first field; 0 if it has none.
  pid_t pid = 0, tid = 0;
  std::uint64_t cookie = 0;
  Words callchain;
};

/// The decoded body of a record of that type; nothing if the record has another type or is too
/// short for it. O(size). Views are borrowed from the record.
PERFMAP_API std::optional<MmapEvent> decode_mmap(const RecordView& record) noexcept;  // mmap, mmap2
PERFMAP_API std::optional<CommEvent> decode_comm(const RecordView& record) noexcept;
PERFMAP_API std::optional<ForkEvent> decode_fork(const RecordView& record) noexcept;
PERFMAP_API std::optional<ExitEvent> decode_exit(const RecordView& record) noexcept;
/// Passes the event of an mmap, comm, fork or exit record to `receiver`, which has on_mmap(),
/// on_comm(), on_fork() and on_exit() as a ProcessTracker has. Ignores other records.
template <typename Receiver>
void pass_process_event(const RecordView& record, Receiver& receiver) {
  if (const auto mapped = decode_mmap(record)) {
    receiver.on_mmap(*mapped);
  } else if (const auto comm = decode_comm(record)) {
    receiver.on_comm(*comm);
  } else if (const auto fork = decode_fork(record)) {
    receiver.on_fork(*fork);
  } else if (const auto exit = decode_exit(record)) {
    receiver.on_exit(*exit);
  }
}
PERFMAP_API std::optional<LostRecord> decode_lost(const RecordView& record) noexcept;
PERFMAP_API std::optional<NamespacesRecord> decode_namespaces(const RecordView& record);
PERFMAP_API std::optional<KsymbolRecord> decode_ksymbol(const RecordView& record) noexcept;
PERFMAP_API std::optional<DeferredCallchain> decode_deferred(const RecordView& record) noexcept;
/// `event` is the record's event. Fields that do not fit into the record are empty, and so are all
/// after them.
PERFMAP_API std::optional<RecordedSample> decode_sample(const RecordView& record,
                                                        const RecordedEvent& event) noexcept;

/// A perf.data file, written by perf record to a file or a pipe.
///
/// Reads both byte orders, zstd-compressed records, recordings whose recorder was killed, and the
/// readable part of a damaged file. Does not read recordings in a directory (--threads), nor AUX
/// traces, whose bytes are skipped.
///
/// Several threads may use const members. Sources: Linux,
/// tools/perf/Documentation/perf.data-file-format.txt; include/uapi/linux/perf_event.h.
class PERFMAP_API Recording {
 public:
  /// Fails with bad_format if it is not a recording, with unsupported for a file of a recording in
  /// a directory. O(header, features and the records that describe it).
  static Result<Recording> open(Input input);
  Recording(Recording&&) noexcept;
  Recording& operator=(Recording&&) noexcept;
  ~Recording();

  const Input& input() const noexcept;
  /// For a recording from a pipe, the facts in its first records; the Reader adds later ones.
  const RecordingFacts& facts() const noexcept;
  std::span<const RecordedEvent> events() const noexcept;

  /// Reads the records in the order of their times: sorts within rounds, which the recorder marks
  /// (FINISHED_ROUND), so it holds at most two rounds. A record that is too late for its round is
  /// returned late, and counted. Records without a time come after all records before them in the
  /// file. FINISHED_ROUND and compressed records are not returned, only their contents.
  ///
  /// Holds 48 bytes for each record of two rounds, the same again to sort them, and the bytes of
  /// compressed records. If rounds do not end, or there are none, it holds at most 8 Mi records and
  /// 512 MiB of decompressed bytes: then it returns what it has, and counts records that should
  /// have come earlier as late. Zstd uses at most 128 MiB more. O(log k) per record if a round has
  /// k sorted sequences. Borrows the recording. One thread at a time.
  class PERFMAP_API Reader {
   public:
    explicit Reader(const Recording& recording);
    Reader(Reader&&) noexcept;
    ~Reader();

    /// The next records, at least one and at most some thousands; none at the end. Views are valid
    /// until the next call. Damage goes to `problems` (JD201); reading continues after it.
    std::span<const RecordView> next(Diagnostics& problems);

    /// For a recording from a pipe they may grow with each next(); otherwise those of the
    /// recording.
    const RecordingFacts& facts() const noexcept;
    std::span<const RecordedEvent> events() const noexcept;

    /// The position in the file, in bytes.
    std::uint64_t position() const noexcept;
    /// Bytes that belong to no record; for compressed records, decompressed bytes.
    std::uint64_t lost_bytes() const noexcept;
    std::uint64_t out_of_order() const noexcept;  ///< records that were too late

   private:
    struct State;
    std::unique_ptr<State> state_;
  };

 private:
  struct State;
  explicit Recording(std::unique_ptr<State> state) noexcept;
  std::unique_ptr<State> state_;
};

/// Whether the bytes begin like a recording, in either byte order.
PERFMAP_API bool is_recording(std::string_view bytes) noexcept;

}  // namespace perfmap
