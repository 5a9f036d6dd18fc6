// SPDX-License-Identifier: MIT
#include <nlohmann/json.hpp>

#include "base/hex_bytes.hpp"
#include "perfmap/json.hpp"
#include "report/json_fields.hpp"

namespace perfmap {
namespace {

using Json = nlohmann::json;

constexpr std::size_t kMaxBuildId = 64;

Result<Json> open_description(std::string_view json) {
  Json document = Json::parse(json.begin(), json.end(), nullptr, false);
  if (!document.is_object()) return Failure({Errc::bad_format, "it is not a JSON object", 0, {}});
  const auto schema = document.find("schema");
  if (schema == document.end() || *schema != "perfmap.recording/1") {
    return Failure({Errc::unsupported, "its schema is not perfmap.recording/1", 0, {}});
  }
  return document;
}

/// The name of a file in the directory.
std::string read_name(Fields& fields) {
  std::string path = fields.text("path");
  const bool is_name = !path.empty() && path != "." && path != ".." &&
                       path.find_first_of(std::string_view("/\0", 2)) == path.npos;
  if (!is_name) fields.fail("\"path\" is not the name of a file in the directory");
  return path;
}

RecordedFile read_file(Fields& fields) {
  RecordedFile file;
  const std::string kind = fields.text("kind");
  if (kind != "map" && kind != "dump") fields.fail("\"kind\" is not known");
  file.is_dump = kind == "dump";
  file.path = read_name(fields);
  file.pid = static_cast<pid_t>(fields.number("pid", INT32_MAX));
  if (file.pid == 0) fields.fail("\"pid\" is missing");
  return file;
}

RecordedModule read_module(Fields& fields) {
  RecordedModule module;
  module.path = read_name(fields);
  module.source = fields.text("source");
  const auto build_id = bytes_of_hex(fields.text("build_id"), kMaxBuildId);
  if (!build_id) fields.fail("\"build_id\" is not hexadecimal");
  module.build_id = build_id.value_or("");
  module.size = fields.number("size");
  return module;
}

MissingFile read_missing(Fields& fields) {
  MissingFile file;
  file.source = fields.text("source");
  file.pid = static_cast<pid_t>(fields.number("pid", INT32_MAX));
  file.why = fields.text("why");
  return file;
}

/// The objects of a list of the document; the first problem is an error.
template <class Read>
auto read_list(std::string_view json, const char* key, Read read)
    -> Result<std::vector<decltype(read(std::declval<Fields&>()))>> {
  const Result<Json> document = open_description(json);
  if (!document) return Failure(document.error());
  std::vector<decltype(read(std::declval<Fields&>()))> list;
  Fields lists(*document);
  std::string problem;
  for (const Json& one : lists.objects(key)) {
    Fields fields(one);
    list.push_back(read(fields));
    if (problem.empty()) problem = fields.problem();
  }
  if (problem.empty()) problem = lists.problem();
  if (!problem.empty()) return Failure({Errc::bad_format, problem, 0, {}});
  return list;
}

}  // namespace

Result<std::vector<RecordedFile>> parse_recorded_files(std::string_view json) {
  return read_list(json, "files", read_file);
}

Result<std::vector<RecordedModule>> parse_recorded_modules(std::string_view json) {
  return read_list(json, "modules", read_module);
}

Result<std::vector<MissingFile>> parse_missing_files(std::string_view json) {
  return read_list(json, "missing", read_missing);
}

}  // namespace perfmap
