// SPDX-License-Identifier: MIT
#include <vector>

#include "inject/image_frames.hpp"
#include "support/catch.hpp"
#include "support/elf_of.hpp"
#include "support/elf_reader.hpp"

namespace perfmap::elf_frames_test {
namespace {

using test::DumpBytes;
using test::ElfOf;
using test::ElfReader;
using namespace std::string_literals;

constexpr Address kCode = 0x10000;
const std::string kBody(20, '\x90');
/// CFA = r7 + 8, the return address at CFA - 8.
const std::string kCieRules = "\x0c\x07\x08\x90\x01"s;
/// After the first 4 bytes CFA = r7 + 16.
const std::string kFdeRules = "\x44\x0e\x10"s;
constexpr std::string_view kHeader("\x01\x1b\x03\x3b\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0", 20);

/// An .eh_frame of one CIE and its FDEs, built byte by byte.
class Frames {
 public:
  explicit Frames(std::endian order = std::endian::little) : order_(order) {}

  Frames& cie(const std::string& letters, const std::string& augmentation,
              const std::string& rules = kCieRules, char version = 1) {
    cie_ = bytes_.size();
    std::string body = std::string(1, version) + letters + '\0' + "\x01\x78\x10"s;
    return entry(0, body + augmentation + rules);
  }
  /// `fields` are the encoded pointer and size.
  Frames& fde(const std::string& fields, const std::string& rules = kFdeRules) {
    return entry(bytes_.size() + 4 - cie_, fields + rules);
  }
  /// An FDE with 32-bit fields, the first relative to its place, for the function at kCode.
  Frames& near_fde(std::uint64_t offset, std::uint64_t size, const std::string& rules = kFdeRules) {
    const std::uint64_t field = 24 + bytes_.size() + 8;  // the frames begin 24 bytes after kCode
    return fde(number(offset - field, 4) + number(size, 4) + '\0', rules);
  }
  std::string number(std::uint64_t value, unsigned size) const {
    std::string out;
    for (unsigned i = 0; i < size; ++i) {
      const unsigned place = order_ == std::endian::little ? i : size - 1 - i;
      out += static_cast<char>(value >> (8 * place));
    }
    return out;
  }
  const std::string& bytes() const { return bytes_; }

 private:
  Frames& entry(std::uint64_t id, std::string body) {
    body.append((8 - body.size() % 4) % 4, '\0');
    bytes_ += number(body.size() + 4, 4) + number(id, 4) + body;
    return *this;
  }

