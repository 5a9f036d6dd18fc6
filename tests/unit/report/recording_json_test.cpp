// SPDX-License-Identifier: MIT
// The list of files in recording.json.

#include <string>

#include "perfmap/json.hpp"
#include "support/catch.hpp"

namespace perfmap::recording_json_test {
namespace {

std::string with_files(const std::string& files) {
  return R"({"schema": "perfmap.recording/1", "files": )" + files + "}";
}

std::string why(const std::string& json) {
  const auto files = parse_recorded_files(json);
  return files ? "" : files.error().message();
}

}  // namespace

TEST_CASE("a description without files, or with other members, is read", "[record]") {
  CHECK(parse_recorded_files(R"({"schema": "perfmap.recording/1"})").value().empty());
  const auto files = parse_recorded_files(with_files(
      R"([{"kind": "dump", "path": "jit-1.dump", "pid": 2, "size": 3, "later": [{}]}])"));
  REQUIRE(files);
  CHECK(*files == std::vector<RecordedFile>{{"jit-1.dump", 2, true}});
}

TEST_CASE("a description that is empty or torn is refused", "[record]") {
  const std::string whole = with_files(R"([{"kind": "map", "path": "perf-1.map", "pid": 1}])");
  REQUIRE(why(whole).empty());
  for (std::size_t size = 0; size < whole.size(); ++size) {
    CAPTURE(size);
    CHECK(why(whole.substr(0, size)) == "it is not a JSON object");
  }
  CHECK(why("[]") == "it is not a JSON object");
}

TEST_CASE("a description of another schema is unsupported", "[record]") {
  CHECK(why("{}") == "its schema is not perfmap.recording/1");
  const auto other = parse_recorded_files(R"({"schema": "perfmap.recording/2", "files": []})");
  REQUIRE_FALSE(other);
  CHECK(other.error().code == Errc::unsupported);
}

TEST_CASE("a path that is not a name in the directory is refused", "[record]") {
  const auto path = GENERATE(values<std::string>(
      {"", ".", "..", "../perf-1.map", "/tmp/perf-1.map", "ini/perfmap.ini", "a\\u0000b"}));
  CAPTURE(path);
  CHECK(why(with_files(R"([{"kind": "map", "path": ")" + path + R"(", "pid": 1}])")) ==
        "\"path\" is not the name of a file in the directory");
}

TEST_CASE("members of the wrong type, and huge numbers, are refused", "[record]") {
  const auto file = GENERATE(values<std::string>(
      {R"({"kind": "vdso", "path": "a", "pid": 1})", R"({"kind": "map", "path": "a"})",
       R"({"kind": "map", "path": "a", "pid": 0})", R"({"kind": "map", "path": "a", "pid": -1})",
       R"({"kind": "map", "path": "a", "pid": 2147483648})",
       R"({"kind": "map", "path": "a", "pid": 1e300})",
       R"({"kind": "map", "path": 1, "pid": 1})"}));
  CAPTURE(file);
  CHECK_FALSE(why(with_files("[" + file + "]")).empty());
}

TEST_CASE("a deeply nested description ends", "[record]") {
  const std::string deep(1 << 20, '[');
  CHECK(why(with_files(deep)) == "its values are nested more than 8 deep");
}

TEST_CASE("the copies of ELF files are read", "[record]") {
  const std::string text = R"({"schema": "perfmap.recording/1", "modules": [
      {"path": "elf-01ff", "source": "/bin/app", "build_id": "01fF", "size": 3},
      {"path": "elf-unknown-1", "source": "/bin/other", "build_id": "", "size": 4}]})";
  const auto modules = parse_recorded_modules(text);
  REQUIRE(modules);
  CHECK(*modules == std::vector<RecordedModule>{{"elf-01ff", "/bin/app", "\x01\xff", 3},
                                                {"elf-unknown-1", "/bin/other", "", 4}});
  CHECK(parse_recorded_modules(with_files("[]")).value().empty());
  CHECK(parse_recorded_files(text).value().empty());
}

TEST_CASE("the files that were not copied are read", "[record]") {
  const std::string text = R"({"schema": "perfmap.recording/1", "missing": [
      {"source": "/tmp/perf-7.map", "pid": 7, "why": "it is damaged"}]})";
  const auto missing = parse_missing_files(text);
  REQUIRE(missing);
  CHECK(*missing == std::vector<MissingFile>{{"/tmp/perf-7.map", 7, "it is damaged"}});
  CHECK(parse_missing_files(with_files("[]")).value().empty());
  CHECK_FALSE(
      parse_missing_files(R"({"schema": "perfmap.recording/1", "missing": [{"pid": "7"}]})"));
}

TEST_CASE("a description with a wrong copy of an ELF file is refused", "[record]") {
  const auto module = GENERATE(values<std::string>(
      {R"({"path": "../app", "source": "/bin/app", "build_id": ""})",
       R"({"path": "", "source": "/bin/app", "build_id": ""})",
       R"({"path": "a", "source": 1, "build_id": ""})",
       R"({"path": "a", "source": "/bin/app", "build_id": "0"})",
       R"({"path": "a", "source": "/bin/app", "build_id": "0g"})",
       R"({"path": "a", "source": "/bin/app", "build_id": "", "size": -1})", "1"}));
  CAPTURE(module);
  CHECK_FALSE(
      parse_recorded_modules(R"({"schema": "perfmap.recording/1", "modules": [)" + module + "]}"));
}

}  // namespace perfmap::recording_json_test
