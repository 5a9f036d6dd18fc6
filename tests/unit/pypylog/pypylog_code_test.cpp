// SPDX-License-Identifier: MIT
#include "perfmap/pypylog.hpp"
#include "perfmap/timeline.hpp"
#include "support/catch.hpp"

namespace perfmap::pypylog_code_test {
namespace {

/// Builds a log section by section, ten ticks apart.
class LogText {
 public:
  LogText& section(const std::string& category, const std::string& lines) {
    text_ += "[" + std::to_string(tick_ += 10) + "] {" + category + "\n" + lines;
    text_ += "[" + std::to_string(tick_ + 1) + "] " + category + "}\n";
    return *this;
  }
  /// `size` bytes with the value `byte`.
  LogText& dump(const std::string& address, std::size_t size, const std::string& byte) {
    std::string line = "BACKEND aarch64\nSYS_EXECUTABLE pypy3\nCODE_DUMP @" + address + " +0  ";
    for (std::size_t i = 0; i < size; ++i) line += byte;
    return section("jit-backend-dump", line + "\n");
  }
  LogText& place(const std::string& name, const std::string& begin, const std::string& failures,
                 const std::string& end) {
    return section("jit-backend-addr", name + " has address 0x" + begin + " to 0x" + failures +
                                           " (bootstrap 0x0)\n       function: 0x" + begin +
                                           "\n       failures: 0x" + failures +
                                           "\n            end: 0x" + end + "\n");
  }
  LogText& back_to(int tick) {
    tick_ = tick;
    return *this;
  }
  const std::string& text() const noexcept { return text_; }

