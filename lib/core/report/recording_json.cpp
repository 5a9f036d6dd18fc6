#include <nlohmann/json.hpp>

#include "perfmap/json.hpp"
#include "report/json_fields.hpp"

namespace perfmap {

Result<std::vector<RecordedFile>> parse_recorded_files(std::string_view json) {
  using Json = nlohmann::json;
  const Json document = Json::parse(json.begin(), json.end(), nullptr, false);
  if (!document.is_object()) return Failure({Errc::bad_format, "it is not a JSON object", 0, {}});
  const auto schema = document.find("schema");
  if (schema == document.end() || *schema != "perfmap.recording/1") {
    return Failure({Errc::unsupported, "its schema is not perfmap.recording/1", 0, {}});
  }
  std::vector<RecordedFile> files;
  Fields lists(document);
  std::string problem;
  for (const Json& one : lists.objects("files")) {
    Fields fields(one);
    RecordedFile file;
    const std::string kind = fields.text("kind");
    if (kind != "map" && kind != "dump") fields.fail("\"kind\" is not known");
    file.is_dump = kind == "dump";
    file.path = fields.text("path");
    const bool is_name = !file.path.empty() && file.path != "." && file.path != ".." &&
                         file.path.find_first_of(std::string_view("/\0", 2)) == file.path.npos;
    if (!is_name) fields.fail("\"path\" is not the name of a file in the directory");
    file.pid = static_cast<pid_t>(fields.number("pid", INT32_MAX));
    if (file.pid == 0) fields.fail("\"pid\" is missing");
    if (problem.empty()) problem = fields.problem();
    files.push_back(std::move(file));
  }
  if (problem.empty()) problem = lists.problem();
  if (!problem.empty()) return Failure({Errc::bad_format, problem, 0, {}});
  return files;
}

}  // namespace perfmap
