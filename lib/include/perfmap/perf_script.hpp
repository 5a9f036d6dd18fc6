#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <sys/types.h>

#include "perfmap/address.hpp"
#include "perfmap/export.hpp"

namespace perfmap {

/// Names the unresolved JIT frames in the text of `perf script`, line by line.
///
/// Touched are frames whose symbol is [unknown] and whose dso is [unknown], //anon, [anon:…], a
/// memfd, "[JIT] tid N" or /tmp/perf-N.map; every other byte passes unchanged. The process is N of
/// the dso, else the PID of a `PID/TID` header, else what `process_of` says of the header's tid. A
/// caller's address that nobody has and that is the end of an entry, as a return address behind a
/// last call is, is looked up at address - 1; so is one at the first byte of an entry.
class PERFMAP_API PerfScriptFilter {
 public:
  /// What is at `address` of process `pid` (0: unknown).
  struct Name {
    std::string_view name;
    Address begin = 0;
  };
  /// Answers false where nobody knows. The view lives until the next call.
  using Find = std::function<bool(pid_t pid, Address address, Name& name)>;
  using ProcessOf = std::function<pid_t(pid_t tid)>;

  PerfScriptFilter(Find find, ProcessOf process_of)
      : find_(std::move(find)), process_of_(std::move(process_of)) {}

  /// Appends `line`, which has no newline, to `out`, renamed where that is called for.
  void filter(std::string_view line, std::string& out);

 private:
  void read_header(std::string_view line);
  bool rename(std::string_view line, std::string& out);

  Find find_;
  ProcessOf process_of_;
  pid_t pid_ = 0;
  bool leaf_next_ = true;
  bool offsets_ = true;
};

}  // namespace perfmap
