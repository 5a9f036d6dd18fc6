// SPDX-License-Identifier: MIT
// Which variables a recorder sets for a command.

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <stdlib.h>
#include <unistd.h>

#include "perfmap/profile/record.hpp"
#include "support/catch.hpp"
#include "support/scratch.hpp"

namespace perfmap::naming_plan_test {
namespace {

/// A directory of programs that exist only by name, and what they print as their version.
class Programs {
 public:
  Programs() {
    std::string path = std::filesystem::temp_directory_path() / "programs-XXXXXX";
    REQUIRE(::mkdtemp(path.data()) != nullptr);
    directory_ = path;
  }
  ~Programs() { std::filesystem::remove_all(directory_); }
  Programs(const Programs&) = delete;
  Programs& operator=(const Programs&) = delete;

  void add(const std::string& name, const std::string& text =
                                        "\x7f"
                                        "ELF") {
    const std::string path = directory_ / name;
    std::ofstream(path) << text;
    std::filesystem::permissions(path, std::filesystem::perms::owner_all);
  }
  NamingRequest request(std::vector<std::string> command, const std::string& version) const {
    NamingRequest request;
    request.command = std::move(command);
    request.environment = {"PATH=/nowhere:" + directory_.string()};
    request.directory = "/recording";
    request.run = [version](const std::string&, std::span<const std::string_view>) {
      return version;
    };
    return request;
  }
  std::string path(const std::string& name) const { return directory_ / name; }

