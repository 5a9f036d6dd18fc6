// SPDX-License-Identifier: MIT
#include <sstream>

#include "support/catch.hpp"
#include "support/stacks.hpp"

namespace perfmap::text_writers_test {

using test::every_kind;
using test::Stacks;

TEST_CASE("folded stacks are sorted lines with the number of samples", "[stacks]") {
  CHECK(every_kind().in(StackFormat::folded) ==
        "app 1\n"
        "app;[libc.so.6];main;inner_[i];do_syscall_64_[k] 1\n"
        "app;[unknown];[libc.so.6] 1\n"
        "app;main 1\n"
        "worker (a b);main;JS:*foo /a.js:1:13_[j] 1\n"
        "worker (a b);main;JS:~foo /a.js:1:13_[j] 1\n");
}

TEST_CASE("folded stacks can omit marks, merge tiers, and show pids and lines", "[stacks]") {
  const Stacks stacks = every_kind();
  CHECK(stacks.in(StackFormat::folded, {.merge_tiers = true, .marks = false, .with_pid = true}) ==
        "app-7/7 1\n"
        "app-7/7;[libc.so.6];main;inner;do_syscall_64 1\n"
        "app-7/7;[unknown];[libc.so.6] 1\n"
        "app-7/7;main 1\n"
        "worker (a b)-7/8;main;foo /a.js:1:13 2\n");
  CHECK_THAT(stacks.in(StackFormat::folded, {.lines = true}),
             Catch::Matchers::Contains("main (app.c:12);inner (inner.h:3)_[i];"));
}

TEST_CASE("perf script text prints addresses like perf does", "[stacks]") {
  CHECK(every_kind().in(StackFormat::perf_script) ==
        "app     7/7         1.010000000:   10101010   cpu-clock: \n"
        "\tffffffff81000010 do_syscall_64+0x10 ([kernel.kallsyms])\n"
        "\t            124b inner+0x4b (inlined)\n"
        "\t            124b main+0x4b (/bin/app)\n"
        "\t           27248 [unknown] (/lib/libc.so.6)\n"
        "\n"
        "worker (a b)     7/8         1.020000000:   10101010   cpu-clock: \n"
        "\t    7f0000001010 JS:*foo /a.js:1:13+0x10 (/tmp/perf-7.map)\n"
        "\t            124b main+0x4b (/bin/app)\n"
        "\n"
        "worker (a b)     7/8         1.030000000:   10101010   cpu-clock: \n"
        "\t    7f0000002020 JS:~foo /a.js:1:13+0x20 (/tmp/perf-7.map)\n"
        "\t            124b main+0x4b (/bin/app)\n"
        "\n"
        "app     7/7         1.040000000:   10101010   cpu-clock: \n"
        "\t           27249 [unknown] (/lib/libc.so.6)\n"
        "\t              54 [unknown] ([unknown])\n"
        "\n"
        "app     7/7         1.050000000:          1 page-faults: \n"
        "\t            124c main+0x4c (/bin/app)\n"
        "\n"
        "app     7/7         1.060000000:   10101010   cpu-clock: \n"
        "\n");
}

TEST_CASE("callchain frames print return addresses, and source lines get their own lines",
          "[stacks]") {
  Stacks stacks;
  const std::uint32_t main = stacks.place(test::kMain, 0x124c, 0x4c, 12);
  stacks.add(stacks.frames({main, main}, FrameSource::callchain));
  CHECK(stacks.in(StackFormat::perf_script, {.lines = true}) ==
        "app     7/7         1.010000000:   10101010   cpu-clock: \n"
        "\t            124c main+0x4c (/bin/app)\n  app.c:12\n"
        "\t            124c main+0x4c (/bin/app)\n  app.c:12\n"
        "\n");
}

TEST_CASE("the text of a place depends on how its frame was found", "[stacks]") {
  Stacks stacks;
  const std::uint32_t main = stacks.place(test::kMain, 0x124c, 0x4c, 12);
  const std::string leaf = "\t            124c main+0x4c (/bin/app)";
  const std::string caller = "\t            124b main+0x4b (/bin/app)";
  std::string expected;
  const auto add = [&](FrameSource source, const std::string& frames) {
    stacks.add(stacks.frames({main, main}, source));
    expected += frames + "\n";
  };
  for (int round = 0; round < 2; ++round) {  // the second time from the cache
    add(FrameSource::eh_cfi, leaf + "\n" + caller + "\n");
    add(FrameSource::callchain, leaf + "\n" + leaf + "\n");
    add(FrameSource::scan, leaf + "\t(?)\n" + caller + "\t(?)\n");
    add(FrameSource::stitched, leaf + "\t(?)\n" + caller + "\t(?)\n");
  }
  std::string found;
  std::istringstream lines(stacks.in(StackFormat::perf_script));
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with("app ")) found += line + "\n";
  }
  CHECK(found == expected);
}

TEST_CASE("a JSON line has exactly the documented keys", "[stacks]") {
  Stacks stacks;
  const std::uint32_t main = stacks.place(test::kMain, 0x124c, 0x4c, 12);
  const std::uint32_t unknown = stacks.place({}, 0x55, 0);
  stacks.add(stacks.frames({main, unknown}));
  CHECK(stacks.in(StackFormat::jsonl) ==
        R"({"time":"1.010000000","pid":7,"tid":7,"comm":"app","event":"cpu-clock",)"
        R"("period":10101010,"end":"root","frames":[)"
        R"({"ip":"0x1124c","name":"main","offset":76,"module":"/bin/app","source":"eh-cfi",)"
        R"("inlined":false,"file":"app.c","line":12},)"
        R"({"ip":"0x10055","name":null,"offset":0,"module":"","source":"eh-cfi",)"
        R"("inlined":false,"file":"","line":0}]})"
        "\n");
}

TEST_CASE("separators and control bytes in names do not break fields", "[stacks][hostile]") {
  Stacks stacks;
  FrameFunction evil{.name = "a;b\nc\t[0] 12", .module = "/x (y)\n", .kind = FrameKind::native};
  stacks.add(stacks.frames({stacks.place(evil, 0x10, 1)}), 7, 0, "co;mm\n1 ");
  evil.name = std::string_view("\0\xff\x7f", 3);
  stacks.add(stacks.frames({stacks.place(evil, 0x20, 1)}), 7, 0, "");
  CHECK(stacks.in(StackFormat::folded) ==
        "[unknown];\\x00\\xff\\x7f 1\n"
        "co:mm\\x0a1 ;a:b\\x0ac\\x09[0] 12 1\n");
  CHECK_THAT(stacks.in(StackFormat::perf_script),
             Catch::Matchers::Contains("a;b\\x0ac\\x09[0] 12+0x1 (/x (y)\\x0a)\n"));
  CHECK_THAT(stacks.in(StackFormat::jsonl),
             Catch::Matchers::Contains(R"("name":"a;b\nc\t[0] 12")"));
}

}  // namespace perfmap::text_writers_test
