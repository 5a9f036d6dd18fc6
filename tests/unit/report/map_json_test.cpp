// SPDX-License-Identifier: MIT
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "perfmap/json.hpp"
#include "support/catch.hpp"
#include "support/written.hpp"

namespace perfmap::map_json_test {
namespace {

using nlohmann::json;
using test::written;

Map map_of(std::string text, std::string name = "perf-42.map") {
  return Map(Input::from_text(std::move(text), std::move(name)));
}

json document_of(const Map& map, std::size_t max_problems = 0, const JsonOrigin& origin = {}) {
  Diagnostics problems(max_problems);
  return json::parse(written([&](OutputFile& out) { write_map_json(map, out, problems, origin); }));
}

std::string lines_of(const Map& map) {
  Diagnostics problems(0);
  return written([&](OutputFile& out) { write_map_jsonl(map, out, problems); });
}

}  // namespace

TEST_CASE("a map is one object with schema, source, entries and problems", "[json]") {
  const json document = document_of(map_of("1000 10 foo\nbad\n2000 0 bar baz \n"));
  CHECK(document == json::parse(R"({
    "schema": "perfmap.map/1",
    "source": {"path": "perf-42.map", "kind": "perf-map", "pid": 42, "bytes": 32},
    "entries": [{"start": "0x1000", "size": 16, "name": "foo", "line": 1},
                {"start": "0x2000", "size": 0, "name": "bar baz ", "line": 3}],
    "problems": [{"rule": "PM001", "line": 2, "column": 4, "offset": 15,
                  "message": "expected address, size and name"}]})"));
}

TEST_CASE("the pid comes from a file name perf-N.map and no other", "[json]") {
  const auto pid = [](const char* path) { return document_of(map_of("", path))["source"]["pid"]; };
  CHECK(pid("/proc/7/root/tmp/perf-1234.map") == 1234);
  CHECK(pid("perf-.map").is_null());
  CHECK(pid("perf-12x.map").is_null());
  CHECK(pid("perf--1.map").is_null());
  CHECK(pid("perf-99999999999999999999.map").is_null());
  CHECK(pid("perf-12.map/other").is_null());
  CHECK(pid("-").is_null());
}

TEST_CASE("a map that was read from JSON has the kind and size of its source", "[json]") {
  const json source = document_of(map_of("1000 10 foo\n", "x.json"), 0, {"json", 77})["source"];
  CHECK(source["kind"] == "json");
  CHECK(source["bytes"] == 77);
}

TEST_CASE("an empty map has no entries, no problems and no JSON lines", "[json]") {
  CHECK(document_of(map_of(""))["entries"] == json::array());
  CHECK(document_of(map_of(""))["problems"] == json::array());
  CHECK(lines_of(map_of("")).empty());
}

TEST_CASE("the number of reported problems is limited to the requested one", "[json]") {
  std::string text;
  for (int i = 0; i < 100; ++i) text += "bad\n";
  CHECK(document_of(map_of(text), 7)["problems"].size() == 7);
}

TEST_CASE("JSON lines have one entry per line and nothing else", "[json]") {
  CHECK(lines_of(map_of("1000 10 foo\nbad\n2000 1 x\"y")) ==
        "{\"start\":\"0x1000\",\"size\":16,\"name\":\"foo\",\"line\":1}\n"
        "{\"start\":\"0x2000\",\"size\":1,\"name\":\"x\\\"y\",\"line\":3}\n");
}

TEST_CASE("the largest address and size are written exactly", "[json]") {
  CHECK(lines_of(map_of("0 ffffffffffffffff all\nffffffffffffffff 0 end\n")) ==
        "{\"start\":\"0x0\",\"size\":18446744073709551615,\"name\":\"all\",\"line\":1}\n"
        "{\"start\":\"0xffffffffffffffff\",\"size\":0,\"name\":\"end\",\"line\":2}\n");
}

TEST_CASE("the effective view is sorted, has no overlaps, and gives line numbers", "[json]") {
  Diagnostics problems(0);
  std::vector<Map> maps;
  maps.push_back(map_of("1000 10 old\nbad\n1004 4 new\n"));
  Index index(std::move(maps), Overlap::last, problems);
  index.compact();
  const json document =
      json::parse(written([&](OutputFile& out) { write_effective_json(index, out, problems); }));
  CHECK(document["entries"] == json::parse(R"([
    {"start": "0x1000", "size": 4, "name": "old", "line": 1},
    {"start": "0x1004", "size": 4, "name": "new", "line": 3},
    {"start": "0x1008", "size": 8, "name": "old", "line": 1}])"));
  CHECK(document["problems"].size() == 1);
  const std::string lines = written([&](OutputFile& out) { write_effective_jsonl(index, out); });
  CHECK(lines.substr(0, lines.find('\n') + 1) ==
        "{\"start\":\"0x1000\",\"size\":4,\"name\":\"old\",\"line\":1}\n");
}

}  // namespace perfmap::map_json_test
