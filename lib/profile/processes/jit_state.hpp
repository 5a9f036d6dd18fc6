#pragma once

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "perfmap/jit_sources.hpp"

namespace perfmap {

/// Device and inode.
using FileId = std::pair<std::uint64_t, std::uint64_t>;
/// The sources of a process as they were opened last, for those who look again.
using OpenedFiles = std::map<FileId, Input>;

/// A map or a dump, and how much of its beginning is a former program's.
struct JitSource {
  std::variant<Map, Jitdump> file;
  std::uint64_t former_bytes = 0;

  bool is_map() const noexcept { return std::holds_alternative<Map>(file); }
  const Input& input() const noexcept;
  Result<Growth> refresh();
};

struct JitSources::State {
  Options options;
  bool looks_for_files = false;
  std::shared_ptr<OpenedFiles> opened = std::make_shared<OpenedFiles>();
  std::vector<Input> found_now;    // by look(), for take_new()
  std::vector<JitSource> sources;  // maps first, as the resolver numbers them
  std::vector<Error> refused;
  Doubts doubts;  // of every name
  std::optional<Resolver> resolver;
  Diagnostics problems{1};

  /// Opens what the process has; false where it is gone, which voids all.
  bool look(const ProcSource& process);
  /// Adds what look() found and is new. Whether there was any.
  bool take_new();
  bool has(FileId key) const noexcept;
  JitSource source_of(const Input& input) const;
  JitSource after_former(JitSource made) const;
  void build();
};

}  // namespace perfmap
