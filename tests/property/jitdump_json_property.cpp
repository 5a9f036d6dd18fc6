// SPDX-License-Identifier: MIT
#include <random>
#include <string>

#include "perfmap/json.hpp"
#include "support/catch.hpp"
#include "support/random_dump.hpp"
#include "support/written.hpp"

namespace perfmap::jitdump_json_property {
namespace {

std::string json_of(const Jitdump& dump, bool lines, bool code, Diagnostics& problems) {
  return test::written([&](OutputFile& out) {
    (lines ? write_dump_jsonl : write_dump_json)(dump, out, problems, code);
  });
}

}  // namespace

TEST_CASE("a dump converted to JSON and back has the same bytes", "[json][property]") {
  const auto seed = GENERATE(range(0u, 60u));
  const bool lines = GENERATE(false, true);
  CAPTURE(seed, lines);
  std::mt19937 random(seed);
  const std::endian order = seed % 2 == 0 ? std::endian::little : std::endian::big;
  const std::string bytes = test::random_dump(random, order, seed % 20);
  Diagnostics problems(1);
  const std::string json = json_of(test::dump_of(bytes), lines, true, problems);
  CHECK(is_dump_json(json));
  const Result<JitdumpBytes> back = dump_from_json(json);
  REQUIRE(back);
  CHECK(back->bytes == bytes);
  CHECK(back->without_code == 0);
}

TEST_CASE("without code in JSON, functions keep their size and get zeros as code",
          "[json][property]") {
  const auto seed = GENERATE(range(0u, 20u));
  std::mt19937 random(seed);
  const std::string bytes = test::random_dump(random, std::endian::native, 10);
  Diagnostics problems(1);
  const Result<JitdumpBytes> back =
      dump_from_json(json_of(test::dump_of(bytes), seed % 2 == 0, false, problems));
  REQUIRE(back);
  CHECK(back->bytes.size() == bytes.size());
  const Jitdump dump = test::dump_of(back->bytes);
  Diagnostics none(1);
  dump.for_each(none, [](const JitRecord& record) {
    const auto load = decode_load(record);
    if (load) CHECK(load->code.find_first_not_of('\0') == std::string_view::npos);
  });
  CHECK(none.total() == 0);
}

TEST_CASE("JSON of a damaged dump has all records that can be read", "[json][property]") {
  const auto seed = GENERATE(range(0u, 100u));
  CAPTURE(seed);
  std::mt19937 random(seed);
  std::string bytes = test::random_dump(random, std::endian::native, 20);
  for (std::uint64_t i = random() % 6; i > 0; --i) {
    bytes[random() % bytes.size()] = static_cast<char>(random());
  }
  const auto count = [](const Jitdump& dump) {
    Diagnostics ignored(0);
    std::size_t records = 0;
    dump.for_each(ignored, [&](const JitRecord&) { ++records; });
    return records;
  };
  const Jitdump damaged = test::dump_of(bytes);
  Diagnostics problems(100);
  const Result<JitdumpBytes> back = dump_from_json(json_of(damaged, seed % 2 == 0, true, problems));
  if (!back) return;  // a malformed header
  const Jitdump restored = test::dump_of(back->bytes);
  if (damaged.header() && damaged.header()->total_size == JitdumpHeader::kSize) {
    CHECK(count(restored) == count(damaged));
  }
}

TEST_CASE("any JSON becomes a dump or an error", "[json][property]") {
  const auto seed = GENERATE(range(0u, 300u));
  CAPTURE(seed);
  std::mt19937 random(seed);
  Diagnostics problems(1);
  std::string json = json_of(test::dump_of(test::random_dump(random, std::endian::native, 4)),
                             seed % 2 == 0, true, problems);
  const std::string pieces[] = {"\"", "{", "}", "[", "]", "-", "1e9", "null", "\"kind\":", ":"};
  for (std::uint64_t i = 1 + random() % 3; i > 0; --i) {
    const std::size_t at = random() % json.size();
    json.replace(at, random() % 3, pieces[random() % std::size(pieces)]);
  }
  const Result<JitdumpBytes> back = dump_from_json(json);
  if (back) {
    CHECK(test::dump_of(back->bytes).header());
  } else {
    CHECK(back.error().code == Errc::bad_format);
    CHECK(back.error().where.line >= 1);
    CHECK(!back.error().message().empty());
  }
}

}  // namespace perfmap::jitdump_json_property
