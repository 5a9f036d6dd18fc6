#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <sys/types.h>

#include "perfmap/export.hpp"
#include "perfmap/jit_sources.hpp"
#include "perfmap/output_file.hpp"
#include "perfmap/result.hpp"

namespace perfmap {

/// How the JIT code of a pprof profile is named.
struct PprofNaming {
  /// The map and the dumps of a process, asked once for each; 0 where a sample's labels "pid" do
  /// not say which it was. nullptr: none are known.
  std::function<std::shared_ptr<JitSources>(pid_t pid)> find = {};
  bool demangle = true;  ///< see demangle_code(); a function's system_name stays mangled
  /// What a compressed profile may become: that many times its size, but 64 MiB at least, and never
  /// more than `most_bytes`.
  std::uint64_t most_times = 64;
  std::uint64_t most_bytes = std::uint64_t{1} << 30;
};

/// What became of the locations that are in samples.
struct PprofNamed {
  std::uint64_t locations = 0;  ///< all of them
  std::uint64_t jit = 0;        ///< those without a name, in memory that only runtimes have
  std::uint64_t named = 0;      ///< of these, those that have one now
  std::uint64_t ambiguous = 0;  ///< made two or more, because processes have other code there
  /// Of `jit`, those of samples that have no pid, where nothing is known of pid 0.
  std::uint64_t without_process = 0;
};

/// Whether the bytes may be a pprof profile: gzip's magic, or a protobuf message that has the
/// fields of one, and a string table that begins as it has to. O(fields) of the outermost message.
PERFMAP_API bool may_be_pprof(std::string_view bytes) noexcept;

/// Writes the profile to `out`, compressed if it was, where locations without a function have the
/// names that the process's map and dumps have for their addresses at the end. Such a location
/// lies in no mapping, or in one that has no file: anonymous memory, a memfd, a perf map; or in a
/// file below /dev/shm. An address that is only ever a caller's may be a return address: where it is
/// the first byte of an entry, or of none, the byte before is asked for.
///
/// All other fields, those that nobody knows included, stay what and where they are; functions and
/// strings are added behind them. Of a location that two processes have other names for there is
/// one for each.
///
/// Fails with bad_format, or too_large. O(size) time and memory.
/// Source: github.com/google/pprof, proto/profile.proto.
PERFMAP_API Result<PprofNamed> name_pprof(std::string_view bytes, const PprofNaming& naming,
                                          OutputFile& out);

}  // namespace perfmap
