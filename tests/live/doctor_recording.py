# SPDX-License-Identifier: MIT
"""Runs `perfmap doctor` on recordings, and checks that each printed fix works if it is pasted into
a shell: doctor_recording.py PERFMAP

Exit status 77: perf cannot record.
"""
import json
import os
import pathlib
import platform
import re
import shutil
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
from chance import is_at_most, most
from other_user import copy_for_all
from perf_record import PERF_RECORD, used
from trying import require_samples
from waiting import HANG, proc_file, processor_time, until

PERFMAP = str(pathlib.Path(sys.argv[1]).resolve())
WORK_C = """
#include <stdlib.h>
#include <time.h>
volatile double sink;
__attribute__((noinline)) double leaf(int n) { double s = 0; for (int i = 1; i < n; i++) s += 1.0 / i; return s; }
__attribute__((noinline)) double middle(int n, int depth) {
  char room[512];
  for (int i = 0; i < 512; i += 64) ((volatile char *)room)[i] = 1;
  double s = depth > 0 ? middle(n, depth - 1) : leaf(n);
  return s + room[64];
}
int main(int count, char **words) { /* SECONDS of processor time */
  do {
    for (int i = 0; i < 50; i++) sink += middle(2000, count > 2 ? atoi(words[2]) : 1);
  } while ((double)clock() / CLOCKS_PER_SEC < atof(words[1]));
  return 0;
}
"""
NODE = ("function hot(n) { let s = 0; for (let i = 0; i < n; i++) s += i % 7; return s }"
        "let x = 0; while (process.cpuUsage().user < SECONDS * 1e6) for (let i = 0; i < 10; i++) x += hot(10000)")
JAVA = ("public class T { static int f(int n) { int s = 0; for (int i = 0; i < n; i++) s += i % 7; return s; }"
        " public static void main(String[] a) { long x = 0; for (int i = 0; i < ROUNDS; i++) x += f(10000);"
        " System.out.println(x); } }")
PYPY = ("import time\ndef hot(n):\n    s = 0\n    for i in range(n): s += i % 7\n    return s\n"
        "while time.process_time() < 0.6: hot(20000)\n")
ERLANG = ("lists:foldl(fun(X, A) -> lists:sum([Y rem 7 || Y <- lists:seq(1, 1000)]) + A + X end, 0,"
          " lists:seq(1, 5000)), halt().")
PERF = [*PERF_RECORD, "-o", "perf.data", "-e", "cpu-clock:u", "-F", "499"]
done, left_out = [], []


def run(command, **options):
    return subprocess.run(command, capture_output=True, text=True, timeout=HANG, **options)


def record(options, workload=()):
    """Records to perf.data, which it overwrites."""
    made = run([*PERF, *options, *(["--", *workload] if workload else [])])
    assert made.returncode == 0, made


def doctor(*options, status=None, least=20):
    found = run([PERFMAP, "doctor", "perf.data", "--format", "json", *options])
    assert found.returncode in (0, 1), found
    read = json.loads(found.stdout)
    require_samples(read["samples"], least, "perf.data")
    assert status is None or found.returncode == status, found
    return read


def ids(found):
    return [one["id"] for one in found["findings"]]


def fix_of(found, name):
    fixes = [one["fix"] for one in found["findings"] if one["id"] == name]
    assert len(fixes) == 1, (name, found["findings"])
    return fixes[0]


def paste(fix):
    """Runs the fix in a shell; it must not contain placeholders."""
    assert fix and "..." not in fix and " DIR" not in fix, fix
    ran = run(["sh", "-c", fix])
    assert ran.returncode == 0, (fix, ran)
    return ran


def names_javascript(stacks):
    """Whether stacks have V8's names of JavaScript functions ("JS:" since version 10)."""
    return re.search("JS:|LazyCompile:", stacks) is not None


def is_named(process):
    """Up to 0.5 % of the JIT frames may be unnamed: their code is gone, or they are no frames."""
    require_samples(process["jit_frames"], 10, "JIT frames")
    return is_at_most(process["unnamed_jit_frames"], process["jit_frames"], 0.005)


def check_fix(name, found, also=()):
    """Pastes the fix and checks that the finding is gone. Findings of single frames may remain as notes: a few of
    thousands of frames are no frames, in new code, or in a stub without a frame pointer."""
    fix = fix_of(found, name)
    paste(fix)
    again = doctor()
    notes = {"unnamed-jit", "frame-pointers"}
    left = {one["id"] for one in again["findings"] if one["id"] not in notes or one["severity"] != "info"}
    assert not left & {name, *also}, (fix, again["findings"])
    return again


def compiled(name, *flags, compiler="gcc", source="work.c", link=("-static",)):
    """Static, so that no sample is in the dynamic loader or a library of the system: one in stripped code, of the 100 of a
    short run, would be a finding of its own."""
    return run([compiler, *link, *flags, source, "-o", name]).returncode == 0


