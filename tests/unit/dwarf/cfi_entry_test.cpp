// SPDX-License-Identifier: MIT
#include <sys/mman.h>
#include <unistd.h>

#include "dwarf/cfi_table.hpp"
#include "support/catch.hpp"
#include "support/cfi_bytes.hpp"

namespace perfmap::cfi_entry_test {
using namespace std::string_literals;
using test::CfiBytes;

namespace {

constexpr Address kFrames = 0x50'0000;
constexpr Address kCode = 0x40'1000;

std::string number(std::uint64_t value, unsigned size, std::endian order = std::endian::little) {
  std::string bytes(size, '\0');
  for (unsigned i = 0; i < size; ++i) {
    bytes[order == std::endian::little ? i : size - 1 - i] = static_cast<char>(value >> (8 * i));
  }
  return bytes;
}

std::string leb(std::int64_t value, bool is_signed) {
  TargetBytes bytes(test::kX86);
  return std::string(is_signed ? bytes.sleb(value).view()
                               : bytes.uleb(static_cast<std::uint64_t>(value)).view());
}

CfiBytes encoded(unsigned encoding, const Target& target = test::kX86) {
  test::TestCie cie;
  cie.augmentation = std::string(1, static_cast<char>(encoding));
  return CfiBytes(cie, target);
}

bool covers(const std::string& frames, Address address, std::uint64_t size,
            const Target& target = test::kX86) {
  const CfiTable table(frames, kFrames, target);
  const auto first = table.row_at(address);
  return first && first->range == AddressRange{address, size} && table.row_at(address + size - 1) &&
         !table.row_at(address - 1) && !table.row_at(address + size);
}

/// Places bytes directly before an inaccessible page, so that reading past them faults.
class AtPageEnd {
 public:
  explicit AtPageEnd(std::size_t max)
      : page_(static_cast<std::size_t>(sysconf(_SC_PAGESIZE))),
        size_((max / page_ + 1) * page_),
        pages_(static_cast<char*>(mmap(nullptr, size_ + page_, PROT_READ | PROT_WRITE,
                                       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0))) {
    REQUIRE(mprotect(pages_ + size_, page_, PROT_NONE) == 0);
  }
  ~AtPageEnd() { munmap(pages_, size_ + page_); }
  AtPageEnd(const AtPageEnd&) = delete;
  AtPageEnd& operator=(const AtPageEnd&) = delete;
  std::string_view put(std::string_view bytes) {
    char* const begin = pages_ + size_ - bytes.size();
    bytes.copy(begin, bytes.size());
    return {begin, bytes.size()};
  }

