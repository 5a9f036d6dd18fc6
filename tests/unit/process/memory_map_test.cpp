// SPDX-License-Identifier: MIT
// Parsing /proc/PID/maps: fields, kinds of mappings, malformed lines, and the files shared by
// regions.

#include <string>

#include "perfmap/profile/process.hpp"
#include "perfmap/profile/unwinder.hpp"
#include "support/catch.hpp"
#include "support/regions.hpp"

namespace perfmap::memory_map_test {
namespace {

using test::text_of;

Region only_region(const std::string& line) {
  MappedFiles files;
  const MemoryMap map = parse_memory_map(line, files);
  REQUIRE(map.regions.size() == 1);
  CHECK(map.bad_lines == 0);
  return map.regions.front();
}

}  // namespace

TEST_CASE("a line of /proc/PID/maps becomes a region with all its fields", "[memory]") {
  const Region region = only_region(
      "7f35d2a28000-7f35d2b9d000 r-xs 00028000 fe:0a 1315094                    /usr/lib/a b.so\n");
  CHECK(region.range == AddressRange{0x7f35d2a28000, 0x175000});
  CHECK(region.access == Access{true, false, true, true});
  CHECK(region.offset == 0x28000);
  CHECK(region.file->device_major == 0xfe);
  CHECK(region.file->device_minor == 0x0a);
  CHECK(region.file->inode == 1315094);
  CHECK(region.file->name == "/usr/lib/a b.so");
  CHECK(only_region("1000-2000 ---p 0 0:0 0").access == Access{});
  CHECK(only_region("ffffffffff600000-ffffffffff601000 --xp 00000000 00:00 0 [vsyscall]")
            .range.end() == 0xffffffffff601000);
}

TEST_CASE("the name of a region gives its kind, and whether JIT code may be there", "[memory]") {
  struct Case {
    std::string written;
    std::string kind;
    std::string name;
    JitRegionKind room;
    bool perf_asks;
  };
  const auto c = GENERATE(values<Case>({
      {"", "anonymous", "", JitRegionKind::likely, true},
      {"//anon", "anonymous", "", JitRegionKind::likely, true},
      {"[heap]", "heap", "[heap]", JitRegionKind::likely, true},
      {"[stack]", "stack", "[stack]", JitRegionKind::likely, true},
      {"[stack:12]", "stack", "[stack:12]", JitRegionKind::likely, true},
      {"[anon:v8]", "named-anonymous", "[anon:v8]", JitRegionKind::likely, false},
      {"[anon_shmem:jit]", "named-anonymous", "[anon_shmem:jit]", JitRegionKind::likely, false},
      {"/memfd:doublemapper (deleted)", "memfd", "/memfd:doublemapper", JitRegionKind::likely,
       false},
      {"/anon_hugepage (deleted)", "huge-pages", "/anon_hugepage", JitRegionKind::likely, true},
      {"/dev/zero (deleted)", "shared-memory", "/dev/zero", JitRegionKind::likely, true},
      {"/SYSV0000cafe (deleted)", "shared-memory", "/SYSV0000cafe", JitRegionKind::likely, true},
      {"/SYSVolume/a", "file", "/SYSVolume/a", JitRegionKind::unless_elf, false},
      {"/lib/libc.so.6", "file", "/lib/libc.so.6", JitRegionKind::unless_elf, false},
      {"/lib/old.so (deleted)", "deleted-file", "/lib/old.so", JitRegionKind::unless_elf, false},
      {"/dev/shm/jit", "file", "/dev/shm/jit", JitRegionKind::unless_elf, false},
      {"/dev/dri/card0", "device", "/dev/dri/card0", JitRegionKind::none, false},
      {"[vdso]", "vdso", "[vdso]", JitRegionKind::none, false},
      {"[vsyscall]", "special", "[vsyscall]", JitRegionKind::none, false},
      {"[uprobes]", "special", "[uprobes]", JitRegionKind::none, false},
      {"anon_inode:[io_uring]", "inode", "anon_inode:[io_uring]", JitRegionKind::likely, false},
  }));
  CAPTURE(c.written);
  const Region region = only_region("1000-2000 r-xp 00000000 00:00 0    " + c.written + "\n");
  CHECK(to_string(region.file->kind) == c.kind);
  CHECK(region.file->name == c.name);
  CHECK(jit_region_kind(region) == c.room);
  CHECK(perf_asks_its_map(region) == c.perf_asks);
  const Region data = only_region("1000-2000 rw-p 00000000 00:00 0    " + c.written + "\n");
  CHECK(jit_region_kind(data) == JitRegionKind::none);
  CHECK(!perf_asks_its_map(data));
}

TEST_CASE("in names only the escape of a newline is decoded", "[memory]") {
  CHECK(only_region("1000-2000 r-xp 0 0:0 7 /tmp/a\\012b\\134c\n").file->name == "/tmp/a\nb\\134c");
  CHECK(only_region("1000-2000 r-xp 0 0:0 7 /tmp/a \\012 (deleted)\n").file->name == "/tmp/a \n");
}

TEST_CASE("a malformed line is skipped and counted", "[memory][hostile]") {
  const auto bad = GENERATE(values<std::string>({
      "x",
      "1000",
      "1000-",
      "1000-2000",
      "1000-2000 r-xp",
      "2000-1000 r-xp 0 0:0 0 /a",
      "1000-1000 r-xp 0 0:0 0 /a",
      "1000-2000 rwzp 0 0:0 0",
      "1000-2000 r-xq 0 0:0 0",
      "1000-2000 r-x 0 0:0 0 /a",
      "1000-2000 r-xp 0 0 0 /a",
      "1000-2000 r-xp g 0:0 0 /a",
      "11111111111111111-22222222222222222 r-xp 0 0:0 0",
      "1000-2000 r-xp 0 0:0 -1",
      "0x1000-2000 r-xp 0 0:0 0",
      "1000-2000 r-xp 0 100000000:0 0",
      "1000 -2000 r-xp 0 0:0 0",
  }));
  CAPTURE(bad);
  MappedFiles files;
  const MemoryMap map = parse_memory_map("1-2 r--p 0 0:0 0 \n" + bad + "\n3-4 r--p 0 0:0 0", files);
  CHECK(map.bad_lines == 1);
  REQUIRE(map.regions.size() == 2);
  CHECK(map.regions[1].range.begin == 3);
}

TEST_CASE("regions of the same file share it, and it is freed with the last of them", "[memory]") {
  MappedFiles files;
  const std::string text = "1000-2000 r-xp 0 8:1 7 /lib/a.so\n2000-3000 rw-p 0 8:1 7 /lib/a.so\n";
  {
    const MemoryMap one = parse_memory_map(text, files);
    const MemoryMap two = parse_memory_map(text + "3000-4000 rw-p 0 8:1 8 /lib/a.so\n", files);
    CHECK(one.regions[0].file == two.regions[1].file);
    CHECK(two.regions[2].file != two.regions[1].file);
    CHECK(files.size() == 2);
  }
  CHECK(files.size() == 0);
}

TEST_CASE("preferred registers and ELF machine numbers are known for every machine",
          "[registers]") {
  CHECK(preferred_regs_mask(Machine::x86_64) == 0xff01ff);
  CHECK(preferred_regs_mask(Machine::x86) == 0x1ff);
  CHECK(preferred_regs_mask(Machine::aarch64) == 0x1fff81fff);
  CHECK(preferred_regs_mask(Machine::arm) == 0xffff);
  CHECK(machine_of(62) == Machine::x86_64);
  CHECK(machine_of(3) == Machine::x86);
  CHECK(machine_of(183) == Machine::aarch64);
  CHECK(machine_of(40) == Machine::arm);
  CHECK(machine_of(243) == Machine::riscv64);
  CHECK(can_unwind(Machine::riscv64));
  CHECK(!machine_of(8));
  CHECK(machine_of(22) == Machine::s390x);
  CHECK_FALSE(can_unwind(Machine::s390x));
  CHECK(preferred_regs_mask(Machine::s390x) == 0x2ffffffff);
}

}  // namespace perfmap::memory_map_test