def few(found):
    """How many samples may be in instructions for which no rule is right, such as those that change
    the stack, or in code that starts the program: 1 %."""
    return most(found["samples"], 0.01)


def main_process(found):
    return max(found["processes"], key=lambda one: one["samples"])


def check_healthy():
    assert compiled("good", "-O1", "-g", "-fno-optimize-sibling-calls")
    record(["--call-graph", "dwarf"], ["./good", "0.2"])
    found = doctor(status=0)
    assert found["findings"] == [] and main_process(found)["looked_for"] == [], found
    text = run([PERFMAP, "doctor", "perf.data"]).stdout
    assert text.endswith("\nno problem found\n"), text
    # With the dynamic loader and libc, of which few samples may have no name.
    assert compiled("dynamic", "-O1", "-g", "-fno-optimize-sibling-calls", link=())
    record(["--call-graph", "dwarf"], ["./dynamic", "0.2"])
    found = doctor()
    assert main_process(found)["looked_for"] == [] and found["samples"] - found["root"] <= few(found), found
    record(["-g"], ["sh", "-c", "for i in 1 2 3 4 5 6 7 8 9; do ls / > /dev/null; ./good 0.05; done"])
    check_few_astray(doctor(status=0))


def check_few_astray(found):
    """The system's libraries, such as the libc of `ls`, may have no frame pointers: a note about a few stacks."""
    for one in found["findings"]:
        assert (one["id"], one["severity"]) == ("no-frame-pointers", "info"), found
        part, whole = re.match(r"(\d+) of (\d+) stacks ", one["message"]).groups()
        assert is_at_most(int(part), int(whole), 0.05), one


def check_perf_options():
    record([], ["./good", "0.2"])
    found = doctor(status=1)
    assert ids(found) == ["no-stacks"], found
    check_fix("no-stacks", found)
    record(["--call-graph", "dwarf,4096"], ["./good", "0.2", "20"])
    check_fix("cut-stacks", doctor(status=1))
    record(["-g", "-B"], ["./good", "0.2"])
    found = doctor(status=0)
    assert ids(found) == ["no-build-ids"], found
    check_fix("no-build-ids", found)


def check_attached():
    """The recorded process has ended, so the fix records another process with the same name."""
    shutil.copy("good", "it.is+good")
    with subprocess.Popen(["./it.is+good", "60"]) as process:
        until(lambda: processor_time(process.pid) > 0.1)
        record(["-p", str(process.pid)], used(0.2))
        process.kill()
    fix = fix_of(doctor(status=1), "no-stacks")
    assert f"{process.pid}" not in fix, fix
    with subprocess.Popen(["./it.is+good", "60"]) as process:
        until(lambda: processor_time(process.pid) > 0.1)
        paste(fix)
        process.kill()
    again = doctor()
    assert main_process(again)["pid"] == process.pid and "no-stacks" not in ids(again), again


def check_no_tables():
    assert compiled("bare", "-O2", "-fno-asynchronous-unwind-tables", "-fomit-frame-pointer")
    record(["--call-graph", "dwarf"], ["./bare", "0.2"])
    found = doctor(status=1)
    assert ids(found) == ["early-ends"], found
    message = found["findings"][0]["message"]
    assert re.match(r"\d+ of \d+ stacks \((9\d|100) %\) end in /.*/bare", message), message
    assert main_process(found)["early_ends"][0]["module"].endswith("/bare"), found
    ran = paste(fix_of(found, "early-ends"))
    assert ";main;" in ran.stdout, ran


def check_stripped():
    """A debuginfod server, here a directory, has the debug information of a stripped file."""
    assert compiled("whole", "-O1", "-g", "-fno-optimize-sibling-calls", "-Wl,--build-id")
    record(["--call-graph", "dwarf"], ["./whole", "0.2"])
    assert "no-symbols" not in ids(doctor(status=0)), doctor()
    assert run(["objcopy", "--strip-all", "whole", "bald"]).returncode == 0
    record(["--call-graph", "dwarf"], ["./bald", "0.2"])
    found = doctor(status=1)
    assert ids(found) == ["no-symbols"], found
    message = found["findings"][0]["message"]
    assert re.match(r"\d+ of \d+ frames outside the kernel \(\d+ %\) have no name, .*: /\S*/bald \(\d+\)", message), message
    # No package has the file, so no server is proposed. One of the user's own has it here.
    assert message.endswith("; use files that are not stripped: link without -s, and do not run strip"), message
    assert fix_of(found, "no-symbols") is None, found
    build_id = re.search(r"Build ID: ([0-9a-f]+)", run(["readelf", "-n", "bald"]).stdout)[1]
    os.makedirs(f"served/buildid/{build_id}")
    assert run(["objcopy", "--only-keep-debug", "whole", f"served/buildid/{build_id}/debuginfo"]).returncode == 0
    own = {"DEBUGINFOD_URLS": f"file://{os.getcwd()}/served", "DEBUGINFOD_CACHE_PATH": f"{os.getcwd()}/cache"}
    told = run([PERFMAP, "stacks", "perf.data", "--debuginfod"], env={**os.environ, **own})
    if "libdebuginfod" in told.stderr:
        left_out.append("a server's debug files: " + told.stderr.strip())
        return
    assert told.returncode == 0 and ";main;middle;middle;leaf" in told.stdout, told


