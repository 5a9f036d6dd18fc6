#pragma once

#include <perfmap/report.hpp>
#include <string>
#include <vector>

#include "command_line.hpp"

namespace perfmap::app {

void print_rules(const Console& console);
ExitCode print_explanation(const Console& console, const std::string& id);
void print_statistics(const Console& console, const std::vector<Diagnostics>& all);
void print_findings(const Console& console, const std::string& format,
                    const std::vector<FileFindings>& files);
/// "3 errors, 1 warning; …": all of them, printed or not.
void note_summary(const Console& console, const std::vector<Diagnostics>& all);

}  // namespace perfmap::app
