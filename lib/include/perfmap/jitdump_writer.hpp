#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <sys/types.h>

#include "perfmap/fork_policy.hpp"
#include "perfmap/jitdump.hpp"
#include "perfmap/types.hpp"
#include "perfmap/writer.hpp"

namespace perfmap {

struct JitdumpOptions {
  /// Whose code it is. 0: of an existing dump the one its header names, else N where the file is
  /// called jit-N.dump, else the calling process.
  pid_t pid = 0;
  /// The first page is mapped for execution until close(), which `perf record` notes, and by which
  /// `perf inject --jit` finds the file. Without it a recording does not know of the dump.
  bool marker = true;
  /// close() ends the dump with a CLOSE record. perf reads nothing behind one, so that reopening
  /// takes it back.
  bool close_record = true;
  /// True for a dump in /tmp: links, all but regular files, and files of other users are refused.
  bool own_dump = false;
  /// open() waits up to 30 s while another writer has the dump, instead of failing with EBUSY.
  bool wait = false;
  NamePolicy names = NamePolicy::escape;  ///< as for maps, so that both hold the same name
  /// Each function is named in the process's own map, too: see ProcessMap.
  bool process_map = false;
  /// As in WriterOptions.
  std::uint64_t max_bytes = 0;
  /// What becomes of a dump of open_own() in a child. Records that a child inherits become its own:
  /// they carry its pid, by which perf goes, and keep their times, code indices, lines and
  /// unwinding information. Where they are to be read as the recording's, perf has them from the
  /// parent's dump as well, as a child starts with its parent's mappings.
  ForkPolicy fork = ForkPolicy::fresh;
};

/// How a profiler unwinds through a function: .eh_frame and .eh_frame_hdr as in an ELF file. perf
/// puts the frame at the first multiple of 8 behind the code, the header right behind the frame:
/// the header's pointers, which are relative, have to count on that.
struct JitUnwinding {
  std::string_view eh_frame;
  std::string_view eh_frame_hdr;
  /// Bytes behind the code, from the first multiple of 8 on, that hold both in the process, or are
  /// left free for them: perf lays the mapping of the function over them, so no other function may
  /// be there. 0: there are none, and perf cannot use the frame. Otherwise not less than both.
  std::uint64_t mapped_size = 0;
};

/// A function that was made. Everything is only looked at during the call.
struct JitFunction {
  Address start = 0;
  std::uint64_t size = 0;
  std::string_view name;
  /// `size` bytes; or empty, where they are unknown or of no interest: then zeros are written, up
  /// to kMaxZeros of them, because perf takes that many bytes from the end of the record whatever
  /// they are.
  std::string_view code = {};
  /// By ascending address, none outside [start, start + size]: each holds up to the next one, the
  /// last up to the end. `file_repeats` is ignored: not every perf knows it.
  std::span<const LineRecord> lines = {};
  JitUnwinding unwinding = {};
  /// CLOCK_MONOTONIC nanoseconds; 0: now. Code has to be there from then on, and a sample taken
  /// before does not get this name: write a function before it runs.
  std::uint64_t time = 0;
};

/// Writes a jitdump, the file by which `perf inject --jit` names generated code, with the lines and
/// the unwinding information that a perf map has no room for. Record with `perf record -k mono`.
///
/// A function is one writev(2): its DEBUG_INFO, its UNWINDING_INFO and, last, its LOAD, for perf
/// gives the former two to whichever LOAD comes next. May be used from several threads at once.
/// code_index counts up from 1, or from where an existing dump ends; times are taken, and records
/// ordered, under one lock. Records are in the file when the call returns: nothing is buffered.
///
/// A failed call is reported and leaves nothing of its records behind. Where half a record cannot
/// be cut off, because another process has written behind it, say, every later call fails with EIO
/// until it can: whatever follows half a record is lost with it. Where the file size limit of the
/// process is passed (EFBIG) the kernel also sends SIGXFSZ, as for every write.
///
/// One writer at a time has a dump, by an advisory lock (F_OFD_SETLK): another one gets EBUSY, in
/// the same process, too. A file is made with mode 0600, never truncated, and closed on exec. What
/// is there already:
///  * a dump of that pid, in this machine's byte order and with times in nanoseconds, is appended
///    to; half a record at its end, and a CLOSE, are cut off first. Costs one reading of it;
///    A process that has it open for writing, and is no writer of ours, has a position or a buffer
///    of its own: refused;
///  * an empty file gets a header;
///  * anything else is bad_format, but see open_own().
///
/// In a child, however it was made, it never writes into its parent's dump, and does not end it. A
/// writer of open_own() goes on there with the child's own dump, as JitdumpOptions::fork says: one
/// that is made when the child first writes, one that begins with the parent's records and has its
/// own marker, or none, where load() succeeds and answers 0. Every other writer fails with EBADF.
/// In a child of a bare clone(2) of a process with threads it must not be used at all: like most
/// of C++ it needs malloc(), whose lock may be taken there.
///
/// Source: Linux, tools/perf/Documentation/jitdump-specification.txt, and for the order of the
/// unwinding information tools/perf/util/genelf.c, from which that text differs.
class PERFMAP_API JitdumpWriter {
 public:
  /// How many bytes of code may be left out of a JitFunction.
  static constexpr std::uint64_t kMaxZeros = JitdumpBytes::kMaxZeros;

  /// DIRECTORY/jit-PID.dump of the calling process; the name is what perf goes by. `pid` and
  /// `own_dump` are set here. A file of ours that was last written before this process began is a
  /// former process's of the same pid: it is unlinked, so that whoever reads it may go on, and a
  /// new one is made. One that this process began, before exec(2), say, is appended to. Any other
  /// one is being written by another engine in this process: EBUSY.
  static Result<JitdumpWriter> open_own(const std::string& directory = "/tmp",
                                        const JitdumpOptions& options = {});
  static Result<JitdumpWriter> open(const std::string& path, const JitdumpOptions& options = {});
  /// Writes a dump, from its header on, to a descriptor such as 1, which the caller keeps and may
  /// close at once. There is no marker.
  static Result<JitdumpWriter> to_descriptor(int fd, std::string name,
                                             const JitdumpOptions& options = {});
  JitdumpWriter(JitdumpWriter&&) noexcept;
  JitdumpWriter& operator=(JitdumpWriter&&) noexcept;
  /// close(), with nobody left to tell of a failure.
  ~JitdumpWriter();

  /// Writes a function and answers with its code_index, for move(). With `map`, its line goes there
  /// next; should that fail, the record stays. O(bytes). EINVAL (invalid_argument) for what the
  /// members of JitFunction rule out; EOVERFLOW for records of 4 GiB and more.
  Result<std::uint64_t> load(const JitFunction& function, MapWriter* map = nullptr);
  /// The code of `code_index` went from one address to another, now. perf keeps resolving samples
  /// at the old one.
  Result<void> move(std::uint64_t code_index, Address from, Address to, std::uint64_t size);
  /// Ends the dump and takes the marker away. Later calls fail with EBADF.
  Result<void> close();

  std::string path() const;

 private:
  struct State;
  explicit JitdumpWriter(std::unique_ptr<State> state);
  template <class Open>
  static Result<JitdumpWriter> make(const JitdumpOptions& options, Open open);
  std::unique_ptr<State> state_;
};

}  // namespace perfmap
