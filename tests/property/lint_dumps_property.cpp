// SPDX-License-Identifier: MIT
#include <algorithm>
#include <random>
#include <string>
#include <tuple>
#include <vector>

#include "perfmap/lint.hpp"
#include "perfmap/text.hpp"
#include "perfmap/timeline.hpp"
#include "support/catch.hpp"
#include "support/frame_bytes.hpp"
#include "support/lint_findings.hpp"

namespace perfmap::lint_dumps_property {
namespace {

using test::dump_of;
using test::DumpBytes;

/// Valid and invalid records in random order.
class DumpMaker {
 public:
  explicit DumpMaker(unsigned seed)
      : random_(seed), bytes_(below(4) == 0 ? std::endian::big : std::endian::little) {}

  std::string text(std::size_t records) {
    DumpBytes::Header header;
    header.flags = below(4) == 0 ? random_() : below(2);
    header.total_size = below(8) == 0 ? 44 : 40;
    bytes_.header(header);
    if (header.total_size == 44) bytes_.u32(random_());
    for (std::size_t i = 0; i < records; ++i) record();
    return bytes_.text();
  }

  std::uint64_t below(std::uint64_t n) { return random_() % n; }

 private:
  std::uint64_t address() { return 0x7f0000000000 + below(64) * 8; }

  void record() {
    time_ += below(3);
    switch (below(8)) {
      case 0: bytes_.move(time_, address(), address(), below(40), below(6)); break;
      case 1: lines(); break;
      case 2: unwinding(); break;
      case 3:
        if (below(3) == 0) bytes_.prefix(77, 24, time_).u64(random_());
        if (below(9) == 0) bytes_.close(time_);
        break;
      default: load(); break;
    }
  }
  void load() {
    static const std::string kNames[] = {"name",          "",   "f\xff", "\xc3",
                                         "a longer name", "  ", "日本"};
    const std::string& name = kNames[below(std::size(kNames))];
    const std::string code(below(20), '\x90');
    const std::size_t padding = below(4) == 0 ? below(20) : 0;
    const std::uint64_t at = address();
    bytes_.prefix(0, 57 + name.size() + code.size() + padding, time_).u32(42).u32(below(3));
    bytes_.u64(at).u64(at).u64(below(9) == 0 ? below(99) : code.size()).u64(below(12));
    bytes_.raw(name).raw({"\0", 1}).raw(code).raw(std::string(padding, '\0'));
  }
  void lines() {
    const std::uint64_t at = address();
    bytes_.debug_info(time_, at, {{at + below(4), static_cast<std::int32_t>(below(3)), 0, "a"}},
                      below(8));
  }
  void unwinding() {
    bytes_.unwinding(time_, test::frame_of({.code_size = static_cast<std::uint32_t>(below(40))}),
                     20, 0, below(8));
  }

  std::mt19937_64 random_;
  DumpBytes bytes_;
  std::uint64_t time_ = 1'000'000'000;
};

/// Truncates the dump, changes a byte, repeats a part or removes a part, several times.
std::string damaged(std::string bytes, DumpMaker& chance) {
  for (std::uint64_t i = chance.below(4); i > 0 && !bytes.empty(); --i) {
    const std::size_t at = chance.below(bytes.size());
    const std::size_t count = std::min<std::size_t>(chance.below(200), bytes.size() - at);
    switch (chance.below(4)) {
      case 0: bytes.resize(at); break;
      case 1: bytes[at] = static_cast<char>(chance.below(256)); break;
      case 2: bytes.insert(at + count, bytes.substr(at, count)); break;
      default: bytes.erase(at, count); break;
    }
  }
  return bytes;
}

std::string fixed(const std::string& bytes) { return fixed_dump(dump_of(bytes)); }

/// The placed code by name: offsets change with a fix.
using Owner = std::tuple<Address, std::uint64_t, std::uint64_t, std::uint64_t, std::string>;
std::vector<Owner> owners_at(const std::string& bytes, std::uint64_t time) {
  Diagnostics ignored(1);
  const Timeline timeline(dump_of(bytes), ignored);
  std::vector<Owner> owners;
  timeline.for_each_at(time, [&](const PlacedCode& placed) {
    const auto load = decode_load(*timeline.dump().record_at(placed.code.load));
    const bool odd =
        load->name.empty() || load->name.find_first_of("\xff\xc3") != std::string::npos;
    owners.emplace_back(placed.piece.begin, placed.piece.size, placed.code.since, placed.code.until,
                        odd ? escape_map_name(load->name) : load->name);
  });
  return owners;
}

std::uint64_t lost_bytes(const std::string& bytes) {
  const Jitdump dump = dump_of(bytes);
  Diagnostics ignored(1);
  Jitdump::Reader reader(dump);
  while (reader.next(ignored)) continue;
  return reader.lost_bytes();
}

}  // namespace

TEST_CASE("findings in a damaged dump are inside it and sorted by offset",
          "[lint][jitdump][property]") {
  const auto seed = GENERATE(range(0u, 1500u));
  CAPTURE(seed);
  DumpMaker maker(seed);
  const std::string bytes = damaged(maker.text(1 + maker.below(30)), maker);
  const Diagnostics found = test::lint_dump(bytes);
  std::uint64_t last = 0;
  for (const Diagnostic& one : found.items()) {
    CAPTURE(test::place_of(one));
    REQUIRE(one.where.offset <= bytes.size());
    REQUIRE(one.where.offset >= last);
    REQUIRE(one.where.line == 0);
    REQUIRE(!one.message.empty());
    last = one.where.offset;
  }
}

TEST_CASE("fixing a dump twice equals fixing it once", "[lint][jitdump][property]") {
  const auto seed = GENERATE(range(0u, 1500u));
  CAPTURE(seed);
  DumpMaker maker(seed);
  const std::string bytes = damaged(maker.text(1 + maker.below(30)), maker);
  const std::string once = fixed(bytes);
  CHECK(fixed(once) == once);
  CHECK(lost_bytes(once) == lost_bytes(bytes));
}

TEST_CASE("a fixed dump has no safe fix left, and the same code at each time",
          "[lint][jitdump][property]") {
  const auto seed = GENERATE(range(0u, 800u));
  CAPTURE(seed);
  DumpMaker maker(seed);
  const std::string bytes = maker.text(1 + maker.below(40));
  const std::string once = fixed(bytes);
  const Diagnostics left = test::lint_dump(once);
  for (const Diagnostic& one : left.items()) {
    CAPTURE(test::place_of(one), one.message);
    CHECK(one.rule->fix != Fix::safe);
  }
  for (const std::uint64_t after : {0, 5, 20, 1000}) {
    CHECK(owners_at(once, 1'000'000'000 + after) == owners_at(bytes, 1'000'000'000 + after));
  }
}

}  // namespace perfmap::lint_dumps_property
