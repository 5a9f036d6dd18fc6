// SPDX-License-Identifier: MIT
// Findings about frames in stripped files.

#include "doctor/recording.hpp"
#include "perfmap/profile/module.hpp"
#include "support/catch.hpp"
#include "support/elf_bytes.hpp"

namespace perfmap::test::stripped_files_test {
namespace {

struct StrippedCase {
  RecordedSamples samples;
  RecordingDoctorOptions options;
  std::optional<RecordCommand> command = {};
  StackStatistics statistics;
  std::map<pid_t, RecordedView> views;
  std::vector<StrippedFile> files;

  StrippedCase() {
    statistics.total.frames = 1500;
    statistics.total.sources[static_cast<std::size_t>(FrameSource::kernel)] = 500;
    options.check_debuginfod = [] { return Result<void>(); };
  }

  std::vector<RecordingFinding> findings() const {
    const RecordingContext context{samples, options, command, "a b.data"};
    RecordingDiagnosis diagnosis;
    RecordingAdvice advice(RecordCommand(), diagnosis);
    add_symbol_findings({context, statistics, views}, files, advice);
    advice.finish();
    return diagnosis.findings;
  }
};

Region region_of(const std::string& path) {
  Region region;
  region.range = {0x1000, 0x1000};
  region.file = std::make_shared<MappedFile>(classify_mapping(path));
  region.access.execute = true;
  return region;
}

}  // namespace

TEST_CASE("files without symbols are listed, with the command that asks debuginfod servers",
          "[doctor]") {
  StrippedCase stripped;
  stripped.files = {{"/usr/lib/libx.so", 250, true}, {"/opt/a b\t", 5, false}};
  const auto found = stripped.findings();
  REQUIRE(found.size() == 1);
  CHECK(found[0].finding.id == "no-symbols");
  CHECK(found[0].finding.severity == Severity::warning);
  CHECK(found[0].finding.message.starts_with(
      "250 of 1000 frames outside the kernel (25 %) have no name, because their files are "
      "stripped: /usr/lib/libx.so (250); "));
  CHECK(found[0].finding.fix ==
        "DEBUGINFOD_URLS=\"${DEBUGINFOD_URLS:-https://debuginfod.elfutils.org/}\" "
        "perfmap stacks --debuginfod 'a b.data'");
  stripped.options.symfs = "root";
  CHECK(stripped.findings()[0].finding.fix.ends_with("--debuginfod --symfs root 'a b.data'"));
}

TEST_CASE("without libdebuginfod the fix installs it", "[doctor]") {
  StrippedCase stripped;
  stripped.files = {{"/usr/lib/lib x.so", 250, true}, {"/opt/b", 5, false}};
  const auto fix = [&] {
    REQUIRE(stripped.findings().size() == 1);
    return stripped.findings()[0].finding.fix;
  };
  stripped.options.check_debuginfod = nullptr;
  CHECK(fix() ==
        "apt-get install --no-install-recommends libdebuginfod1 && "
        "DEBUGINFOD_URLS=\"${DEBUGINFOD_URLS:-https://debuginfod.elfutils.org/}\" "
        "perfmap stacks --debuginfod 'a b.data'");
  stripped.options.check_debuginfod = [] {
    return Result<void>(Failure(Error::not_found("cannot load it")));
  };
  stripped.options.reader = 1000;
  CHECK(fix().starts_with("sudo apt-get install "));
  CHECK(stripped.findings()[0].finding.message.find("libdebuginfod1") != std::string::npos);
}

TEST_CASE("a program that can load no library gives no command to install one", "[doctor]") {
  StrippedCase stripped;
  stripped.files = {{"/usr/lib/lib x.so", 250, true}};
  stripped.options.check_debuginfod = [] {
    return Result<void>(Failure(Error::unsupported("this perfmap is one static file")));
  };
  REQUIRE(stripped.findings().size() == 1);
  CHECK(stripped.findings()[0].finding.fix.empty());
  CHECK(stripped.findings()[0].finding.message.ends_with(
      "most distributions (this perfmap is one static file)"));
}

TEST_CASE("no server has debug files of one's own programs, or of files without a build ID",
          "[doctor]") {
  StrippedCase stripped;
  stripped.files = {{"/home/me/b", 300, true},
                    {"/usr/local/bin/c", 100, true},
                    {"/usr/lib/d.so", 50, false},
                    {"/usr/lib/e.so", 40, true}};
  const auto found = stripped.findings();
  REQUIRE(found.size() == 2);
  CHECK(found[0].finding.fix.empty());
  CHECK(found[0].finding.message ==
        "450 of 1000 frames outside the kernel (45 %) have no name, because their files are "
        "stripped: /home/me/b (300), /usr/local/bin/c (100), /usr/lib/d.so (50); use files that "
        "are not stripped: link without -s, and do not run strip");
  CHECK(found[1].finding.message.starts_with("40 of 1000 frames"));
  CHECK(found[1].finding.fix.find("debuginfod") != std::string::npos);
}

TEST_CASE("fewer than 1 % of the frames in files without symbols are not reported", "[doctor]") {
  StrippedCase stripped;
  CHECK(stripped.findings().empty());
  stripped.files = {{"/opt/a", 5, true}, {"/opt/b", 4, true}};
  CHECK(stripped.findings().empty());
  stripped.files[1].unnamed = 5;
  CHECK(stripped.findings().size() == 1);
}

TEST_CASE("only the first of many files without symbols are named", "[doctor]") {
  StrippedCase stripped;
  for (int i = 10; i < 20; ++i) stripped.files.push_back({"/opt/" + std::to_string(i), 50, true});
  const std::string message = stripped.findings().at(0).finding.message;
  CHECK(message.find(", /opt/17 (50) and 2 more; ") != std::string::npos);
  CHECK(message.find("/opt/18") == std::string::npos);
}

TEST_CASE("a file without .symtab and .gnu_debugdata counts as stripped", "[doctor]") {
  std::map<std::string, std::string> disk;
  disk["/stripped"] = ElfBytes().build_id("abcd").symbols({{"f", 0x1000, 4}}, SHT_DYNSYM).text();
  disk["/bare"] = ElfBytes().text();
  disk["/whole"] = ElfBytes().symbols({{"f", 0x1000, 4}}).text();
  ElfBytes packed;
  packed.section({".gnu_debugdata", SHT_PROGBITS, 0, 0, "xz"});
  disk["/packed"] = packed.text();
  OpenedModules modules;
  const auto open = modules.watch([&](const Region& region, const ProcSource*) {
    return Module::open(Input::from_text(disk.at(region.file->name), region.file->name));
  });
  for (const auto& [path, bytes] : disk) REQUIRE(open(region_of(path), nullptr).has_value());

  FrameTable table;
  const auto frame = [&](std::string_view module, std::string_view name, FrameKind kind) {
    FrameFunction function;
    function.module = module;
    function.name = name;
    function.kind = kind;
    return StackFrame{.place = table.add(FramePlace{.function = table.add(function)})};
  };
  std::vector<StackFrame> frames = {
      frame("/bare", "", FrameKind::native),       frame("/stripped", "", FrameKind::native),
      frame("/stripped", "", FrameKind::native),   frame("/stripped", "f", FrameKind::native),
      frame("/whole", "", FrameKind::native),      frame("/packed", "", FrameKind::native),
      frame("/not-opened", "", FrameKind::native), frame("//anon", "", FrameKind::jit),
      frame("/bare", "", FrameKind::unknown),      frame("/gone", "", FrameKind::unknown),
      frame("[vdso]", "", FrameKind::unknown),     frame("", "", FrameKind::unknown)};
  const std::vector<RecordedEvent> events;
  StackCounter counter(table, events);
  counter.take({.pid = 42, .event = 0, .end = StackEnd::root, .frames = frames});
  const auto found = modules.stripped(counter);
  REQUIRE(found.size() == 2);
  CHECK(found[0].path == "/stripped");
  CHECK(found[0].unnamed == 2);
  CHECK(found[0].has_build_id);
  CHECK(found[1].path == "/bare");
  CHECK(found[1].unnamed == 1);
  CHECK_FALSE(found[1].has_build_id);
  const auto unread = modules.unread(counter);
  REQUIRE(unread.size() == 1);
  CHECK((unread[0].path == "/gone" && unread[0].unnamed == 1));
}

}  // namespace perfmap::test::stripped_files_test
