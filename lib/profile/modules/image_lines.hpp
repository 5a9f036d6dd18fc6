#pragma once

#include <cstdint>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "modules/image_code.hpp"
#include "modules/target_bytes.hpp"

namespace perfmap {

/// The .debug_line of an image: one program for all functions. Source: DWARF 4, 6.2. Borrows file
/// names from the dump.
class ImageLines {
 public:
  explicit ImageLines(const Target& target) : program_(target), head_(target) {}

  /// Takes in a function's lines, as JitDetails gives them. O(lines + pieces · log lines).
  void add(const ImageCode& code, const ImageFunction& function,
           const std::vector<CodeLine>& lines);

  /// Once, at the end. False where 32 bits cannot tell the size.
  bool finish();
  /// The section is these two, one behind the other.
  std::string_view head() const noexcept { return head_.view(); }
  std::string_view program() const noexcept { return program_.view(); }

 private:
  struct Row {
    Address address = 0;
    std::int64_t line = 1;
    std::uint64_t column = 0;
    std::uint64_t file = 1;
  };

  std::uint64_t file_number(std::string_view name);
  void begin_sequence(Address address);
  void emit(const Row& row);
  void end_sequence(Address end);

  TargetBytes program_;
  TargetBytes head_;
  std::vector<std::string_view> files_;
  std::unordered_map<std::string_view, std::uint64_t> numbers_;
  Row state_;
};

}  // namespace perfmap
