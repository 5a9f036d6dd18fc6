#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "perfmap/loop_report.hpp"
#include "perfmap/output_file.hpp"

namespace perfmap {

/// "12", or an en dash where nobody knows.
std::string page_count(const std::optional<std::uint64_t>& count);
/// "12.34 %".
std::string page_percent(std::uint64_t part, std::uint64_t whole);
/// A link to the section of a loop, as `text`, which is HTML.
std::string page_link(std::uint32_t loop, std::string_view text);
/// "f /tmp/t.py:10" as HTML.
std::string page_place(std::string_view function, std::string_view file, std::uint32_t line);

/// The part of the page that is about one loop: facts, operations, and bridges out of guards.
/// Without a log it says that operations are left out.
void write_loop_section(const LoopProfile& profile, std::uint32_t loop, std::string_view log,
                        OutputFile& out);

}  // namespace perfmap
