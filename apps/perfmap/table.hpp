#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <perfmap/output_file.hpp>
#include <string>
#include <vector>

namespace perfmap::app {

using TableRow = std::vector<std::string>;

/// Rows of a table, of which the first is the heading: columns are as wide as their widest cell,
/// and two blanks apart. Those that are named stand at the left of their column, the others at the
/// right.
void write_rows(const std::vector<TableRow>& rows, std::initializer_list<std::size_t> left,
                OutputFile& out);

/// "12.5%", or "-" where there is no whole.
std::string percent(std::uint64_t part, std::uint64_t whole);

}  // namespace perfmap::app
