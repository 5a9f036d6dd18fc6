// SPDX-License-Identifier: MIT
#include "support/synthetic_dump.hpp"

#include <cstdlib>
#include <random>
#include <string_view>

#include "support/synthetic_map.hpp"

namespace perfmap::test {
namespace {

template <class T>
void append(std::string& text, T value) {
  text.append(reinterpret_cast<const char*>(&value), sizeof value);
}

void append_header(std::string& text) {
  for (const std::uint32_t value : {0x4A695444u, 1u, 40u, 62u, 0u, 4242u}) append(text, value);
  append(text, std::uint64_t{1});
  append(text, std::uint64_t{0});
}

struct Load {
  std::uint64_t number;
  std::uint64_t begin;
  std::uint64_t size;
  std::string_view name;
};

void append_load(std::string& text, const Load& load, bool with_code) {
  const std::size_t code = with_code ? load.size : 0;
  append(text, std::uint32_t{0});
  append(text, static_cast<std::uint32_t>(56 + load.name.size() + 1 + code));
  append(text, std::uint64_t{1'000'000 + 1000 * load.number});
  append(text, std::uint32_t{4242});
  append(text, std::uint32_t{4242});
  for (const std::uint64_t value : {load.begin, load.begin, load.size, load.number}) {
    append(text, value);
  }
  text.append(load.name).append(1, '\0').append(code, '\xcc');
}

std::string one_page(const SyntheticDump& wishes) {
  std::mt19937_64 random(wishes.seed);
  std::string text;
  append_header(text);
  for (std::size_t i = 0; i < wishes.loads; ++i) {
    const std::uint64_t begin = random() % 4000;
    append_load(text, {i, 0x10000 + begin, 1 + random() % (4096 - begin), "hostile"}, false);
  }
  return text;
}

}  // namespace

std::string synthetic_dump(const SyntheticDump& wishes) {
  if (wishes.one_page) return one_page(wishes);
  const std::string map = synthetic_map(
      {.entries = wishes.loads, .reused_percent = wishes.reused_percent, .seed = wishes.seed});
  std::string text;
  append_header(text);
  std::uint64_t number = 0;
  for (std::size_t at = 0; at < map.size(); ++number) {
    const std::size_t newline = map.find('\n', at);
    char* end = nullptr;
    const std::uint64_t begin = std::strtoull(map.data() + at, &end, 16);
    const std::uint64_t size = std::strtoull(end, &end, 16);
    const auto name = static_cast<std::size_t>(end - map.data()) + 1;
    append_load(text, {number, begin, size, {map.data() + name, newline - name}}, true);
    at = newline + 1;
  }
  return text;
}

}  // namespace perfmap::test
