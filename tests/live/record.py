"""Records programs of real runtimes with `perfmap record`: record.py PERFMAP

Each program spends known shares of its time in three functions. Exit status 77: perf cannot record.
"""
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
from recorded_programs import (JAVASCRIPT, PERFMAP, SHARES, check_nothing_left, check_shares, read_manifest, run,
                               totals, stacks)

SECONDS = 3
JAVA = "public class Hot {\n" + "".join(
    f"static double {name}(int n) {{ double s = 0; for (int i = 0; i < n; i++) s += Math.sqrt(i) * i % 7; return s; }}\n"
    for name in SHARES) + """
public static void main(String[] words) {
  long end = System.currentTimeMillis() + 1000 * Long.parseLong(words[0]);
  double x = 0;
  while (System.currentTimeMillis() < end) x += hot50(2500000) + hot30(1500000) + hot20(1000000);
  System.out.println("done " + (x > 0));
}}
"""
CPP = "#include <chrono>\n#include <cmath>\n#include <cstdio>\n#include <cstdlib>\n" + "".join(
    f"__attribute__((noinline)) double {name}(int n) {{ double s = 0; for (int i = 0; i < n; i++) s += std::fmod(std::sqrt(i) * i, 7); return s; }}\n"
    for name in SHARES) + """
int main(int, char** words) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(std::atoi(words[1]));
  double x = 0;
  while (std::chrono::steady_clock::now() < end) x += hot50(2500000) + hot30(1500000) + hot20(1000000);
  std::puts(x > 0 ? "done true" : "done false");
}
"""


def check_complete(directory, cwd, comm):
    row = totals(directory, cwd, comm)
    assert row["ends"]["root"] >= 0.98 * row["samples"], row
    assert row["unnamed_jit_frames"] <= 0.01 * row["frames"], row


def record_started(cwd, directory, command, comm):
    """The program's output is unchanged, its names are complete, and nothing is left."""
    before = set(os.listdir(cwd)) | {directory}
    done = run("record", "-o", directory, "--", *command, cwd=cwd)
    assert done.stdout == "done true\n", done.stdout
    assert f"perfmap report {directory}" in done.stderr, done.stderr
    manifest = read_manifest(f"{cwd}/{directory}")
    assert manifest["command"] == command and manifest["exit_status"] == 0
    check_nothing_left(cwd, before, manifest)
    check_shares(directory, cwd, comm)
    check_complete(directory, cwd, comm)
    return done, manifest


def node_is_named(cwd):
    pathlib.Path(cwd, "hot.js").write_text(JAVASCRIPT)
    done, manifest = record_started(cwd, "node1", ["node", "hot.js", str(SECONDS)], "node")
    assert "set NODE_OPTIONS=" in done.stderr
    assert [file["kind"] for file in manifest["files"]] == ["map"]
    # Two recordings of one program have the same functions, each named by its own directory.
    run("record", "-o", "node2", "--", "node", "hot.js", str(SECONDS), cwd=cwd)
    compared = run("report", "node2", "--baseline", "node1", "--format", "json", cwd=cwd)
    changes = json.loads(compared.stdout)
    assert not [row for row in changes["functions"] if "hot" in row["name"] and row["change"] in ("appeared", "vanished")], changes
    rows = run("report", "node1", "--top", "3", cwd=cwd).stdout.splitlines()[2:5]
    assert [re.search(r"hot\d+", row)[0] for row in rows] == list(SHARES), rows
    # The directory works elsewhere, without the files of this machine's /tmp.
    shutil.move(f"{cwd}/node1", f"{cwd}/moved")
    check_complete("moved", cwd, "node")
    assert "--map-dir" not in run("doctor", "moved", cwd=cwd).stdout
    assert "was not recorded" not in run("lint", "moved", cwd=cwd).stderr
    assert "was not recorded" in run("lint", "moved", "--recording", "node2", cwd=cwd).stderr
    check_complete("moved/perf.data", cwd, "node")


