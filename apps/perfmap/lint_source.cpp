#include "lint_source.hpp"

#include <perfmap/snapshot.hpp>

namespace perfmap::app {
namespace {

Result<LintSource> lint_source_of(OpenedInput opened, const SourceOptions& options) {
  if (opened.kind == SourceKind::jitdump) return LintSource(dump_of(std::move(opened), options));
  Result<Map> map = map_of(std::move(opened), options);
  if (!map) return Failure(std::move(map.error()));
  return LintSource(*std::move(map));
}

/// Whether a process's files are missing or refused, rather than of a kind that lint does not take.
bool may_be_found(const Error& error) {
  return error.code != Errc::unsupported && error.code != Errc::bad_format;
}

Result<void> take(std::vector<OpenedInput> opened, const SourceOptions& options,
                  std::vector<LintSource>& files) {
  for (OpenedInput& input : opened) {
    Result<LintSource> one = lint_source_of(std::move(input), options);
    if (!one) return Failure(std::move(one.error()));
    files.push_back(*std::move(one));
  }
  return {};
}

/// In each of its pid namespaces; none if the source is no snapshot.
std::vector<pid_t> pids_of_snapshot(const Source& source) {
  if (is_stdin(source) || !Snapshot::is_at(source.text)) return {};
  const Result<Snapshot> snapshot = Snapshot::open(source.text);
  return snapshot ? snapshot->manifest().namespace_pids : std::vector<pid_t>();
}

}  // namespace

Result<LintSource> open_lint_file_again(const Input& was, const SourceOptions& options) {
  // Somebody may have put a link or a FIFO in its place.
  const OpenPolicy policy{.follow_link = was.facts().was_link,
                          .regular_only = was.facts().is_regular};
  Result<Input> input = Input::open(was.name(), policy);
  if (!input) return Failure(std::move(input.error()));
  Result<OpenedInput> opened = as_opened(*std::move(input), options, false);
  if (!opened) return Failure(std::move(opened.error()));
  return lint_source_of(*std::move(opened), options);
}

Result<LintSources> open_lint_sources(const std::vector<std::string>& sources,
                                      const SourceOptions& options, const Console& console) {
  std::vector<Source> named;
  for (const std::string& source : sources) named.push_back({source});
  const Result<void> checked = check_stdin(named);
  if (!checked) return Failure(checked.error());
  LintSources all;
  for (const Source& source : named) {
    Result<std::vector<OpenedInput>> opened = open_inputs(source, options, console);
    const pid_t pid = pid_of_source(source);
    if (!opened && (pid == 0 || !may_be_found(opened.error()))) {
      return Failure(std::move(opened.error()));
    }
    const std::size_t first = all.files.size();
    if (opened) {
      const Result<void> taken = take(*std::move(opened), options, all.files);
      if (!taken) return Failure(taken.error());
    }
    all.namespace_pids.resize(all.files.size(),
                              pid == 0 ? pids_of_snapshot(source) : std::vector<pid_t>());
    if (pid == 0) continue;
    all.processes.push_back(
        {pid, first, all.files.size() - first, opened ? Error() : std::move(opened.error())});
  }
  return all;
}

const Input& input_of(const LintSource& source) {
  return std::visit([](const auto& one) -> const Input& { return one.input(); }, source);
}

std::string_view text_of(const LintSource& source) {
  const Map* const map = std::get_if<Map>(&source);
  return map != nullptr ? map->text() : std::get<Jitdump>(source).bytes();
}

LintedFile linted(const LintSource& source, Diagnostics& problems) {
  return {std::get_if<Map>(&source), std::get_if<Jitdump>(&source), &problems};
}

}  // namespace perfmap::app
