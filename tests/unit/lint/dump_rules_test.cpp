// SPDX-License-Identifier: MIT
#include <elf.h>
#include <set>
#include <string>
#include <vector>

#include "support/catch.hpp"
#include "support/frame_bytes.hpp"
#include "support/lint_findings.hpp"
#include "support/scratch.hpp"

using namespace std::string_literals;

namespace perfmap::dump_rules_test {
namespace {

using test::DumpBytes;
using test::frame_of;
using test::lint_dump;
using test::places_of;
using Places = std::vector<std::string>;

constexpr std::uint64_t kAt = 0x7f0000001000;
constexpr std::uint64_t kSecond = 1'000'000'000;
const std::string kCode(16, '\x90');

/// A dump with a finding of one rule, its place, and the same dump without its cause.
struct Case {
  std::string where;  // "JD105 +0x20"
  DumpBytes found;
  DumpBytes clean;
};

DumpBytes header() { return DumpBytes().header(); }
DumpBytes header(const DumpBytes::Header& h) { return DumpBytes().header(h); }
/// With a first function, whose LOAD occupies the bytes 0x28 to 0x76.
DumpBytes ok() { return header().load(1000, kAt, "first", kCode, 1); }
/// With a second function after it.
DumpBytes two() { return ok().load(2000, kAt + 0x100, "second", kCode, 2); }

/// A LOAD with any sizes.
DumpBytes odd_load(DumpBytes dump, std::uint64_t code_size, const std::string& rest,
                   std::uint64_t vma = kAt + 0x100) {
  dump.prefix(0, 56 + rest.size(), 2000).u32(42).u32(43).u64(vma).u64(kAt + 0x100);
  return dump.u64(code_size).u64(2).raw(rest);
}

DumpBytes owned_load(DumpBytes dump, std::uint32_t pid, std::uint32_t tid) {
  dump.prefix(0, 58 + kCode.size(), 2000).u32(pid).u32(tid).u64(kAt + 0x100).u64(kAt + 0x100);
  return dump.u64(kCode.size()).u64(2).raw("f"s + '\0' + kCode);
}

DumpBytes lines(DumpBytes dump, std::initializer_list<DumpBytes::Line> entries,
                std::uint64_t address = kAt + 0x100) {
  return dump.debug_info(2000, address, entries).load(2000, kAt + 0x100, "second", kCode, 2);
}

DumpBytes unwinding(DumpBytes dump, const std::string& data, std::uint64_t header_size,
                    std::uint64_t mapped, std::uint64_t address = kAt + 0x100) {
  return dump.unwinding(2000, data, header_size, mapped).load(2000, address, "second", kCode, 2);
}

std::vector<Case> header_cases() {
  const DumpBytes foreign = DumpBytes(std::endian::big).header().load(1000, kAt, "first", kCode);
  const DumpBytes longer = header({.total_size = 48}).u64(0).load(1000, kAt, "first", kCode);
  const auto with = [](const DumpBytes::Header& h) {
    return header(h).load(1000, kAt, "first", kCode);
  };
  return {
      {"JD101 +0x0", DumpBytes().raw("no jitdump, but long enough to be one, if it were"), ok()},
      {"JD101 +0x0", DumpBytes().raw(ok().text().substr(0, 39)), header()},
      {"JD101 +0x0", DumpBytes(), ok()},
      {"JD102 +0x0", foreign, ok()},
      {"JD103 +0x4", with({.version = 2}), ok()},
      {"JD104 +0x8", with({.total_size = 0}), ok()},
      {"JD104 +0x8", with({.total_size = 4000}), ok()},
      {"JD104 +0x8", longer, ok()},
      {"JD105 +0x20", with({.flags = 2}), with({.flags = 1})},
      {"JD106 +0x20", with({.flags = 1}), ok()},
      {"JD107 +0xc", with({.elf_mach = 0}), with({.elf_mach = 183})},
      {"JD108 +0x14", with({.pid = 41}), ok()},
      {"JD108 +0x38", owned_load(header(), 41, 43), ok()},
  };
}

std::vector<Case> load_cases() {
  const std::string name = "second"s + '\0';
  return {
      {"JD201 +0x76", ok().raw("torn"), ok()},
      {"JD201 +0x76", DumpBytes().raw(two().text().substr(0, two().size() - 1)), two()},
      {"JD202 +0x76", ok().prefix(9, 24, 1500).u64(0).load(2000, kAt + 0x100, "f", kCode, 2),
       two()},
      {"JD203 +0x9e", odd_load(ok(), 16, name + kCode.substr(1)), two()},
      {"JD203 +0x9e", odd_load(ok(), 16, name), two()},
      {"JD203 +0x9e", odd_load(ok(), 16, name + kCode + std::string(16, '\0')), two()},
      {"JD204 +0xae", odd_load(ok(), 16, "second" + kCode), two()},
      {"JD205 +0xae", odd_load(ok(), 16, '\0' + kCode), two()},
      {"JD205 +0xae", odd_load(ok(), 16, "f\xff" + ('\0' + kCode)), two()},
      {"JD206 +0x9e", odd_load(ok(), 0, name), two()},
      {"JD206 +0x9e", odd_load(ok(), 0x80000000, name + kCode), odd_load(ok(), 0x7fffffff, name)},
      {"JD207 +0x8e", odd_load(ok(), 16, name + kCode, kAt), two()},
      {"JD208 +0xa6", ok().load(2000, kAt + 0x100, "second", kCode, 1), two()},
      {"JD305 +0xc5", odd_load(ok(), 16, name + kCode + "\0\0\0"s), two()},
      {"JD306 +0x86", owned_load(ok(), 41, 43), owned_load(ok(), 42, 43)},
      {"JD306 +0x8a", owned_load(ok(), 42, 0), owned_load(ok(), 42, 44)},
  };
}

std::vector<Case> move_cases() {
  return {
      {"JD209 +0x96", ok().move(2000, kAt + 8, kAt + 0x100, 16, 9),
       ok().move(2000, kAt, kAt + 0x100, 16)},
      {"JD209 +0x96", ok().move(2000, kAt + 8, kAt + 0x100, 16),
       ok().move(2000, kAt, kAt + 0x100, 16)},
      {"JD209 +0xae", ok().move(2000, kAt, kAt + 0x100, 16, 7),
       ok().move(2000, kAt, kAt + 0x100, 16)},
      {"JD209 +0xa6", ok().move(2000, kAt, kAt + 0x100, 15),
       ok().move(2000, kAt, kAt + 0x100, 16).move(3000, kAt + 0x100, kAt, 16)},
      {"JD209 +0x96", ok().move(500, kAt, kAt + 0x100, 16), ok().move(1000, kAt, kAt + 8, 16)},
      {"JD304 +0x28", ok().load(2000, kAt + 8, "second", kCode, 2),
       ok().move(1500, kAt, kAt + 0x100, 16).load(2000, kAt, "second", kCode, 2)},
  };
}

std::vector<Case> line_cases() {
  const std::uint64_t at = kAt + 0x100;
  DumpBytes many = header();
  for (std::uint64_t i = 0; i < 9; ++i) {
    const std::uint64_t address = kAt + 0x1000 * (i + 1);
    many.debug_info(10 + i, address, {{address, 1, 0, "a"}});
    many.load(10 + i, address, "f" + std::to_string(i), kCode, 10 + i);
  }
  DumpBytes max = many;
  max.load(1000, kAt, "first", kCode, 1);
  DumpBytes fewer = max;
  fewer.load(2000, kAt + 0x100, "second", kCode, 2);
  DumpBytes counts_too_many = ok();
  counts_too_many.prefix(2, 50, 2000).u64(at).u64(2).u64(at).u32(1).u32(1).raw("a\0"s);
  DumpBytes runs_over = ok();
  runs_over.prefix(2, 66, 2000).u64(at).u64(2).u64(at).u32(1).u32(1).raw("ab");
  runs_over.u64(at).u32(1).u32(257);
  return {
      {"JD210 +0x76", lines(ok(), {{at, 1, 1, "a"}}, kAt), lines(ok(), {{at, 1, 1, "a"}})},
      {"JD210 +0x76", ok().debug_info(1500, at, {{at, 1, 1, "a"}}), ok()},
      {"JD210 +0x76", lines(ok().debug_info(1500, kAt, {{kAt, 1, 1, "a"}}), {{at, 1, 1, "a"}}),
       lines(ok(), {{at, 1, 1, "a"}})},
      {"JD211 +0x76", counts_too_many.load(2000, at, "second", kCode, 2),
       lines(ok(), {{at, 1, 1, "a"}})},
      {"JD211 +0x76", runs_over.load(2000, at, "second", kCode, 2), lines(ok(), {{at, 1, 1, "a"}})},
      {"JD211 +0x76", lines(ok(), {{at, 0, 1, "a"}}), lines(ok(), {{at, 1, 1, "a"}})},
      {"JD211 +0x76", lines(ok(), {{at, -1, 1, "a"}}),
       lines(ok(), {{at, 1, 1, "a"}, {at + 16, 0, 0, ""}})},
      {"JD211 +0x76", lines(ok(), {{at + 17, 1, 1, "a"}}), lines(ok(), {{at + 16, 1, 1, "a"}})},
      {"JD211 +0x76", lines(ok(), {{at - 1, 1, 1, "a"}}), lines(ok(), {{at, 1, 1, "a"}})},
      {"JD211 +0x76", lines(ok(), {{at + 4, 1, 1, "a"}, {at, 2, 1, "a"}}),
       lines(ok(), {{at, 1, 1, "a"}, {at, 2, 1, "a"}})},
      {"JD215 +0x48d", max, fewer},
      {"JD217 +0x76", lines(ok(), {{at + 0x40, 1, 1, "a"}, {at + 0x50, 2, 1, "a"}}),
       lines(ok(), {{at, 1, 1, "a"}, {at + 16, 2, 1, "a"}})},
  };
}

std::vector<Case> unwinding_cases() {
  const std::string good = frame_of({.code_size = 16});
  const std::uint64_t size = good.size();
  const auto frame = [&](const test::Frame& odd) { return unwinding(ok(), frame_of(odd), 20, 0); };
  const DumpBytes clean = unwinding(ok(), good, 20, size);
  const std::string swapped = good.substr(size - 20) + good.substr(0, size - 20);
  return {
      {"JD212 +0x86", unwinding(ok(), good, size + 1, 0), clean},
      {"JD212 +0x96", unwinding(ok(), good, 20, 7), unwinding(ok(), good, 20, 0)},
      {"JD212 +0x86", ok().unwinding(2000, good, 20, 0, 16).load(2000, kAt + 0x100, "f", kCode, 2),
       ok().unwinding(2000, good, 20, 0, 8).load(2000, kAt + 0x100, "f", kCode, 2)},
      {"JD213 +0x76", unwinding(ok(), swapped, 20, 0), clean},
      {"JD213 +0x76", unwinding(ok(), good, 0, 0), clean},
      {"JD213 +0x76", frame({.code_size = 16, .table_encoding = 0x1b}), clean},
      {"JD213 +0x76", frame({.code_size = 64}), clean},
      {"JD213 +0x76", frame({.code_size = 16, .begin_off = 8}), clean},
      {"JD213 +0x76", frame({.code_size = 16, .cie_off = 4}), clean},
      {"JD213 +0x76", unwinding(ok(), std::string(8, '\xff') + good.substr(size - 20), 20, 0),
       unwinding(ok(), good.substr(size - 20), 20, 0)},
      {"JD214 +0xe2", unwinding(ok(), good, 20, 0, kAt + 0x108), clean},
  };
}

std::vector<Case> time_cases() {
  const auto at = [](std::uint64_t first, std::uint64_t second) {
    return header().load(first, kAt, "first", kCode, 1).load(second, kAt + 64, "second", kCode, 2);
  };
  return {
      {"JD216 +0x86", ok().close(1500).load(2000, kAt + 64, "second", kCode, 2), two().close(3000)},
      {"JD301 +0x7e", at(5 * kSecond + 1, 4 * kSecond), at(5 * kSecond, 4 * kSecond)},
      {"JD303 +0x30", at(7, 7), at(7, 8)},
      {"JD303 +0x30", header().load(0, kAt, "first", kCode), header().load(1, kAt, "first", kCode)},
  };
}

std::vector<Case> all_cases() {
  std::vector<Case> all;
  for (auto cases :
       {header_cases, load_cases, move_cases, line_cases, unwinding_cases, time_cases}) {
    for (Case& one : cases()) all.push_back(std::move(one));
  }
  return all;
}

std::string rule_of(const Case& one) { return one.where.substr(0, 5); }

}  // namespace

TEST_CASE("each rule about dumps reports its byte, and nothing without its cause",
          "[lint][jitdump]") {
  for (const Case& one : all_cases()) {
    CAPTURE(one.where);
    const Places found = places_of(lint_dump(one.found.text()), rule_of(one));
    CHECK((found.empty() ? "silence" : found.at(0)) == one.where);
    CHECK(places_of(lint_dump(one.clean.text()), rule_of(one)).empty());
  }
}

TEST_CASE("each rule about dumps has a case", "[lint][jitdump]") {
  // These need a file, a process, a recording, and many functions.
  std::set<std::string> tried{"JD109", "JD110", "JD302", "JD307"};
  for (const Case& one : all_cases()) tried.insert(rule_of(one));
  for (const Rule* rule : rule::all()) {
    CAPTURE(rule->id);
    CHECK(tried.contains(std::string(rule->id)) == rule->id.starts_with("JD"));
  }
}

TEST_CASE("output of a correct producer has no findings", "[lint][jitdump]") {
  const std::uint64_t at = kAt + 0x100;
  const std::string frame = frame_of({.code_size = 16});
  const DumpBytes dump = ok().debug_info(2000, at, {{at, 1, 1, "a"}, {at + 4, 2, 0, "\xff"}}, 5)
                             .unwinding(2000, frame, 20, frame.size(), 4)
                             .load(2000, at, "second", kCode, 2)
                             .move(3000, at, at + 0x100, 16, 2)
                             .close(4000);
  CHECK(places_of(lint_dump(dump.text())).empty());
  CHECK(places_of(lint_dump(header().text())).empty());
}

TEST_CASE("a code size of 0 and one that is too large have different messages", "[lint][jitdump]") {
  const auto message = [](std::uint64_t size) {
    const Diagnostics found = lint_dump(odd_load(ok(), size, "second\0"s).text());
    for (const Diagnostic& one : found.items()) {
      if (one.rule->id == std::string_view("JD206")) return one.message;
    }
    return std::string();
  };
  CHECK(message(0) == "code size 0: perf finds no symbol there");
  CHECK(message(0x80000000) == "a code size of 2147483648: perf supports 31 bits");
}

TEST_CASE("the name of a dump is checked if it is a file", "[lint][jitdump]") {
  const test::Scratch directory;
  const auto found = [&](const std::string& name) {
    const Result<Input> input = Input::open(directory.write(name, ok().text()));
    REQUIRE(input);
    Diagnostics problems(0);
    lint(Jitdump(*input), problems);
    return places_of(problems);
  };
  CHECK(found("jit-42.dump").empty());
  CHECK(found("jit-43.dump") == Places{"JD108 +0x14"});
  for (const char* const name : {"jit-.dump", "xjit-42.dump", "jit-42.dump.1", "jit-4x.dump",
                                 "jit-99999999999.dump", "dump"}) {
    CAPTURE(name);
    CHECK(found(name) == Places{"JD109 +0x0"});
  }
}

TEST_CASE("incomplete output of a running runtime is not reported", "[lint][jitdump]") {
  const std::string text = ok().debug_info(1500, kAt, {{kAt, 1, 1, "a"}}).text() + "half";
  CHECK(places_of(lint_dump(text, {.growing = true})).empty());
  CHECK(places_of(lint_dump(text.substr(0, 20), {.growing = true})).empty());
  CHECK(places_of(lint_dump("", {.growing = true})).empty());
}

TEST_CASE("more than 50 000 functions are reported", "[lint][jitdump]") {
  DumpBytes dump = header();
  for (std::uint64_t i = 0; i < 50'000; ++i) dump.load(i + 1, kAt + i * 16, "f", kCode, i);
  CHECK(places_of(lint_dump(dump.text())).empty());
  const std::size_t size = dump.size();
  dump.load(60'000, kAt - 16, "f", kCode, 50'000);
  const Diagnostics found = lint_dump(dump.text());
  REQUIRE(places_of(found).size() == 1);
  CHECK(found.items()[0].where.offset == size);
  CHECK(found.items()[0].rule->id == rule::kManyLoads.id);
}

}  // namespace perfmap::dump_rules_test
