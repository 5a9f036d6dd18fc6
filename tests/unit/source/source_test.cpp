// SPDX-License-Identifier: MIT
// Kinds of sources, how they are opened, and which one wins.

#include "perfmap/profile/source.hpp"

#include <string>

#include "perfmap/profile/stacks.hpp"
#include "support/catch.hpp"
#include "support/jitdump_bytes.hpp"
#include "support/planted_process.hpp"

namespace perfmap::source_test {
namespace {

using test::PlantedProcess;
using test::Scratch;

std::string dump_of_one(std::string_view name) {
  return test::DumpBytes().header().load_of_size(5, 0x1000, 0x10, name).text();
}

/// Records all calls.
class CollectingObserver final : public SourceObserver {
 public:
  void warn(const std::string& message) override { warnings.push_back(message); }
  void missing(const Error& error) override { absent.push_back(error.message()); }
  std::shared_ptr<void> step(const std::string& what) override {
    steps.push_back(what);
    return nullptr;
  }

  std::vector<std::string> warnings;
  std::vector<std::string> absent;
  std::vector<std::string> steps;
};

struct Named {
  std::string name;
  std::string file;
};

/// The name that the sources give an address.
Named ask(const std::vector<Source>& sources, const NameSourceOptions& options, Address address) {
  auto names = NameSources::open(sources, options);
  REQUIRE(names);
  Diagnostics lines(1);
  Diagnostics records(1);
  names->index(lines, records);
  SourceAnswer answer;
  const Query query{address};
  names->find_all({&query, 1}, {&answer, 1});
  return {answer.entry != nullptr ? std::string(answer.entry->name) : std::string(answer.why),
          std::string(answer.file)};
}

}  // namespace

TEST_CASE("decimal digits are a pid unless a file has that name", "[source]") {
  const Scratch scratch;
  CHECK(pid_of_source({"4242424"}) == 4242424);
  CHECK(pid_of_source({"4242424", Source::As::pid}) == 4242424);
  CHECK(pid_of_source({"4242424", Source::As::path}) == 0);
  CHECK(pid_of_source({"4242424", Source::As::dump}) == 0);
  CHECK(pid_of_source({"0"}) == 0);
  CHECK(pid_of_source({"-1"}) == 0);
  CHECK(pid_of_source({"12x"}) == 0);
  CHECK(pid_of_source({"99999999999"}) == 0);
  CHECK(pid_of_source({scratch.write("42", "1000 10 f\n")}) == 0);
  CHECK(is_stdin({"-"}));
  CHECK(!check_stdin(std::vector<Source>{{"-"}, {"a"}, {"-"}}));
  CHECK(check_stdin(std::vector<Source>{{"-"}, {"a"}}));
}

TEST_CASE("the kind of a file is detected from its content unless it is given", "[source]") {
  const Scratch scratch;
  const auto kind = [](const std::string& path, const SourceOptions& options = {}) {
    const auto opened = open_source({path}, options);
    REQUIRE(opened);
    REQUIRE(opened->size() == 1);
    return opened->front().kind;
  };
  const std::string map = scratch.write("x", "1000 10 f\n");
  const std::string dump = scratch.write("y", dump_of_one("f"));
  CHECK(kind(map) == SourceKind::perf_map);
  CHECK(kind(dump) == SourceKind::jitdump);
  CHECK(kind(scratch.write("z", R"({"start":"0x1","size":1,"name":"f"})")) == SourceKind::json);
  CHECK(kind(dump, {.kind = "perf-map"}) == SourceKind::perf_map);
  CHECK(kind(scratch.write("jit-1.dump", "")) == SourceKind::jitdump);
  CHECK(kind(scratch.write("empty", "")) == SourceKind::perf_map);
}

TEST_CASE("a file that cannot be a source is refused with its name", "[source]") {
  const Scratch scratch;
  const auto why = [](const std::string& path, const SourceOptions& options = {}) {
    const auto opened = open_source({path}, options);
    REQUIRE(!opened);
    return opened.error();
  };
  const std::string elf = scratch.write("program", std::string("\x7f"
                                                               "ELF\2\1\1",
                                                               7) +
                                                       std::string(9, '\0'));
  CHECK(why(elf).code == Errc::bad_format);
  CHECK(why(elf).message().starts_with(elf + " is "));
  CHECK(why(scratch / "nowhere").code == Errc::not_found);
  const std::string map = scratch.write("map", "1000 10 f\n");
  CHECK(why(map, {.kind = "jitdump"}).code == Errc::bad_format);
  const std::string json = scratch.write("json", R"({"start":"0x1","size":1,"name":"f"})");
  CHECK(why(json, {.takes_others = false}).code == Errc::unsupported);
}

TEST_CASE("a process gives its map first, then its dumps", "[source]") {
  const PlantedProcess planted;
  planted.put("root/tmp/perf-3.map", "1000 10 in_map\n2000 10 in_both\n");
  planted.put("root/tmp/jit-3.dump", dump_of_one("in_dump"));
  CollectingObserver collector;
  const SourceOptions options{.any_owner = true, .roots = planted.roots(), .observer = &collector};
  auto opened = open_source({"42", Source::As::pid}, options);
  REQUIRE(opened);
  REQUIRE(opened->size() == 2);
  CHECK((*opened)[0].kind == SourceKind::perf_map);
  CHECK((*opened)[1].kind == SourceKind::jitdump);
  CHECK(collector.steps == std::vector<std::string>{"reading 42"});
  CHECK(collector.warnings.empty());

  Opening opening;
  const auto map = map_of(*std::move(opened), options, &opening);
  REQUIRE(map);
  CHECK(map->text() == "1000 10 in_map\n2000 10 in_both\n1000 10 in_dump\n");
  CHECK(opening.kind == SourceKind::perf_map);
}

TEST_CASE("with map_dir the map of a process is taken from that directory", "[source]") {
  const Scratch scratch;
  scratch.write("perf-7.map", "1000 10 f\n");
  const auto opened = open_process_source(7, {.map_dir = scratch.path()});
  REQUIRE(opened);
  REQUIRE(opened->size() == 1);
  CHECK(opened->front().input.name() == scratch / "perf-7.map");
  CHECK(!open_process_source(8, {.map_dir = scratch.path()}));
}

TEST_CASE("a dump wins over maps, and a later source over an earlier one", "[source]") {
  const Scratch scratch;
  const Source first{scratch.write("first", "1000 10 first\n3000 10 first\n")};
  const Source second{scratch.write("second", "1000 10 second\n2000 10 second\n")};
  const Source dump{scratch.write("dump", dump_of_one("dumped"))};
  CHECK(ask({first, second}, {}, 0x1000).name == "second");
  CHECK(ask({second, first}, {}, 0x1000).name == "first");
  CHECK(ask({second, first}, {.overlap = Overlap::first}, 0x1000).name == "second");
  CHECK(ask({dump, first, second}, {}, 0x1008).name == "dumped");
  CHECK(ask({dump, first, second}, {}, 0x1008).file == dump.text);
  CHECK(ask({dump, first, second}, {}, 0x2000).file == second.text);
  CHECK(ask({dump, first, second}, {}, 0x4000).name == "not-covered");
}

TEST_CASE("a missing process is reported, and the other sources are used", "[source]") {
  const PlantedProcess planted;
  const Source map{planted.scratch().write("map", "1000 10 f\n")};
  const Source absent_process{"43", Source::As::pid};
  CollectingObserver collector;
  NameSourceOptions options;
  options.opening = {.roots = planted.roots(), .observer = &collector};
  CHECK(ask({absent_process, map}, options, 0x1000).name == "f");
  CHECK(collector.absent == std::vector<std::string>{"no process 43"});
  const auto alone = NameSources::open(std::vector<Source>{absent_process}, options);
  REQUIRE(!alone);
  CHECK(alone.error().code == Errc::not_found);
}

TEST_CASE("a process without readable memory map is named by the files that it left", "[source]") {
  const PlantedProcess planted;
  planted.put("root/tmp/perf-3.map", "1000 10 left\n");
  NameSourceOptions options;
  options.opening = {.any_owner = true, .roots = planted.roots()};
  CHECK(ask({{"42", Source::As::pid}}, options, 0x1000).name == "left");
}

TEST_CASE("maps alone can be scanned without an index", "[source]") {
  const Scratch scratch;
  const std::vector<Source> sources = {{scratch.write("map", "1000 10 f\n")}};
  auto names = NameSources::open(sources, {});
  REQUIRE(names);
  REQUIRE(names->only_maps() != nullptr);
  CHECK(names->only_maps()->size() == 1);
  CHECK(names->files() == nullptr);
  Diagnostics lines(1);
  Diagnostics records(1);
  names->index(lines, records);
  CHECK(names->only_maps() == nullptr);
  CHECK(names->files() != nullptr);
}

TEST_CASE("a recording is opened by its path, and other files are refused", "[source]") {
  const Scratch scratch;
  const std::string map = scratch.write("map", "1000 10 f\n");
  const auto names = open_recording_input(map);
  REQUIRE(!names);
  CHECK(names.error().code == Errc::bad_format);
  CHECK(names.error().message() ==
        map + " is a perf map, not a recording (perfmap lint, info and resolve read it)");
  CHECK(open_recording_input(scratch.write("text", "neither names nor samples\n")));
  CHECK(!open_recording(scratch / "text"));
  const auto missing = open_recording(scratch / "nowhere");
  REQUIRE(!missing);
  CHECK(missing.error().code == Errc::not_found);
  RecordedJitOptions jit;
  REQUIRE(set_recorded_files(scratch / "perf.data", scratch.path(), jit));
  CHECK(jit.directory == scratch.path());
  CHECK(jit.snapshot == nullptr);
  CHECK(jit.modules == nullptr);
  REQUIRE(set_recorded_files(scratch / "perf.data", "", jit));
  CHECK(jit.directory.empty());
}

}  // namespace perfmap::source_test
