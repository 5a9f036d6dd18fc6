#pragma once

#include <vector>

#include "modules/image_code.hpp"
#include "modules/line_table.hpp"

namespace perfmap {

/// The .debug_line of an image: the line tables of its units, in their order.
class ImageLines {
 public:
  ImageLines(const Target& target, const ImageCode& code);

  /// Takes in a function's lines, as JitDetails gives them. O(lines + pieces · log lines).
  void add(const ImageCode& code, const ImageFunction& function,
           const std::vector<CodeLine>& lines);
  /// Once, at the end.
  void finish();

  const std::vector<LineTable>& tables() const noexcept { return tables_; }
  /// Of all tables.
  std::uint64_t size() const noexcept;

 private:
  std::vector<LineTable> tables_;
};

}  // namespace perfmap