  std::endian order_;
  std::string bytes_;
  std::size_t cie_ = 0;
};

std::string dump_with(const std::string& frames, std::endian order = std::endian::little) {
  DumpBytes dump(order);
  dump.header().unwinding(1, frames + std::string(kHeader), kHeader.size(), 0);
  return dump.load(1, kCode, "f", kBody).text();
}

Frames usual() { return Frames().cie("zR", "\x01\x1b"s); }

}  // namespace

TEST_CASE("frames are written for the function's address, with their rules", "[elf][frames]") {
  const ElfOf made(dump_with(usual().near_fde(0, kBody.size()).bytes()));
  const ElfReader elf(made.bytes);
  CHECK(made.counts.frames == 1);
  CHECK(made.counts.dropped_frames == 0);
  CHECK(elf.cfa_at(kCode) == "r7+8");
  CHECK(elf.cfa_at(kCode + 4) == "r7+16");
  CHECK_FALSE(elf.frame_at(kCode - 1));
  CHECK_FALSE(elf.frame_at(kCode + kBody.size()));
}

TEST_CASE("frames in all encodings of an address are converted", "[elf][frames]") {
  const Frames plain;
  const auto frames = GENERATE_COPY(values<std::string>({
      plain.bytes() +
          Frames().cie("", "").fde(plain.number(kCode, 8) + plain.number(20, 8)).bytes(),
      Frames()
          .cie("zR", "\x01\x03"s)
          .fde(plain.number(kCode, 4) + plain.number(20, 4) + '\0')
          .bytes(),
      Frames()
          .cie("zR", "\x01\x0c"s)
          .fde(plain.number(kCode, 8) + plain.number(20, 8) + '\0')
          .bytes(),
      Frames().cie("zRS", "\x01\x1b"s).near_fde(0, 20).bytes(),
      Frames().cie("zPLR", "\x07\x9b\0\0\0\0\x1b\x1b"s).near_fde(0, 20).bytes(),
      Frames().cie("zR", "\x01\x1b"s, kCieRules, 3).near_fde(0, 20).bytes(),
  }));
  const ElfOf made(dump_with(frames));
  CHECK(made.counts.frames == 1);
  CHECK(ElfReader(made.bytes).cfa_at(kCode + 5) == "r7+16");
}

TEST_CASE("frames in the other byte order are converted", "[elf][frames]") {
  const std::string frames =
      Frames(std::endian::big).cie("zR", "\x01\x1b"s).near_fde(0, kBody.size()).bytes();
  DumpBytes dump(std::endian::big);
  dump.header({.elf_mach = EM_S390}).unwinding(1, frames, 0, 0);
  const ElfOf made(dump.load(1, kCode, "f", kBody).text());
  CHECK(made.counts.frames == 1);
  CHECK(ElfReader(made.bytes).frame_at(kCode + 4));
}

TEST_CASE("malformed and unsupported frames are left out and counted", "[elf][frames]") {
  const Frames plain;
  const auto frames = GENERATE_COPY(values<std::string>({
      usual().near_fde(20, 4).bytes(),                          // after the function
      usual().near_fde(0, 0).bytes(),                           // covers nothing
      usual().near_fde(0, 20, "\x01\0\0\0\0"s).bytes(),         // DW_CFA_set_loc
      usual().near_fde(0, 20, "\x3a"s).bytes(),                 // no such instruction
      usual().near_fde(0, 20, "\x0f\x7f"s).bytes(),             // a block that exceeds the entry
      Frames().cie("zR", "\x01\x9b"s).near_fde(0, 20).bytes(),  // indirect
      Frames().cie("zR", "\x01\x2b"s).near_fde(0, 20).bytes(),  // relative to the text
      Frames().cie("eh", "\x01\x1b"s).near_fde(0, 20).bytes(),
      Frames().cie("zR", "\x01\x1b"s, kCieRules, 9).near_fde(0, 20).bytes(),
      Frames().fde(plain.number(kCode, 8)).bytes(),  // without a CIE
      "\xff\xff\xff\xff"s + std::string(20, '\0'),   // 64-bit length
      "\xff\0\0\0"s,                                 // truncated
  }));
  const ElfOf made(dump_with(frames));
  CHECK(made.counts.frames == 0);
  CHECK(made.counts.dropped_frames == 1);
  CHECK_FALSE(ElfReader(made.bytes).section(".eh_frame"));
}

TEST_CASE("functions with equal CIEs share one", "[elf][frames]") {
  DumpBytes dump;
  dump.header();
  const std::string frames = usual().near_fde(0, kBody.size()).bytes() + std::string(kHeader);
  std::size_t size[2];
  for (const std::uint64_t count : {1, 2}) {
    dump.unwinding(1, frames, kHeader.size(), 0);
    // The same bytes fit each function: their addresses are relative.
    dump.load(1, kCode * count, "f", kBody, count);
    size[count - 1] = ElfReader(ElfOf(dump.text()).bytes).content(".eh_frame").size();
  }
  CHECK(size[1] - size[0] < size[0] - 16);
}

TEST_CASE("frames move with their code, and those of overwritten code are left out",
          "[elf][frames]") {
  DumpBytes dump;
  dump.header().unwinding(1, usual().near_fde(0, 20).near_fde(8, 4).bytes(), 0, 0);
  dump.load(1, kCode, "f", kBody, 5)
      .move(2, kCode, 0x20000, 20, 5)
      .load(3, 0x20006, "g", "0123", 6);
  const ElfOf made(dump.text());
  const ElfReader elf(made.bytes);
  CHECK(made.counts.frames == 1);
  CHECK(made.counts.dropped_frames == 1);
  CHECK(elf.cfa_at(0x20005) == "r7+16");
  CHECK_FALSE(elf.frame_at(0x20006));
  CHECK_FALSE(elf.frame_at(0x20010));
  CHECK_FALSE(elf.frame_at(kCode));
}

TEST_CASE("call frame instructions are classified with their operands", "[frames]") {
  CHECK(can_be_moved(""));
  CHECK(can_be_moved("\0\x41\x86\x02\xc6\x0a\x0b\x2d"s));
  CHECK(can_be_moved("\x02\x01\x03\x01\x02\x04\x01\x02\x03\x04\x1d\1\2\3\4\5\6\7\x08"s));
  CHECK(can_be_moved(
      "\x05\x80\x01\x02\x06\x01\x0c\x07\x08\x0f\x02\x77\x08\x10\x06\x01\x30\x2e\x10"s));
  CHECK_FALSE(can_be_moved("\x04\x01\x02\x03"s));
  CHECK_FALSE(can_be_moved("\x0e\x80"s));
  CHECK_FALSE(can_be_moved("\x17"s));
}

}  // namespace perfmap::elf_frames_test
