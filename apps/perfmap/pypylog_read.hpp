#pragma once

#include <memory>
#include <optional>
#include <perfmap/input.hpp>
#include <perfmap/line_blocks.hpp>
#include <string>

#include "pypylog_options.hpp"

namespace perfmap::app {

/// A log as it was named on the command line. What is no regular file is gone once it was read,
/// unless it is kept.
class LogSource {
 public:
  /// With `keep` the log may be read several times, and text() is there.
  static Result<LogSource> open(const std::string& path, bool keep);

  const std::string& name() const noexcept { return name_; }
  /// All of it.
  std::string_view text() const noexcept { return input_->text(); }
  const Input& input() const noexcept { return *input_; }
  /// Fails where that is what is read.
  Result<void> check_output(const std::string& path) const;
  /// Fails where the bytes are of another kind, or hold no line of a log, or were cut off
  /// meanwhile.
  Result<void> read(LoopProfile& profile, const Console& console);

 private:
  explicit LogSource(std::string name) : name_(std::move(name)) {}
  Result<bool> feed(LoopProfile& profile);
  Result<void> expand_rest(std::string bytes);

  std::string name_;
  std::optional<Input> input_;
  std::optional<LineBlocks> blocks_;
};

/// How these options want a log to be read. Fails where a tick cannot be one of the log's base.
LoopProfile::Options profile_options(const PypylogOptions& options);
Result<void> check_ticks(const PypylogOptions& options, const LoopProfile& profile);

/// What was read how, and what is wrong with the log, in a few lines.
void note_log(const LogSource& source, const LoopProfile& profile, bool has_samples,
              const Console& console);

}  // namespace perfmap::app
