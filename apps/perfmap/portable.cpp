#include "portable.hpp"

#include <perfmap/map_json.hpp>
#include <perfmap/merge.hpp>
#include <unistd.h>

namespace perfmap::app {
namespace {

std::string counted(std::uint64_t count, const char* one, const char* many) {
  return std::to_string(count) + " " + (count == 1 ? one : many);
}

void note_stats(const Console& console, const PortableStats& stats) {
  if (stats.changed_names != 0) {
    console.note("changed " + counted(stats.changed_names, "name", "names") +
                 " that not every reader takes");
  }
  if (stats.huge_sizes != 0) {
    console.note(counted(stats.huge_sizes, "entry has", "entries have") +
                 " a size of 4 GiB or more, which some readers cut");
  }
  if (stats.address_zero != 0) {
    console.note(counted(stats.address_zero, "entry is", "entries are") +
                 " at address 0, which some readers drop");
  }
}

}  // namespace

Result<OutputFile> open_output(const std::string& path) {
  Result<OutputFile> out = path == "-" ? OutputFile::to_descriptor(STDOUT_FILENO, "standard output")
                                       : OutputFile::replace(path);
  if (out) out->protect_terminal();
  return out;
}

std::optional<Error> objection_to_emptying(const Index& index, const Diagnostics& problems) {
  if (index.entry_count() != 0 || problems.total() == 0) return std::nullopt;
  const std::string& name = index.maps().front().input().name();
  return Error{Errc::bad_format, "cannot rewrite " + name + ": no line of it is an entry", 0, {}};
}

ExitCode write_merged(Index& index, const Diagnostics& problems, bool as_json, OutputFile& out,
                      const Console& console) {
  PortableStats stats;
  {
    const Step step(console, "writing", out);
    index.compact();
    if (as_json) {
      write_effective_json(index, out, problems);
    } else {
      stats = write_portable(index, out);
    }
  }
  if (!is_whole(console, index.maps())) return ExitCode::failed;
  const Result<void> written = out.commit();
  if (!written) return console.fail(written.error());
  note_stats(console, stats);
  note_unfinished(console, index.maps());
  note_skipped(console, problems);
  return ExitCode::ok;
}

}  // namespace perfmap::app