def check_32_bit():
    assert compiled("narrow", "-O1", "-m32", "-fno-omit-frame-pointer", "-fno-optimize-sibling-calls")
    record(["--call-graph", "dwarf"], ["./narrow", "0.2"])
    found = doctor()
    # A sample may have come while the loader ran: of a libc without symbols.
    assert [name for name in ids(found) if name != "no-symbols"] == [], found
    stacks = run([PERFMAP, "stacks", "perf.data"]).stdout
    assert ";main;middle;middle;leaf" in stacks, stacks


def check_musl():
    assert compiled("musl", "-O2", compiler="musl-gcc", link=())
    record(["--call-graph", "dwarf"], ["./musl", "0.2"])
    found = doctor(status=1)
    assert ids(found) == ["no-symbols", "early-ends"] and "musl" in found["findings"][1]["message"], found
    assert "_start;" in paste(fix_of(found, "early-ends")).stdout


def check_fibers():
    pathlib.Path("fiber.cpp").write_text("""
        #include <boost/context/fiber.hpp>
        #include <ctime>
        volatile double sink;
        __attribute__((noinline)) void work() { for (int i = 1; i < 100000; i++) sink = sink + 1.0 / i; }
        int main() {
          boost::context::fiber f{[](boost::context::fiber &&back) {
            for (;;) { work(); back = std::move(back).resume(); }
            return std::move(back);
          }};
          for (clock_t end = clock() + CLOCKS_PER_SEC / 4; clock() < end;) f = std::move(f).resume();
          _exit(0);
        }
        """)
    made = run(["g++", "-O1", "-include", "unistd.h", "fiber.cpp", "-o", "fiber", "-lboost_context"])
    assert made.returncode == 0, made
    record(["--call-graph", "dwarf"], ["./fiber"])
    found = doctor(status=0)
    assert ids(found) == ["fibers"] and found["findings"][0]["fix"] is None, found


def check_coroutines():
    """Complete stacks: what resumed a coroutine is not its caller."""
    pathlib.Path("coroutine.c").write_text("""
        #include <stdlib.h>
        #include <time.h>
        #include <ucontext.h>
        volatile double sink;
        ucontext_t start, other;
        __attribute__((noinline)) void work(void) { for (int i = 1; i < 5000; i++) sink = sink + 1.0 / i; }
        static void run(void) { for (;;) { work(); swapcontext(&other, &start); } }
        int main() {
          getcontext(&other);
          other.uc_stack.ss_sp = malloc(65536);
          other.uc_stack.ss_size = 65536;
          other.uc_link = &start;
          makecontext(&other, run, 0);
          for (clock_t end = clock() + CLOCKS_PER_SEC / 4; clock() < end;) swapcontext(&start, &other);
          return 0;
        }
        """)
    assert compiled("coroutine", "-O1", source="coroutine.c")
    record(["--call-graph", "dwarf"], ["./coroutine"])
    found = doctor()
    require_samples(found["samples"], 50, "coroutine")
    assert found["samples"] - found["root"] <= few(found), found
    assert "early-ends" not in ids(found) or found["root"] < found["samples"], found


def check_signal_stack():
    pathlib.Path("handled.c").write_text("""
        #include <signal.h>
        #include <stdlib.h>
        #include <time.h>
        volatile double sink;
        volatile int handled;
        static void handler(int signal) { for (int i = 1; i < 30000; i++) sink = sink + signal; handled = 1; }
        __attribute__((noinline)) void wait_for_it(timer_t timer) {
          struct itimerspec soon = {.it_value = {0, 10000}};
          handled = 0;
          timer_settime(timer, 0, &soon, 0);
          while (!handled) sink = sink + 1;
        }
        int main() {
          stack_t stack = {.ss_sp = malloc(65536), .ss_size = 65536};
          sigaltstack(&stack, 0);
          struct sigaction action = {.sa_handler = handler, .sa_flags = SA_ONSTACK};
          sigaction(SIGUSR1, &action, 0);
          struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGUSR1};
          timer_t timer;
          timer_create(CLOCK_MONOTONIC, &event, &timer);
          for (clock_t end = clock() + CLOCKS_PER_SEC / 4; clock() < end;) wait_for_it(timer);
          return 0;
        }
        """)
    assert compiled("handled", "-O1", "-fno-omit-frame-pointer", source="handled.c")
    record(["--call-graph", "dwarf"], ["./handled"])
    found = doctor(status=1)
    assert "other-stack" in ids(found), found
    require_samples(found["other_stack"], 10, "the handler's stack")
    assert found["bad_memory"] + found["no_info"] <= few(found), found
    check_fix("other-stack", found)
    stacks = run([PERFMAP, "stacks", "perf.data"]).stdout
    # The chain leads to the caller of the interrupted function.
    assert re.search(";main;(.*;)?handler", stacks), stacks


