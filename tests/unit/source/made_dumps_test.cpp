// SPDX-License-Identifier: MIT
// Jitdumps that are made from other formats: a few bytes there may stand for megabytes of zeros.

#include <functional>
#include <string>
#include <vector>

#include "perfmap/json.hpp"
#include "perfmap/profile/source.hpp"
#include "support/catch.hpp"
#include "support/scratch.hpp"

namespace perfmap::made_dumps_test {
namespace {

using test::Scratch;
using Make = std::function<Result<JitdumpBytes>(std::uint64_t max_bytes)>;

constexpr const char* kMap = "1000 400 one\n1200 400 nested\n3000 ffffffff too long for zeros\n";
constexpr const char* kDump =
    R"({"source":{"kind":"jitdump"},"header":{"order":"big","extra":"AAAA"},"entries":[)"
    R"({"start":"0x1000","size":1024,"name":"one","padding":"AAAA"},)"
    R"({"start":"0x2000","size":3,"name":"code","code":"AQID"},)"
    R"({"start":"0x3000","size":4294967295,"name":"too long for zeros"}]})";
constexpr const char* kLog =
    "[1] {jit-backend-addr\n"
    "Loop 1 (f;/t.py:8-10~#12 FOR_ITER) has address 0x1000 to 0x1400 (bootstrap 0x1000)\n"
    "[2] jit-backend-addr}\n";

Result<JitdumpBytes> of_map(std::uint64_t max_bytes) {
  Diagnostics problems(1);
  return dump_of_map(Map(Input::from_text(kMap, "a.map")), 7, problems, max_bytes);
}
Result<JitdumpBytes> of_json(std::uint64_t max_bytes) { return dump_from_json(kDump, max_bytes); }
Result<JitdumpBytes> of_log(std::uint64_t max_bytes) {
  LoopProfile profile({.base = TickBase::dec, .keep_code_bytes = true});
  profile.add(kLog);
  profile.finish();
  return dump_of_loops(profile.loops(), kLog, {.max_bytes = max_bytes});
}

}  // namespace

TEST_CASE("a dump that is made may be as large as allowed, and not a byte larger", "[source]") {
  for (const Make& make : {Make(of_map), Make(of_json), Make(of_log)}) {
    const Result<JitdumpBytes> made = make(JitdumpBytes::kMaxBytes);
    REQUIRE(made);
    const std::uint64_t size = made->bytes.size();
    CHECK(size > 1024);
    CHECK(made->bytes.capacity() < size + 64);  // its size was known
    CHECK(made->without_code != 0);
    const Result<JitdumpBytes> same = make(size);
    REQUIRE(same);
    CHECK(same->bytes == made->bytes);
    const Result<JitdumpBytes> refused = make(size - 1);
    REQUIRE(!refused);
    CHECK(refused.error().message().find("the jitdump would have more than 0 MiB") !=
          std::string::npos);
  }
}

TEST_CASE("zeros stand between the name of a function and its padding", "[source]") {
  const Result<JitdumpBytes> made = of_json(JitdumpBytes::kMaxBytes);
  REQUIRE(made);
  const Jitdump dump(Input::from_text(made->bytes, "made"));
  Diagnostics problems(1);
  std::vector<std::pair<std::string, std::string>> found;
  dump.for_each(problems, [&](const JitRecord& record) {
    const auto load = decode_load(record);
    REQUIRE(load);
    found.emplace_back(load->name, load->code);
  });
  CHECK(problems.total() == 0);
  REQUIRE(found.size() == 3);
  CHECK(found[0] == std::pair<std::string, std::string>{"one", std::string(1024, '\0')});
  CHECK(found[1] == std::pair<std::string, std::string>{"code", "\1\2\3"});
  CHECK(found[2].first == "too long for zeros");
}

TEST_CASE("all sources of a command share one limit for dumps that are made", "[source]") {
  const Scratch scratch;
  const std::string json = scratch.write("a.json", kDump);
  const std::string log = scratch.write("a.log", kLog);
  SourceOptions options;
  options.max_made_bytes = 2000;
  CHECK(open_sources(std::vector<Source>{{json}}, options));
  CHECK(open_sources(std::vector<Source>{{log}}, options));
  for (const std::string& second : {json, log}) {
    const auto both = open_sources(std::vector<Source>{{json}, {second}}, options);
    REQUIRE(!both);
    CHECK(both.error().message().find("all sources together are limited to 1 GiB") !=
          std::string::npos);
  }
}

}  // namespace perfmap::made_dumps_test
