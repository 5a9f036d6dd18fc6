#pragma once

#include <perfmap/index.hpp>
#include <perfmap/perf_script.hpp>
#include <string>
#include <unordered_map>
#include <vector>

#include "source.hpp"

namespace perfmap::app {

/// The maps that `resolve --perf-script` asks: those given, for every process; or each process's
/// own, opened when its first unnamed frame comes.
class ScriptMaps {
 public:
  static Result<ScriptMaps> open(const std::vector<Source>& sources, const SourceOptions& options,
                                 Overlap overlap, const std::string& map_dir,
                                 const Console& console);

  bool find(pid_t pid, Address address, PerfScriptFilter::Name& name);
  /// After the work: whether none of the maps was cut off under our hands.
  bool are_whole(const Console& console) const;
  /// Why the maps of some processes could not be had, one line each.
  const std::vector<std::string>& missing() const noexcept { return missing_; }

 private:
  ScriptMaps() = default;
  Index index_of(std::vector<Map> maps);
  Result<Map> open_of(pid_t pid) const;
  const Index* of(pid_t pid);

  SourceOptions options_;
  Overlap overlap_ = Overlap::last;
  std::string map_dir_;
  std::optional<Index> given_;
  std::unordered_map<pid_t, std::optional<Index>> own_;
  std::vector<std::string> missing_;
};

}  // namespace perfmap::app
