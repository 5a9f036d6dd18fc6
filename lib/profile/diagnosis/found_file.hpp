#pragma once

#include <functional>
#include <string>

#include "diagnosis/doctor_coverage.hpp"
#include "perfmap/doctor.hpp"
#include "perfmap/input.hpp"

namespace perfmap {

/// How a map or dump is opened that was found and not named.
OpenPolicy found_file_policy();

/// A place where a map or a dump may be.
struct FilePlace {
  std::string path;      ///< LookedFor::path
  std::string our_path;  ///< LookedFor::our_path
  std::string below;     ///< the path below the process's root; empty: on our side
};

/// What a search knows of files that judge_file() does not.
struct FileJudge {
  std::function<Result<FileFacts>(const FilePlace&)> look;  ///< as lstat(2)
  std::function<Result<Input>(const FilePlace&)> open;
  /// Sets `fate` and `why` of a file that is not believed.
  std::function<void(const Input&, LookedFor&)> object;
};

/// What became of a file: `used`, and then it is in `good`, or why not.
LookedFor judge_file(const FilePlace& place, const FileJudge& judge, Input* good);

/// lstat(2) and open(2) on our side.
Result<FileFacts> look_at_path(const std::string& path);

/// Fate and `why` of a file that could not be opened.
void set_fate(const Error& error, LookedFor& file);

/// Reads a map or dump that is used: counts its entries, adds them to the coverage, and notes
/// damage. `is_growing`: a last record that is not whole is not there yet.
void take_map(Input input, LookedFor& file, Coverage& coverage);
void take_dump(Input input, LookedFor& file, Coverage& coverage, bool is_growing);

/// jit-PID.dump, wherever it lies.
bool is_dump_of_number(std::string_view path) noexcept;

}  // namespace perfmap
