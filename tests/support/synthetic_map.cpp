// SPDX-License-Identifier: MIT
#include "support/synthetic_map.hpp"

#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <numeric>
#include <random>

namespace perfmap::test {
namespace {

constexpr std::uint64_t kRegions[] = {0x7f35'0000'0000, 0x2d73'6000'0000, 0x7f92'e400'0000};
constexpr std::uint64_t kSlot = 0x400;  // space per entry, so that plain entries never overlap

const char* const kPackages[] = {"java.util.concurrent", "com.example.orders", "org.acme.storage",
                                 "io.netty.channel", "jdk.internal.misc"};
const char* const kWords[] = {"handle",  "process", "merge",  "Index",    "resolve", "lookup",
                              "Session", "commit",  "Buffer", "dispatch", "encode",  "Router"};

std::string name_of(std::size_t i, std::mt19937_64& random) {
  char text[160];
  const char* const a = kWords[random() % 12];
  const char* const b = kWords[random() % 12];
  const char* const package = kPackages[random() % 5];
  const unsigned line = static_cast<unsigned>(random() % 3000) + 1;
  switch (i % 3) {
    case 0:
      std::snprintf(text, sizeof text, "void %s.%s%zu.%s(int, java.lang.String)", package, a,
                    i % 10007, b);
      break;
    case 1:
      std::snprintf(text, sizeof text, "JS:%c%s%s%zu /srv/app/node_modules/lib/%s.js:%u:%u",
                    "~^*+"[random() % 4], a, b, i % 10007, b, line, line % 80 + 1);
      break;
    default:
      std::snprintf(text, sizeof text, "py::%s.%s_%zu:/usr/lib/python3.13/site-packages/%s/%s.py",
                    a, b, i % 10007, a, b);
  }
  return text;
}

/// Slots in random order, but in runs of up to 16 neighbours, like compilers place code.
std::vector<std::uint32_t> shuffled_slots(std::size_t count, std::mt19937_64& random) {
  std::vector<std::uint32_t> starts((count + 15) / 16);
  std::iota(starts.begin(), starts.end(), 0u);
  for (std::size_t i = starts.size(); i > 1; --i) std::swap(starts[i - 1], starts[random() % i]);
  std::vector<std::uint32_t> slots;
  slots.reserve(count);
  for (const std::uint32_t start : starts) {
    for (std::uint32_t i = 0; i < 16 && slots.size() < count; ++i) slots.push_back(start * 16 + i);
  }
  return slots;
}

struct Range {
  std::uint64_t begin;
  std::uint64_t size;
};

Range plain_range(std::uint64_t slot, std::mt19937_64& random) {
  return {kRegions[slot % 3] + slot / 3 * kSlot + random() % 16 * 16, 0x20 + random() % 0x2a0};
}

}  // namespace

std::string synthetic_map(const SyntheticMap& wishes) {
  std::mt19937_64 random(wishes.seed);
  const std::vector<std::uint32_t> slots = shuffled_slots(wishes.entries, random);
  std::vector<Range> ranges;
  ranges.reserve(wishes.entries);
  std::string text;
  text.reserve(wishes.entries * 80);
  char numbers[64];
  for (std::size_t i = 0; i < wishes.entries; ++i) {
    Range range = plain_range(slots[i], random);
    if (i > 0 && random() % 100 < wishes.reused_percent) {
      const Range& old = ranges[random() % i];
      range = {old.begin + random() % 4 * 16, 0x10 + random() % 0x200};
    }
    ranges.push_back(range);
    std::snprintf(numbers, sizeof numbers, "%" PRIx64 " %" PRIx64 " ", range.begin, range.size);
    text += numbers;
    text += name_of(i, random);
    text += '\n';
  }
  return text;
}

std::vector<std::uint64_t> addresses_in(const std::string& map, std::size_t count,
                                        std::uint64_t seed) {
  std::vector<Range> ranges;
  for (std::size_t at = 0; at < map.size(); at = map.find('\n', at) + 1) {
    char* end = nullptr;
    const std::uint64_t begin = std::strtoull(map.data() + at, &end, 16);
    ranges.push_back({begin, std::strtoull(end, nullptr, 16)});
  }
  std::mt19937_64 random(seed);
  std::vector<std::uint64_t> addresses;
  addresses.reserve(count);
  for (std::size_t i = 0; i < count; ++i) {
    const Range& range = ranges[random() % ranges.size()];
    addresses.push_back(range.begin + random() % std::max<std::uint64_t>(range.size, 1));
  }
  return addresses;
}

}  // namespace perfmap::test