def check_go():
    """Goroutines whose runtime works on the thread's stack: their memory is collected."""
    pathlib.Path("tree.go").write_text("""
        package main
        import "time"
        type node struct { left, right *node }
        var kept *node
        func grow(n int) int { var a [64]int; if n == 0 { return a[n] }; a[n % 64] = grow(n - 1); return a[n % 64] }
        func tree(depth int) *node {
          if depth == 0 { return &node{} }
          return &node{tree(depth - 1), tree(depth - 1)}
        }
        func main() {
          for end := time.Now().Add(time.Second / 2); time.Now().Before(end); {
            kept = tree(12)
            done := make(chan int)
            go func() { done <- grow(500) }()
            <-done
          }
        }
        """)
    cache = {"GOCACHE": f"{os.getcwd()}/go-cache", "GO111MODULE": "off", "HOME": os.getcwd()}
    built = run(["go", "build", "-o", "tree", "tree.go"], env={**os.environ, **cache})
    assert built.returncode == 0, built
    record(["--call-graph", "dwarf,16384", "-F", "999"], ["./tree"])
    found = doctor(status=1)
    assert "Go's runtime" in [one["message"] for one in found["findings"] if one["id"] == "other-stack"][0], found
    assert found["bad_memory"] + found["no_info"] <= few(found), found
    lines = run([PERFMAP, "stacks", "perf.data", "--format", "jsonl"]).stdout.splitlines()
    for stack in map(json.loads, lines):
        names = [frame["name"] for frame in stack["frames"]]
        last = names[-1] or ""
        assert not (stack["end"] == "root" and last.startswith("runtime.systemstack")), stack
        assert stack["end"] != "other-stack" or last.startswith(("runtime.", "time.now")), stack
    paste(fix_of(found, "other-stack"))
    stacks = run([PERFMAP, "stacks", "perf.data"]).stdout
    assert re.search("runtime.goexit.*;runtime.systemstack", stacks), stacks


def check_files():
    """The recording is from another machine, so the fix copies files with ssh."""
    shutil.copy("good", "moved")
    pathlib.Path("bin/ssh").write_text("#!/bin/sh\n[ \"$1\" = far.away ] || exit 1\nshift\n"
                                       "mv hidden moved && exec sh -c \"$*\"\n")
    os.chmod("bin/ssh", 0o755)
    made = run(["unshare", "--uts", "sh", "-c", "hostname far.away && exec \"$@\"", "sh", *PERF,
                "--call-graph", "dwarf", "--", "./moved", "0.2"])
    assert made.returncode == 0, made
    os.rename("moved", "hidden")
    found = doctor(status=1)
    assert ids(found) == ["missing-files"], found
    assert "far.away" in found["findings"][0]["message"], found
    again = paste(found["findings"][0]["fix"]).stdout
    assert re.search("no problem found|no name is missing", again), again


def check_node():
    record(["-g"], ["node", "app.js"])
    found = doctor(status=1)
    process = main_process(found)
    require_samples(process["jit_frames"], 10, "JIT frames of node")
    assert process["runtime"] == "node" and process["unnamed_jit_frames"], found
    assert [one["fate"] for one in process["looked_for"]] == ["missing", "missing"], found
    again = check_fix("no-map", found, also=["lost-map", "unnamed-jit", "interpreted-frames"])
    assert is_named(main_process(again)), again
    assert main_process(again)["looked_for"][0]["fate"] == "used", again
    # The map is lost: the fix does not propose flags that were set.
    pathlib.Path(main_process(again)["looked_for"][0]["our_path"]).unlink()
    again = check_fix("lost-map", doctor(status=1), also=["no-map"])
    # Started by a script, so the recorded command line is not that of node.
    pathlib.Path("run.sh").write_text("exec node \"$1\"\n")
    record(["-g"], ["sh", "run.sh", "app.js"])
    again = check_fix("no-map", doctor(status=1))
    assert is_named(main_process(again)), again
    # An empty map.
    pathlib.Path(main_process(again)["looked_for"][0]["our_path"]).write_text("")
    found = doctor(status=1)
    assert main_process(found)["looked_for"][0]["fate"] == "empty" and "lost-map" in ids(found), found


def check_jitless():
    record(["-g"], ["node", "--jitless", "--perf-basic-prof", "app.js"])
    found = doctor(status=1)
    assert "no-map" not in ids(found) and "--jitless" not in fix_of(found, "only-interpreted"), found
    again = check_fix("only-interpreted", found, also=["no-map", "lost-map", "interpreted-frames"])
    process = main_process(again)
    assert is_named(process), again


