// SPDX-License-Identifier: MIT
// What must hold for every row of the catalogue of runtimes.

#include <algorithm>
#include <set>

#include "perfmap/runtimes.hpp"
#include "support/catch.hpp"

namespace perfmap::catalogue_test {

TEST_CASE("every runtime has one row with unique words", "[runtimes]") {
  std::set<std::string_view> ids;
  std::set<std::string_view> processes;
  for (int i = 1; i <= static_cast<int>(Runtime::racket); ++i) {
    const auto runtime = static_cast<Runtime>(i);
    const RuntimeInfo& row = runtime_info(runtime);
    CAPTURE(row.id);
    CHECK(row.runtime == runtime);
    CHECK(!title_of(runtime).empty());
    CHECK(ids.insert(to_string(runtime)).second);
    CHECK(processes.insert(process_word(runtime)).second);
  }
  CHECK(ids.size() == all_runtimes().size());
  CHECK(!ids.contains(""));
  CHECK(to_string(Runtime::unknown).empty());
  CHECK(process_word(Runtime::unknown).empty());
  CHECK(title_of(Runtime::unknown) == "this program");
}

TEST_CASE("V8 is the runtime of a process called node", "[runtimes]") {
  CHECK(to_string(Runtime::v8) == "v8");
  CHECK(process_word(Runtime::v8) == "node");
  CHECK(process_word(Runtime::hotspot) == "jvm");
  CHECK(process_word(Runtime::wasm) == "wasmtime");
  CHECK(process_word(Runtime::cpython) == to_string(Runtime::cpython));
}

TEST_CASE("Deno and Bun are processes; their names are of their engines", "[runtimes]") {
  CHECK(process_word(Runtime::deno) == "deno");
  CHECK(process_word(Runtime::jsc) == "bun");
  CHECK(runtime_of_program("/opt/bin/deno") == &runtime_info(Runtime::deno));
  CHECK(runtime_of_program("/app/node_modules/bun/bin/bun.exe") == &runtime_info(Runtime::jsc));
  CHECK(runtime_of_program("/usr/bin/bunzip2") == nullptr);
  CHECK(decode_name("JS:*f file:///a.ts:1:2").runtime == Runtime::v8);
}

TEST_CASE("a runtime without an option for names says so, and proposes nothing", "[runtimes]") {
  for (const Runtime runtime : {Runtime::sbcl, Runtime::racket}) {
    const RuntimeInfo& row = runtime_info(runtime);
    CAPTURE(row.id);
    CHECK(naming_start(row).empty());
    CHECK(row.maps.command == nullptr);
    CHECK(row.doctor.no_map.starts_with(std::string(row.title) + " cannot write"));
  }
}

TEST_CASE("a runtime with hints on how to enable maps can be recognised", "[runtimes]") {
  for (const RuntimeInfo* const row : all_runtimes()) {
    CAPTURE(row->id);
    const bool is_told = row->maps.flags != nullptr || row->maps.command != nullptr ||
                         !row->maps.naming_variables.empty() || !row->maps.build_command.empty();
    const bool is_known = !row->signs.programs[0].empty() || !row->signs.libraries[0].empty();
    CHECK((is_told || !row->doctor.no_map.empty()) == is_known);
    for (const std::string_view program : row->signs.programs) {
      if (!program.empty()) CHECK(runtime_of_program("/usr/bin/" + std::string(program)) == row);
    }
    for (const std::string_view library : row->signs.libraries) {
      if (library.empty()) continue;
      CHECK(runtime_of_library("/usr/lib/" + std::string(library) + "1.so.2") == row);
    }
    if (!row->signs.region.empty()) CHECK(runtime_of_region(row->signs.region) == row);
  }
}

TEST_CASE("variables that enable names are understood by the runtime's own flag reader",
          "[runtimes]") {
  for (const RuntimeInfo* const row : all_runtimes()) {
    // Erlang's variables are read by its launcher, which passes them on as arguments.
    if (row->maps.naming_variables.empty() || !row->signs.launcher.empty()) continue;
    CAPTURE(row->id);
    ProgramStart start;
    start.environment.assign(row->maps.naming_variables.begin(), row->maps.naming_variables.end());
    const StartFlags flags = start_flags(row->runtime, start);
    CHECK((!flags.map_by.empty() || !flags.dump_by.empty() || !flags.log.empty()));
  }
}

TEST_CASE("the table of runtimes says for each how its code gets names", "[runtimes]") {
  for (const RuntimeInfo* const one : all_runtimes()) {
    CAPTURE(one->id);
    CHECK(!one->guide.title.empty());
    CHECK(!one->guide.writes.empty());
    CHECK(!one->guide.names.empty());
    CHECK(naming_start(*one).empty() == (one->guide.writes == "nothing"));
    CHECK(!naming_since(*one).empty());
    // One fact in one place. The JVM needs one more option than for names: for its stacks.
    CHECK((one->guide.start.empty() || one->maps.naming_variables.empty() ||
           one->runtime == Runtime::hotspot));
    CHECK((one->guide.since.empty() || one->maps.first_release.empty()));
  }
  CHECK(naming_start(runtime_info(Runtime::v8)) ==
        "NODE_OPTIONS='--perf-basic-prof --interpreted-frames-native-stack'");
  CHECK(naming_start(runtime_info(Runtime::dotnet)) ==
        "DOTNET_PerfMapEnabled=1 DOTNET_EnableWriteXorExecute=0");
  CHECK(naming_since(runtime_info(Runtime::cpython)) == "3.12");
  CHECK(naming_since(runtime_info(Runtime::v8)) == "any");
}

TEST_CASE("each tier belongs to one class", "[runtimes]") {
  std::set<std::string_view> names;
  std::size_t count = 0;
  for (const TierClass code : {TierClass::interpreted, TierClass::baseline, TierClass::middle,
                               TierClass::optimized, TierClass::runtime}) {
    for (const Tier& tier : tiers_of(code)) {
      CHECK(find_tier(tier.name) == &tier);
      CHECK(names.insert(tier.name).second);
      ++count;
    }
  }
  CHECK(count == all_tiers().size());
  CHECK(find_tier("") == nullptr);
}

}  // namespace perfmap::catalogue_test
