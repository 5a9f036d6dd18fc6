#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "perfmap/output_file.hpp"
#include "perfmap/recording.hpp"
#include "perfmap/result.hpp"

namespace perfmap {

/// The parts of a recording's file around its records: copied to a new file whose records are
/// others, and lie one behind the other as they are, not compressed. Of a recording that was
/// written to a pipe that is its header. Borrows the recording.
///
/// Source: Linux, tools/perf/Documentation/perf.data-file-format.txt.
class RewrittenFile {
 public:
  explicit RewrittenFile(const Recording& recording);

  /// What stands before records of so many bytes.
  void write_begin(std::uint64_t data_size, OutputFile& out) const;
  /// What stands behind them.
  void write_end(std::uint64_t data_size, OutputFile& out) const;

 private:
  struct Event {
    std::string_view attributes;
    std::string_view ids;
  };

  void read_header();
  void read_events(std::string_view section);
  void read_features(std::uint64_t table, std::string_view bitmap);
  /// Sections may name the same bytes any number of times; all together are no more than the file.
  std::string_view take(std::string_view bytes) noexcept;
  std::uint64_t data_offset() const noexcept;
  void add_word(std::string& out, std::uint64_t word) const;

  std::string_view file_;
  std::uint64_t room_;
  bool swapped_;
  bool is_pipe_;
  bool was_killed_;
  std::uint64_t entry_size_ = 0;
  std::vector<Event> events_;
  std::array<std::uint64_t, 4> bitmap_ = {};
  std::vector<std::string_view> features_;  // one a bit
};

}  // namespace perfmap