def check_pypy():
    record(["-g"], ["pypy3", "app.py"])
    fix = fix_of(doctor(status=1), "no-map")
    for command in (fix, f"perf record -q -o perf.data -e cpu-clock:u -F 199 -g -- env {fix.split(' ')[0]} pypy3 app.py"):
        paste(command)
        found = doctor(status=1)
        again = fix_of(found, "no-map")
        log = pathlib.Path(f"/tmp/pypy-{main_process(found)['pid']}.log")
        assert again == f"perfmap stacks --map {log} perf.data", again
        assert "hot" in paste(again).stdout, again
        log.unlink()
    # The process has ended and its log is lost, so the fix runs the program again.
    found = doctor(status=1)
    assert fix_of(found, "lost-map").count("PYPYLOG") == 1, found


def check_attached_node():
    pathlib.Path("long.js").write_text(NODE.replace("SECONDS", "60"))
    with subprocess.Popen(["node", "long.js"]) as process:
        until(lambda: processor_time(process.pid) > 0.4)
        record(["-g", "-p", str(process.pid)], used(0.4))
        fix = fix_of(doctor(status=1), "no-map")
        assert fix == "node --perf-basic-prof --interpreted-frames-native-stack long.js", fix
        process.kill()
    # The process has ended, so its command line is unknown.
    fix = fix_of(doctor(status=1), "no-map")
    with subprocess.Popen(["sh", "-c", fix + "; exec node long.js"]) as process:
        until(lambda: "node" in proc_file(process.pid, "cmdline").split("\0")[0] and processor_time(process.pid) > 0.5)
        record(["-g", "-p", str(process.pid)], used(0.4))
        found = doctor()
        assert is_named(main_process(found)), (fix, found)
        process.kill()


def check_dump():
    record(["-g"], ["node", "--perf-prof", "app.js"])
    found = doctor(status=1)
    assert ids(found)[0] == "clock" and found["findings"][0]["severity"] == "error", found
    again = check_fix("clock", found)
    dump = pathlib.Path(main_process(again)["looked_for"][-1]["our_path"])
    bytes_of_it = dump.read_bytes()
    at = int.from_bytes(bytes_of_it[8:12], "little")
    while at < len(bytes_of_it) // 2:
        at += int.from_bytes(bytes_of_it[at + 4:at + 8], "little")
    with dump.open("r+b") as file:  # overwrites the header of a record in the middle of the dump
        file.seek(at)
        file.write(b"\xff" * 16)
    found = doctor()
    file = main_process(found)["looked_for"][-1]
    assert file["fate"] == "used" and file["damage"].startswith("JD201: "), file
    assert "JD201" in run(["sh", "-c", fix_of(found, "damaged-dump")]).stdout


def check_java():
    pathlib.Path("T.java").write_text(JAVA.replace("ROUNDS", "50_000"))
    assert run(["javac", "T.java"]).returncode == 0
    record(["-g"], ["java", "T"])
    found = doctor(status=1)
    assert {"no-map", "frame-pointers"} <= set(ids(found)), found
    again = check_fix("no-map", found, also=["frame-pointers"])
    assert is_named(main_process(again)), again


def check_erlang():
    record(["--call-graph", "dwarf,65528"], ["erl", "-noshell", "-eval", ERLANG])
    again = check_fix("own-stack", doctor(status=1), also=["no-map", "frame-pointers", "early-ends", "clock"])
    process = main_process(again)
    assert is_named(process), again


def check_erlang_bifs():
    """Named code that spends its time in C functions, whose callers are on Erlang's own stacks."""
    work = "B = binary:copy(<<7>>, 1 bsl 20), [erlang:md5(B) || _ <- lists:seq(1, 100)], halt()."
    record(["-k", "mono", "--call-graph", "dwarf"], ["erl", "+JPperf", "true", "-noshell", "-eval", work])
    found = doctor()
    told = [one for one in found["findings"] if one["id"] == "own-stack"]
    assert len(told) == 1 and told[0]["severity"] == "info" and told[0]["fix"] is None, found["findings"]
    assert "end where Erlang calls a C function" in told[0]["message"] and "-g " in told[0]["message"], told
    stacks = run([PERFMAP, "stacks", "perf.data"]).stdout
    ends = sum(int(line.rsplit(" ", 1)[1]) for line in stacks.splitlines() if ";global::call_" in line and "MD5" in line)
    require_samples(ends, 10, "stacks that end where Erlang calls C")
    assert int(told[0]["message"].split()[0]) >= ends, (ends, told)


