// SPDX-License-Identifier: MIT
#include <string>

#include "perfmap/pypylog.hpp"
#include "support/catch.hpp"

namespace perfmap::loop_listing_test {
namespace {

/// "opcode: operations", one string per location.
std::vector<std::string> listed(std::string_view log, std::string_view seen) {
  LoopProfile profile({});
  profile.add(log);
  profile.finish();
  std::vector<std::string> places;
  for (const ListedPlace& place : list_operations(profile.loops().all()[0], seen)) {
    std::string text = std::string(place.place.opcode) + ":";
    for (const ListedOperation& operation : place.operations) {
      text += " " + std::string(operation.text.substr(0, operation.text.find(':')));
      if (operation.guard != CompiledLoop::kNone) text += "!" + std::to_string(operation.guard);
      if (operation.label != CompiledLoop::kNone) text += "@" + std::to_string(operation.label);
    }
    places.push_back(std::move(text));
  }
  return places;
}
std::vector<std::string> listed(std::string_view log) { return listed(log, log); }

}  // namespace

TEST_CASE("operations are listed under the bytecode that they were compiled from", "[pypylog]") {
  CHECK(listed("[a0] {jit-log-opt-loop\n"
               "# Loop 1 (f;/srv/t.py:3-4~#8 FOR_ITER) : loop with 5 ops\n"
               "[p0]\n"
               "+1: label(p0, descr=TargetToken(77))\n"
               "debug_merge_point(0, 0, 'f;/srv/t.py:3-4~#8 FOR_ITER')\n"
               "+2: guard_true(i1, descr=<Guard0x10>) []\n"
               "debug_merge_point(0, 0, 'f;/srv/t.py:3-5~#10 NOP')\n"
               "debug_merge_point(0, 0, 'f;/srv/t.py:3-5~#12 JUMP')\n"
               "+3: guard_false(i1, descr=<Guard0x20>) []\n"
               "+4: jump(p0, descr=TargetToken(77))\n"
               "+5: --end of the loop--\n"
               "[a1] jit-log-opt-loop}\n") ==
        std::vector<std::string>{": [p0] +1@0", "FOR_ITER: +2!0", "NOP:", "JUMP: +3!1 +4"});
}

TEST_CASE("lines of nested sections and of other threads are skipped", "[pypylog]") {
  CHECK(listed("1# [a0] {jit-log-opt-loop\n"
               "1# # Loop 1 (f;/srv/t.py:3-4~#8 FOR_ITER) : loop with 2 ops\n"
               "1# +1: int_add(i1, 1)\n"
               "2# +9: int_sub(i1, 1)\n"
               "2# [a1] {gc-minor\n"
               "2# words\n"
               "1# [a1] {gc-minor\n"
               "1# words\n"
               "1# [a2] gc-minor}\n"
               "1# +2: finish(i1)\n"
               "1# [a3] jit-log-opt-loop}\n") == std::vector<std::string>{": +1 +2"});
}

TEST_CASE("a section of one line does not end its enclosing section", "[pypylog]") {
  CHECK(listed("[a0] {jit-log-opt-loop\n"
               "# Loop 1 (f;/srv/t.py:3-4~#8 FOR_ITER) : loop with 2 ops\n"
               "+1: int_add(i1, 1)\n"
               "[a1] {gc-collect\n"
               "[a2] {gc-minor\nwords\n[a3] gc-minor}\n"
               "more words\n"
               "[a4] gc-collect}\n"
               "+2: finish(i1)\n"
               "[a5] jit-log-opt-loop}\n") == std::vector<std::string>{": +1 +2"});
}

TEST_CASE("a log that was truncated since gives fewer operations", "[pypylog]") {
  const std::string log =
      "[a0] {jit-log-opt-loop\n"
      "# Loop 1 (f;/srv/t.py:3-4~#8 FOR_ITER) : loop with 2 ops\n"
      "+1: int_add(i1, 1)\n"
      "+2: finish(i1)\n"
      "[a3] jit-log-opt-loop}\n";
  for (std::size_t size = 0; size <= log.size(); ++size) {
    CHECK(listed(log, std::string_view(log).substr(0, size)).size() <= 1);
  }
  CHECK(listed(log) == std::vector<std::string>{": +1 +2"});
}

}  // namespace perfmap::loop_listing_test
