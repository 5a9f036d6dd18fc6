#pragma once

#include <optional>
#include <perfmap/resolver.hpp>
#include <string>
#include <string_view>

namespace perfmap::app {

/// Reads the lines "ADDR" and "ADDR TIME", and says what is wrong with others.
class QueryReader {
 public:
  /// `time` is that of lines without one. Where a source counts ticks, times of lines are refused.
  QueryReader(std::uint64_t time, bool times_count) : time_(time), times_count_(times_count) {}

  /// A query; or nothing, and why: empty for a blank line. `column` is where it is wrong.
  std::optional<Query> read(std::string_view line, std::string& why, std::size_t& column) const;

 private:
  std::uint64_t time_;
  bool times_count_;
};

}  // namespace perfmap::app
