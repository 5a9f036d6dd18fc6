// SPDX-License-Identifier: MIT
#include <fstream>
#include <random>
#include <string>
#include <vector>

#include "perfmap/runtimes.hpp"
#include "support/catch.hpp"
#include "support/tests_dir.hpp"

namespace perfmap::names_property {
namespace {

bool inside(std::string_view part, std::string_view raw) {
  return part.empty() ||
         (part.data() >= raw.data() && part.data() + part.size() <= raw.data() + raw.size());
}

void check_decoded(const std::string& raw) {
  CAPTURE(raw);
  const DecodedName name = decode_name(raw);
  REQUIRE(inside(name.function, raw));
  REQUIRE(inside(name.file, raw));
  for (const std::string_view part : name.inline_chain) {
    REQUIRE(inside(part, raw));
    REQUIRE(!part.empty());
  }
  if (name.runtime == Runtime::unknown) {
    REQUIRE(name.function == raw);
    REQUIRE(name.tier.empty());
    REQUIRE(without_tier(raw) == raw);
  }
  if (!name.inline_chain.empty()) REQUIRE(name.inline_chain.back() == name.function);
  if (!raw.empty()) REQUIRE(!without_tier(raw).empty());
}

const std::vector<std::string>& words() {
  static const std::vector<std::string> list = {
      "JS:",   "Eval:",  "Script:", "o*",      "*",    "+'",      "^",     "~",       " ",
      "/a.js", ":1",     ":",       "::",      "[",    "]",       "(",     ")",       "py::",
      "->",    "La;::b", " in ",    "stub<",   "stub", "[Tier1]", "$",     "JIT$",    "TRACE-1$",
      "/2",    "@",      "[JIT] ",  "julia_",  "_12",  "wasm[",   "Ion: ", "-1",      "-liftoff",
      "f",     ".",      "int ",    "TRACE_1", "PHP:", "[Call",   "] ",    "://",     " node:",
      "Loop ", "1",      ";",       "JSC-",    "FTL:", "b.c::d",  "\xff",  "guest-0x"};
  return list;
}

}  // namespace

TEST_CASE("decoded parts are inside the raw name, for any name", "[property][names]") {
  std::mt19937 random(11);
  for (int round = 0; round < 100'000; ++round) {
    std::string raw;
    for (std::size_t parts = random() % 9; parts > 0; --parts) {
      raw += words()[random() % words().size()];
    }
    if (random() % 4 == 0 && !raw.empty()) raw[random() % raw.size()] = static_cast<char>(random());
    if (random() % 4 == 0 && !raw.empty()) raw.resize(random() % raw.size());
    check_decoded(raw);
  }
}

TEST_CASE("real names with a changed byte, or truncated, are decoded", "[property][names]") {
  const std::string file = GENERATE("node-20.txt", "openjdk-17.txt");
  std::ifstream names(test::tests_dir("/wild/names/" + file));
  std::mt19937 random(12);
  std::size_t lines = 0;
  for (std::string line; std::getline(names, line); ++lines) {
    for (std::size_t i = 0; i <= line.size(); ++i) {
      check_decoded(line.substr(0, i));
      std::string changed = line;
      if (i < line.size()) changed[i] = static_cast<char>(random());
      check_decoded(changed);
    }
  }
  CHECK(lines > 40);
}

}  // namespace perfmap::names_property
