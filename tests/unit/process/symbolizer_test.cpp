// SPDX-License-Identifier: MIT
// The name of an address, its source, and the reason if there is none: with synthetic events and
// files.

#include "perfmap/profile/symbolizer.hpp"

#include <sstream>
#include <string>

#include "perfmap/profile/process_tracker.hpp"
#include "support/catch.hpp"
#include "support/elf_bytes.hpp"
#include "support/scratch.hpp"

namespace perfmap::symbolizer_test {
namespace {

using test::ElfBytes;
using test::Scratch;

constexpr pid_t kPid = 7;

/// Files by name: an ELF file with one function at 0x1000, a text file, an unreadable file.
Result<std::shared_ptr<const Module>> open_test_module(const Region& region, const ProcSource*) {
  const std::string& name = region.file->name;
  if (name == "/lib/secret.so") return Failure(system_error("cannot open", name, EACCES));
  const bool is_elf = name.find(".so") != name.npos || region.file->kind == RegionKind::vdso;
  ElfBytes elf;
  const std::string bytes =
      is_elf ? elf.symbols({{"_Z8functionv", 0x1000, 0x10}}).text() : "#!/bin/sh\n";
  return Module::open(Input::from_text(bytes, name));
}

/// The offset of the function in the file.
std::uint64_t function_offset() {
  const auto module = Module::open(Input::from_text(ElfBytes().symbols({}).text(), "a.so"));
  REQUIRE(module);
  return (*module)->find_section(".text")->offset;
}

ProcessTracker tracker_of_files() {
  ProcessTracker::Options options;
  options.open_module = open_test_module;
  return ProcessTracker(std::move(options));
}

void map(ProcessTracker& tracker, Address begin, std::string_view name, bool code = true) {
  MmapEvent event;
  event.pid = kPid;
  event.time = 1;
  event.range = {begin, 0x3000};
  event.name = name;
  event.access = {true, false, code, false};
  tracker.on_mmap(event);
}

void attach(ProcessTracker& tracker, const std::string& map) {
  std::vector<Map> maps;
  maps.emplace_back(Input::from_text(map, "perf-7.map"));
  tracker.attach_jit(kPid, std::make_shared<JitSources>(std::move(maps), std::vector<Jitdump>()));
}

/// "name+offset source", or the reason why there is no name.
std::string name_or_reason(ProcessTracker& tracker, Address address,
                           std::uint64_t time = Timeline::kEnd) {
  Symbolizer symbolizer(tracker, {});
  const AddressName answer = symbolizer.find(kPid, {address, time});
  if (!answer.has_name()) return std::string(to_string(answer.why));
  CHECK(answer.address == address);
  REQUIRE(answer.range);
  CHECK(answer.range->contains(address));
  return answer.name + "+" + std::to_string(address - answer.range->begin) +
         (answer.entry ? " jit" : " " + answer.mapped->name);
}

}  // namespace

TEST_CASE("the symbols of a mapped ELF file win over map entries", "[symbolizer]") {
  ProcessTracker tracker = tracker_of_files();
  map(tracker, 0x10000, "/lib/a.so");
  map(tracker, 0x20000, "/home/script");
  map(tracker, 0x30000, "/lib/secret.so");
  map(tracker, 0x40000, "[vdso]");
  attach(tracker, "0 1000000 wide\n");
  const Address function = 0x10000 + function_offset();
  CHECK(name_or_reason(tracker, function + 2) == "function()+2 /lib/a.so");
  CHECK(name_or_reason(tracker, function + 0x10) == "no-symbol");
  CHECK(name_or_reason(tracker, 0x40000 + function_offset()) == "function()+0 [vdso]");
  // A file that is not ELF, and one that cannot be read: only the map is left.
  CHECK(name_or_reason(tracker, 0x20008) == "wide+131080 jit");
  CHECK(name_or_reason(tracker, 0x30008) == "wide+196616 jit");
}

TEST_CASE("map entries name addresses without a symbol in executable mappings of ELF files",
          "[symbolizer]") {
  ProcessTracker tracker = tracker_of_files();
  const bool is_code = GENERATE(true, false);
  map(tracker, 0x10000, "/lib/a.so", is_code);
  map(tracker, 0x20000, "/lib/b.so");
  const Address function = 0x10000 + function_offset();
  const auto line = [](Address begin, std::uint64_t size, const std::string& name) {
    std::ostringstream out;
    out << std::hex << begin << ' ' << size << ' ' << name << '\n';
    return out.str();
  };
  attach(tracker, line(function, 0x100, "Builtin:Call") + line(function + 0x200, 8, "Builtin:Add") +
                      line(0x22ff0, 0x20, "beyond its end"));
  CHECK(name_or_reason(tracker, function + 2) == "function()+2 /lib/a.so");
  CHECK(name_or_reason(tracker, function + 0x12) ==
        (is_code ? "Builtin:Call+18 jit" : "no-symbol"));
  CHECK(name_or_reason(tracker, function + 0x204) == (is_code ? "Builtin:Add+4 jit" : "no-symbol"));
  CHECK(name_or_reason(tracker, function + 0x300) == "no-symbol");
  CHECK(name_or_reason(tracker, 0x22ff4) == "no-symbol");
}

TEST_CASE("maps name addresses in executable memory that is not mapped from an ELF file",
          "[symbolizer]") {
  ProcessTracker tracker = tracker_of_files();
  const bool is_code = GENERATE(true, false);
  const std::string name = GENERATE(as<std::string>(), "//anon", "", "[anon:v8]", "[heap]",
                                    "/memfd:doublemapper (deleted)", "/anon_hugepage (deleted)");
  map(tracker, 0x10000, name, is_code);
  attach(tracker, "10010 10 jitted\n");
  CHECK(name_or_reason(tracker, 0x10018) == (is_code ? "jitted+8 jit" : "no-source"));
  CHECK(name_or_reason(tracker, 0x10020) == (is_code ? "not-covered" : "no-source"));
}

TEST_CASE("mangled names of a map are demangled unless that is switched off", "[symbolizer]") {
  ProcessTracker tracker = tracker_of_files();
  map(tracker, 0x10000, "//anon");
  attach(tracker, "10010 10 _Z4mapsi\n10020 10 _Z4maps i\n");
  CHECK(name_or_reason(tracker, 0x10018) == "maps(int)+8 jit");
  CHECK(name_or_reason(tracker, 0x10028) == "_Z4maps i+8 jit");
  Symbolizer plain(tracker, {.demangle = false});
  CHECK(plain.find(kPid, {0x10018, Timeline::kEnd}).name == "_Z4mapsi");
  // The name that the runtime wrote is still available.
  Symbolizer readable(tracker, {});
  CHECK(readable.find(kPid, {0x10018, Timeline::kEnd}).entry->name == "_Z4mapsi");
}

TEST_CASE("files without line tables are listed once, if lines are requested", "[symbolizer]") {
  ProcessTracker tracker = tracker_of_files();
  map(tracker, 0x10000, "/lib/a.so");
  map(tracker, 0x20000, "/lib/b.so");
  using Detail = Symbolizer::Detail;
  for (const Detail detail : {Detail::symbols, Detail::lines, Detail::inlines}) {
    Symbolizer symbolizer(tracker, {.detail = detail});
    for (const Address begin : {0x10000, 0x10000, 0x20000}) {
      symbolizer.find(kPid, {begin + function_offset() + 1, Timeline::kEnd});
    }
    const auto found = symbolizer.without_lines();
    const std::vector<std::string> expected{"/lib/a.so", "/lib/b.so"};
    CHECK(std::vector<std::string>(found.begin(), found.end()) ==
          (detail == Detail::symbols ? std::vector<std::string>() : expected));
    CHECK(symbolizer.failures().empty());
  }
}

TEST_CASE("an ELF file in a memfd is used if no map has the address", "[symbolizer]") {
  ProcessTracker tracker = tracker_of_files();
  map(tracker, 0x10000, "/memfd:loaded.so (deleted)");
  attach(tracker, "10000 10 jitted\n");
  CHECK(name_or_reason(tracker, 0x10000) == "jitted+0 jit");
  CHECK(name_or_reason(tracker, 0x10000 + function_offset()) == "function()+0 /memfd:loaded.so");
}

TEST_CASE("each address without a name has a reason", "[symbolizer]") {
  ProcessTracker tracker = tracker_of_files();
  CHECK(name_or_reason(tracker, 0x10000) == "gone");
  map(tracker, 0x10000, "//anon");
  map(tracker, 0x20000, "/lib/secret.so");
  CHECK(name_or_reason(tracker, 0x10000) == "no-source");
  CHECK(name_or_reason(tracker, 0x20000) == "unreadable");
  CHECK(name_or_reason(tracker, 0x90000) == "unmapped");
  Symbolizer symbolizer(tracker, {});
  const std::vector<Query> twice(2, {0x20000, Timeline::kEnd});
  std::vector<AddressName> answers(2);
  symbolizer.find_all(kPid, twice, answers);
  symbolizer.find_all(kPid, twice, answers);
  REQUIRE(symbolizer.failures().size() == 1);
  CHECK(symbolizer.failures()[0].message().starts_with("cannot open /lib/secret.so"));
}

TEST_CASE("a file from another tree is accepted only if its build id matches", "[symbolizer]") {
  const Scratch tree;
  ElfBytes elf;
  elf.build_id("0123456789");
  tree.write("a.so", elf.symbols({{"f", 0x1000, 0x10}}).text());
  ModuleCache cache;
  Region region{{0x1000, 0x2000}, 0, nullptr, {}};
  region.file = std::make_shared<const MappedFile>(classify_mapping("/a.so"));
  const std::string& root = tree.path();
  CHECK(open_below(cache, root)(region, nullptr));
  const auto wrong = open_below(cache, root, [](const std::string&) { return "another one"; });
  REQUIRE(!wrong(region, nullptr));
  CHECK(wrong(region, nullptr).error().code == Errc::refused);
  const auto right = open_below(cache, root, [](const std::string&) { return "0123456789"; });
  CHECK(right(region, nullptr));
  region.file = std::make_shared<const MappedFile>(classify_mapping("/missing.so"));
  CHECK(open_below(cache, root)(region, nullptr).error().code == Errc::not_found);
}

}  // namespace perfmap::symbolizer_test
