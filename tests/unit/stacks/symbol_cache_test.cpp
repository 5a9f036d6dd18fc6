// SPDX-License-Identifier: MIT
// Processes with a jitdump whose code is in anonymous memory or in files that cannot be opened.

#include <string>
#include <vector>

#include "support/catch.hpp"
#include "support/jitdump_bytes.hpp"
#include "support/process_events.hpp"

namespace perfmap::test::symbol_cache_test {
namespace {

using Names = std::vector<std::string>;

constexpr AddressRange kCode{0x1000, 0x1000};

StackOptions::FindJit dump(const DumpBytes& bytes) {
  return [sources = dump_sources(bytes.text())](
             const ProcessInfo&, const std::vector<std::string>&) { return sources; };
}

/// The memory of the samples: a file that cannot be opened, or anonymous memory.
std::string any_memory() {
  return GENERATE("/nowhere/program", "/nowhere/gone (deleted)", "//anon");
}

}  // namespace

TEST_CASE("a jitdump in a missing file names only its own code", "[stacks][jit]") {
  ProcessEvents events;
  // Sources are searched only if memory may contain JIT code.
  events.map(7, {0x9000, 0x1000}).map(7, kCode, any_memory());
  for (int i = 0; i < 5; ++i) events.sample(7, 0x1804);
  events.sample(7, 0x1004).end_of_round().end_of_round();
  events.sample(7, 0x1804).sample(7, 0x1004).sample(7, 0x1804);
  DumpBytes code;
  code.header().load_of_size(1, 0x1000, 0x10, "code");
  CHECK(events.names(dump(code)) == Names{"-", "-", "-", "-", "-", "code", "-", "code", "-"});
}

TEST_CASE("jitdump code in a missing file has a name from its load until it moves",
          "[stacks][jit]") {
  ProcessEvents events;
  events.map(7, {0x9000, 0x1000}).map(7, kCode, any_memory());
  events.sample(7, 0x1004).sample(7, 0x1004);
  const std::uint64_t loaded = events.time() + 5;
  events.sample(7, 0x1004).sample(7, 0x1004);
  const std::uint64_t moved = events.time() + 5;
  events.sample(7, 0x1004).sample(7, 0x1004);
  if (GENERATE(false, true)) events.end_of_round().end_of_round();
  const std::uint64_t replaced = events.time() + 5;
  events.sample(7, 0x1004).sample(7, 0x1004);
  DumpBytes code;
  code.header().load_of_size(loaded, 0x1000, 0x10, "first");
  code.move(moved, 0x1000, 0x5000, 0x10);
  code.load_of_size(replaced, 0x1000, 0x10, "second", 2);
  CHECK(events.names(dump(code)) ==
        Names{"-", "-", "first", "first", "-", "-", "second", "second"});
}

}  // namespace perfmap::test::symbol_cache_test
