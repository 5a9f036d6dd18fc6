// SPDX-License-Identifier: MIT
#include <algorithm>
#include <array>

#include "perfmap/json.hpp"
#include "perfmap/report.hpp"
#include "perfmap/runtimes.hpp"

namespace perfmap {
namespace {

using Row = std::array<std::string, 7>;

std::vector<Row> runtime_rows() {
  std::vector<Row> rows;
  for (const RuntimeInfo* const one : all_runtimes()) {
    rows.push_back({std::string(one->guide.title), std::string(naming_since(*one)),
                    std::string(one->guide.tested), std::string(one->guide.writes),
                    naming_start(*one), std::string(one->guide.names),
                    std::string(one->guide.recorded)});
  }
  std::ranges::sort(rows, {}, [](const Row& row) { return row.front(); });
  return rows;
}

/// "  key            value", in lines of at most 80 bytes, if its words allow.
std::string field(std::string_view key, std::string_view value) {
  constexpr std::size_t kIndent = 17;
  constexpr std::size_t kWidth = 80;
  std::string text = "  " + std::string(key);
  text.resize(kIndent, ' ');
  while (value.size() > kWidth - kIndent) {
    const std::size_t blank = value.rfind(' ', kWidth - kIndent);
    if (blank == std::string_view::npos) break;
    text += std::string(value.substr(0, blank)) + "\n" + std::string(kIndent, ' ');
    value.remove_prefix(blank + 1);
  }
  return text + std::string(value) + "\n";
}

}  // namespace

void write_runtimes_text(OutputFile& out) {
  bool is_first = true;
  for (const auto& [title, since, tested, writes, start, names, recorded] : runtime_rows()) {
    std::string text = (is_first ? "" : "\n") + title + "\n";
    text +=
        field("since", since + (tested.empty() ? " (not tested)" : " (tested: " + tested + ")"));
    text += field("writes", writes);
    // Not divided, because it is to be pasted.
    text += "  start it with  " + (start.empty() ? "not possible" : start) + "\n";
    text += field("names", names);
    if (!recorded.empty()) text += field("recorded", recorded);
    out.write(text);
    is_first = false;
  }
}

void write_runtimes_json(OutputFile& out) {
  JsonWriter json(out);
  json.begin_object();
  json.member("schema", "perfmap.runtimes/1");
  json.begin_array("runtimes");
  for (const Row& row : runtime_rows()) {
    json.newline();
    json.begin_object();
    json.member("name", row[0]);
    json.member("since", row[1]);
    json.text_or_null("tested", row[2]);
    json.member("writes", row[3]);
    json.text_or_null("start", row[4]);
    json.member("names", row[5]);
    json.text_or_null("recorded", row[6]);
    json.end_object();
  }
  json.newline();
  json.end_array();
  json.end_object();
  json.newline();
}

}  // namespace perfmap
