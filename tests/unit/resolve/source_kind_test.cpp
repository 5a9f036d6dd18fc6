// SPDX-License-Identifier: MIT
#include <filesystem>
#include <string>

#include "perfmap/input.hpp"
#include "support/catch.hpp"
#include "support/jitdump_bytes.hpp"
#include "support/tests_dir.hpp"

namespace perfmap::source_kind_test {
namespace {

std::string damaged_text() { return "DTiX is what this text begins with, and it goes on and on"; }

}  // namespace

TEST_CASE("a PyPy log is detected by a section line, also with colours, thread numbers or CRLF",
          "[kind]") {
  for (const char* const log : {
           "[acc21dcd7d5] {jit-backend-addr\nLoop 1 has address",
           "\x1b[1m\x1b[31m[acc5d8c27e4] {jit-backend-addr\r\n\x1b[0mLoop 1",
           "0# [1a] {gc-minor\n0# [1b] gc-minor}\n",
           "\x1b[31m12# [1a] {gc-minor\n",
           "[1] {x",
           "[1b] gc-minor}\n[1c] {gc-minor\n",
           "\x1b[31m[acc5d8da454] jit-backend-addr}\r\n",
       }) {
    CAPTURE(std::string(log));
    CHECK(detect_kind(log) == SourceKind::pypylog);
  }
}

TEST_CASE(".NET's list of images is not a perf map", "[kind]") {
  CHECK(detect_kind("ImageLoad;/a b.dll;{0-1};0x7f00;\n") == SourceKind::image_list);
  CHECK(to_string(SourceKind::image_list) == "list of .NET images");
  CHECK(detect_kind("ImageLoader\n") == SourceKind::perf_map);
}

TEST_CASE("a log that begins inside a section is detected", "[kind]") {
  for (const std::string first : {
           "          end: 0x7f501b136df7\n",
           "+299: i5 = getfield_gc_i(p0, descr=<FieldS pypy.interpreter.pyframe 72>)\n",
           "49BB08BFE82D507F0000498B1B\n",
           "31m[acc5] {jit\n",
           "entry 1:3\nTargetToken(139982029537312):4\n",
           "bridge out of Guard 0x7f501b258458 with 48 ops\n[p0, p1]\n",
       }) {
    CAPTURE(first);
    CHECK(detect_kind(first + "[acc1] jit-log-opt-bridge}\n[acc2] {gc-minor\n") ==
          SourceKind::pypylog);
  }
}

TEST_CASE("lines that resemble section lines do not make a map or JSON a log", "[kind]") {
  for (const char* const map : {
           "1000 10 f\n[1a] {gc-minor\n[1b] gc-minor}\n",
           "# written by hand\n0x1000 0x10 [1a] {gc-minor\n[1a] {gc-minor\n",
           "1000 10 [1a] {x\n",
           "[1a] \n[] {x\n[1g] {x\n[1a]{x\n[1a] {\n[1a] x\n[1a] x }\n",
           "[stack]\n[anon] {f\n",
           "1# 2\n#[1a] {x\n",
           "12345678901# [1a] {x\n",
       }) {
    CAPTURE(std::string(map));
    CHECK(detect_kind(map) == SourceKind::perf_map);
  }
  CHECK(detect_kind("\n {\"a\":\n[1a] {x\n") == SourceKind::json);
  std::string binary = "{";
  for (int i = 0; i < 4096; ++i) binary += static_cast<char>(i * 37);
  CHECK(detect_kind(binary) == SourceKind::perf_map);
  CHECK(detect_kind(std::string(4096, 'x') + "\n[1a] {x\n") == SourceKind::perf_map);
}

TEST_CASE("all real maps and logs are detected", "[kind][wild]") {
  const std::filesystem::path wild = test::tests_dir("/wild");
  unsigned maps = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(wild)) {
    if (!entry.is_regular_file()) continue;
    const Result<Input> input = Input::open(entry.path());
    REQUIRE(input);
    CAPTURE(entry.path().string());
    const SourceKind kind = detect_kind(input->text());
    if (entry.path().extension() == ".map") {
      ++maps;
      CHECK(kind == SourceKind::perf_map);
    }
    const bool is_log =
        entry.path().filename() == "pypylog" || entry.path().extension() == ".pypylog";
    if (is_log) CHECK(kind == SourceKind::pypylog);
  }
  CHECK(maps >= 3);
}

TEST_CASE("a jitdump with one wrong byte in its magic number is detected as damaged", "[kind]") {
  for (const std::endian order : {std::endian::little, std::endian::big}) {
    const std::string dump = test::DumpBytes(order).header().load(1, 0x1000, "f", "code").text();
    CHECK_FALSE(is_damaged_jitdump(dump));
    for (std::size_t at = 0; at < 4; ++at) {
      for (unsigned bit = 0; bit < 8; ++bit) {
        std::string damaged = dump;
        damaged[at] = static_cast<char>(damaged[at] ^ (1 << bit));
        CAPTURE(at, bit);
        CHECK(is_damaged_jitdump(damaged));
        CHECK(order_without_magic(damaged) == order);
      }
    }
    std::string other = dump;
    other.replace(0, 2, "xx");
    CHECK_FALSE(is_damaged_jitdump(other));
    CHECK(order_without_magic(other) == order);
    CHECK_FALSE(order_without_magic(other.substr(0, 40)));
    CHECK_FALSE(is_damaged_jitdump("DTiX" + std::string(36, '\0')));
    CHECK_FALSE(is_damaged_jitdump(damaged_text()));
  }
}

TEST_CASE("binary data is distinguished from text, filler and a leading hole", "[kind]") {
  std::string binary;
  for (int i = 0; i < 1024; ++i) binary += static_cast<char>(i * 37);
  CHECK(is_binary(binary));
  CHECK_FALSE(is_binary(""));
  CHECK_FALSE(is_binary("no map at all\n"));
  CHECK_FALSE(is_binary("1000 10 foo\n"));
  CHECK_FALSE(is_binary("1000 10 foo\n" + binary));
  CHECK_FALSE(is_binary(std::string(9000, '\0') + "1000 10 foo\n"));
  CHECK_FALSE(is_binary(std::string(9000, '\0')));
  CHECK_FALSE(is_binary("\xc3\xbcml\xc3\xa4ut\n"));
}

}  // namespace perfmap::source_kind_test
