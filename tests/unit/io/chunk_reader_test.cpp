// SPDX-License-Identifier: MIT
#include "io/chunk_reader.hpp"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <vector>

#include "support/catch.hpp"
#include "support/scratch.hpp"

namespace perfmap::chunk_reader_test {
namespace {

using test::Scratch;

std::string some_lines(std::size_t bytes) {
  std::string text;
  for (int i = 0; text.size() < bytes; ++i) text += std::to_string(i) + " a line of the file\n";
  return text;
}

Input open_with(const Scratch& scratch, const std::string& text) {
  std::ofstream(scratch / "x", std::ios::binary) << text;
  Result<Input> input = Input::open(scratch / "x");
  REQUIRE(input);
  return *std::move(input);
}

struct Reading {
  std::string text;
  std::size_t chunks = 0;
};

/// Reads all chunks. Each starts where the previous one ended, at the start of a line.
Reading read_all(const Input& input, std::string_view text, std::uint64_t offset = 0) {
  Reading all;
  ChunkReader chunks(input, text, offset);
  for (Window window = chunks.next(); !window.text.empty(); window = chunks.next()) {
    CHECK(window.offset == offset + all.text.size());
    CHECK((all.text.empty() || all.text.back() == '\n'));
    all.text += window.text;
    ++all.chunks;
  }
  return all;
}

constexpr std::size_t kMiB = std::size_t{1} << 20;

}  // namespace

TEST_CASE("the first pass over a large file reads it in chunks, a second one uses the mapping",
          "[windows]") {
  const Scratch scratch;
  const std::string text = some_lines(2 * kMiB);
  const Input input = open_with(scratch, text);
  const Reading first = read_all(input, input.text());
  CHECK(first.text == text);
  CHECK(first.chunks >= 8);
  const Reading second = read_all(input, input.text());
  CHECK(second.text == text);
  CHECK(second.chunks == 1);
}

TEST_CASE("chunks end with the text, even if it is shorter than the file or lacks a newline",
          "[windows]") {
  const Scratch scratch;
  const std::string text = some_lines(kMiB);
  const std::size_t size = GENERATE(std::size_t{0}, std::size_t{1}, kMiB - 7, kMiB);
  const Input input = open_with(scratch, text);
  CHECK(read_all(input, input.text().substr(0, size)).text == text.substr(0, size));
}

TEST_CASE("chunks may start at any line", "[windows]") {
  const Scratch scratch;
  const std::string text = some_lines(kMiB);
  const std::size_t start = text.find('\n', kMiB / 2) + 1;
  const Input input = open_with(scratch, text);
  CHECK(read_all(input, input.text(), start).text == text.substr(start));
}

TEST_CASE("a line longer than a chunk is not split", "[windows]") {
  const Scratch scratch;
  const std::string text = "first\n" + std::string(kMiB, 'x') + "\n" + some_lines(kMiB);
  const Input input = open_with(scratch, text);
  CHECK(read_all(input, input.text()).text == text);
}

TEST_CASE("text that is not a file is one chunk", "[windows]") {
  const Input input = Input::from_text(some_lines(kMiB), "text");
  const Reading all = read_all(input, input.text());
  CHECK(all.text == input.text());
  CHECK(all.chunks == 1);
}

TEST_CASE("a file that was truncated is detected as it is through the mapping", "[windows]") {
  const Scratch scratch;
  const TruncationGuard guard;
  const std::string text = some_lines(2 * kMiB);
  const Input input = open_with(scratch, text);
  ChunkReader chunks(input, input.text(), 0);
  REQUIRE_FALSE(chunks.next().text.empty());
  std::filesystem::resize_file(scratch / "x", kMiB);
  std::size_t newlines = 0;
  for (Window window = chunks.next(); !window.text.empty(); window = chunks.next()) {
    newlines += static_cast<std::size_t>(std::count(window.text.begin(), window.text.end(), '\n'));
  }
  CHECK(newlines < 2 * kMiB / 20);
  CHECK(input.was_truncated());
}

TEST_CASE("opening many files does not exhaust the descriptors", "[windows]") {
  const Scratch scratch;
  std::vector<Input> inputs;
  for (int i = 0; i < 100; ++i) inputs.push_back(open_with(scratch, some_lines(kMiB / 2)));
  const auto open = std::distance(std::filesystem::directory_iterator("/proc/self/fd"),
                                  std::filesystem::directory_iterator());
  CHECK(open < 50);
  for (const Input& input : inputs) CHECK(read_all(input, input.text()).text == input.text());
}

}  // namespace perfmap::chunk_reader_test