 private:
  std::size_t page_;
  std::size_t size_;
  char* pages_;
};

}  // namespace

TEST_CASE("addresses of FDEs are read in each encoding", "[cfi]") {
  const Address here = kFrames + encoded(0).next_place();
  const auto distance = static_cast<std::int64_t>(kCode - here);
  const struct {
    unsigned encoding;
    std::string place;
    Address begin;
  } all[] = {
      {0x00, number(kCode, 8) + number(16, 8), kCode},
      {0x01, leb(kCode, false) + leb(16, false), kCode},
      {0x02, number(0x1234, 2) + number(16, 2), 0x1234},
      {0x03, number(kCode, 4) + number(16, 4), kCode},
      {0x04, number(kCode, 8) + number(16, 8), kCode},
      {0x09, leb(kCode, true) + leb(16, true), kCode},
      {0x0a, number(0x1234, 2) + number(16, 2), 0x1234},
      {0x0a, number(0x8000, 2) + number(16, 2), 0xffff'ffff'ffff'8000},
      {0x0b, number(kCode, 4) + number(16, 4), kCode},
      {0x0c, number(kCode, 8) + number(16, 8), kCode},
      {0x10, number(kCode - here, 8) + number(16, 8), kCode},
      {0x19, leb(distance, true) + leb(16, true), kCode},
      {0x1a, number(0x1234, 2) + number(16, 2), here + 0x1234},
      {0x1b, number(kCode - here, 4) + number(16, 4), kCode},
      {0x1c, number(kCode - here, 8) + number(16, 8), kCode},
      {0x50, std::string((0 - here) % 8, '\0') + number(kCode, 8) + number(16, 8), kCode},
  };
  for (const auto& each : all) {
    CAPTURE(each.encoding);
    CHECK(covers(encoded(each.encoding).fde_at(each.place, "").text(), each.begin, 16));
  }
}

TEST_CASE("FDEs in unsupported encodings are ignored", "[cfi]") {
  for (const unsigned encoding : {0x20u, 0x30u, 0x40u, 0x60u, 0x80u, 0x9bu, 0xffu, 0x05u, 0x0du}) {
    CAPTURE(encoding);
    const auto frames = encoded(encoding).fde_at(number(kCode, 8) + number(16, 8), "").text();
    CHECK_FALSE(CfiTable(frames, kFrames, test::kX86).row_at(kCode));
  }
}

TEST_CASE("32-bit frames stay within 32 bits", "[cfi]") {
  CHECK(covers(CfiBytes({}, test::kX86_32).fde(kCode, 16, "").text(), kCode, 16, test::kX86_32));
  const auto back = encoded(0x1b, test::kX86_32);
  const Address here = kFrames + back.next_place();
  auto frames = encoded(0x1b, test::kX86_32);
  frames.fde_at(number(0xffff'f000 - here, 4) + number(16, 4), "");
  CHECK(covers(frames.text(), 0xffff'f000, 16, test::kX86_32));
  const auto wrapping = CfiBytes({}, test::kX86_32).fde(0xffff'ff00, 0x1000, "").text();
  const auto row = CfiTable(wrapping, kFrames, test::kX86_32).row_at(0xffff'ff80);
  REQUIRE(row);
  CHECK(row->range == AddressRange{0xffff'ff00, 0x100});
}

TEST_CASE("a function that ends beyond the last address is truncated there", "[cfi]") {
  const auto frames = CfiBytes().fde(UINT64_MAX - 15, 0x1000, "").text();
  const auto row = CfiTable(frames, kFrames, test::kX86).row_at(UINT64_MAX - 1);
  REQUIRE(row);
  CHECK(row->range == AddressRange{UINT64_MAX - 15, 15});
}

TEST_CASE("other byte orders, versions and 64-bit lengths are read", "[cfi]") {
  CHECK(covers(CfiBytes({}, test::kBig).fde(kCode, 16, "").text(), kCode, 16, test::kBig));
  for (const unsigned version : {1u, 3u, 4u}) {
    CAPTURE(version);
    test::TestCie cie;
    cie.version = version;
    const auto narrow = CfiBytes(cie).fde(kCode, 16, "").text();
    CHECK(covers(narrow, kCode, 16));
    const auto wide = CfiBytes(cie, test::kX86, CfiBytes::Kind::eh_frame, true);
    CHECK(covers(CfiBytes(wide).fde(kCode, 16, "").text(), kCode, 16));
  }
  for (const unsigned version : {0u, 2u, 5u}) {
    test::TestCie cie;
    cie.version = version;
    const auto frames = CfiBytes(cie).fde(kCode, 16, "").text();
    CHECK_FALSE(CfiTable(frames, kFrames, test::kX86).row_at(kCode));
  }
}

TEST_CASE(
    "augmentations set signal frame and B key, and unknown ones are skipped if 'z' gives their "
    "size",
    "[cfi]") {
  const auto row = [](const std::string& letters, const std::string& data) {
    test::TestCie cie;
    cie.letters = letters;
    cie.augmentation = data;
    const std::string frames = CfiBytes(cie).fde(kCode, 16, "").text();
    return CfiTable(frames, kFrames, test::kX86).row_at(kCode);
  };
  CHECK(row("", ""));
  CHECK(row("eh", ""));
  CHECK(row("z", ""));
  CHECK(row("zR", "\0"s));
  CHECK(row("zPLR", "\x9b\1\2\3\4\x1b\0"s));
  CHECK(row("zPLR", "\xff\xff\0"s));  // DW_EH_PE_omit: no personality, no LSDA
  CHECK(row("zRS", "\0"s)->is_signal_frame);
  CHECK_FALSE(row("zR", "\0"s)->is_signal_frame);
  CHECK(row("zRB", "\0"s)->uses_b_key);
  CHECK(row("zRG", "\0"s));
  CHECK(row("zRx", "\0abc"s));  // unknown, but the data has a length
  CHECK_FALSE(row("x", ""));
  CHECK_FALSE(row("zPR", "\0\1\2"s));  // longer than its data
  CHECK_FALSE(row("zRRRRRRRRRRRRRRRRRRRR", std::string(20, '\0')));
}

TEST_CASE("reading stops at a terminator", "[cfi]") {
  const CfiBytes frames = CfiBytes().fde(kCode, 16, "").terminator().fde(kCode + 16, 16, "");
  const CfiTable table(frames.text(), kFrames, test::kX86);
  CHECK(table.row_at(kCode));
  CHECK_FALSE(table.row_at(kCode + 16));
}

TEST_CASE("FDEs without a valid CIE or without code are ignored", "[cfi]") {
  std::string frames = CfiBytes().fde(kCode, 16, "").text();
  const std::size_t pointer = CfiBytes().next_place() - 4;
  for (const std::uint64_t wrong : {std::uint64_t{1}, std::uint64_t{4}, std::uint64_t{pointer + 1},
                                    std::uint64_t{UINT32_MAX}}) {
    std::string other = frames;
    other.replace(pointer, 4, number(wrong, 4));
    CHECK_FALSE(CfiTable(other, kFrames, test::kX86).row_at(kCode));
  }
  const CfiBytes empty = CfiBytes().fde(kCode, 16, "").fde(kCode + 8, 0, "");
  CHECK(CfiTable(empty.text(), kFrames, test::kX86).row_at(kCode + 8));
}

TEST_CASE("truncated or corrupted frames are read only up to their end", "[cfi]") {
  test::TestCie cie;
  cie.letters = "zPLRS";
  cie.augmentation = "\x9b\1\2\3\4\x1b\0"s;
  for (const bool is_wide : {false, true}) {
    const std::string whole =
        CfiBytes(cie, test::kX86, CfiBytes::Kind::eh_frame, is_wide)
            .fde(kCode, 16, "\x41\x0e\x10\x86\x02\x0f\x02\x77\x10\x10\x06\x01\x30")
            .fde(kCode + 16, 16, "\x44\x0a\x2e\x90\x02\x0b\x03\x03\x04\x05")
            .terminator()
            .text();
    AtPageEnd place(whole.size());
    for (std::size_t size = 0; size <= whole.size(); ++size) {
      for (std::size_t broken = 0; broken <= size; ++broken) {
        std::string bytes = whole.substr(0, size);
        if (broken < size) bytes[broken] = static_cast<char>(bytes[broken] ^ 0xff);
        const std::string_view put = place.put(bytes);
        const CfiTable table(put, kFrames, test::kX86);
        for (Address at = kCode; at < kCode + 32; at += 5) {
          const auto row = table.row_at(at);
          if (row && !row->range.contains(at)) FAIL("a row that does not cover its address");
        }
      }
    }
  }
}

}  // namespace perfmap::cfi_entry_test
