// SPDX-License-Identifier: MIT
#include <array>
#include <nlohmann/json.hpp>

#include "base/hex_bytes.hpp"
#include "perfmap/json.hpp"
#include "report/json_fields.hpp"

namespace perfmap {
namespace {

using Json = nlohmann::json;

constexpr std::size_t kMaxBuildId = 64;

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
auto read_list(std::string_view json, std::string_view key, Read read)
    -> Result<std::vector<decltype(read(std::declval<Fields&>()))>> {
  std::vector<decltype(read(std::declval<Fields&>()))> list;
  std::string problem;
  const auto take = [&](const std::string&, const Json& one) {
    if (!problem.empty()) return;
    Fields fields(one);
    list.push_back(read(fields));
    problem = fields.problem();
  };
  const std::array<std::string_view, 2> members = {"schema", key};
  const Result<Json> document = read_description(json, "perfmap.recording/1", members, take);
  if (!document) return failure(document);
  Fields rest(*document);
  rest.objects(std::string(key).c_str());  // what is no object stayed
  if (problem.empty()) problem = rest.problem();
  if (!problem.empty()) return Failure(Error::bad_format(problem));
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