def check_java_alive():
    """For a living JVM, the fix asks it to write its map."""
    pathlib.Path("L.java").write_text(JAVA.replace("class T", "class L").replace("ROUNDS", "80_000_000"))
    assert run(["javac", "L.java"]).returncode == 0
    with subprocess.Popen(["java", "-XX:+PreserveFramePointer", "L"]) as process:
        until(lambda: processor_time(process.pid) > 1.2)
        record(["-g", "-p", str(process.pid)], used(0.4))
        found = doctor(status=1)
        require_samples(main_process(found)["unnamed_jit_frames"], 10, "JIT frames of java")
        assert fix_of(found, "no-map") == f"jcmd {process.pid} Compiler.perfmap", found
        again = check_fix("no-map", found)
        assert is_named(main_process(again)), again
        process.kill()


def record_unnamed_node(*options):
    """Records Node.js without a map, and returns the path where doctor looks for the map."""
    record(["-g", *options], ["node", "app.js"])
    found = doctor(status=1)
    process = main_process(found)
    require_samples(process["jit_frames"], 10, "JIT frames of node")
    assert process["unnamed_jit_frames"] == process["jit_frames"], found
    return pathlib.Path(process["looked_for"][0]["our_path"])


def name_with_map():
    """Records Node.js with a map, and returns the map's path."""
    record(["-g"], ["node", "--perf-basic-prof", "--interpreted-frames-native-stack", "app.js"])
    found = doctor()
    assert is_named(main_process(found)), found
    return pathlib.Path(main_process(found)["looked_for"][0]["our_path"])


def check_stale():
    """A map older than its process belongs to an earlier one with the same pid. Needs -k mono."""
    path = record_unnamed_node("-k", "mono")
    path.write_text("1000 10 of another process\n")
    os.utime(path, (1000000000, 1000000000))
    found = doctor(status=1)
    assert main_process(found)["looked_for"][0]["fate"] == "stale", found
    assert fix_of(found, "stale") == f"rm {path}", found  # we own the file, so no sudo
    again = check_fix("stale", found)
    assert not path.exists() and main_process(again)["looked_for"][0]["fate"] == "missing", again


def check_not_a_file():
    path = record_unnamed_node()
    path.symlink_to("/etc/passwd")
    found = doctor(status=1)
    assert main_process(found)["looked_for"][0]["fate"] == "link", found
    check_fix("not-a-file", found)
    assert not path.is_symlink()


def check_misfit():
    """A map whose entries are all outside of the process's JIT memory: `lint` reports it."""
    path = record_unnamed_node()
    path.write_text("1000 10 elsewhere\n")
    os.utime(path)
    fix = fix_of(doctor(status=1), "nothing-fits")
    assert fix.startswith("perfmap lint --recording "), fix
    told = run(["sh", "-c", fix])
    assert told.returncode in (0, 1) and str(path) in told.stdout, (fix, told)
    path.unlink()


def check_unmarked_dump():
    """A dump to which the recording has no reference."""
    path = name_with_map()
    by_map = run([PERFMAP, "stacks", "perf.data"]).stdout
    dump = path.with_name(path.name.replace("perf-", "jit-").replace(".map", ".dump"))
    made = run([PERFMAP, "convert", path, "--to", "jitdump", "-o", dump])
    assert made.returncode == 0, made
    path.unlink()
    found = doctor(status=1)
    assert main_process(found)["looked_for"][-1]["fate"] == "shadowed", found
    fix = fix_of(found, "no-marker")
    by_dump = paste(fix).stdout
    assert "--jitdump" in fix and by_dump == by_map, (fix, by_dump[-2000:], by_map[-2000:])
    dump.unlink()


def check_foreign_owner():
    path = name_with_map()
    os.chown(path, 12345, 12345)
    os.link(path, "second")  # like a planted hard link
    found = doctor(status=1)
    fix = fix_of(found, "foreign-owner")
    assert not names_javascript(run([PERFMAP, "stacks", "perf.data"]).stdout)
    assert "--any-owner" in fix and names_javascript(paste(fix).stdout), fix
    path.unlink()


def check_other_memory():
    """Code in a memfd, for which perf does not use a map."""
    pathlib.Path("memfd.c").write_text("""
        #define _GNU_SOURCE
        #include <stdio.h>
        #include <string.h>
        #include <sys/mman.h>
        #include <unistd.h>
        int main() {
          /* mov $20000000, %ecx; 1: dec %ecx; jnz 1b; ret */
          static const unsigned char code[] = {0xb9, 0, 0x2d, 0x31, 1, 0xff, 0xc9, 0x75, 0xfc, 0xc3};
          int fd = memfd_create("code", 0);
          if (ftruncate(fd, 4096) != 0) return 1;
          char *at = mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
          memcpy(at, code, sizeof code);
          void (*run)() = mmap(0, 4096, PROT_READ | PROT_EXEC, MAP_SHARED, fd, 0);
          char path[64];
          sprintf(path, "/tmp/perf-%d.map", getpid());
          FILE *map = fopen(path, "w");
          fprintf(map, "%lx %zx in_the_memfd\\n", (long)run, sizeof code);
          fclose(map);
          for (int i = 0; i < 20; i++) run();
          return 0;
        }
        """)
    made = run(["gcc", "-O1", "-fno-omit-frame-pointer", "memfd.c", "-o", "memfd"])
    assert made.returncode == 0, made
    record(["-g"], ["./memfd"])
    fix = fix_of(doctor(status=0), "perf-ignores-region")
    assert "--format perf-script" in fix and "in_the_memfd" in paste(fix).stdout, fix
    theirs = run(["perf", "script"]).stdout
    assert theirs and "in_the_memfd" not in theirs, theirs