 private:
  std::string text_;
  int tick_ = 0;
};

constexpr const char* kLoop = "Loop 1 (f;/t.py:8-10~#12 FOR_ITER)";
constexpr const char* kOther = "Loop 2 (g;/t.py:20-21~#0 LOAD_FAST)";

struct Loaded {
  std::uint64_t time = 0;
  AddressRange range;
  std::string name;
  std::string code;
  std::vector<CodeLine> lines;
  std::uint64_t index = 0;
};

struct Dumped {
  JitdumpHeader header;
  std::vector<Loaded> loads;
  std::uint64_t without_code = 0;
};

LoopProfile read(const std::string& log) {
  LoopProfile profile({.base = TickBase::dec, .keep_code_bytes = true});
  profile.add(log);
  profile.finish();
  return profile;
}

Dumped dump_of(const std::string& log, const LoopDumpOptions& options = {}) {
  Result<JitdumpBytes> bytes = dump_of_loops(read(log).loops(), log, options);
  REQUIRE(bytes);
  const Jitdump dump(Input::from_text(std::move(bytes->bytes), "made"));
  const JitDetails details(dump);
  Dumped dumped{dump.header().value(), {}, bytes->without_code};
  Diagnostics problems(1);
  dump.for_each(problems, [&](const JitRecord& record) {
    const auto load = decode_load(record);
    if (!load) return;
    std::vector<CodeLine> lines = details.lines(record.offset);
    dumped.loads.push_back({record.time,
                            load->range,
                            std::string(load->name),
                            std::string(load->code),
                            {},
                            load->code_index});
    for (CodeLine& line : lines) {
      CHECK(line.file == "/t.py");
      line.file = {};  // borrowed from `details`
      dumped.loads.back().lines.push_back(line);
    }
  });
  CHECK(problems.total() == 0);
  return dumped;
}

}  // namespace

TEST_CASE("a loop's code is the dump before its address line, with all later patches",
          "[pypylog]") {
  LogText log;
  log.dump("1000", 0x60, "aa").dump("1012", 1, "bb").place(kLoop, "1010", "1030", "1040");
  log.dump("101c", 4, "cc").dump("103e", 4, "dd");
  const Dumped dumped = dump_of(log.text());
  REQUIRE(dumped.loads.size() == 1);
  const Loaded& load = dumped.loads[0];
  CHECK(load.name == kLoop);
  CHECK(load.range == AddressRange{0x1010, 0x30});
  std::string code(0x30, '\xaa');
  code[2] = '\xbb';
  code.replace(0xc, 4, 4, '\xcc');
  code.replace(0x2e, 2, 2, '\xdd');  // the other two bytes are after the loop's end
  CHECK(load.code == code);
  CHECK(dumped.without_code == 0);
  CHECK(dumped.header.elf_mach == 183);
}

TEST_CASE("later code in the same place does not change the bytes of earlier code", "[pypylog]") {
  LogText log;
  log.dump("1000", 0x40, "aa").place(kLoop, "1000", "1030", "1040");
  log.dump("1004", 4, "bb").dump("1000", 0x20, "cc").dump("1008", 4, "dd");
  log.place(kOther, "1000", "1010", "1020").dump("100c", 4, "ee").dump("1030", 4, "ff");
  const Dumped dumped = dump_of(log.text());
  REQUIRE(dumped.loads.size() == 2);
  std::string first(0x40, '\xaa');
  first.replace(4, 4, 4, '\xbb');
  first.replace(0x30, 4, 4, '\xff');
  std::string second(0x20, '\xcc');
  second.replace(8, 4, 4, '\xdd');
  second.replace(0xc, 4, 4, '\xee');
  CHECK(dumped.loads[0].code == first);
  CHECK(dumped.loads[1].code == second);
}

TEST_CASE("the order in the log counts, even if ticks run backwards", "[pypylog]") {
  LogText log;
  log.back_to(1000).dump("1000", 0x20, "aa").place(kLoop, "1000", "1010", "1020");
  log.back_to(10).dump("1000", 0x20, "bb").place(kOther, "1000", "1010", "1020");
  const Dumped dumped = dump_of(log.text());
  REQUIRE(dumped.loads.size() == 2);
  CHECK(dumped.loads[0].name == kLoop);
  CHECK(dumped.loads[0].code == std::string(0x20, '\xaa'));
  CHECK(dumped.loads[1].code == std::string(0x20, '\xbb'));
  const Result<MapText> map = map_of_loops(read(log.text()).loops());
  REQUIRE(map);
  CHECK(map->text == std::string("1000 20 ") + kOther + "\n");
}

TEST_CASE("code bytes that the log lacks are zeros and counted", "[pypylog]") {
  LogText log;
  log.dump("1000", 0x20, "aa").place(kLoop, "1000", "1030", "1040");
  log.place(kOther, "2000", "2010", "2020");
  log.dump("3000", 0x20, "zz").place("bridge out of Guard 0x7f", "3000", "3010", "3020");
  const Dumped dumped = dump_of(log.text());
  REQUIRE(dumped.loads.size() == 3);
  CHECK(dumped.without_code == 3);
  CHECK(dumped.loads[0].code == std::string(0x20, '\xaa') + std::string(0x20, '\0'));
  CHECK(dumped.loads[1].code == std::string(0x20, '\0'));
  CHECK(dumped.loads[2].code == std::string(0x20, '\0'));
}

TEST_CASE("with a conversion ticks become times; without one only the order is kept", "[pypylog]") {
  LogText log;
  log.place(kLoop, "1000", "1030", "1040").place(kOther, "1000", "1010", "1020");
  const Dumped plain = dump_of(log.text());
  REQUIRE(plain.loads.size() == 2);
  CHECK(plain.loads[0].time == 0);
  CHECK(plain.loads[1].time == 0);
  CHECK(plain.loads[1].name == kOther);
  const Dumped timed = dump_of(
      log.text(), {.pid = 42, .conversion = TimeConversion{1, 3, 1000}, .base = TickBase::dec});
  REQUIRE(timed.loads.size() == 2);
  CHECK(timed.loads[0].time == 1015);
  CHECK(timed.loads[1].time == 1030);
  CHECK(timed.header.pid == 42);
  const Dumped hex =
      dump_of(log.text(), {.conversion = TimeConversion{0, 1, 0}, .base = TickBase::hex});
  CHECK(hex.loads[1].time == 0x20);
}

TEST_CASE("the index of a load is the number of its loop", "[pypylog]") {
  LogText log;
  log.section("jit-log-opt-loop", std::string("# ") + kOther + " : loop with 0 ops\n");
  log.place(kLoop, "1000", "1030", "1040");
  const Dumped dumped = dump_of(log.text());
  REQUIRE(dumped.loads.size() == 1);
  CHECK(dumped.loads[0].index == 2);
}

TEST_CASE("in a map of a log the later loop wins where two overlap", "[pypylog]") {
  LogText log;
  log.place(kLoop, "1000", "1030", "1040").place(kOther, "1010", "1018", "1020");
  log.place("bridge out of Guard 0x7f10", "9000", "9010", "9020");
  const Result<MapText> map = map_of_loops(read(log.text()).loops());
  REQUIRE(map);
  CHECK(map->text == std::string("1000 10 ") + kLoop + "\n1010 10 " + kOther + "\n1020 20 " +
                         kLoop + "\n9000 20 bridge out of Guard 0x7f10\n");
}

TEST_CASE("the code of operations gets the lines of their debug merge points", "[pypylog]") {
  LogText log;
  log.place(kLoop, "1010", "1050", "1080");
  log.section("jit-log-opt-loop", std::string("# ") + kLoop +
                                      " : loop with 9 ops\n"
                                      "[p0, p1]\n"
                                      "+24: p2 = getfield_gc_r(p0)\n"
                                      "debug_merge_point(0, 0, 'f;/t.py:8-10~#12 FOR_ITER')\n"
                                      "+32: guard_true(i1, descr=<Guard0x7f10>) [p0]\n"
                                      "+36: i2 = int_add(i1, 1)\n"
                                      "debug_merge_point(0, 0, 'f;/t.py:8-11~#20 LOAD_FAST')\n"
                                      "debug_merge_point(0, 0, 'f;/t.py:8-12~#22 LOAD_FAST')\n"
                                      "+40: i3 = int_add(i2, 1)\n"
                                      "debug_merge_point(1, 1, 'g;/t.py:20-21~#0 LOAD_FAST')\n"
                                      "+48: i4 = int_add(i3, 1)\n"
                                      "debug_merge_point(0, 0, 'f;/t.py:8-13~#24 LOAD_FAST')\n"
                                      "+48: i5 = int_add(i4, 1)\n"
                                      "+72: jump(p0, descr=TargetToken(99))\n"
                                      "+80: --end of the loop--\n");
  const Dumped dumped = dump_of(log.text());
  REQUIRE(dumped.loads.size() == 1);
  std::vector<std::pair<Address, std::int32_t>> lines;
  for (const CodeLine& line : dumped.loads[0].lines) lines.emplace_back(line.address, line.line);
  // Offsets count from 0x1000. The first operation at +48 has no code.
  CHECK(lines == std::vector<std::pair<Address, std::int32_t>>{
                     {0x1010, 8}, {0x1020, 10}, {0x1028, 12}, {0x1030, 13}, {0x1050, 8}});
}

TEST_CASE("operations without the end of the loop give no lines", "[pypylog]") {
  for (const char* const last :
       {"", "+99999: --end of the loop--\n", "+x: --end of the loop--\n"}) {
    LogText log;
    log.place(kLoop, "1010", "1050", "1080");
    log.section("jit-log-opt-loop", std::string("# ") + kLoop +
                                        " : loop with 2 ops\n"
                                        "debug_merge_point(0, 0, 'f;/t.py:8-10~#12 FOR_ITER')\n"
                                        "+32: i2 = int_add(i1, 1)\n" +
                                        last);
    CHECK(dump_of(log.text()).loads.at(0).lines.empty());
  }
}

TEST_CASE("dumps at both ends of the address space are applied without overflow", "[pypylog]") {
  LogText log;
  log.dump("ffffffffffffffff", 8, "aa").dump("0", 0x20, "bb").dump("fffffffffffffff0", 0x40, "cc");
  log.place(kLoop, "fffffffffffffff0", "fffffffffffffff8", "ffffffffffffffff");
  log.dump("fffffffffffffffc", 8, "dd").place(kOther, "0", "8", "10").dump("0", 0, "");
  const Dumped dumped = dump_of(log.text());
  REQUIRE(dumped.loads.size() == 2);
  CHECK(dumped.loads[0].code == std::string(12, '\xcc') + std::string(3, '\xdd'));
  CHECK(dumped.loads[1].code == std::string(0x10, '\xbb'));
}

}  // namespace perfmap::pypylog_code_test
