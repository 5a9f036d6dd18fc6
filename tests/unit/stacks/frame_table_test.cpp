// SPDX-License-Identifier: MIT
#include "perfmap/profile/stack_writer.hpp"
#include "support/catch.hpp"
#include "support/stacks.hpp"

namespace perfmap::frame_table_test {

TEST_CASE("equal functions, mappings and places get the same number", "[stacks]") {
  FrameTable table;
  const std::uint32_t main = table.add(test::kMain);
  CHECK(main == 1);
  CHECK(table.add(test::kInner) == 2);
  CHECK(table.add(test::kMain) == main);
  FrameFunction other = test::kMain;
  other.tier = "turbofan";
  CHECK(table.add(other) == 3);
  CHECK(table.functions() == 4);

  const FrameMapping mapping{.range = {0x1000, 0x10}, .path = "/bin/app", .build_id = "id"};
  CHECK(table.add(mapping) == table.add(mapping));
  const std::uint32_t place = table.add(FramePlace{.function = main, .offset = 4});
  CHECK(table.add(FramePlace{.function = main, .offset = 4}) == place);
  CHECK(table.add(FramePlace{.function = main, .offset = 5}) == place + 1);
  CHECK(table.function_of(place) == test::kMain);
}

TEST_CASE("number 0 is the empty entry", "[stacks]") {
  FrameTable table;
  CHECK(table.add(FrameFunction{}) == 0);
  CHECK(table.function(0).name.empty());
  CHECK(table.mapping(0).path.empty());
  CHECK(table.place(0).function == 0);
}

TEST_CASE("the table copies strings, and its entries keep their addresses", "[stacks]") {
  FrameTable table;
  std::string name = "first";
  const FrameFunction& first = table.function(table.add(FrameFunction{.name = name}));
  name = "gone!";
  for (int i = 0; i < 10'000; ++i) {
    const std::string other =
        std::string(static_cast<std::size_t>(i % 300), 'x') + std::to_string(i);
    table.add(FrameFunction{.name = other});
  }
  CHECK(first.name == "first");
  CHECK(table.functions() == 10'002);
  const FrameTable moved = std::move(table);
  CHECK(&moved.function(1) == &first);
}

TEST_CASE("kinds, sources, ends and formats have words", "[stacks]") {
  CHECK(to_string(FrameKind::unknown) == "unknown");
  CHECK(to_string(FrameKind::jit) == "jit");
  CHECK(to_string(FrameSource::initial) == "sampled");
  CHECK(to_string(StackEnd::no_info) == "no-info");
  for (const char* name : {"folded", "perf-script", "speedscope", "firefox", "pprof", "html",
                           "jsonl", "chrome", "otlp", "otlp-json"}) {
    REQUIRE(stack_format(name));
    CHECK(to_string(*stack_format(name)) == name);
  }
  CHECK_FALSE(stack_format("svg"));
}

}  // namespace perfmap::frame_table_test