def java_is_named(cwd):
    pathlib.Path(cwd, "Hot.java").write_text(JAVA)
    subprocess.run(["javac", "Hot.java"], cwd=cwd, check=True)
    done, _ = record_started(cwd, "java1", ["java", "-cp", ".", "Hot", str(SECONDS)], "java")
    assert "Picked up JAVA_TOOL_OPTIONS" in done.stderr


def living_jvm_is_asked(cwd):
    jvm = subprocess.Popen(["java", "-XX:+PreserveFramePointer", "-cp", ".", "Hot", "8"], cwd=cwd,
                           stdout=subprocess.PIPE, text=True)
    time.sleep(1.5)
    done = run("record", "-o", "jvm1", "-p", str(jvm.pid), "--duration", "2", cwd=cwd)
    # The time begins when perf is ready.
    assert 1.5 <= float(re.search(r" in ([\d.]+) s ", done.stderr)[1]) <= 2.1, done.stderr
    assert " of 1 process: jvm1" in done.stderr, done.stderr
    manifest = read_manifest(f"{cwd}/jvm1")
    assert manifest["pids"] == [jvm.pid] and manifest["command"] == []
    assert not os.path.exists(manifest["files"][0]["source"])
    assert jvm.communicate()[0] == "done true\n"  # no dump of its stacks
    check_complete("jvm1", cwd, "java")


def jvm_that_forbids_attaching_is_left_alone(cwd):
    jvm = subprocess.Popen(["java", "-XX:+DisableAttachMechanism", "-cp", ".", "Hot", "4"], cwd=cwd,
                           stdout=subprocess.PIPE, text=True)
    time.sleep(1)
    done = run("record", "-o", "jvm2", "-p", str(jvm.pid), "--duration", "1", cwd=cwd)
    assert "it runs with -XX:+DisableAttachMechanism" in done.stderr, done.stderr
    assert jvm.communicate()[0] == "done true\n"


def cpp_is_complete(cwd):
    pathlib.Path(cwd, "hot.cpp").write_text(CPP)
    subprocess.run(["g++", "-O2", "-g", "-o", "hot", "hot.cpp"], cwd=cwd, check=True)
    _, manifest = record_started(cwd, "cpp1", ["./hot", str(SECONDS)], "hot")
    assert manifest["variables"] == {}


def erlang_is_named(cwd):
    work = ("[lists:foldl(fun(X, A) -> A + X rem 7 end, 0, lists:seq(1, 100000)) || _ <- [1, 2, 3]], "
            "io:format(\"done true~n\"), halt().")
    done = run("record", "-o", "erl1", "--", "erl", "-noshell", "-eval", work, cwd=cwd)
    assert done.stdout == "done true\n"
    kinds = sorted(file["kind"] for file in read_manifest(f"{cwd}/erl1")["files"])
    assert kinds == ["dump", "map"], kinds
    row = totals("erl1", cwd, "beam.smp")
    assert row["unnamed_jit_frames"] <= 0.01 * row["frames"], row


def php_is_named(cwd):
    """Also where the configuration turns the JIT compiler off, as Debian's does."""
    pathlib.Path(cwd, "hot.php").write_text(
        "<?php function hot($n) { $s = 0; for (; $n > 0; $n = intdiv($n, 10)) $s += $n % 10; return $s; }\n"
        "for ($i = 0, $x = 0; $i < 6000000; $i++) $x += hot($i);\necho $x, PHP_EOL;\n")
    run("record", "-o", "php1", "--", "php", "hot.php", cwd=cwd)
    found = sum(count for frames, count in stacks("php1", cwd) if re.search(r"\bhot\b", ";".join(frames)))
    assert found > 20, found


def children_are_named(cwd):
    before = set(os.listdir(cwd)) | {"shell1"}
    done = run("record", "-o", "shell1", "--", "sh", "-c", "node hot.js 1; node hot.js 1", cwd=cwd)
    assert done.stdout == "done true\n" * 2
    manifest = read_manifest(f"{cwd}/shell1")
    check_nothing_left(cwd, before, manifest)
    assert len(manifest["files"]) == 2
    check_complete("shell1", cwd, "node")


