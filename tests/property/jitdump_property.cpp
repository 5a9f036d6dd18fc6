// SPDX-License-Identifier: MIT
#include <random>
#include <string>
#include <vector>

#include "perfmap/jitdump.hpp"
#include "support/catch.hpp"
#include "support/jitdump_bytes.hpp"
#include "support/random_dump.hpp"

namespace perfmap::jitdump_property {
namespace {

/// The contents of a record, independent of its byte order.
struct DecodedRecord {
  std::uint64_t offset;
  std::uint32_t id;
  std::uint64_t time;
  std::string text;
  friend bool operator==(const DecodedRecord&, const DecodedRecord&) = default;
};

std::string text_of(const JitRecord& record) {
  std::string text;
  const auto add = [&](std::uint64_t number) { text += std::to_string(number) + " "; };
  if (const auto load = decode_load(record)) {
    add(load->range.begin), add(load->code_size), add(load->code_index), add(load->tid);
    text.append(load->name).append(load->code).append(load->padding);
  } else if (const auto move = decode_move(record)) {
    add(move->old_address), add(move->range.begin), add(move->code_size), add(move->code_index);
  } else if (const auto lines = decode_lines(record)) {
    add(decode_debug_info(record)->code_address);
    for (const LineRecord& line : *lines) {
      add(line.address), add(static_cast<std::uint32_t>(line.line));
      add(static_cast<std::uint32_t>(line.column));
      text.append(line.file);
    }
  } else if (const auto unwinding = decode_unwinding(record)) {
    add(unwinding->mapped_size);
    text.append(unwinding->eh_frame).append(unwinding->eh_frame_hdr);
  }
  return text;
}

struct Reading {
  std::vector<DecodedRecord> records;
  std::uint64_t lost = 0;
  std::uint64_t problems = 0;
};

Reading read(std::string bytes, Jitdump::Options options = {}) {
  const Jitdump dump = test::dump_of(std::move(bytes), options);
  Reading reading;
  Diagnostics problems(0);
  Jitdump::Reader reader(dump);
  std::uint64_t end = dump.first_record();
  while (const auto record = reader.next(problems)) {
    // Records are inside the file, and their offsets ascend.
    REQUIRE(record->offset >= end);
    REQUIRE(record->bytes.size() >= JitRecord::kPrefix);
    end = record->end();
    REQUIRE(end <= dump.bytes().size());
    REQUIRE(dump.bytes().substr(record->offset, record->bytes.size()) == record->bytes);
    reading.records.push_back({record->offset, record->id, record->time, text_of(*record)});
  }
  reading.lost = reader.lost_bytes();
  reading.problems = problems.total();
  return reading;
}

using test::random_dump;

std::mt19937 seeded(unsigned seed) { return std::mt19937(seed); }

}  // namespace

TEST_CASE("a dump of the other byte order reads the same", "[jitdump][property]") {
  const auto seed = GENERATE(range(0u, 50u));
  CAPTURE(seed);
  std::mt19937 one = seeded(seed);
  std::mt19937 other = seeded(seed);
  const Reading little = read(random_dump(one, std::endian::little, 20));
  const Reading big = read(random_dump(other, std::endian::big, 20));
  CHECK(little.problems == 0);
  CHECK(big.problems == 0);
  CHECK(little.records == big.records);
  CHECK(little.records.size() >= 20);
}

TEST_CASE("a truncated dump yields the records before the cut", "[jitdump][property]") {
  const auto seed = GENERATE(range(0u, 8u));
  CAPTURE(seed);
  std::mt19937 random = seeded(seed);
  const std::string whole = random_dump(random, std::endian::native, 8);
  const Reading all = read(whole);
  for (std::size_t cut = 0; cut <= whole.size(); ++cut) {
    CAPTURE(cut);
    std::vector<DecodedRecord> expected;
    std::uint64_t end = std::min<std::size_t>(cut, JitdumpHeader::kSize);
    for (std::size_t i = 0; i < all.records.size(); ++i) {
      const std::uint64_t next =
          i + 1 < all.records.size() ? all.records[i + 1].offset : whole.size();
      if (next > cut) break;
      expected.push_back(all.records[i]);
      end = next;
    }
    const Reading finished = read(whole.substr(0, cut));
    REQUIRE(finished.records == expected);
    REQUIRE(finished.lost == cut - end);
    REQUIRE(finished.problems == (cut == end ? 0 : 1));
    const Reading growing = read(whole.substr(0, cut), {.growing = true});
    REQUIRE(growing.records == expected);
    REQUIRE(growing.problems == 0);
  }
}

TEST_CASE("with any corrupted bytes, reading stays inside the dump and continues",
          "[jitdump][property]") {
  const auto seed = GENERATE(range(0u, 300u));
  CAPTURE(seed);
  std::mt19937 random = seeded(seed);
  std::string bytes = random_dump(random, std::endian::native, 30);
  const Reading all = read(bytes);
  const std::size_t begin = all.records[5].offset + random() % 8;
  const std::size_t count = 1 + random() % 12;
  for (std::size_t i = 0; i < count; ++i) bytes[begin + i] = static_cast<char>(random());
  const Reading damaged = read(bytes);
  // All records before the damage are read, and all but the next few after it. The size of a record
  // of an unknown kind is trusted only if a known one follows.
  const std::size_t before = all.records[4].id == 77 ? 4 : 5;
  REQUIRE(damaged.records.size() >= before);
  for (std::size_t i = 0; i < before; ++i) REQUIRE(damaged.records[i] == all.records[i]);
  std::size_t kept = 0;
  for (const DecodedRecord& decoded : damaged.records) {
    kept += std::count(all.records.begin() + 8, all.records.end(), decoded);
  }
  // A corrupted size may span several records.
  CHECK(kept + 4 >= all.records.size() - 8);
}

}  // namespace perfmap::jitdump_property