def check_forked_worker():
    """perf records only the child, which runs code that its parent generated and named."""
    pathlib.Path("prefork.c").write_text("""
        #include <stdio.h>
        #include <string.h>
        #include <sys/mman.h>
        #include <unistd.h>
        int main() {
          /* push %rbp; mov %rsp, %rbp; mov $20000000, %ecx; 1: dec %ecx; jnz 1b; pop %rbp; ret */
          static const unsigned char code[] = {0x55, 0x48, 0x89, 0xe5, 0xb9, 0, 0x2d, 0x31, 1, 0xff, 0xc9, 0x75, 0xfc, 0x5d, 0xc3};
          char *at = mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), path[64];
          memcpy(at, code, sizeof code);
          mprotect(at, 4096, PROT_READ | PROT_EXEC);
          sprintf(path, "/tmp/perf-%d.map", getpid());
          FILE *map = fopen(path, "w");
          fprintf(map, "%lx %zx of_the_parent\\n", (long)at, sizeof code);
          fclose(map);
          pid_t child = fork();
          if (child == 0) for (;;) ((void (*)())at)();
          printf("%d\\n", child);
          fflush(stdout);
          sleep(120);
          return 0;
        }
        """)
    made = run(["gcc", "-O1", "-fno-omit-frame-pointer", "prefork.c", "-o", "prefork"])
    assert made.returncode == 0, made
    with subprocess.Popen(["./prefork"], stdout=subprocess.PIPE, text=True) as parent:
        child = int(parent.stdout.readline())
        try:
            for options in (["-k", "mono"], []):
                record(["-g", *options, "-p", str(child)], used(0.2))
                assert "of_the_parent" in run([PERFMAP, "stacks", "perf.data"]).stdout
                process = main_process(doctor(status=0))
                assert process["pid"] == child and process["unnamed_jit_frames"] == 0, process
                files = [one for one in process["looked_for"] if one["fate"] == "used"]
                assert [one["inherited_from"] for one in files] == [parent.pid] and "parents_known" not in process, process
            assert run([PERFMAP, "snapshot", str(child), "-o", "kept"]).returncode == 0
        finally:
            os.kill(child, 9)
            parent.kill()
    pathlib.Path(f"/tmp/perf-{parent.pid}.map").unlink()
    until(lambda: not pathlib.Path(f"/proc/{child}").exists())  # init has reaped it
    found = doctor(status=1)
    assert main_process(found)["parents_known"] is False, found
    assert "the recording does not contain its pid" in run([PERFMAP, "doctor", "perf.data"]).stdout
    assert "unknown-parent" in [one["id"] for one in found["findings"]], found
    kept = main_process(doctor("--map-dir", "kept", status=0))
    assert kept["unnamed_jit_frames"] == 0 and kept["looked_for"][-1]["inherited_from"] == parent.pid, kept
    assert "of_the_parent" in run([PERFMAP, "stacks", "perf.data", "--map-dir", "kept"]).stdout


def check_stitch():
    """The stacks are larger than perf's largest copy, so the fix uses --stitch."""
    record(["--call-graph", "dwarf,65528"], ["./good", "0.3", "300"])
    fix = fix_of(doctor(status=1), "cut-stacks")
    assert fix == "perfmap stacks --stitch perf.data", fix
    def whole(stacks):
        return sum(int(line.rsplit(" ", 1)[1]) for line in stacks.splitlines() if ";main;" in line)

    cut, stitched = run([PERFMAP, "stacks", "perf.data"]).stdout, paste(fix).stdout
    assert whole(stitched) > whole(cut), (fix, whole(stitched), whole(cut))


def check_losses():
    """For root, the fix proposes larger buffers. Other users may not have them, so the fix records
    less often."""
    record(["--call-graph", "dwarf,32768", "-m", "8", "-F", "2999"], ["./good", "0.2"])
    found = doctor(status=1, least=0)  # no sample fits into so small buffers
    fix = fix_of(found, "lost-events")
    assert " -m 16M " in fix, fix
    check_fix("lost-events", found)


