// SPDX-License-Identifier: MIT
#include "doctor/record_command.hpp"

#include <array>
#include <cstdio>
#include <random>

#include "perfmap/text.hpp"
#include "support/catch.hpp"

namespace perfmap::test::record_command_test {
namespace {

using Strings = std::vector<std::string>;

RecordCommand parsed(const Strings& words) {
  const auto command = RecordCommand::parse(words);
  REQUIRE(command);
  return *command;
}

/// How sh(1) expands a word.
std::string read_by_shell(const std::string& word) {
  const std::string line = "printf %s " + word;
  std::FILE* const shell = ::popen(line.c_str(), "r");
  REQUIRE(shell != nullptr);
  std::string text;
  std::array<char, 256> bytes;
  for (std::size_t size; (size = std::fread(bytes.data(), 1, bytes.size(), shell)) != 0;) {
    text.append(bytes.data(), size);
  }
  CHECK(::pclose(shell) == 0);
  return text;
}

}  // namespace

TEST_CASE("a command line of perf record is repeated unchanged", "[doctor]") {
  const auto text = [](const Strings& words) { return parsed(words).text(); };
  CHECK(text({"/usr/bin/perf", "record", "-g", "--", "node", "a b.js"}) ==
        "perf record -g -- node 'a b.js'");
  CHECK(text({"/home/me/linux/perf", "record", "-a", "-F", "99", "sleep", "1"}) ==
        "/home/me/linux/perf record -a -F 99 -- sleep 1");
  CHECK(text({"perf", "record", "-agF99", "-z9", "-e", "cycles:u,{a,b}", "--call-graph=fp"}) ==
        "perf record -a -g -F 99 -z9 -e 'cycles:u,{a,b}' --call-graph fp");
  CHECK(text({"perf", "record", "--switch-output=10s", "--freq", "9", "--clock", "mono", "x"}) ==
        "perf record --switch-output=10s --freq 9 --clock mono -- x");
  CHECK(text({"perf", "record", "-o", "-p", "-p", "1"}) == "perf record -o -p -p 1");
  CHECK(text({"perf", "record", "-F"}) == "perf record -F");
  CHECK(parsed({"perf", "record", "-g", "--", "-x", "--", "y"}).workload ==
        Strings{"-x", "--", "y"});
}

TEST_CASE("commands other than perf record are rejected", "[doctor]") {
  CHECK_FALSE(RecordCommand::parse(Strings{}));
  CHECK_FALSE(RecordCommand::parse(Strings{"perf"}));
  CHECK_FALSE(RecordCommand::parse(Strings{"perf", "mem", "record"}));
  CHECK_FALSE(RecordCommand::parse(Strings{"/bin/simpleperf", "record"}));
}

TEST_CASE("set() replaces all options with the same meaning", "[doctor]") {
  RecordCommand command =
      parsed({"perf", "record", "-ag", "--call-graph", "dwarf", "-k", "tai", "--clockid=raw", "x"});
  command.set_call_graph("dwarf,16384");
  command.set(RecordCommand::kClock, "mono");
  CHECK(command.text() == "perf record -a --call-graph dwarf,16384 -k mono -- x");
  command.set_call_graph("");
  CHECK(command.text() == "perf record -a -k mono -g -- x");
  CHECK(command.has(RecordCommand::kFramePointers));
  CHECK(command.value_of(RecordCommand::kClock) == "mono");
  CHECK_FALSE(command.value_of(RecordCommand::kPid));
  command.set_shell_text(RecordCommand::kPid, "\"$(pgrep x)\"");
  command.with_sudo = true;
  command.environment = {"A=b c"};
  CHECK(command.text() == "sudo env A='b c' perf record -a -k mono -g -p \"$(pgrep x)\" -- x");
}

TEST_CASE("a recording of perfmap record is repeated by it", "[doctor]") {
  const auto text = [](const Strings& words) {
    RecordCommand command = parsed(words);
    command.by_perfmap = true;
    command.set_call_graph("dwarf,65528");
    return command.text();
  };
  CHECK(text({"/usr/bin/perf",
              "record",
              "-q",
              "-N",
              "-k",
              "mono",
              "-F",
              "499",
              "--call-graph",
              "fp",
              "-m",
              "16M",
              "-e",
              "cycles",
              "--no-bpf-event",
              "-o",
              "/tmp/a b/perf.data",
              "--",
              "node",
              "a b.js"}) ==
        "perfmap record -F 499 -e cycles --call-graph dwarf,65528 -- node 'a b.js'");
  CHECK(text({"perf", "record", "-q", "-N", "-o", "d/perf.data", "-p", "7,8", "--off-cpu", "--",
              "sleep", "10"}) ==
        "perfmap record -p 7,8 --off-cpu --call-graph dwarf,65528 --duration 10");
  // An option that perfmap record does not have.
  CHECK(text({"perf", "record", "-q", "--buildid-mmap", "--", "node"}) ==
        "perf record -q --buildid-mmap --call-graph dwarf,65528 -- node");
}

TEST_CASE("a command line of more than 10000 bytes is not printed", "[doctor]") {
  RecordCommand command = parsed({"perf", "record", "x"});
  command.workload.emplace_back(10000, 'y');
  CHECK(command.text().empty());
}

TEST_CASE("a shell reads any quoted word back unchanged", "[doctor]") {
  std::minstd_rand engine(7);
  const auto random = [&engine] { return static_cast<std::size_t>(engine()); };
  const std::string_view bytes = "a'\"\\%$`!*?~#& \n\t\x01\x1b\x7f\xc3\xa4\xff-";
  for (int i = 0; i < 60; ++i) {
    std::string word;
    for (std::size_t size = random() % 12; size > 0; --size) word += bytes[random() % bytes.size()];
    if (word.ends_with('\n')) word += 'z';  // only bash, zsh and ksh read it back
    INFO(shell_word(word));
    CHECK(read_by_shell(shell_word(word)) == word);
  }
}

}  // namespace perfmap::test::record_command_test
