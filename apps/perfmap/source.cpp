#include "source.hpp"

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <perfmap/map_json.hpp>
#include <perfmap/rules.hpp>
#include <unistd.h>

namespace perfmap::app {
namespace {

Result<Input> open_path(const std::string& path) {
  if (path == "-") return Input::from_descriptor(STDIN_FILENO, "-");
  return Input::open(path);
}

Error unsupported(const std::string& name, SourceKind kind) {
  std::string message =
      name + " is " + (kind < SourceKind::gzip && kind != SourceKind::json ? "a " : "");
  message += to_string(kind);
  message += kind >= SourceKind::gzip ? ": unpack it first" : ", which this command does not take";
  return {Errc::unsupported, std::move(message), 0, {}};
}

/// An empty file is empty under any kind; what is no text at all is no JSON, whatever was asked
/// for.
SourceKind kind_of(const Input& input, const SourceOptions& options) {
  const SourceKind found = detect_kind(input.text());
  if (input.text().empty() || options.kind.empty()) return found;
  const SourceKind wanted = *parse_kind(options.kind);
  return wanted == SourceKind::json && found > SourceKind::json ? found : wanted;
}

Result<Map> map_of_json(Input input, Opening* opening) {
  Result<MapText> text = map_text_from_json(input.text());
  if (text && opening != nullptr) opening->changed_names = text->changed_names;
  if (text) return Map(Input::from_text(std::move(text->text), input.name()));
  Error error = std::move(text.error());
  error.message = input.name() + ":" + std::to_string(error.where.line) + ":" +
                  std::to_string(error.where.column) + ": " + error.message;
  return Failure(std::move(error));
}

}  // namespace

Result<Map> map_of_input(Input input, const SourceOptions& options, bool growing,
                         Opening* opening) {
  const SourceKind kind = kind_of(input, options);
  if (opening != nullptr) *opening = {kind, input.text().size(), 0};
  if (kind == SourceKind::perf_map) return Map(std::move(input), {.growing = growing});
  const bool taken = kind == SourceKind::json && options.takes_json;
  if (!taken) return Failure(unsupported(input.name(), kind));
  return map_of_json(std::move(input), opening);
}

namespace {

bool is_stdin(const Source& source) { return source.text == "-"; }

/// A file that grew while it was opened is still being written: its last line may be half there.
bool still_grows(const Input& input) {
  Input again = input;
  const bool ended = input.text().empty() || input.text().back() == '\n';
  if (ended || !input.facts().is_regular) return false;
  const Result<Growth> growth = again.refresh();
  return growth && *growth == Growth::appended;
}

}  // namespace

void add_source_options(CLI::App& command, SourceOptions& options) {
  command.add_option("--kind", options.kind, "Take sources for this kind, whatever they hold")
      ->check(CLI::IsMember({"perf-map", "jitdump", "pypylog", "json"}))
      ->type_name("KIND")
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
  command.add_flag("--any-owner", options.any_owner,
                   "Believe the map of a process whoever owns the file");
}

Roots roots_from_environment() {
  Roots roots;
  const char* const directory = std::getenv("PERFMAP_TMPDIR");
  if (directory != nullptr && *directory != '\0') roots.tmp = directory;
  return roots;
}

pid_t pid_of_source(const Source& source) {
  pid_t pid = 0;
  const char* const end = source.text.data() + source.text.size();
  const auto [stop, error] = std::from_chars(source.text.data(), end, pid);
  const bool digits = error == std::errc() && stop == end && pid > 0;
  if (!digits || source.as == Source::As::path) return 0;
  return source.as == Source::As::pid || ::access(source.text.c_str(), F_OK) != 0 ? pid : 0;
}

bool reads_stdin(const std::vector<Source>& sources) {
  return std::any_of(sources.begin(), sources.end(), is_stdin);
}

Result<Map> open_process(pid_t pid, const SourceOptions& options, Opening* opening) {
  const Roots roots = roots_from_environment();
  Result<Input> input = find_process_map(pid, roots, options.any_owner);
  if (!input) return Failure(std::move(input.error()));
  return map_of_input(*std::move(input), options, process_lives(pid, roots), opening);
}

Result<Map> open_source(const Source& source, const SourceOptions& options, const Console& console,
                        Opening* opening) {
  const Step step(console, "reading " + (source.text == "-" ? "standard input" : source.text));
  if (const pid_t pid = pid_of_source(source); pid != 0) return open_process(pid, options, opening);
  Result<Input> input = open_path(source.text);
  if (!input) return Failure(std::move(input.error()));
  const bool growing = still_grows(*input);
  return map_of_input(*std::move(input), options, growing, opening);
}

Result<std::vector<Map>> open_sources(const std::vector<Source>& sources,
                                      const SourceOptions& options, const Console& console) {
  if (std::count_if(sources.begin(), sources.end(), is_stdin) > 1) {
    return Failure({Errc::invalid_argument, "standard input can be a source only once", 0, {}});
  }
  std::vector<Map> maps;
  for (const Source& source : sources) {
    Result<Map> map = open_source(source, options, console);
    if (!map) return Failure(std::move(map.error()));
    maps.push_back(*std::move(map));
  }
  return maps;
}

Result<std::vector<Map>> open_sources(const std::vector<std::string>& sources,
                                      const SourceOptions& options, const Console& console) {
  std::vector<Source> named;
  for (const std::string& source : sources) named.push_back({source});
  return open_sources(named, options, console);
}

Index make_index(std::vector<Map> maps, Overlap overlap, Diagnostics& problems,
                 const Console& console) {
  const Step step(console, "indexing");
  return {std::move(maps), overlap, problems};
}

Index make_index(Map map, Overlap overlap, Diagnostics& problems, const Console& console) {
  std::vector<Map> maps;
  maps.push_back(std::move(map));
  return make_index(std::move(maps), overlap, problems, console);
}

void note_skipped(const Console& console, const Diagnostics& problems) {
  const std::uint64_t lost = problems.total() - problems.count_of(rule::kAddressWrap);
  if (lost == 0) return;
  console.note("skipped " + std::to_string(lost) + (lost == 1 ? " line" : " lines") +
               " that made no sense ('perfmap lint' says which)");
}

void note_unfinished(const Console& console, std::span<const Map> maps) {
  for (const Map& map : maps) {
    if (map.text().size() == map.input().text().size()) continue;
    console.note("left out the last line of " + map.input().name() + ", which is not finished yet");
  }
}

bool is_whole(const Console& console, std::span<const Map> maps) {
  for (const Map& map : maps) {
    if (!map.input().was_truncated()) continue;
    console.fail(map.input().name() + " was truncated while it was read");
    return false;
  }
  return true;
}

}  // namespace perfmap::app
