#include "diagnosis/doctor_advice.hpp"
#include "perfmap/json_writer.hpp"

namespace perfmap {
namespace {

std::string fate_text(const LookedFor& file) {
  const std::string parent = "process " + std::to_string(file.inherited_from);
  const bool is_own = file.inherited_from == 0;
  if (file.fate != FileFate::used) {
    return visible(file.why) +
           (is_own ? "" : "; of " + parent + ", whose memory this one inherited");
  }
  const std::string what = file.is_dump ? "load" : "entr";
  const std::string one = file.is_dump ? "" : "y";
  const std::string many = file.is_dump ? "s" : "ies";
  return "used, " + std::to_string(file.entries) + " " + what + (file.entries == 1 ? one : many) +
         (is_own ? "" : ", for memory inherited from " + parent) +
         (file.damage.empty() ? "" : "; " + visible(file.damage));
}

}  // namespace

void write_looked_for(OutputFile& out, const std::vector<LookedFor>& files,
                      std::string_view before) {
  for (const LookedFor& file : files) {
    std::string line = std::string(before) + visible(file.our_path) + ": " + fate_text(file);
    if (!file.path.empty() && file.path != file.our_path) {
      line += " (the process's " + visible(file.path) + ")";
    }
    out.write(line + "\n");
  }
}

void write_looked_for_json(JsonWriter& json, const LookedFor& file) {
  json.begin_object();
  json.key("kind");
  json.string(file.is_dump ? "jitdump" : "perf-map");
  json.key("path");
  file.path.empty() ? json.null() : json.string(file.path);
  json.key("our_path");
  json.string(file.our_path);
  json.key("fate");
  json.string(to_string(file.fate));
  json.key("why");
  json.string(file.why);
  json.key("entries");
  json.number(file.entries);
  if (file.is_dump) {
    json.key("marker");
    json.boolean(file.has_marker);
    json.key("damage");
    file.damage.empty() ? json.null() : json.string(file.damage);
  }
  if (file.inherited_from != 0) {
    json.key("inherited_from");
    json.number(static_cast<std::uint64_t>(file.inherited_from));
  }
  json.end_object();
}

}  // namespace perfmap
