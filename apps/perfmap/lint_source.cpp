#include "lint_source.hpp"

namespace perfmap::app {
namespace {

Result<LintSource> lint_source_of(OpenedInput opened, const SourceOptions& options) {
  if (opened.kind == SourceKind::jitdump) return LintSource(dump_of(std::move(opened), options));
  Result<Map> map = map_of(std::move(opened), options);
  if (!map) return Failure(std::move(map.error()));
  return LintSource(*std::move(map));
}

}  // namespace

Result<LintSource> open_lint_file(const std::string& path, const SourceOptions& options,
                                  const Console& console) {
  Result<std::vector<OpenedInput>> opened = open_inputs({path, Source::As::path}, options, console);
  if (!opened) return Failure(std::move(opened.error()));
  return lint_source_of(std::move(opened->front()), options);
}

Result<std::vector<LintSource>> open_lint_sources(const std::vector<std::string>& sources,
                                                  const SourceOptions& options,
                                                  const Console& console) {
  std::vector<Source> named;
  for (const std::string& source : sources) named.push_back({source});
  Result<std::vector<OpenedInput>> opened = open_all_inputs(named, options, console);
  if (!opened) return Failure(std::move(opened.error()));
  std::vector<LintSource> all;
  for (OpenedInput& input : *opened) {
    Result<LintSource> one = lint_source_of(std::move(input), options);
    if (!one) return Failure(std::move(one.error()));
    all.push_back(*std::move(one));
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
