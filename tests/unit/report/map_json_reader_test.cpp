// SPDX-License-Identifier: MIT
#include <string>

#include "perfmap/json.hpp"
#include "support/catch.hpp"

namespace perfmap::map_json_reader_test {
namespace {

std::string text_of(std::string_view json) {
  const Result<MapText> map = map_text_from_json(json);
  return map ? map->text : "error: " + map.error().message();
}

std::string name_of(std::string_view json_name) {
  return text_of("{\"start\":\"0x10\",\"size\":1,\"name\":" + std::string(json_name) + "}");
}

}  // namespace

TEST_CASE("JSON and JSON lines give the same map", "[json]") {
  CHECK(text_of("{\"start\":\"0x10\",\"size\":31,\"name\":\"a b\",\"line\":1}\n"
                "{\"start\":\"0x8\",\"size\":0,\"name\":\"c\",\"line\":2}\n") ==
        "10 1f a b\n8 0 c\n");
  CHECK(text_of(R"({"schema":"perfmap.map/1","source":{"path":"x","start":"zz"},"entries":[
                   {"start":"0x10","size":31,"name":"a b","line":1},
                   {"start":"0x8","size":0,"name":"c","line":2}],
                   "problems":[{"rule":"PM001","start":null}]})") == "10 1f a b\n8 0 c\n");
}

TEST_CASE("is_dump_json() searches near the beginning and the end of the text", "[json]") {
  const std::string kind = R"("kind": "jitdump")";
  const std::string far(std::size_t{70} << 10, ' ');
  CHECK(is_dump_json("{" + kind + "}"));
  CHECK(is_dump_json("{" + kind + far + "}"));
  CHECK(is_dump_json("{" + far + kind + "}"));
  CHECK_FALSE(is_dump_json("{" + far + kind + far + "}"));
  CHECK_FALSE(is_dump_json("{" + far + "}"));
  CHECK_FALSE(is_dump_json(R"({"kind" "jitdump"})"));
  CHECK_FALSE(is_dump_json(R"({"kind": "map"})"));
  CHECK_FALSE(is_dump_json(""));
}

TEST_CASE("start and size are numbers or hexadecimal strings", "[json]") {
  CHECK(text_of(R"({"start":16,"size":"0xff","name":"x"})") == "10 ff x\n");
  CHECK(text_of(R"({"start":"FFFFFFFFFFFFFFFF","size":18446744073709551615,"name":"x"})") ==
        "ffffffffffffffff ffffffffffffffff x\n");
}

TEST_CASE("unknown members are skipped, with any content", "[json]") {
  CHECK(text_of(R"({"start":"0x10","x":{"start":{"size":[null,1.5,-1]}},"size":1,"y":
                   [[],{"name":null}],"name":"ok","z":true})") == "10 1 ok\n");
}

TEST_CASE("white space alone is a map without entries", "[json]") {
  CHECK(text_of("").empty());
  CHECK(text_of(" \r\n\n\t").empty());
  CHECK(text_of(R"({"entries":[]})").empty());
}

TEST_CASE("blank lines and CRLF between JSON lines are accepted", "[json]") {
  CHECK(text_of("\r\n{\"start\":1,\"size\":1,\"name\":\"a\"}\r\n \n"
                "{\"start\":2,\"size\":1,\"name\":\"b\"}") == "1 1 a\n2 1 b\n");
}

TEST_CASE("names that a map can hold keep their bytes", "[json]") {
  CHECK(name_of(R"("trailing  ")") == "10 1 trailing  \n");
  CHECK(name_of(R"(",comma")") == "10 1 ,comma\n");
  CHECK(name_of(R"("a")") == "10 1 a\n");
  CHECK(name_of(R"("\u0001\ttab")") == "10 1 \x01\ttab\n");
  CHECK(name_of(R"("?","name_bytes":"/w==")") == "10 1 \xff\n");
}

TEST_CASE("a name that ends in CR gets a second one, because readers remove one", "[json]") {
  CHECK(name_of(R"("x\r")") == "10 1 x\r\r\n");
  CHECK(name_of(R"("\r")") == "10 1 \r\r\n");
}

TEST_CASE("names that no map can hold are escaped and counted", "[json]") {
  CHECK(name_of(R"("two\nlines")") == "10 1 two\\x0alines\n");
  CHECK(name_of(R"(" blank in front")") == "10 1 blank in front\n");
  CHECK(name_of(R"("\ttab in front")") == "10 1 \\x09tab in front\n");
  CHECK(name_of(R"("")") == "10 1 [?]\n");
  const auto map = map_text_from_json(
      "{\"start\":1,\"size\":1,\"name\":\"\"}\n"
      "{\"start\":1,\"size\":1,\"name\":\"fine\"}\n"
      "{\"start\":1,\"size\":1,\"name\":\" x\"}\n");
  REQUIRE(map);
  CHECK(map->entries == 3);
  CHECK(map->changed.count == 2);
}