def ended_containers_are_named(cwd):
    """A process with its own /tmp and pid, gone with all its files before the recording ends."""
    inside = f"mount -t tmpfs none /tmp && cd /tmp && node -e '{JAVASCRIPT}' x 2"
    made = subprocess.run(["unshare", "-m", "-p", "-f", "true"], capture_output=True)
    if made.returncode != 0:
        return print("skipped in part: no namespaces here")
    script = 'unshare -m -p -f sh -c "$0"; cat /proc/sys/kernel/random/boot_id > /dev/null'
    done = run("record", "-o", "ns1", "--", "sh", "-c", script, inside, cwd=cwd)
    assert done.stdout == "done true\n", done
    file, = read_manifest(f"{cwd}/ns1")["files"]
    assert file["path"] == f"perf-{file['pid']}.map" and file["source"] != f"/tmp/{file['path']}", file
    check_shares("ns1", cwd, "container", least=40)
    check_complete("ns1", cwd, "node")


def restarts_are_named(cwd):
    """For a living process without names, the message has the command line that gives them."""
    with subprocess.Popen(["node", "hot.js", "6"], cwd=cwd, stdout=subprocess.DEVNULL) as node:
        done = run("record", "-o", "live1", "-p", str(node.pid), "--duration", "1", cwd=cwd)
        node.kill()
    assert re.search(rf"process {node.pid}: .* \(start it again: node --perf-basic-prof .*hot\.js 6\)", done.stderr), done.stderr


def ctrl_c_keeps_the_data(cwd):
    program = "setInterval(() => { let s = 0; for (let i = 0; i < 1e6; i++) s += i % 7 }, 10)"
    record = subprocess.Popen([PERFMAP, "record", "-o", "int1", "--", "node", "-e", program],
                              cwd=cwd, stderr=subprocess.PIPE, text=True, start_new_session=True)
    time.sleep(2)
    os.killpg(record.pid, signal.SIGINT)
    said = record.communicate(timeout=60)[1]
    assert record.returncode == 0 and "perfmap report int1" in said, said
    read_manifest(f"{cwd}/int1")
    assert totals("int1", cwd, "node")["samples"] > 20


def statuses_are_true(cwd):
    run("record", "-o", "s1", "--", "sh", "-c", "exit 7", cwd=cwd)
    run("record", "-o", "s2", "--propagate", "--", "sh", "-c", "exit 7", cwd=cwd, expected=7)
    done = run("record", "-o", "quiet", "--quiet", "--", "sleep", "0", cwd=cwd)
    assert done.stderr == "", done.stderr
    done = run("record", "-o", "s2", "--", "true", cwd=cwd, expected=2)
    assert done.stderr == "perfmap: error: cannot create s2: it exists and is not empty\n"
    done = run("record", "-o", "s3", "--perf", "/nowhere/perf", "--", "true", cwd=cwd, expected=2)
    assert "cannot run /nowhere/perf" in done.stderr
    done = run("record", "-o", "s3", "-e", "nosuch", "--", "true", cwd=cwd, expected=2)
    assert "perf record ended with status 129" in done.stderr, done.stderr
    done = run("record", "-o", "s3", "-p", "4194304", cwd=cwd, expected=2)
    assert done.stderr == "perfmap: error: no process 4194304\n", done.stderr
    assert not os.path.exists(f"{cwd}/s3")
    os.symlink("/", f"{cwd}/link")
    run("record", "-o", "link", "--", "true", cwd=cwd, expected=2)


