#pragma once

#include <cstdint>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "modules/target_bytes.hpp"
#include "perfmap/jit_details.hpp"

namespace perfmap {

/// The line table of one compilation unit. Source: DWARF 4, 6.2. Borrows the names of files.
class LineTable {
 public:
  explicit LineTable(const Target& target) : program_(target), head_(target) {}

  /// Code from `address` on; lines follow in the order of their addresses.
  void begin_sequence(Address address);
  /// A line, of which the address is `address` by now.
  void add(const CodeLine& line, Address address);
  void end_sequence(Address end);

  bool empty() const noexcept { return program_.size() == 0; }
  /// Once, at the end.
  void finish();
  /// The table is these two, one behind the other; both empty without lines.
  std::string_view head() const noexcept { return head_.view(); }
  std::string_view program() const noexcept { return program_.view(); }
  std::size_t size() const noexcept { return head_.size() + program_.size(); }

 private:
  struct Row {
    Address address = 0;
    std::int64_t line = 1;
    std::uint64_t column = 0;
    std::uint64_t file = 1;
  };

  std::uint64_t file_number(std::string_view name);
  void advance(std::uint64_t bytes, std::int64_t lines);

  TargetBytes program_;
  TargetBytes head_;
  std::vector<std::string_view> files_;
  std::unordered_map<std::string_view, std::uint64_t> numbers_;
  Row state_;
};

}  // namespace perfmap