 private:
  std::filesystem::path directory_;
};

std::string value_of(const NamingPlan& plan, std::string_view name) {
  const auto found = std::ranges::find_if(
      plan.variables, [name](const NamingVariable& one) { return one.name == name; });
  return found == plan.variables.end() ? "none" : found->value;
}

constexpr const char* kNode = "--perf-basic-prof --interpreted-frames-native-stack";
constexpr const char* kNodeWithoutLog =
    "--perf-basic-prof-only-functions --interpreted-frames-native-stack";

}  // namespace

TEST_CASE("a program of a runtime gets the variables of that runtime alone", "[record]") {
  Programs programs;
  programs.add("node");
  programs.add("java");
  const NamingPlan plan = plan_naming(programs.request({"node", "a.js"}, "v20.20.2\n"));
  CHECK(plan.runtime == Runtime::v8);
  CHECK(plan.variables.size() == 1);
  CHECK(value_of(plan, "NODE_OPTIONS") == kNode);
  CHECK(plan.notes.empty());
}

TEST_CASE("options are appended to those of the user, once", "[record]") {
  Programs programs;
  programs.add("node");
  NamingRequest request = programs.request({"node"}, "v20.1.0");
  request.environment.push_back("NODE_OPTIONS=--max-old-space-size=64");
  CHECK(value_of(plan_naming(request), "NODE_OPTIONS") ==
        std::string("--max-old-space-size=64 ") + kNode);
  request.environment.back() = std::string("NODE_OPTIONS=") + kNode;
  CHECK(plan_naming(request).variables.empty());
}

TEST_CASE("a release that refuses an option gets none", "[record]") {
  Programs programs;
  programs.add("ruby");
  programs.add("java");
  const NamingPlan old = plan_naming(programs.request({"ruby"}, "ruby 3.1.2p20 (2022-04-12)"));
  CHECK(old.variables.empty());
  REQUIRE(old.notes.size() == 1);
  CHECK(old.notes[0] ==
        "Ruby (YJIT): names are not turned on, because version 3.1 cannot write them (3.3 can)");
  CHECK(value_of(plan_naming(programs.request({"ruby"}, "ruby 3.3.0")), "RUBYOPT") ==
        "--yjit --yjit-perf");
  const NamingPlan silent = plan_naming(programs.request({"java"}, ""));
  CHECK(silent.variables.empty());
  REQUIRE(silent.notes.size() == 1);
  CHECK(silent.notes[0].find("because no version was printed by: " + programs.path("java") +
                             " -version") != std::string::npos);
}

TEST_CASE("a script is a program of its interpreter", "[record]") {
  Programs programs;
  programs.add("node");
  programs.add("java");
  programs.add("npm", "#!/usr/bin/env -S A=1 node\n");
  const NamingPlan plan = plan_naming(programs.request({"npm", "start"}, "v22.1.0"));
  CHECK(plan.runtime == Runtime::v8);
  CHECK(plan.variables.size() == 1);
}

TEST_CASE("a shell may start any runtime in PATH, another program none", "[record]") {
  Programs programs;
  programs.add("node");
  programs.add("mono");
  programs.add("sh");
  programs.add("server");
  programs.add("run", "#!/bin/sh\nnode x.js\n");
  for (const char* const launcher : {"sh", "run"}) {
    const NamingPlan plan = plan_naming(programs.request({launcher}, "v20.0.0"));
    CHECK(plan.runtime == Runtime::unknown);
    CHECK(value_of(plan, "NODE_OPTIONS") == kNodeWithoutLog);
    CHECK(value_of(plan, "MONO_ENV_OPTIONS") == "--jitmap");
    CHECK(value_of(plan, "JAVA_TOOL_OPTIONS") == "none");
  }
  CHECK(plan_naming(programs.request({"server"}, "v20.0.0")).variables.empty());
  CHECK(plan_naming(programs.request({"missing"}, "v20.0.0")).variables.empty());
  CHECK(plan_naming(programs.request({}, "v20.0.0")).variables.empty());
}

TEST_CASE("programs with a number in their names are found in PATH", "[record]") {
  Programs programs;
  for (const char* const name : {"sh", "pypy3", "python3"}) programs.add(name);
  const NamingPlan plan = plan_naming(programs.request({"sh"}, "Python 3.13.0"));
  CHECK(value_of(plan, "PYPYLOG").starts_with("jit-backend-addr:"));
  CHECK(value_of(plan, "PYTHONPERFSUPPORT") == "1");
}

TEST_CASE("Erlang's own stacks need frame pointers, other programs' do not", "[record]") {
  Programs programs;
  programs.add("erl");
  programs.add("sh");
  const NamingPlan plan = plan_naming(programs.request({"erl"}, "25"));
  CHECK(value_of(plan, "ERL_FLAGS") == "+JPperf true");
  CHECK(plan.call_graph == "fp");
  CHECK(plan_naming(programs.request({"sh"}, "25")).call_graph.empty());
}

TEST_CASE("the program of a runtime is found behind launchers", "[record]") {
  Programs programs;
  for (const char* const name : {"node", "erl", "nice", "env", "strace", "sh", "server"}) {
    programs.add(name);
  }
  const auto own = [&](std::vector<std::string> command) {
    return plan_naming(programs.request(std::move(command), "v25.0.0")).runtime;
  };
  CHECK(own({"nice", "-n", "5", "erl"}) == Runtime::erlang);
  CHECK(own({"env", "A=node", "strace", "-f", "-o", "log", "erl"}) == Runtime::erlang);
  CHECK(own({"nice", "sh", "-c", "erl"}) == Runtime::unknown);
  CHECK(own({"nice", "./missing/node"}) == Runtime::unknown);
  const NamingPlan other = plan_naming(programs.request({"nice", "server"}, "v20.0.0"));
  CHECK(value_of(other, "NODE_OPTIONS") == kNodeWithoutLog);
}

TEST_CASE("a launcher that cleans the environment gets advice instead of variables", "[record]") {
  Programs programs;
  for (const char* const name : {"node", "su", "sudo", "env"}) programs.add(name);
  const auto plan = [&](std::vector<std::string> command) {
    return plan_naming(programs.request(std::move(command), "v20.0.0"));
  };
  const NamingPlan sudo = plan({"sudo", "-u", "app", "node"});
  CHECK(sudo.variables.empty());
  CHECK(sudo.notes == std::vector<std::string>{
                          "names are not turned on, because sudo removes variables from the "
                          "environment (record as root, and start the command by su without -l, or "
                          "by setpriv)"});
  CHECK(plan({"sudo", "-E", "node"}).notes.empty());
  CHECK(plan({"env", "node", "-i"}).notes.empty());
  CHECK(plan({"su", "-lc", "node", "app"}).notes.size() == 1);
  CHECK(plan({"su", "-", "app"}).notes.size() == 1);
  CHECK(plan({"env", "-i", "node"}).notes.size() == 1);
  const NamingPlan su = plan({"su", "node", "-c", "node a.js"});
  CHECK(su.runtime == Runtime::unknown);
  CHECK(value_of(su, "NODE_OPTIONS") == kNodeWithoutLog);
}

TEST_CASE("V8 gets the option with a log only if it is the command itself", "[record]") {
  Programs programs;
  for (const char* const name : {"node", "sh", "su", "setpriv", "env", "make", "perl"}) {
    programs.add(name);
  }
  programs.add("npm", "#!/usr/bin/env node\n");
  programs.add("script", "#!/bin/sh\nnode a.js\n");
  programs.add("perls", "#!/usr/bin/perl\nsystem('node');\n");
  const auto has_log = [&](std::vector<std::string> command) {
    const NamingPlan plan = plan_naming(programs.request(std::move(command), "v20.0.0"));
    const std::string value = value_of(plan, "NODE_OPTIONS");
    CHECK((value == kNode || value == kNodeWithoutLog));
    CHECK(plan.notes.empty());
    CHECK(plan.left_out.size() == (value == kNode ? 0 : 1));
    return value == kNode;
  };
  CHECK(has_log({"node", "a.js"}));
  CHECK(has_log({"npm", "start"}));
  CHECK(has_log({"sh", "-c", "cd /proc; node --no-logfile-per-isolate --logfile=+ a.js"}));
  CHECK_FALSE(has_log({"sh", "-c", "node a.js"}));
  CHECK_FALSE(has_log({"script"}));
  CHECK_FALSE(has_log({"perls"}));
  CHECK_FALSE(has_log({"make"}));
  CHECK_FALSE(has_log({"env", "-C", "/proc", "node"}));
  CHECK_FALSE(has_log({"setpriv", "--reuid", "app", "node"}));
  CHECK_FALSE(has_log({"su", "app", "-c", "node a.js"}));
}

TEST_CASE("a later release gets no option as another user", "[record]") {
  Programs programs;
  for (const char* const name : {"node", "setpriv"}) programs.add(name);
  const NamingPlan plan =
      plan_naming(programs.request({"setpriv", "--reuid", "app", "node"}, "v24.1.0"));
  CHECK(plan.variables.empty());
  REQUIRE(plan.left_out.size() == 1);
  CHECK(plan.left_out[0].first == Runtime::v8);
  CHECK(plan.left_out[0].second.find("--no-logfile-per-isolate --logfile=+") != std::string::npos);
}

TEST_CASE("a later release that may print its log gets a note", "[record]") {
  Programs programs;
  for (const char* const name : {"node", "make"}) programs.add(name);
  const NamingPlan plan = plan_naming(programs.request({"make"}, "v24.1.0"));
  CHECK(value_of(plan, "NODE_OPTIONS") == kNode);
  REQUIRE(plan.notes.size() == 1);
  CHECK(plan.notes[0].starts_with("Node.js (V8) prints a log on standard output if it is started"));
}

TEST_CASE("files are tried where permission bits do not decide", "[record]") {
  const test::Scratch scratch;
  CHECK(can_create_files_in(scratch.path()));
  CHECK(std::filesystem::is_empty(scratch.path()));
  CHECK_FALSE(can_create_files_in("/proc"));
  CHECK_FALSE(can_create_files_in("/sys"));
  CHECK_FALSE(can_create_files_in(scratch.path() + "/none"));
}

TEST_CASE("chosen runtimes replace the search", "[record]") {
  Programs programs;
  programs.add("node");
  programs.add("server");
  NamingRequest request = programs.request({"server"}, "v20.0.0");
  request.runtimes = {Runtime::v8};
  CHECK(value_of(plan_naming(request), "NODE_OPTIONS") == kNodeWithoutLog);
  request = programs.request({"node"}, "v20.0.0");
  request.runtimes.emplace();
  CHECK(plan_naming(request).variables.empty());
}

TEST_CASE("in a directory without write permission Node.js gets no log", "[record]") {
  Programs programs;
  programs.add("node");
  NamingRequest request = programs.request({"node"}, "v20.0.0");
  request.can_write = false;
  CHECK(value_of(plan_naming(request), "NODE_OPTIONS") == kNodeWithoutLog);
  request = programs.request({"node"}, "v24.1.0");
  request.can_write = false;
  const NamingPlan plan = plan_naming(request);
  CHECK(plan.variables.empty());
  REQUIRE(plan.left_out.size() == 1);
  // The advice works.
  CHECK(plan.left_out[0].second.find("--no-logfile-per-isolate --logfile=+") != std::string::npos);
  request.command = {"node", "--no-logfile-per-isolate", "--logfile=+", "a.js"};
  CHECK(value_of(plan_naming(request), "NODE_OPTIONS") == kNode);
}

TEST_CASE("PHP reads a file of settings in addition to its own", "[record]") {
  Programs programs;
  programs.add("php");
  NamingRequest request = programs.request({"php"}, "");
  NamingPlan plan = plan_naming(request);
  CHECK(value_of(plan, "PHP_INI_SCAN_DIR") == ":/recording/ini");
  CHECK(plan.ini.find("opcache.jit=tracing\n") != std::string::npos);
  CHECK(plan.ini.find("opcache.jit_debug=0x10\n") != std::string::npos);
  request.environment.push_back("PHP_INI_SCAN_DIR=/etc/php");
  plan = plan_naming(request);
  CHECK(value_of(plan, "PHP_INI_SCAN_DIR") == "/etc/php:/recording/ini");
}

TEST_CASE("what a runtime writes is kept apart, or has no name", "[record]") {
  Programs programs;
  for (const char* const name : {"deno", "bun", "pypy3"}) programs.add(name);
  const NamingPlan deno = plan_naming(programs.request({"deno", "run", "a.js"}, ""));
  CHECK(value_of(deno, "DENO_V8_FLAGS") ==
        "--perf-basic-prof,--interpreted-frames-native-stack,--no-logfile-per-isolate,--logfile=+");
  CHECK_FALSE(deno.writes_to_directory);
  NamingRequest request = programs.request({"deno"}, "");
  request.environment.emplace_back("DENO_V8_FLAGS=--expose-gc");
  CHECK(value_of(plan_naming(request), "DENO_V8_FLAGS").starts_with("--expose-gc,--perf"));
  const NamingPlan bun = plan_naming(programs.request({"bun", "a.js"}, ""));
  CHECK(value_of(bun, "BUN_JSC_useJITDump") == "1");
  CHECK(value_of(bun, "BUN_JSC_jitDumpDirectory") == "none");
  const NamingPlan pypy = plan_naming(programs.request({"pypy3", "a.py"}, ""));
  CHECK(value_of(pypy, "PYPYLOG") == "jit-backend-addr:/recording/written/pypy-%d.log");
  CHECK(pypy.writes_to_directory);
}

TEST_CASE("a path that a runtime would split is not passed", "[record]") {
  Programs programs;
  programs.add("php");
  NamingRequest request = programs.request({"php"}, "");
  request.directory = "/a:b";
  const NamingPlan plan = plan_naming(request);
  CHECK(plan.variables.empty());
  REQUIRE(plan.notes.size() == 1);
  CHECK(plan.notes[0].ends_with("because it would split the path of the recording, /a:b"));
}

TEST_CASE("a jitdump that cannot be mapped would end Bun", "[record]") {
  Programs programs;
  programs.add("bun");
  NamingRequest request = programs.request({"bun"}, "");
  request.can_map_tmp = false;
  const NamingPlan plan = plan_naming(request);
  CHECK(plan.variables.empty());
  REQUIRE(plan.notes.size() == 1);
  CHECK(plan.notes[0].ends_with("because it would abort: /tmp is mounted with noexec"));
}

TEST_CASE("nothing is set if no file can be created in /tmp", "[record]") {
  Programs programs;
  programs.add("node");
  NamingRequest request = programs.request({"node"}, "");
  request.can_write_tmp = false;
  const NamingPlan plan = plan_naming(request);
  CHECK(plan.variables.empty());
  REQUIRE(plan.notes.size() == 1);
  CHECK(plan.notes[0].ends_with("because no file can be created in /tmp"));
}

TEST_CASE("a program that is only interpreted gets a note", "[record]") {
  Programs programs;
  for (const char* const name : {"java", "php", "node"}) programs.add(name);
  NamingRequest request = programs.request({"java", "-jar", "a.jar"}, "17.0.1");
  const std::size_t notes = plan_naming(request).notes.size();
  request.environment.emplace_back("JAVA_TOOL_OPTIONS=-Xint");
  CHECK(plan_naming(request).notes.size() == notes + 1);
  request = programs.request({"java", "-Xint", "-jar", "a.jar"}, "17.0.1");
  const NamingPlan java = plan_naming(request);
  CHECK(std::ranges::find(java.notes, runtime_info(Runtime::hotspot).doctor.only_interprets) !=
        java.notes.end());
  const auto php = [&](std::vector<std::string> command) {
    return plan_naming(programs.request(std::move(command), "")).notes.size();
  };
  CHECK(php({"php", "-d", "opcache.jit=off", "a.php"}) == 1);
  CHECK(php({"php", "-dopcache.jit=0", "a.php"}) == 1);
  CHECK(php({"php", "-d", "opcache.jit=off", "-d", "opcache.jit=tracing", "a.php"}) == 0);
  CHECK(php({"php", "a.php", "-d", "opcache.jit=off"}) == 0);
  CHECK(plan_naming(programs.request({"node", "--jitless", "a.js"}, "v20.1.0")).notes.size() == 1);
}

TEST_CASE("a PostgreSQL server gets an option, its clients none", "[record]") {
  Programs programs;
  programs.add("postgres");
  programs.add("sh");
  const NamingPlan plan = plan_naming(programs.request({"postgres", "-D", "data"}, ""));
  CHECK(value_of(plan, "JITDUMPDIR") == "/recording/written");
  CHECK(plan.arguments == std::vector<std::string>{"-c", "jit_profiling_support=on"});
  const std::vector<std::string> own = {"postgres", "-c", "jit_profiling_support=on"};
  CHECK(plan_naming(programs.request(own, "")).arguments.empty());
  const NamingPlan shell = plan_naming(programs.request({"sh"}, ""));
  CHECK(value_of(shell, "PGOPTIONS") == "none");
  CHECK(shell.arguments.empty());
}

TEST_CASE("a runtime whose option is of no use gets none, and the reason is given", "[record]") {
  Programs programs;
  programs.add("guile");
  programs.add("sh");
  const NamingPlan plan = plan_naming(programs.request({"guile"}, "3.0.8"));
  CHECK(plan.variables.empty());
  REQUIRE(plan.notes.size() == 1);
  CHECK(plan.notes[0].starts_with("Guile: names are not turned on, because its perf map has"));
  CHECK(plan_naming(programs.request({"sh"}, "3.0.8")).notes.empty());
}

TEST_CASE("a value that cannot be extended stays the user's", "[record]") {
  Programs programs;
  programs.add("python3");
  NamingRequest request = programs.request({"python3"}, "Python 3.12.1");
  CHECK(value_of(plan_naming(request), "PYTHONPERFSUPPORT") == "1");
  request.environment.push_back("PYTHONPERFSUPPORT=0");
  const NamingPlan plan = plan_naming(request);
  CHECK(plan.variables.empty());
  REQUIRE(plan.notes.size() == 1);
  CHECK(plan.notes[0] == "PYTHONPERFSUPPORT keeps its value 0");
}

TEST_CASE("variables replace those of the environment", "[record]") {
  NamingPlan plan;
  plan.variables = {{Runtime::v8, "A", "new"}};
  CHECK(environment_with({"A=old", "AB=1"}, plan) == std::vector<std::string>{"AB=1", "A=new"});
}

TEST_CASE("hostile first lines of scripts end the search", "[record]") {
  Programs programs;
  programs.add("loop", "#!" + programs.path("loop") + "\n");
  programs.add("long", "#!" + std::string(100000, 'x'));
  programs.add("env", "#!/usr/bin/env env env env -S\n");
  programs.add("none", "#!\n");
  for (const char* const name : {"loop", "long", "env", "none"}) {
    CHECK(plan_naming(programs.request({name}, "1.0")).runtime == Runtime::unknown);
  }
}

}  // namespace perfmap::naming_plan_test
