// SPDX-License-Identifier: MIT
#include <memory>
#include <random>
#include <string>
#include <tuple>
#include <vector>

#include "base/cursor.hpp"
#include "perfmap/jitdump.hpp"
#include "support/catch.hpp"
#include "support/jitdump_bytes.hpp"

namespace perfmap::jitdump_encode_property {
namespace {

auto fields(const LoadRecord& r) {
  return std::tie(r.range, r.pid, r.tid, r.vma, r.code_size, r.code_index, r.name, r.code,
                  r.padding);
}
auto fields(const MoveRecord& r) {
  return std::tie(r.old_address, r.range, r.pid, r.tid, r.vma, r.code_size, r.code_index);
}
auto fields(const LineRecord& r) {
  return std::tie(r.address, r.line, r.column, r.file, r.file_repeats);
}
auto fields(const UnwindingRecord& r) {
  return std::tie(r.unwinding_size, r.eh_frame_hdr_size, r.mapped_size, r.eh_frame, r.eh_frame_hdr,
                  r.header_first, r.padding);
}

/// Random records, which point into bytes owned by this object.
class Random {
 public:
  explicit Random(unsigned seed) : random_(seed) {}

  std::uint64_t below(std::uint64_t n) { return random_() % n; }
  std::uint64_t u64() { return below(4) == 0 ? UINT64_MAX - below(3) : random_(); }
  std::uint32_t u32() { return static_cast<std::uint32_t>(random_()); }
  std::int32_t i32() { return static_cast<std::int32_t>(u32()); }
  std::string_view bytes(std::uint64_t max) {
    std::string text;
    for (std::uint64_t count = below(max + 1); count > 0; --count) text += char(random_());
    return kept(std::move(text));
  }
  std::string_view name() {
    std::string text(bytes(20));
    for (char& c : text) c = c == '\0' || c == '\xff' ? 'x' : c;
    return kept(std::move(text));
  }
  std::string_view kept(std::string text) {
    texts_.push_back(std::make_unique<std::string>(std::move(text)));
    return *texts_.back();
  }

  LoadRecord load() {
    LoadRecord r;
    r.code = bytes(40);
    r.code_size = r.code.size();
    r.range = AddressRange::within_space(u64(), r.code_size);
    r.pid = u32(), r.tid = u32(), r.vma = u64(), r.code_index = u64(), r.name = name();
    r.padding = bytes(8);
    return r;
  }
  MoveRecord move() {
    MoveRecord r;
    r.code_size = u64();
    r.range = AddressRange::within_space(u64(), r.code_size);
    r.old_address = u64(), r.pid = u32(), r.tid = u32(), r.vma = u64(), r.code_index = u64();
    return r;
  }
  std::vector<LineRecord> lines() {
    std::vector<LineRecord> all;
    for (std::uint64_t count = below(5); count > 0; --count) {
      LineRecord r{u64(), i32(), i32(), name(), !all.empty() && below(2) == 0};
      if (r.file_repeats) r.file = all.back().file;
      all.push_back(r);
    }
    return all;
  }
  UnwindingRecord unwinding() {
    UnwindingRecord r;
    r.eh_frame = kept("frame" + std::string(bytes(30)));
    r.eh_frame_hdr =
        below(3) == 0 ? std::string_view() : kept("\x01\x1b\x03\x3b...." + std::string(bytes(12)));
    r.header_first = !r.eh_frame_hdr.empty() && below(2) == 0;
    r.unwinding_size = r.eh_frame.size() + r.eh_frame_hdr.size();
    r.eh_frame_hdr_size = r.eh_frame_hdr.size();
    r.mapped_size = u64();
    r.padding = bytes(8);
    return r;
  }

