#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "perfmap/export.hpp"
#include "perfmap/input.hpp"
#include "perfmap/module.hpp"
#include "perfmap/result.hpp"

namespace perfmap {

struct ModuleCacheOptions {
  /// Beyond, what was used longest ago and is held by nobody else goes.
  std::uint64_t most_bytes = std::uint64_t{2} << 30;
  /// See ModuleFiles.
  std::vector<std::string> debug_directories = {};
  FetchDebugFile fetch = {};
  /// Files of the same build-id are one module, whoever wrote them. Otherwise only those whose
  /// bytes are the same, too, as anybody can write any build-id: they are compared once.
  bool trust_build_ids = false;
};

/// Which file it is, whatever its paths: what stat(2) says.
struct FileKey {
  std::uint64_t device = 0;
  std::uint64_t inode = 0;
  std::int64_t mtime_ns = 0;
  std::uint64_t size = 0;

  friend bool operator==(const FileKey&, const FileKey&) = default;
};

/// ELF files, each opened once for however many processes and threads: known by build-id, else by
/// device, inode, time and size. May be used from several threads, all members. Files are read
/// outside of its lock; who asks for one that is being opened waits for that.
///
/// A file that is no ELF file is remembered as such; one that is not there is asked for again.
/// Neither holds a descriptor.
class PERFMAP_API ModuleCache {
 public:
  using Answer = Result<std::shared_ptr<const Module>>;

  explicit ModuleCache(ModuleCacheOptions options = {});
  ~ModuleCache();
  ModuleCache(const ModuleCache&) = delete;
  ModuleCache& operator=(const ModuleCache&) = delete;

  /// See Module::open(). A file that is known is looked up, and not opened. Debug files are looked
  /// for below the root of the one who came first.
  Answer open(const std::string& path, const std::string& root = {});
  /// The same for what is open, or for bytes.
  Answer open(Input input, const std::string& root = {});

  /// What is known already, or null: touches no file. By the bytes of a build-id: whatever has it
  /// and was used last.
  std::shared_ptr<const Module> find(const FileKey& key);
  std::shared_ptr<const Module> find_build_id(std::string_view build_id);

  /// Lets go of what nobody else holds until `bytes` are left at most. open() does it by itself
  /// when it takes in a file.
  void trim(std::uint64_t bytes);

  struct Statistics {
    std::uint64_t opened = 0;     ///< files that were read, ELF or not
    std::uint64_t hits = 0;       ///< answers without reading
    std::uint64_t shared = 0;     ///< of `opened`, those that another path's module stands for
    std::uint64_t failures = 0;   ///< answers that are errors, remembered ones included
    std::uint64_t evictions = 0;  ///< modules let go
    std::uint64_t modules = 0;    ///< now in it
    std::uint64_t bytes = 0;      ///< what these hold: see Module::bytes_held()
  };
  Statistics statistics() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace perfmap
