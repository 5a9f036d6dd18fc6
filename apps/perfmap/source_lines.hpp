#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <perfmap/input.hpp>
#include <string>
#include <vector>

namespace perfmap::app {

/// Lines of source files that somebody else named: of regular files whose name ends in .py, and of
/// no link. Where there is none, nothing.
class SourceLines {
 public:
  /// Without the blanks around it. O(file) the first time.
  std::string line(const std::string& path, std::uint32_t number);

 private:
  struct File {
    std::optional<Input> input;
    std::vector<std::size_t> starts;  // of lines
  };
  static File open(const std::string& path);

  std::map<std::string, File> files_;
};

}  // namespace perfmap::app