TEST_CASE("errors have the line and column of the end of the value", "[json]") {
  struct Case {
    std::string json;
    std::string message;
    std::uint64_t line;
    std::uint64_t column;
  };
  // The end of a number is noticed at the byte after it.
  const auto c = GENERATE(values<Case>({
      {"null", "JSON, but not a map in perfmap's format", 1, 1},
      {"{}", "JSON, but not a map in perfmap's format", 1, 1},
      {R"([{"start":1,"size":1,"name":"x"}])", "JSON, but not a map in perfmap's format", 1, 1},
      {R"({"entries":{}})", "JSON, but not a map in perfmap's format", 1, 1},
      {R"({"schema":"perfmap.lint/1","findings":[]})", "the schema is not perfmap.map/1", 1, 26},
      {"{\"entries\":[\n1]}", "expected an entry: an object", 2, 2},
      {"{\"entries\":[\n [{}]]}", "expected an entry: an object", 2, 2},
      {"{\"entries\":[\n\"x\"]}", "expected an entry: an object", 2, 3},
      {R"({"start":"0x10","size":1})", "an entry needs \"start\", \"size\" and \"name\"", 1, 25},
      {R"({"start":"face_book","size":1})", "'face_book' is not a hexadecimal number", 1, 20},
      {R"({"start":"","size":1})", "'' is not a hexadecimal number", 1, 11},
      {R"({"start":1,"size":18446744073709551616,"name":"x"})",
       "\"size\" is not an unsigned 64-bit number", 1, 39},
      {R"({"start":-1,"size":1,"name":"x"})", "\"start\" is not an unsigned 64-bit number", 1, 12},
      {R"({"start":null,"size":1,"name":"x"})", "\"start\" is not an unsigned 64-bit number", 1,
       13},
      {R"({"start":1,"size":1,"name":null})", "\"name\" is not a string", 1, 31},
      {R"({"start":1,"size":1,"name":"x","name_bytes":"Y"})", "\"name_bytes\" is not base64", 1,
       47},
      {"{\"start\":1,\"size\":1,\"name\":\"x\"}\n\n{\"start\":2,\"size\":1}",
       "an entry needs \"start\", \"size\" and \"name\"", 3, 20},
  }));
  CAPTURE(c.json);
  const Result<MapText> map = map_text_from_json(c.json);
  REQUIRE_FALSE(map);
  CHECK(map.error().code == Errc::bad_format);
  CHECK(map.error().message() == c.message);
  CHECK(map.error().where.line == c.line);
  CHECK(map.error().where.column == c.column);
}

TEST_CASE("text that is not JSON is refused", "[json]") {
  const auto json = GENERATE(as<std::string>(), "{", "oops", "{\"entries\":[}", "{\"start\":1,}",
                             "{\"start\":\"\xff\"}", "{\"name\":\"\\ud800\"}", "{} {}",
                             "{\"name\":\"a\nb\"}", "{\"entries\":[]}x");
  CAPTURE(json);
  const Result<MapText> map = map_text_from_json(json);
  REQUIRE_FALSE(map);
  CHECK(map.error().message().starts_with("this is not JSON"));
}

TEST_CASE("error messages quote only a part of a long value", "[json]") {
  const std::string long_value(1'000'000, 'z');
  CHECK(text_of("{\"start\":\"" + long_value + "\"}").size() < 200);
  CHECK(text_of("{\"start\":" + long_value + "}").size() < 200);
  CHECK(text_of("{\"start\":" + std::string(1'000'000, '9') + "}").size() < 200);
}

TEST_CASE("deeply nested JSON is skipped without recursion", "[json]") {
  std::string deep = R"({"start":1,"size":1,"name":"ok","x":)";
  deep += std::string(2'000'000, '[') + std::string(2'000'000, ']') + "}";
  CHECK(text_of(deep) == "1 1 ok\n");
  CHECK(text_of(std::string(2'000'000, '[')).starts_with("error: this is not JSON"));
}

TEST_CASE("entry_from_json() accepts exactly one entry", "[json]") {
  const Result<JsonEntry> entry = entry_from_json(R"({"start":"0x10","size":2,"name":"f\u00e9"})");
  REQUIRE(entry);
  CHECK(entry->start == 0x10);
  CHECK(entry->size == 2);
  CHECK(entry->name == "fé");
  CHECK_FALSE(entry_from_json(R"({"entries":[]})"));
  CHECK_FALSE(entry_from_json(R"({"entries":[{"start":1,"size":1,"name":"a"},
                                             {"start":2,"size":1,"name":"b"}]})"));
  CHECK_FALSE(entry_from_json(""));
}

}  // namespace perfmap::map_json_reader_test
