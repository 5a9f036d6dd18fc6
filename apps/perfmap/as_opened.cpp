#include <perfmap/jitdump_json.hpp>

#include "log_source.hpp"
#include "opened_input.hpp"

namespace perfmap::app {
namespace {

/// Nothing tells what an empty file is but what it is called.
SourceKind kind_of_empty(const std::string& path, const std::string& wanted) {
  const std::string_view name = std::string_view(path).substr(path.rfind('/') + 1);
  const bool dump =
      wanted.empty() ? name.starts_with("jit-") && name.ends_with(".dump") : wanted == "jitdump";
  return dump ? SourceKind::jitdump : SourceKind::perf_map;
}

/// An empty file is empty under any kind.
SourceKind kind_of(const Input& input, const SourceOptions& options) {
  if (input.text().empty()) return kind_of_empty(input.name(), options.kind);
  return options.kind.empty() ? detect_kind(input.text()) : *parse_kind(options.kind);
}

Error placed(Error error, const std::string& name) {
  error.message = name + ":" + std::to_string(error.where.line) + ":" +
                  std::to_string(error.where.column) + ": " + error.message;
  return error;
}

/// A jitdump of what was made of one.
Result<OpenedInput> dump_of_json(const Input& input) {
  Result<DumpBytes> dump = dump_from_json(input.text());
  if (!dump) return Failure(placed(std::move(dump.error()), input.name()));
  OpenedInput opened{Input::from_text(std::move(dump->bytes), input.name()), SourceKind::jitdump};
  opened.made_from = SourceKind::json;
  opened.without_code = dump->without_code;
  return opened;
}

/// A dump without its magic cannot be read as one, unless there is nothing to be read.
Error no_dump(const Input& input) {
  const SourceKind found = detect_kind(input.text());
  const std::string what = is_damaged_jitdump(input.text())
                               ? " is a damaged jitdump: its magic number is wrong (--kind jitdump "
                                 "reads it all the same)"
                               : " is " + with_article(found) + ", not a jitdump";
  return {Errc::bad_format, input.name() + what, 0, {}};
}

/// What is taken for a perf map because it is nothing else.
Result<void> check_map(const Input& input, const SourceOptions& options) {
  if (is_damaged_jitdump(input.text())) return Failure(no_dump(input));
  if (!options.needs_magic || !is_binary(input.text())) return {};
  return Failure({Errc::bad_format,
                  input.name() + " is binary data and no source of names (--kind perf-map reads it "
                                 "all the same)",
                  0,
                  {}});
}

/// The same bytes with the magic number that they should have.
OpenedInput mended_dump(const Input& input, std::endian order) {
  std::string bytes(order == std::endian::little ? "DTiJ" : "JiTD");
  bytes += input.text().substr(bytes.size());
  OpenedInput opened{Input::from_text(std::move(bytes), input.name()), SourceKind::jitdump};
  opened.was_mended = true;
  return opened;
}

}  // namespace

Result<OpenedInput> as_opened(Input input, const SourceOptions& options, bool growing) {
  const SourceKind kind = kind_of(input, options);
  const bool is_other = kind == SourceKind::json || kind == SourceKind::pypylog;
  const bool taken = kind == SourceKind::perf_map || kind == SourceKind::jitdump ||
                     (is_other && options.takes_others);
  if (!taken) return Failure(unsupported(input.name(), kind));
  const bool is_dump = input.text().empty() || detect_kind(input.text()) == SourceKind::jitdump;
  if (kind == SourceKind::jitdump && options.needs_magic && !is_dump) {
    const auto order = options.kind_is_given ? order_without_magic(input.text()) : std::nullopt;
    return order ? Result<OpenedInput>(mended_dump(input, *order)) : Failure(no_dump(input));
  }
  if (kind == SourceKind::perf_map && options.kind.empty()) {
    const Result<void> is_map = check_map(input, options);
    if (!is_map) return Failure(is_map.error());
  }
  if (kind == SourceKind::pypylog) return dump_of_log(input, options.dump_pid);
  if (kind == SourceKind::json && is_dump_json(input.text())) return dump_of_json(input);
  return OpenedInput{std::move(input), kind, growing};
}

}  // namespace perfmap::app
