#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <sys/types.h>
#include <unordered_map>

#include "perfmap/address.hpp"
#include "perfmap/export.hpp"
#include "perfmap/resolver.hpp"

namespace perfmap {

/// Names the unresolved JIT frames in the text of `perf script`, line by line.
///
/// Touched are frames whose symbol is [unknown] and whose dso is [unknown], //anon, [anon:…], a
/// memfd, a file below /dev/shm, "[JIT] tid N" or /tmp/perf-N.map; every other byte passes
/// unchanged. The process is N of the dso, which of memory that was inherited is the parent; else,
/// or where that has no name, the PID of a `PID/TID` header, else what `process_of` says of the
/// header's tid, and that tid itself where it says nothing. Headers may lack any field; a sample
/// may be one line. Of memfds and files perf prints an address only where there is no call chain,
/// else an offset in the file, which names nothing.
///
/// Where a header has a time, that is the time at which is asked; it stands for its last nanosecond
/// as parse_seconds() says.
///
/// A caller's address is a return address: where it is the first byte of an entry, or nobody's, it
/// is looked up at address - 1.
class PERFMAP_API PerfScriptFilter {
 public:
  /// What is at an address of process `pid` (0: unknown).
  struct Name {
    std::string_view name;
    Address begin = 0;
  };
  /// Answers false where nobody knows. The view lives until the next call.
  using Find = std::function<bool(pid_t pid, const Query& query, Name& name)>;
  using ProcessOf = std::function<pid_t(pid_t tid)>;

  PerfScriptFilter(Find find, ProcessOf process_of)
      : find_(std::move(find)), process_of_(std::move(process_of)) {}

  /// Appends `line`, which has no newline, to `out`, renamed where that is called for.
  void filter(std::string_view line, std::string& out);
  /// How many such frames kept their [unknown], because nobody knew a name.
  std::uint64_t unnamed() const noexcept { return unnamed_; }

 private:
  bool is_frame(std::string_view line) const;
  void read_header(std::string_view line);
  void end_sample();
  pid_t process();
  bool find_frame(pid_t pid, Address address, Name& name);
  bool rename(std::string_view line, bool own_line, std::string& out);

  Find find_;
  ProcessOf process_of_;
  std::unordered_map<pid_t, pid_t> processes_;  // of threads that were asked for
  pid_t pid_ = 0;
  pid_t tid_ = 0;
  std::uint64_t time_ = Timeline::kEnd;
  bool header_expected_ = true;
  bool leaf_next_ = true;
  bool offsets_ = true;
  std::uint64_t unnamed_ = 0;
};

}  // namespace perfmap
