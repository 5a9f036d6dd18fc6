#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "perfmap/export.hpp"
#include "perfmap/result.hpp"

namespace perfmap {

/// Asks debuginfod servers for debug files, by elfutils' libdebuginfod, which is loaded when this
/// is opened and not before: nothing here reaches for the network by itself. That library takes the
/// servers' addresses from the environment (DEBUGINFOD_URLS, DEBUGINFOD_TIMEOUT), and keeps what it
/// got below DEBUGINFOD_CACHE_PATH or the user's cache directory.
///
/// Copies share everything; const members may be used from several threads, which take turns.
/// Source: debuginfod_find_debuginfo(3).
class PERFMAP_API Debuginfod {
 public:
  /// Fails with not_found where the library is not installed. That no server is named shows by
  /// find() alone.
  static Result<Debuginfod> open();

  /// The path of the debug file with that build-id (raw bytes) on this machine; nothing where no
  /// server has it. Takes as long as the servers do.
  std::optional<std::string> find(std::string_view build_id) const;
  /// What kept the servers from answering when find() was called last; nothing where they did, be
  /// it that they have no such file.
  std::optional<Error> failure() const;

 private:
  struct State;
  explicit Debuginfod(std::shared_ptr<State> state) noexcept : state_(std::move(state)) {}
  std::shared_ptr<State> state_;
};

}  // namespace perfmap
