#pragma once

#include <optional>
#include <perfmap/input.hpp>
#include <perfmap/kernel_symbols.hpp>
#include <string>

#include "console.hpp"

namespace perfmap::app {

/// The text that names a recording's kernel frames: the file of --kallsyms; without it
/// /proc/kallsyms, if this machine runs the kernel that was recorded and has not booted since.
class KernelSource {
 public:
  /// The file of --kallsyms.
  Result<void> open(const std::string& path);

  /// Empty if there is none, which note() then says. Borrowed until this is gone.
  std::string_view text_of(const RecordedKernel& kernel);
  /// Call it at the end. Reports why kernel frames have no names, if the reader asked for them.
  void note(const Console& console) const;

 private:
  std::optional<Input> text_;
  bool is_given_ = false;
  std::string why_;  // there is none
};

}  // namespace perfmap::app
