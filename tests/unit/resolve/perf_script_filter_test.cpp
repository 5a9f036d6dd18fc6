// SPDX-License-Identifier: MIT
#include "perfmap/resolver.hpp"
#include "support/catch.hpp"

namespace perfmap::perf_script_filter_test {
namespace {

std::string filtered(const std::vector<std::string>& lines) {
  PerfScriptFilter filter(
      [](pid_t, const Query& query, PerfScriptFilter::Name& name) {
        if (query.address - 0x7000 >= 0x100) return false;
        name = {"jitted", 0x7000};
        return true;
      },
      [](pid_t) { return 0; });
  std::string out;
  filter.filter("app     7/7         1.010000000:   10101010   cpu-clock: ", out);
  out.clear();
  for (const std::string& line : lines) {
    filter.filter(line, out);
    out += '\n';
  }
  return out;
}

}  // namespace

TEST_CASE("frames with a doubt marker are renamed and keep the marker", "[perf-script]") {
  CHECK(filtered({"\t            124b main+0x4b (/bin/app)\t(?)",
                  "\t            7010 [unknown] (/tmp/perf-7.map)\t(?)",
                  "\t            7020 [unknown] (//anon)\t(?scanned-frame,guessed-owner)",
                  "\t            9020 [unknown] (//anon)\t(?)"}) ==
        "\t            124b main+0x4b (/bin/app)\t(?)\n"
        "\t            7010 jitted+0x10 (/tmp/perf-7.map)\t(?)\n"
        "\t            7020 jitted+0x20 (//anon)\t(?scanned-frame,guessed-owner)\n"
        "\t            9020 [unknown] (//anon)\t(?)\n");
}

TEST_CASE("frames in files that runtimes use for code are renamed, others are not",
          "[perf-script]") {
  CHECK(filtered({"\t            7010 [unknown] (/memfd:jit (deleted))",
                  "\t            7010 [unknown] (/dev/shm/jit-7)",
                  "\t            7010 [unknown] (/dev/shm/jit-7 (deleted))",
                  "\t            7010 [unknown] (/usr/lib/libc.so.6)"}) ==
        "\t            7010 jitted+0x10 (/memfd:jit (deleted))\n"
        "\t            7010 jitted+0x10 (/dev/shm/jit-7)\n"
        "\t            7010 jitted+0x10 (/dev/shm/jit-7 (deleted))\n"
        "\t            7010 [unknown] (/usr/lib/libc.so.6)\n");
}

TEST_CASE("source lines below a frame are not frames and do not change the offsets",
          "[perf-script]") {
  const std::string source = "  app.c:12\n";
  CHECK(filtered({"\t            124b main+0x4b (/bin/app)", "  app.c:12",
                  "\t            7010 [unknown] (/tmp/perf-7.map)"}) ==
        "\t            124b main+0x4b (/bin/app)\n" + source +
            "\t            7010 jitted+0x10 (/tmp/perf-7.map)\n");
  CHECK(filtered({"             124b main (/bin/app)", "  app.c:12",
                  "             7010 [unknown] (/tmp/perf-7.map)"}) ==
        "             124b main (/bin/app)\n" + source +
            "             7010 jitted (/tmp/perf-7.map)\n");
}

TEST_CASE("text that only resembles a doubt marker is part of the module's name", "[perf-script]") {
  const std::string line = "\t            7010 [unknown] (/tmp/perf-7.map\t(?)";
  CHECK(filtered({line}) == line + "\n");
}

}  // namespace perfmap::perf_script_filter_test
