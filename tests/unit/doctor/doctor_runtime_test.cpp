// SPDX-License-Identifier: MIT
// Which runtime is detected, and what the doctor proposes for it.

#include <algorithm>

#include "doctor/findings.hpp"
#include "perfmap/text.hpp"
#include "support/fake_process.hpp"

namespace perfmap::doctor_runtime_test {
namespace {

using test::FakeProcess;
using test::finding_of;
using test::ids_of;
using Strings = std::vector<std::string>;

struct Started {
  std::string runtime;
  std::string executable;
  Strings arguments;
  std::string fix;
};

}  // namespace

TEST_CASE("for each runtime the fix is its own command line with the flags that write names",
          "[doctor]") {
  const auto started = GENERATE(values<Started>({
      {"node",
       "/usr/bin/node",
       {"node", "a b.js", "-x"},
       "node --perf-basic-prof --interpreted-frames-native-stack 'a b.js' -x"},
      {"node",
       "/usr/bin/nodejs",
       {"node", "--interpreted_frames_native_stack", "a.js"},
       "node --perf-basic-prof --interpreted_frames_native_stack a.js"},
      {"cpython",
       "/usr/bin/python3.12",
       {"python3", "-m", "http.server"},
       "python3 -X perf -m http.server"},
      {"cpython", "/usr/bin/python3.11 (deleted)", {"python3", "a.py"}, "python3.12 -X perf a.py"},
      {"pypy",
       "/usr/bin/pypy3.9-c",
       {"pypy3", "a.py"},
       "PYPYLOG=jit-backend,jit-log-opt:/tmp/pypy-%d.log pypy3 a.py"},
      {"dotnet",
       "/usr/share/dotnet/dotnet",
       {"dotnet", "app.dll"},
       "DOTNET_PerfMapEnabled=1 DOTNET_EnableWriteXorExecute=0 dotnet app.dll"},
      {"erlang",
       "/usr/lib/erlang/erts-13.1/bin/beam.smp",
       {"beam.smp", "--", "-progname", "iex"},
       "ERL_FLAGS='+JPperf true' iex ..."},
      {"ruby", "/usr/bin/ruby3.3", {"ruby", "--yjit", "a.rb"}, "ruby --yjit-perf --yjit a.rb"},
      {"ruby", "/usr/bin/ruby4.0", {"ruby", "--zjit", "a.rb"}, "ruby --zjit-perf --zjit a.rb"},
      {"ruby", "/usr/bin/ruby", {"puma 6.0 (tcp://[::]:80) [app]"}, "ruby --yjit --yjit-perf ..."},
      {"php", "/usr/bin/php8.2", {"php", "a.php"}, "php -d opcache.jit_debug=0x10 a.php"},
      {"php",
       "/usr/sbin/php-fpm8.2",
       {"php-fpm: pool www"},
       "php-fpm8.2 -d opcache.jit_debug=0x10 ..."},
      {"mono", "/usr/bin/mono-sgen", {"mono", "a.exe"}, "mono --jitmap a.exe"},
      {"luajit",
       "/usr/bin/luajit-2.1.0-beta3",
       {"luajit", "a.lua"},
       "make XCFLAGS=-DLUAJIT_USE_PERFTOOLS"},
      {"deno",
       "/usr/bin/deno",
       {"deno", "run", "a.ts"},
       "DENO_V8_FLAGS=--perf-basic-prof,--interpreted-frames-native-stack deno run a.ts"},
      {"bun",
       "/app/node_modules/bun/bin/bun.exe",
       {"bun", "run", "a.ts"},
       "BUN_JSC_useJITDump=1 BUN_JSC_jitDumpDirectory=/tmp bun run a.ts"},
      {"wasmtime",
       "/opt/wasmtime",
       {"wasmtime", "run", "a.wasm"},
       "wasmtime run --profile=perfmap a.wasm"},
  }));
  FakeProcess process;
  const Diagnosis found = process.program(started.executable, started.arguments).diagnose();
  CAPTURE(started.executable);
  CHECK(process_word(found.runtime) == started.runtime);
  REQUIRE(found.findings.size() >= 1);
  CHECK(found.findings[0].fix == started.fix);
  CHECK(found.misses_names());
  CHECK(found.evidence.starts_with("executable /"));
}

TEST_CASE("a runtime embedded in another program is detected by its libraries and its memory",
          "[doctor]") {
  FakeProcess process;
  process.program("/opt/app");
  const auto runtime_with = [&](const std::string& line) {
    return std::string(process_word(process.maps(line).diagnose().runtime));
  };
  CHECK(runtime_with("1000-2000 r-xp 0 8:1 7 /opt/lib/server/libjvm.so\n") == "jvm");
  CHECK(runtime_with("1000-2000 r-xp 0 8:1 7 /opt/libnode.so.108\n") == "node");
  CHECK(runtime_with("1000-2000 r-xp 0 8:1 7 /opt/libcoreclr.so\n") == "dotnet");
  CHECK(runtime_with("1000-2000 r-xp 0 8:1 7 /opt/libmonosgen-2.0.so.1\n") == "mono");
  CHECK(runtime_with("1000-2000 r-xp 0 8:1 7 /opt/libruby-3.1.so.3.1\n") == "ruby");
  CHECK(runtime_with("1000-2000 r-xp 0 8:1 7 /opt/libluajit-5.1.so.2\n") == "luajit");
  CHECK(runtime_with("1000-2000 r-xp 0 0:1 7 /memfd:doublemapper (deleted)\n") == "dotnet");
  CHECK(runtime_with("1000-2000 r-xp 0 0:0 0 [anon:Ruby:rb_yjit_reserve_addr_space]\n") == "ruby");
  CHECK(runtime_with("1000-2000 r-xp 0 8:1 7 /opt/lib/llvmjit.so\n") == "postgresql");
  CHECK(runtime_with("1000-2000 r-xp 0 8:1 7 /opt/libguile-3.0.so.1\n") == "guile");
  CHECK(runtime_with("1000-2000 r-xp 0 8:1 7 /opt/lib/llvmjit_types.so\n").empty());
  CHECK(runtime_with("1000-2000 r-xp 0 8:1 7 /opt/libpython_helpers.so\n").empty());
  CHECK(runtime_with("1000-2000 r-xp 0 8:1 7 /opt/nodes/libm.so.6\n").empty());
}

TEST_CASE("a program that only embeds Python has no findings", "[doctor]") {
  FakeProcess process;
  process.program("/usr/bin/gdb").maps("1000-2000 r-xp 0 8:1 7 /usr/lib/libpython3.11.so.1.0\n");
  const Diagnosis found = process.diagnose();
  CHECK(process_word(found.runtime) == "cpython");
  CHECK(ids_of(found).empty());
}

TEST_CASE("a program without a JIT has no findings, even with a link in place of a map",
          "[doctor]") {
  FakeProcess process;
  process.program("/usr/bin/true").maps("1000-2000 r-xp 0 8:1 7 /usr/bin/true\n");
  std::filesystem::create_symlink("/etc/passwd", process.outside("perf-42.map"));
  const Diagnosis found = process.diagnose();
  CHECK(found.findings.empty());
  CHECK(!found.concerns_jit());
  CHECK(test::text_of(found, false)
            .ends_with("the process has no JIT code: all names come from ELF files\n"));
}

TEST_CASE("executable memory of an unknown runtime is reported without a command", "[doctor]") {
  FakeProcess process;
  const Diagnosis found = process.program("/opt/app").diagnose();
  CHECK(ids_of(found) == Strings{"unknown-jit"});
  CHECK(found.findings[0].fix.empty());
  CHECK(found.findings[0].message.ends_with(
      " of executable memory that belongs to no file, but no perf map or jitdump, and perfmap does "
      "not know the runtime"));
  CHECK(found.memory.bytes == 0x10000);
  process.maps("1000-2000 r-xp 0 0:1 7 /memfd:libffi (deleted)\n");
  CHECK(process.diagnose().findings.empty());
}

TEST_CASE("a link in place of a map is one finding, even for an unknown runtime", "[doctor]") {
  FakeProcess process;
  process.program("/opt/app");
  std::filesystem::create_symlink("/etc/passwd", process.outside("perf-42.map"));
  CHECK(ids_of(process.diagnose()) == Strings{"not-a-file"});
}

TEST_CASE("a flag that a runtime already has is not proposed again", "[doctor]") {
  FakeProcess process;
  const auto lost = [&] { return finding_of(process.diagnose(), "lost-map"); };
  process.program("/usr/bin/node", {"node", "--perf_basic_prof", "a.js"});
  CHECK(lost().message.find("--perf-basic-prof, but its file does not exist") != std::string::npos);
  CHECK(lost().message.starts_with("Node.js was started with"));
  CHECK(lost().fix == "node --perf_basic_prof a.js");
  process.program("/usr/bin/node", {"node", "a.js"})
      .environment({"NODE_OPTIONS=--perf-basic-prof"});
  CHECK(lost().fix == "NODE_OPTIONS=--perf-basic-prof node a.js");
  // Arguments after the script belong to the script.
  process.program("/usr/bin/node", {"node", "a.js", "--perf-basic-prof"}).environment({});
  CHECK(lost().message.empty());
  process.program("/usr/bin/python3.13", {"python", "-Xperf", "a.py"});
  CHECK(!lost().message.empty());
  process.program("/usr/bin/python3.13", {"python", "-c", "0", "-Xperf"});
  CHECK(lost().message.empty());
  process.environment({"PYTHON_PERF_JIT_SUPPORT=1"});
  CHECK(!lost().message.empty());
  for (const char* const flag : {"+JPperf", "-JPperf"}) {  // as typed, and as erlexec passes it on
    process.program("/opt/beam.smp", {"beam.smp", flag, "true", "--"});
    CHECK(!lost().message.empty());
  }
  process.program("/opt/deno", {"deno", "run", "--v8-flags=--max-lazy,--perf_basic_prof", "a.ts"})
      .environment({"DENO_V8_FLAGS=--max-lazy"});
  CHECK(lost().fix ==
        "DENO_V8_FLAGS=--max-lazy deno run --v8-flags=--max-lazy,--perf_basic_prof a.ts");
  process.environment({"NODE_OPTIONS=--perf-basic-prof"}).program("/opt/deno", {"deno", "a.ts"});
  CHECK(lost().message.empty());
  process.program("/opt/bun", {"bun", "a.ts"}).environment({"BUN_JSC_useJITDump=1"});
  CHECK(lost().message.starts_with("Bun was started with BUN_JSC_useJITDump=1, but its file"));
  process.environment({"JSC_useJITDump=1"});
  CHECK(lost().message.empty());
  process.program("/opt/wasmtime", {"wasmtime", "--profile", "perfmap", "a.wasm"});
  CHECK(!lost().message.empty());
  process.program("/usr/bin/php8.2", {"php", "-dopcache.jit_debug=48", "a.php"});
  CHECK(!lost().message.empty());
  process.program("/usr/bin/ruby", {"ruby", "a.rb"}).environment({"RUBYOPT=-w --yjit-perf=map"});
  CHECK(!lost().message.empty());
  process.program("/opt/dotnet")
      .environment({"DOTNET_PerfMapEnabled=3", "DOTNET_PerfMapJitDumpPath=/data"});
  CHECK(lost().message.find("writes to /data") != std::string::npos);
  CHECK(lost().fix == "cp /proc/42/root/data/perf-3.map " + process.outside("perf-42.map"));
  process.environment({"DOTNET_PerfMapEnabled=1", "TMPDIR=/scratch/"});
  CHECK(lost().message.find("writes to /scratch,") != std::string::npos);
  process.share_mounts();
  process.program("/usr/bin/node", {"node", "--perf-basic-prof", "--perf_basic_prof_path=/a_b"});
  CHECK(lost().fix == "cp /a_b/perf-3.map " + process.outside("perf-42.map"));
}

TEST_CASE("each runtime that reads variables has variables that make it write names", "[doctor]") {
  using Variables = std::vector<std::string>;
  const auto variables_of = [](Runtime runtime, const std::string& version = "") {
    const ProcessView view;
    const DoctorOptions options;
    DoctorCase facts{view, options};
    facts.found.runtime = runtime;
    facts.found.version = version;
    return naming_variables(facts);
  };
  CHECK(variables_of(Runtime::cpython) == Variables{"PYTHONPERFSUPPORT=1"});
  CHECK(variables_of(Runtime::cpython, "3.11").empty());
  CHECK(variables_of(Runtime::dotnet) ==
        Variables{"DOTNET_PerfMapEnabled=1", "DOTNET_EnableWriteXorExecute=0"});
  CHECK(variables_of(Runtime::erlang) == Variables{"ERL_FLAGS=+JPperf true"});
  CHECK(variables_of(Runtime::ruby) == Variables{"RUBYOPT=--yjit --yjit-perf"});
  CHECK(variables_of(Runtime::mono) == Variables{"MONO_ENV_OPTIONS=--jitmap"});
  for (const Runtime runtime : {Runtime::v8, Runtime::hotspot, Runtime::pypy}) {
    CHECK(variables_of(runtime).size() == 1);
  }
  for (const Runtime runtime : {Runtime::php, Runtime::luajit, Runtime::wasm, Runtime::unknown}) {
    CHECK(variables_of(runtime).empty());
  }
}

TEST_CASE("releases that cannot write names are reported as too old", "[doctor]") {
  const auto is_too_old = [](const FakeProcess& process) {
    const Strings ids = ids_of(process.diagnose());
    return std::find(ids.begin(), ids.end(), "too-old") != ids.end();
  };
  for (const auto& [python, old] : {std::pair{"3.11", true}, {"3.12", false}, {"3.13", false}}) {
    FakeProcess process;
    process.program("/usr/bin/python" + std::string(python), {"python3", "a.py"});
    CAPTURE(python);
    CHECK(is_too_old(process) == old);
  }
  for (const auto& [ruby, old] : {std::pair{"3.1", true}, {"3.3", false}, {"", false}}) {
    FakeProcess process;
    process.program("/usr/bin/ruby" + std::string(ruby), {"ruby", "--yjit", "a.rb"});
    CAPTURE(ruby);
    CHECK(is_too_old(process) == old);
  }
  for (const auto& [java, old] : {std::pair{"16.0.2", true}, {"17.0.0", false}, {"21", false}}) {
    FakeProcess process;
    process.maps("1000-2000 rwxp 0 0:0 0 \n3000-4000 r-xp 0 8:1 7 /jdk/lib/server/libjvm.so\n");
    process.program("/jdk/bin/java", {"java", "-jar", "a.jar"});
    process.planted.put("root/jdk/release", "JAVA_VERSION=\"" + std::string(java) + "\"\n");
    CAPTURE(java);
    CHECK(is_too_old(process) == old);
  }
}

TEST_CASE("the advice for a JVM depends on its release and flags", "[doctor]") {
  FakeProcess process;
  process.maps("1000-2000 rwxp 0 0:0 0 \n3000-4000 r-xp 0 8:1 7 /jdk/lib/server/libjvm.so\n");
  process.program("/jdk/bin/java", {"java", "-Xint", "-jar", "a.jar"});
  process.planted.put("root/jdk/release", "IMPLEMENTOR=\"x\"\nJAVA_VERSION=\"17.0.15\"\n");
  Diagnosis found = process.diagnose();
  CHECK(found.runtime_version == "17.0.15");
  CHECK(ids_of(found) == Strings{"no-map", "only-interpreted", "frame-pointers"});
  CHECK(found.findings[0].fix == "nsenter --target 42 --mount --pid -- jcmd 3 Compiler.perfmap");
  CHECK(found.findings[1].fix == "java -jar a.jar");
  CHECK(found.findings[2].fix == "java -XX:+PreserveFramePointer -Xint -jar a.jar");
  CHECK(found.findings[2].severity == Severity::info);

  process.status("NStgid:\t42\n");
  process.share_mounts();
  CHECK(process.diagnose().findings[0].fix ==
        "sudo -u '#" + std::to_string(FakeProcess::uid()) + "' jcmd 42 Compiler.perfmap");
  process.options.reader = FakeProcess::uid();
  CHECK(process.diagnose().findings[0].fix == "jcmd 42 Compiler.perfmap");

  process.planted.put("root/jdk/release", "JAVA_VERSION=\"1.8.0_292\"\n");
  process.environment({"JAVA_TOOL_OPTIONS=-XX:+PreserveFramePointer"});
  found = process.diagnose();
  CHECK(found.runtime_version == "8.0");
  CHECK(ids_of(found) == Strings{"too-old", "only-interpreted"});
  CHECK(found.findings[0].fix.empty());
}

TEST_CASE("V8's options are added to those that Deno already has", "[doctor]") {
  FakeProcess process;
  process.program("/opt/deno", {"deno", "run", "a.ts"})
      .environment({"DENO_V8_FLAGS=--max-old-space-size=99,--interpreted_frames_native_stack"});
  CHECK(finding_of(process.diagnose(), "no-map").fix ==
        "DENO_V8_FLAGS=--max-old-space-size=99,--interpreted_frames_native_stack,"
        "--perf-basic-prof deno run a.ts");
  process.program("/opt/deno", {"deno", "run", "--v8-flags=--jitless", "a.ts"});
  CHECK(ids_of(process.diagnose()) == Strings{"only-interpreted"});
}

TEST_CASE("a process of PostgreSQL is one that has loaded its JIT", "[doctor]") {
  FakeProcess process;
  const std::string program = "/usr/lib/postgresql/15/bin/postgres";
  process.program(program, {"postgres: me db [local] idle", "", ""});
  process.maps("1000-2000 r-xp 0 8:1 7 /opt/llvmjit.so\n");
  Diagnosis found = process.diagnose();
  CHECK(found.findings.empty());
  process.maps("1000-2000 r-xp 0 8:1 7 /opt/llvmjit.so\n3000-4000 r-xp 0 0:0 0 \n");
  found = process.diagnose();
  REQUIRE(ids_of(found) == Strings{"no-map"});
  CHECK(found.findings[0].fix == "JITDUMPDIR=/tmp postgres -c jit_profiling_support=on ...");
  for (const char* const on : {"jit_profiling_support=on", "-cjit_profiling_support=1",
                               "--jit-profiling-support=true", "jit_profiling_support=yes"}) {
    process.program(program, {"postgres", "-c", on});
    CHECK(ids_of(process.diagnose()) == Strings{"lost-map"});
  }
  process.program(program, {"postgres", "-c", "jit_profiling_support=off"});
  CHECK(ids_of(process.diagnose()) == Strings{"no-map"});
}

TEST_CASE("runtimes that cannot name their code for perf are explained, without a command",
          "[doctor]") {
  for (const std::string name : {"sbcl", "racket"}) {
    FakeProcess process;
    const Diagnosis found = process.program("/usr/bin/" + name, {name, "a"}).diagnose();
    CHECK(process_word(found.runtime) == name);
    REQUIRE(ids_of(found) == Strings{"no-map"});
    CHECK(found.findings[0].message.find(" cannot write a perf map or a jitdump, so its functions "
                                         "have no names") != std::string::npos);
    CHECK(found.findings[0].fix.empty());
  }
}

TEST_CASE("Guile's map is proposed although its names are addresses", "[doctor]") {
  FakeProcess process;
  process.program("/usr/lib/x86_64-linux-gnu/guile/3.0/bin/guile", {"guile", "a.scm"});
  const DoctorFinding found = finding_of(process.diagnose(), "no-map");
  CHECK(found.message.find("has addresses of bytecode in their place") != std::string::npos);
  CHECK(found.fix == "GUILE_JIT_LOG=1 guile a.scm");
  process.environment({"GUILE_JIT_LOG=info"});
  CHECK(ids_of(process.diagnose()) == Strings{"no-map"});
  process.environment({"GUILE_JIT_LOG=3"});
  CHECK(ids_of(process.diagnose()) == Strings{"lost-map"});
}

TEST_CASE("a shell reads quoted words back unchanged", "[doctor]") {
  CHECK(shell_word("--a=b/c.d") == "--a=b/c.d");
  CHECK(shell_word("") == "''");
  CHECK(shell_word("a b;$(c)") == "'a b;$(c)'");
  CHECK(shell_word("it's") == "'it'\\''s'");
  CHECK(shell_word("\x1b[31m\n") == "$'\\x1b[31m\\x0a'");
  CHECK(shell_word("\x1b\n1%") == "\"$(printf '\\033\\n1%%')\"");
  CHECK(shell_word("ä") == "'ä'");
  CHECK(shell_word("\xff\\") == "\"$(printf '\\377\\\\')\"");
}

}  // namespace perfmap::doctor_runtime_test
