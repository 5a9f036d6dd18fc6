#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <sys/types.h>
#include <vector>

#include "perfmap/diagnostic.hpp"
#include "perfmap/jit_paths.hpp"
#include "perfmap/output_file.hpp"
#include "perfmap/runtimes.hpp"
#include "perfmap/types.hpp"

namespace perfmap {

/// What became of a file that was looked for.
enum class FileFate : std::uint8_t {
  used,
  missing,
  unreachable,    ///< the process's root may not be looked into
  unreadable,     ///< it is there, and may not be opened
  link,           ///< a symbolic link, which is not followed
  not_regular,    ///< a FIFO, a device, a directory
  foreign_owner,  ///< of neither the process's user nor root nor us: anybody may have written it
  too_large,      ///< larger than is believable
  stale,          ///< last changed before the process began: an earlier one's of the same pid
  empty,
  other_pid,  ///< called by the process's pid in another namespace, where nobody looks for it
  shadowed,   ///< good, but another one was found first
};
/// "used", "missing", "foreign-owner" and so on.
PERFMAP_API std::string_view to_string(FileFate fate) noexcept;

/// A perf map or a jitdump that was looked for.
struct LookedFor {
  bool is_dump = false;
  /// A dump whose first page the process has mapped executable: how perf hears of it.
  bool has_marker = false;
  std::string path;      ///< as the process sees it; empty: it was looked for on our side alone
  std::string our_path;  ///< as we see it
  FileFate fate = FileFate::missing;
  std::string why;            ///< one line, for people
  std::uint64_t entries = 0;  ///< lines, or LOAD records, of a file that is used
  std::string damage;  ///< what is damaged in a dump that is used, such as "JD201: …"; one line
  bool is_cut_off = false;  ///< `damage` is that the last record is not whole, and no other
  /// The process that it is of, from which the examined one was forked; 0: its own.
  pid_t inherited_from = 0;
};

/// Something to know about a process's names.
struct DoctorFinding {
  std::string_view id;  ///< such as "no-map"; see perfmap-doctor(1). Static storage
  /// warning and error: names are missing, or would be. info: good to know.
  Severity severity = Severity::info;
  std::string message;  ///< one line without a final stop. Bytes of the process's are made visible
  std::string fix;      ///< the one command that mends it; empty where there is none
};

/// Executable memory in which code that a runtime made may lie; see JitRegionKind::likely. Of files
/// those count that are no ELF files and hold what the files in use name, as below /dev/shm.
struct JitMemory {
  std::uint64_t regions = 0;
  std::uint64_t bytes = 0;
  std::uint64_t named_bytes = 0;  ///< that an entry of the files in use covers
  /// Of named_bytes those in regions where perf does not look into a map; see perf_asks_its_map().
  std::uint64_t ignored_bytes = 0;
  std::string ignored_region;         ///< the name of the first of those regions
  std::uint64_t executable_hits = 0;  ///< entries that lie in executable memory of any kind
};

/// Why names of a live process are missing, or that none is.
struct Diagnosis {
  pid_t pid = 0;
  std::string comm;  ///< raw bytes
  uid_t uid = 0;     ///< the process's, effective
  Runtime runtime = Runtime::unknown;
  std::string evidence;         ///< what told the runtime, such as "executable /usr/bin/node"
  std::string runtime_version;  ///< "3.11", "17.0.15"; empty where nothing tells
  std::vector<LookedFor> looked_for;
  JitMemory memory;
  std::vector<DoctorFinding> findings;  ///< those that cost names first

  /// Whether there can be names of a runtime at all; a program in C has none to miss.
  bool concerns_jit() const noexcept { return runtime != Runtime::unknown || memory.regions != 0; }
  bool misses_names() const noexcept {
    return !findings.empty() && findings.front().severity != Severity::info;
  }
};

struct DoctorOptions {
  Roots roots;
  /// Whose eyes: decides what perf may do, and when a command wants sudo.
  uid_t reader = 0;
  /// The roots are those of a Snapshot: its files may belong to anybody, and there are no findings
  /// about perf, which cannot record it.
  bool is_snapshot = false;
};

/// Examines a live process. Nothing of it is trusted: see ProcSource and find_process_map(). Fails
/// with not_found where there is none, with invalid_argument for a thread that is not its process's
/// first, and with io (EACCES, EPERM) where it may not be read, as another user's. May be called
/// from several threads; of files that shrink meanwhile see TruncationGuard.
/// O(regions + n log n) for n entries of its files, 16 bytes an entry at most.
/// Where names and files are looked for, and who ignores what: Linux, tools/perf/util/map.c,
/// symbol.c, namespaces.c and jitdump.c; the flags of runtimes are those of their manuals.
PERFMAP_API Result<Diagnosis> diagnose(pid_t pid, const DoctorOptions& options);

/// For people: who it is, what was looked for, what is wrong, and what mends it. Bytes of the
/// process's are made visible. `color`: with ANSI colours.
PERFMAP_API void write_doctor_text(OutputFile& out, const Diagnosis& diagnosis, bool color = false);
/// One object: docs/schema/perfmap.doctor-1.json.
PERFMAP_API void write_doctor_json(OutputFile& out, const Diagnosis& diagnosis);

}  // namespace perfmap
