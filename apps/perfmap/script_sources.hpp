#pragma once

#include <perfmap/perf_script.hpp>
#include <perfmap/resolver.hpp>
#include <string>
#include <unordered_map>
#include <vector>

#include "name_sources.hpp"

namespace perfmap::app {

/// The sources that `resolve --perf-script` asks: those given, for every process; or each process's
/// own, opened when its first unnamed frame comes.
class ScriptSources {
 public:
  static Result<ScriptSources> open(const std::vector<Source>& sources,
                                    const SourceOptions& options, Overlap overlap,
                                    const Console& console);

  bool find(pid_t pid, const Query& query, PerfScriptFilter::Name& name);
  /// Of the name that find() answered with last.
  Doubts doubts() const noexcept { return doubts_; }
  /// After the work: whether none of the sources was cut off under our hands.
  bool are_whole(const Console& console) const;
  /// Why the sources of some processes could not be had, one line each.
  const std::vector<std::string>& missing() const noexcept { return missing_; }

 private:
  explicit ScriptSources(const Console& console) : console_(&console) {}
  const Resolver* of(pid_t pid);

  const Console* console_;
  SourceOptions options_;
  Overlap overlap_ = Overlap::last;
  std::optional<Resolver> given_;
  std::unordered_map<pid_t, std::optional<Resolver>> own_;
  std::vector<std::string> missing_;
  Doubts doubts_;
};

}  // namespace perfmap::app