def planted_files_stay(cwd):
    """Files that the recorded program did not write are neither copied nor removed."""
    victim = pathlib.Path(cwd, "isolate-0x1-1-v8.log")
    victim.write_text("mine")
    linked = pathlib.Path(cwd, "kept")
    linked.write_text("kept")
    script = ("ln -s kept isolate-0x1-$$-v8.log; ln kept isolate-0x2-$$-v8.log; "
              "mkdir isolate-0x3-$$-v8.log; ln -s kept ${PERFMAP_TMPDIR}/perf-$$.map; :")
    done = run("record", "-o", "p1", "--", "sh", "-c", script, cwd=cwd,
               env={"PERFMAP_TMPDIR": str(cwd)})
    assert victim.read_text() == "mine" and linked.read_text() == "kept", done.stderr
    assert len([name for name in os.listdir(cwd) if name.startswith("isolate-")]) == 4
    assert read_manifest(f"{cwd}/p1")["files"] == []


def names_of_others_are_refused(cwd):
    """A file that is older than the process, and one of another user, are not copied."""
    plant = "printf '0 7fffffffffff planted\\n' > /tmp/perf-$$.map; "
    end = "; exec node hot.js 1"
    done = run("record", "--runtime", "none", "-o", "old1", "--", "sh", "-c",
               plant + "touch -d 2001-01-01 /tmp/perf-$$.map" + end, cwd=cwd)
    assert read_manifest(f"{cwd}/old1")["files"] == [] and "older than the process" in done.stderr, done.stderr
    if os.geteuid() == 0:
        done = run("record", "--runtime", "none", "-o", "foreign1", "--", "sh", "-c",
                   plant + "chown nobody /tmp/perf-$$.map" + end, cwd=cwd)
        assert read_manifest(f"{cwd}/foreign1")["files"] == [], done.stderr
        assert "belongs to user" in done.stderr and "--any-owner" not in done.stderr, done.stderr
    for directory in ("old1", "foreign1"):
        for pid in re.findall(r"node (\d+) ", done.stderr):
            pathlib.Path(f"/tmp/perf-{pid}.map").unlink(missing_ok=True)


def repeated_signals_keep_the_names(cwd):
    for name, signals in (("twice1", (signal.SIGINT, signal.SIGINT)), ("hup1", (signal.SIGHUP,))):
        going = subprocess.Popen([PERFMAP, "record", "-o", name, "--", "node", "hot.js", "20"], cwd=cwd,
                                 stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, start_new_session=True)
        recording = pathlib.Path(cwd, name, "perf.data")
        while not recording.exists() or recording.stat().st_size == 0:
            time.sleep(0.05)
        time.sleep(1)  # until Node.js has compiled something
        for one in signals:
            going.send_signal(one)
            time.sleep(0.1)
        printed = going.communicate()[1]
        assert going.returncode == 0, (name, going.returncode, printed)
        assert len(read_manifest(f"{cwd}/{name}")["files"]) == 1, (name, printed)


def main():
    with tempfile.TemporaryDirectory() as cwd:
        probe = subprocess.run(["perf", "record", "-q", "-o", f"{cwd}/probe", "true"],
                               capture_output=True) if shutil.which("perf") else None
        if probe is None or probe.returncode != 0:
            print("perf cannot record here")
            sys.exit(77)
    tests = [(statuses_are_true, None), (cpp_is_complete, "g++"), (node_is_named, "node"),
             (children_are_named, "node"),
             (ended_containers_are_named, "node"), (restarts_are_named, "node"), (ctrl_c_keeps_the_data, "node"),
             (planted_files_stay, "node"), (names_of_others_are_refused, "node"),
             (repeated_signals_keep_the_names, "node"), (java_is_named, "javac"), (living_jvm_is_asked, "javac"),
             (jvm_that_forbids_attaching_is_left_alone, "javac"), (erlang_is_named, "erl"),
             (php_is_named, "php")]
    with tempfile.TemporaryDirectory() as cwd:
        for test, program in tests:
            name = test.__name__.replace("_", " ")
            if program is not None and shutil.which(program) is None:
                print(f"skipped: {name}: no {program}")
                continue
            test(cwd)
            print(name, flush=True)


main()
