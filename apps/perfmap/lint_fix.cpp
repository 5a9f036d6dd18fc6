#include "lint_fix.hpp"

#include <algorithm>
#include <cerrno>
#include <perfmap/merge.hpp>
#include <perfmap/open_writers.hpp>
#include <perfmap/rules.hpp>
#include <perfmap/unified_diff.hpp>
#include <sys/stat.h>

#include "portable.hpp"
#include "source.hpp"

namespace perfmap::app {
namespace {

/// Whether some rule other than PM061, which is about the file's mode, wants the text rewritten.
bool wants_new_text(const Diagnostics& found) {
  const auto rules = rule::all();
  return std::any_of(rules.begin(), rules.end(), [&](const Rule* rule) {
    return rule->fix == Fix::safe && rule != &rule::kWritableByOthers && found.count_of(*rule) != 0;
  });
}

Index index_of(const Map& map, Diagnostics& problems) {
  std::vector<Map> maps;
  maps.push_back(map);
  Index index(std::move(maps), Overlap::last, problems);
  index.compact();
  return index;
}

Result<void> take_write_right(const std::string& path, const FileFacts& facts) {
  if (::chmod(path.c_str(), facts.mode & 07755) == 0) return {};
  return Failure(system_error("cannot change the mode of " + path, errno));
}

Result<void> rewrite(const Map& map, const Console& console) {
  Diagnostics problems(1);
  const Index index = index_of(map, problems);
  Result<OutputFile> out = OutputFile::replace(map.input().name());
  if (!out) return Failure(std::move(out.error()));
  write_portable(index, *out);
  if (index.maps().front().input().was_truncated()) {
    return Failure({Errc::io, map.input().name() + " was truncated while it was read", 0, {}});
  }
  note_skipped(console, problems);
  return out->commit();
}

}  // namespace

Result<bool> apply_fixes(const Map& map, const Diagnostics& found, const FixOptions& options,
                         const Console& console) {
  const bool text = wants_new_text(found);
  const bool mode = found.count_of(rule::kWritableByOthers) != 0;
  if (options.diff) {
    if (!text) return false;
    Diagnostics ignored(1);
    console.out().write(
        unified_diff(map.text(), portable_text(index_of(map, ignored)), map.input().name()));
    return true;
  }
  if (!text && !mode) return false;
  if (const auto why = objection_to_rewriting(map.input(), options.force)) {
    return Failure({Errc::refused, *why, 0, {}});
  }
  Result<void> done =
      mode ? take_write_right(map.input().name(), map.input().facts()) : Result<void>();
  if (done && text) done = rewrite(map, console);
  if (!done) return Failure(std::move(done.error()));
  return true;
}

}  // namespace perfmap::app
