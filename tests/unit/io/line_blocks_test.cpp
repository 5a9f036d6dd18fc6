// SPDX-License-Identifier: MIT
#include <string>
#include <thread>
#include <unistd.h>

#include "perfmap/input.hpp"
#include "support/catch.hpp"
#include "support/scratch.hpp"

namespace perfmap::line_blocks_test {
namespace {

/// Writes `text` to a pipe, `piece` bytes at a time, and returns what is read from it; and whether
/// each block but the last ends with a line.
std::string through_pipe(const std::string& text, std::size_t piece, bool& whole_lines) {
  int ends[2] = {};
  REQUIRE(::pipe(ends) == 0);
  std::thread writer([&] {
    for (std::size_t at = 0; at < text.size(); at += piece) {
      if (::write(ends[1], text.data() + at, std::min(piece, text.size() - at)) < 0) break;
    }
    ::close(ends[1]);
  });
  LineBlocks blocks = LineBlocks::of_descriptor(ends[0], "-");
  std::string all;
  whole_lines = true;
  for (;;) {
    const auto block = blocks.next();
    REQUIRE(block);
    if (block->empty()) break;
    whole_lines = whole_lines && (all.empty() || all.back() == '\n');
    all += *block;
  }
  writer.join();
  ::close(ends[0]);
  return all;
}

}  // namespace

TEST_CASE("for any sizes of writes, blocks are whole lines and nothing is lost", "[bytes]") {
  std::string text;
  for (int i = 0; i < 400; ++i) text += std::string(static_cast<std::size_t>(i % 97), 'x') + "\n";
  for (const std::string& end : {std::string(), std::string("no newline")}) {
    for (const std::size_t piece : {1U, 7U, 4096U}) {
      bool whole_lines = false;
      CHECK(through_pipe(text + end, piece, whole_lines) == text + end);
      CHECK(whole_lines);
    }
  }
  bool whole_lines = false;
  CHECK(through_pipe("", 1, whole_lines).empty());
}

TEST_CASE("a line that is too long loses its end, and the next line is complete", "[bytes]") {
  const std::string line(LineBlocks::kMaxLine + (std::size_t{5} << 20), 'x');
  bool whole_lines = false;
  const std::string got = through_pipe("first\n" + line + "\nlast\n", 1 << 20, whole_lines);
  CHECK(whole_lines);
  CHECK(got.size() < line.size());
  CHECK(got.starts_with("first\nxxx"));
  CHECK(got.ends_with("xxx\nlast\n"));
}

TEST_CASE("an endless line is rejected", "[bytes][hostile]") {
  auto blocks = LineBlocks::open("/dev/zero");
  REQUIRE(blocks);
  auto block = blocks->next();
  REQUIRE(block);  // the beginning of the line
  CHECK(block->size() > LineBlocks::kMaxLine);
  block = blocks->next();
  REQUIRE(!block);
  CHECK(block.error().code == Errc::too_large);
  CHECK(block.error().message() == "cannot read /dev/zero: a line of more than 1024 MiB");
}

TEST_CASE("a folder is an error, and a missing file is not found", "[bytes]") {
  const test::Scratch scratch;
  CHECK(LineBlocks::open(scratch.path()).error().message() ==
        "cannot open " + scratch.path() + ": Is a directory");
  CHECK(LineBlocks::open(scratch / "missing").error().code == Errc::not_found);
}

}  // namespace perfmap::line_blocks_test
