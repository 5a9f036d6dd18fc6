#pragma once

#include <perfmap/index.hpp>
#include <string>
#include <vector>

namespace CLI {
class App;
class Option;
class Validator;
}  // namespace CLI

namespace perfmap::app {

/// Options that several commands share are declared here, once.

/// --overlap; `perf` is for those that only look up.
CLI::Option* add_overlap(CLI::App& command, Overlap& overlap, bool with_perf);

/// -o FILE; "-" is standard output, and the default.
CLI::Option* add_output(CLI::App& command, std::string& path, const std::string& help);

/// --format with one of these values, of which the first is the default.
CLI::Option* add_format(CLI::App& command, std::string& format,
                        const std::vector<std::string>& values);

/// Decimal digits that may be a process id.
CLI::Validator is_pid();

/// Decimal digits that fit every counter.
CLI::Validator is_count();

/// What a name of a file completes to; shells and manual pages look at it.
inline constexpr const char* kFile = "FILE";
inline constexpr const char* kSource = "SOURCE";

}  // namespace perfmap::app
