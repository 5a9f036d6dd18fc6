// SPDX-License-Identifier: MIT
#include "dwarf/cfi_table.hpp"
#include "elf/target.hpp"
#include "perfmap/timeline.hpp"
#include "support/catch.hpp"
#include "support/tests_dir.hpp"

namespace perfmap::cfi_jit_test {

TEST_CASE("frames of a Node.js dump give rules for its functions only", "[cfi]") {
  auto input = Input::open(test::tests_dir("/wild/node/jit-3021-samples.dump"));
  REQUIRE(input);
  const Jitdump dump(*std::move(input));
  const JitDetails details(dump);
  const Target target = target_of(dump.header());
  std::size_t functions = 0;
  std::size_t with_frame_pointer = 0;
  Diagnostics ignored(1);
  dump.for_each(ignored, [&](const JitRecord& record) {
    const auto load = decode_load(record);
    const auto offset = load ? details.unwinding(record.offset) : std::nullopt;
    const auto found = offset ? dump.record_at(*offset) : std::nullopt;
    const auto unwinding = found ? decode_unwinding(*found) : std::nullopt;
    if (!unwinding || unwinding->eh_frame.empty()) return;
    CAPTURE(load->name, load->range.begin, load->range.size);
    const CfiTable table(unwinding->eh_frame, (load->range.end() + 7) / 8 * 8, target);
    Address at = load->range.begin;
    while (const auto row = table.row_at(at)) {
      CAPTURE(at);
      REQUIRE(row->range.begin == at);
      CHECK(row->return_register == 16);
      CHECK(row->cfa == CfiRules::Cfa::register_offset);
      if (row->cfa_register == 6 && row->cfa_number == 16) ++with_frame_pointer;
      at = row->range.end();
    }
    CHECK(load->range.end() - at < 8);  // V8 includes padding in the size
    CHECK_FALSE(table.row_at(load->range.begin - 1));
    CHECK_FALSE(table.row_at(load->range.end()));
    ++functions;
  });
  CHECK(functions > 10);
  CHECK(with_frame_pointer >= functions / 2);
}

}  // namespace perfmap::cfi_jit_test
