#pragma once

#include <cstdint>
#include <string>
#include <sys/types.h>

#include "io/record_file.hpp"
#include "perfmap/jitdump_writer.hpp"

namespace perfmap {

std::uint64_t monotonic_ns() noexcept;

/// How to go on with a dump that was opened.
struct DumpStart {
  pid_t pid = 0;
  std::uint64_t next_index = 1;
  bool is_new = true;     ///< there is no header yet
  bool was_made = false;  ///< nor was there a file
};

/// Opens a dump as JitdumpWriter::open_own() says; `path` is the calling process's own.
Result<DumpStart> open_own_dump(RecordFile& file, const std::string& path);
/// The same as JitdumpWriter::open().
Result<DumpStart> open_dump(RecordFile& file, const std::string& path,
                            const JitdumpOptions& options);

/// Goes on in a child with a dump of its own at `path`, which appears whole: it begins with the
/// records that `file`, its parent's, has now, as the child's. On failure `file` is as it was.
Result<DumpStart> inherit_own_dump(RecordFile& file, const std::string& path, bool marker);

/// Who wrote what is at the path of our own dump.
enum class Begun { before_us, by_us, by_another };
Begun who_began(const Input& input);

/// N of a path that ends in jit-N.dump; 0 where it does not.
pid_t pid_of_name(const std::string& path) noexcept;

}  // namespace perfmap
