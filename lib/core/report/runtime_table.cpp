#include <algorithm>
#include <array>

#include "perfmap/json.hpp"
#include "perfmap/report.hpp"
#include "perfmap/runtimes.hpp"

namespace perfmap {
namespace {

using Row = std::array<std::string, 7>;

std::vector<Row> runtime_rows() {
  std::vector<Row> rows = {{"RUNTIME", "SINCE", "TESTED WITH", "WRITES", "START IT WITH", "NAMES",
                            "WITH PERFMAP RECORD"}};
  for (const RuntimeInfo* const one : all_runtimes()) {
    rows.push_back({std::string(one->guide.title), std::string(naming_since(*one)),
                    std::string(one->guide.tested), std::string(one->guide.writes),
                    naming_start(*one), std::string(one->guide.names),
                    std::string(one->guide.recorded)});
  }
  std::ranges::sort(std::next(rows.begin()), rows.end(), {},
                    [](const Row& row) { return row.front(); });
  return rows;
}

void text_or_null(JsonWriter& json, std::string_view key, std::string_view value) {
  json.key(key);
  value.empty() ? json.null() : json.string(value);
}

}  // namespace

void write_runtimes_text(OutputFile& out) {
  std::vector<Row> rows = runtime_rows();
  for (Row& row : rows) {
    if (row[2].empty()) row[2] = "not tested";
    if (row[4].empty()) row[4] = "not possible";
    if (row[6].empty()) row[6] = "not tested here";
  }
  std::array<std::size_t, std::tuple_size_v<Row>> widths = {};
  for (const Row& row : rows) {
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  for (Row& row : rows) {
    std::string line;
    for (std::size_t i = 0; i < row.size(); ++i) {
      if (i + 1 < row.size()) row[i].resize(widths[i] + 2, ' ');
      line += row[i];
    }
    out.write(line + "\n");
  }
}

void write_runtimes_json(OutputFile& out) {
  JsonWriter json(out);
  json.begin_object();
  json.member("schema", "perfmap.runtimes/1");
  json.key("runtimes");
  json.begin_array();
  const std::vector<Row> rows = runtime_rows();
  for (const Row& row : std::span(rows).subspan(1)) {
    json.newline();
    json.begin_object();
    json.member("name", row[0]);
    json.member("since", row[1]);
    text_or_null(json, "tested", row[2]);
    json.member("writes", row[3]);
    text_or_null(json, "start", row[4]);
    json.member("names", row[5]);
    text_or_null(json, "recorded", row[6]);
    json.end_object();
  }
  json.newline();
  json.end_array();
  json.end_object();
  json.newline();
}

}  // namespace perfmap
