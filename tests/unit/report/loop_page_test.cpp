// SPDX-License-Identifier: MIT
#include <string>

#include "perfmap/pypylog.hpp"
#include "support/catch.hpp"
#include "support/written.hpp"

namespace perfmap::loop_page_test {
namespace {

std::string page_of(const std::string& log) {
  LoopProfile profile({});
  profile.add(log);
  profile.finish();
  return test::written([&](OutputFile& out) {
    write_loop_page(profile, {"<i>&\"x", "", {}}, log, out);
  });
}

using Catch::Matchers::Contains;

}  // namespace

TEST_CASE("names are escaped in the HTML page", "[pypylog]") {
  const std::string evil = "</title><script>alert('1')</script>&amp;\"\x1b[31m\xff";
  const std::string page =
      page_of("[a0] {jit-log-opt-loop\n# Loop 1 (" + evil +
              ";/srv/<b>.py:3-4~#8 <u>) : loop with 2 ops\n"
              "debug_merge_point(0, 0, '" +
              evil + ";/srv/<b>.py:3-4~#8 <u>')\n+1: <s>" + evil + "\n[a1] jit-log-opt-loop}\n");
  CHECK(page.find("<script") == std::string::npos);
  CHECK(page.find("<b>") == std::string::npos);
  CHECK(page.find("<u>") == std::string::npos);
  CHECK(page.find("<s>") == std::string::npos);
  CHECK(page.find("<i>") == std::string::npos);
  CHECK(page.find('\x1b') == std::string::npos);
  CHECK_THAT(page, Contains("<title>&lt;i&gt;&amp;&quot;x – loops</title>"));
  CHECK_THAT(page, Contains("&lt;/title&gt;&lt;script&gt;alert(&#39;1&#39;)&lt;/script&gt;&amp;amp;"
                            "&quot;\\x1b[31m\\xff"));
}

TEST_CASE("a guard links to its bridge, and the bridge to its loop", "[pypylog]") {
  const std::string page = page_of(
      "[a0] {jit-log-opt-loop\n"
      "# Loop 1 (f;/srv/t.py:3-4~#8 FOR_ITER) : loop with 1 ops\n"
      "+1: guard_true(i1, descr=<Guard0x10>) []\n"
      "[a1] jit-log-opt-loop}\n"
      "[a2] {jit-log-opt-bridge\n"
      "# bridge out of Guard 0x10 with 1 ops\n"
      "+1: finish(i1)\n"
      "[a3] jit-log-opt-bridge}\n");
  CHECK_THAT(page, Contains("guard_true(i1, descr=&lt;Guard0x10&gt;) [] → "
                            "<a href=\"#loop-1\">bridge out of Guard 0x10</a>"));
  CHECK_THAT(page, Contains("<dt>Guard in loop</dt><dd><a href=\"#loop-0\">Loop 1</a></dd>"));
  CHECK_THAT(page, Contains("<section id=\"loop-1\">"));
}

}  // namespace perfmap::loop_page_test