 private:
  std::mt19937_64 random_;
  std::vector<std::unique_ptr<std::string>> texts_;
};

/// The only record that `encode` appends; it must fill all bytes.
template <class Encode>
JitRecord only_record(std::string& bytes, std::endian order, std::uint32_t id, std::uint64_t time,
                      Encode encode) {
  bytes.clear();
  JitdumpEncoder encoder(bytes, order);
  REQUIRE(encode(encoder));
  Cursor prefix(bytes, order);
  REQUIRE(prefix.u32() == id);
  REQUIRE(prefix.u32() == bytes.size());
  REQUIRE(prefix.u64() == time);
  return {0, time, bytes, id, order};
}

/// A dump of some functions with all kinds of records.
std::string random_dump(Random& random, std::endian order, int functions) {
  std::string bytes;
  JitdumpEncoder encoder(bytes, order);
  encoder.header({.pad1 = 7, .pid = 42});
  for (int i = 0; i < functions; ++i) {
    const std::uint64_t time = 1'000'000'000 + static_cast<std::uint64_t>(i);
    REQUIRE(encoder.debug_info(time, random.u64(), random.lines(), random.bytes(7)));
    REQUIRE(encoder.unwinding(time, random.unwinding()));
    REQUIRE(encoder.load(time, random.load()));
    encoder.move(time, random.move());
  }
  encoder.close(2'000'000'000);
  return bytes;
}

std::vector<JitRecord> records_of(const Jitdump& dump) {
  std::vector<JitRecord> records;
  Diagnostics problems(0);
  dump.for_each(problems, [&](const JitRecord& record) { records.push_back(record); });
  CHECK(problems.total() == 0);
  return records;
}

}  // namespace

TEST_CASE("decoding restores what was encoded, in both byte orders", "[jitdump][property]") {
  const auto seed = GENERATE(range(0u, 200u));
  const auto order = GENERATE(std::endian::little, std::endian::big);
  CAPTURE(seed, order == std::endian::big);
  Random random(seed);
  const std::uint64_t time = random.u64();
  std::string bytes;

  const LoadRecord load = random.load();
  const auto loaded = decode_load(
      only_record(bytes, order, 0, time, [&](auto& to) { return to.load(time, load); }));
  REQUIRE(loaded);
  CHECK(fields(*loaded) == fields(load));

  const MoveRecord move = random.move();
  const auto moved = decode_move(only_record(bytes, order, 1, time, [&](auto& to) {
    to.move(time, move);
    return true;
  }));
  REQUIRE(moved);
  CHECK(fields(*moved) == fields(move));

  const std::vector<LineRecord> lines = random.lines();
  const std::string_view padding = random.bytes(7);
  std::string_view found_padding;
  const JitRecord info = only_record(
      bytes, order, 2, time, [&](auto& to) { return to.debug_info(time, 99, lines, padding); });
  const auto found = decode_lines(info, &found_padding);
  REQUIRE(found);
  CHECK(decode_debug_info(info)->code_address == 99);
  CHECK(found_padding == padding);
  REQUIRE(found->size() == lines.size());
  for (std::size_t i = 0; i < lines.size(); ++i) CHECK(fields((*found)[i]) == fields(lines[i]));

  const UnwindingRecord unwinding = random.unwinding();
  const auto unwound = decode_unwinding(
      only_record(bytes, order, 4, time, [&](auto& to) { return to.unwinding(time, unwinding); }));
  REQUIRE(unwound);
  CHECK(fields(*unwound) == fields(unwinding));
}

TEST_CASE("a header is decoded as it was encoded, with the bytes after its first 40",
          "[jitdump][property]") {
  const auto order = GENERATE(std::endian::little, std::endian::big);
  const std::string_view extra = GENERATE("", "more");
  const JitdumpHeader header{order, 1, 40 + std::uint32_t(extra.size()), 183, 0xDEADBEEF, 7, 8, 1};
  std::string bytes;
  JitdumpEncoder(bytes, order).header(header, extra);
  const Jitdump dump = test::dump_of(bytes);
  CHECK(dump.header() == header);
  CHECK(dump.header_extra() == extra);
  CHECK(dump.first_record() == bytes.size());
}

TEST_CASE("a dump converted to the other byte order and back has the same bytes",
          "[jitdump][property]") {
  const auto seed = GENERATE(range(0u, 50u));
  Random random(seed);
  const std::string first = random_dump(random, std::endian::little, 6);
  std::string there = first;
  for (const std::endian order : {std::endian::big, std::endian::little}) {
    const Jitdump dump = test::dump_of(there);
    std::string back;
    JitdumpEncoder encoder(back, order);
    encoder.header(*dump.header());
    for (const JitRecord& record : records_of(dump)) REQUIRE(encoder.record(record));
    CHECK(back.size() == first.size());
    CHECK((back == first) == (order == std::endian::little));
    there = back;
  }
}

TEST_CASE("records of the same byte order and of unknown kinds keep their bytes", "[jitdump]") {
  std::string bytes;
  JitdumpEncoder encoder(bytes, std::endian::big);
  REQUIRE(encoder.raw(77, 5, "body"));
  std::string again;
  REQUIRE(JitdumpEncoder(again, std::endian::big).record({0, 5, bytes, 77, std::endian::big}));
  CHECK(again == bytes);
  std::string swapped;
  REQUIRE(JitdumpEncoder(swapped, std::endian::little).record({0, 5, bytes, 77, std::endian::big}));
  CHECK(swapped == test::DumpBytes(std::endian::little).prefix(77, 20, 5).raw("body").text());
}

TEST_CASE("a name ends at its first NUL, and a record of 4 GiB or more is refused", "[jitdump]") {
  std::string bytes;
  JitdumpEncoder encoder(bytes);
  LoadRecord load;
  load.name = {"f\0g", 3};
  REQUIRE(encoder.load(1, load));
  CHECK(bytes == test::DumpBytes()
                     .prefix(0, 58, 1)
                     .u32(0)
                     .u32(0)
                     .u64(0)
                     .u64(0)
                     .u64(0)
                     .u64(0)
                     .raw({"f\0", 2})
                     .text());
  bytes.clear();
  load.code = {load.name.data(), std::size_t{UINT32_MAX}};  // never read
  CHECK(!encoder.load(1, load));
  CHECK(!encoder.raw(5, 1, load.code));
  CHECK(bytes.empty());
}

}  // namespace perfmap::jitdump_encode_property