def check_losses_of_others():
    """Another user reads a recording of root: the fix uses sudo and half the frequency."""
    if not shutil.which("sudo"):
        pathlib.Path("bin/sudo").write_text("#!/bin/sh\nexec \"$@\"\n")
        os.chmod("bin/sudo", 0o755)
    made = run([*PERF_RECORD, "-o", "perf.data", "-e", "cpu-clock:u", "-F", "2999", "--call-graph",
                "dwarf,32768", "-m", "8", "--", "./good", "0.5"])
    assert made.returncode == 0, made
    os.chmod(HOME.name, 0o755)
    os.chmod("perf.data", 0o644)
    with tempfile.TemporaryDirectory() as place:
        program, environment = copy_for_all(PERFMAP, place)
        read = run(["setpriv", "--reuid=12345", "--regid=12345", "--clear-groups", program, "doctor", "perf.data",
                    "--format", "json"], env=environment)
    found = json.loads(read.stdout)
    fix = fix_of(found, "lost-events")
    assert fix.startswith("sudo ") and " -F 1499 " in fix and "-m 16M" not in fix, fix
    paste(fix)
    again = run([PERFMAP, "doctor", "perf.data"]).stdout
    assert " -F 1499 " in again and "./good" in again, again


def attempt(name, check, *needed):
    missing = [one for one in needed if not shutil.which(one)]
    if missing:
        left_out.append(f"{name}: there is no {missing[0]}")
    else:
        began = time.monotonic()
        check()
        print(f"{name}: {time.monotonic() - began:.1f} s", flush=True)
        done.append(name)


def can_compile(*command):
    return run([*command, "-x", "c++" if "++" in command[0] else "c", "-", "-o", "/dev/null"],
               input="int main() {}").returncode == 0


def runs_32_bit():
    """Many kernels for 64 bits run no programs of 32 bits."""
    if not compiled("narrow", "-m32"):
        return False
    try:
        return run(["./narrow", "0"]).returncode == 0
    except OSError:
        return False


HOME = tempfile.TemporaryDirectory()
os.chdir(HOME.name)
os.mkdir("bin")
os.symlink(PERFMAP, "bin/perfmap")
os.environ["PATH"] = f"{HOME.name}/bin:" + os.environ["PATH"]
pathlib.Path("work.c").write_text(WORK_C)
pathlib.Path("app.py").write_text(PYPY)
pathlib.Path("app.js").write_text(NODE.replace("SECONDS", "0.4"))
if not shutil.which("perf") or not can_compile("gcc"):
    print("skipped: there is no perf, or no gcc")
    sys.exit(77)
if run([*PERF, "--", "true"]).returncode != 0:
    print("skipped: perf may not record here")
    sys.exit(77)
attempt("healthy", check_healthy)
attempt("perf's options", check_perf_options)
attempt("attached", check_attached, "pgrep")
attempt("no unwinding tables", check_no_tables)
attempt("stripped files", check_stripped, "objcopy", "readelf")
if runs_32_bit():
    attempt("32 bits", check_32_bit)
else:
    left_out.append("32 bits: such programs cannot be compiled or run here")
attempt("musl", check_musl, "musl-gcc")
if can_compile("g++", "-lboost_context", "-include", "boost/context/fiber.hpp"):
    attempt("fibers", check_fibers)
else:
    left_out.append("fibers: there is no Boost.Context")
attempt("coroutines", check_coroutines)
attempt("a signal handler's own stack", check_signal_stack)
if platform.machine() == "x86_64":
    attempt("go", check_go, "go")
if os.geteuid() == 0 and run(["unshare", "--uts", "hostname", "x"]).returncode == 0:
    attempt("files of another machine", check_files)
else:
    left_out.append("files of another machine: no host may have another name here")
attempt("node", check_node, "node")
attempt("node without a JIT", check_jitless, "node")
attempt("pypy", check_pypy, "pypy3")
attempt("attached node", check_attached_node, "node")
attempt("dump", check_dump, "node")
attempt("java", check_java, "java", "javac")
attempt("a living JVM", check_java_alive, "java", "javac", "jcmd")
attempt("erlang", check_erlang, "erl")
attempt("erlang's functions in C", check_erlang_bifs, "erl")
attempt("older than the process", check_stale, "node")
attempt("not a file", check_not_a_file, "node")
attempt("other memory's names", check_misfit, "node")
attempt("dump without a marker", check_unmarked_dump, "node")
attempt("stacks larger than a copy", check_stitch)
if platform.machine() == "x86_64":
    attempt("memory that perf leaves out", check_other_memory)
    attempt("a worker without its parent", check_forked_worker)
else:
    left_out.append("memory that perf leaves out, a worker without its parent: the code is of x86-64")
if os.geteuid() == 0:
    attempt("another user's files", check_foreign_owner, "node")
    attempt("lost events", check_losses)
    attempt("lost events, read by another user", check_losses_of_others, "setpriv")
else:
    left_out.append("another user's files, lost events: only root can make them")
print("fixes that were pasted:", ", ".join(done))
for one in left_out:
    print("skipped in part:", one)
