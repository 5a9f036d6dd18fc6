# SPDX-License-Identifier: MIT
"""Records programs of real runtimes with `perfmap record`: record.py PERFMAP

Each program spends known shares of its time in three functions. record_cases.py has the tests that
may share the machine with others. Exit status 77: perf cannot record.
"""
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
from recorded_programs import (JAVASCRIPT, SHARES, check_named, check_nothing_left, check_rooted, check_shares, read_manifest,
                               run, run_rows, skip_without_perf, totals)
from trying import require
from waiting import processor_time, until

SECONDS = 2
JAVA = "public class Hot {\n" + "".join(
    f"static double {name}(int n) {{ double s = 0; for (int i = 0; i < n; i++) s += Math.sqrt(i) * i % 7; return s; }}\n"
    for name in SHARES) + """
// Of processor time, as in hot.js.
static long used() { return ProcessHandle.current().info().totalCpuDuration().get().toMillis(); }
public static void main(String[] words) {
  long end = used() + 1000 * Long.parseLong(words[0]);
  java.io.File enough = new java.io.File(words.length > 1 ? words[1] : "never");  // ends the program when it exists
  double x = 0;
  while (used() < end && !enough.exists()) x += hot50(2500000) + hot30(1500000) + hot20(1000000);
  System.out.println("done " + (x > 0));
}}
"""
CPP = "#include <cmath>\n#include <cstdio>\n#include <cstdlib>\n#include <ctime>\n" + "".join(
    f"__attribute__((noinline)) double {name}(int n) {{ double s = 0; for (int i = 0; i < n; i++) s += std::fmod(std::sqrt(i) * i, 7); return s; }}\n"
    for name in SHARES) + """
int main(int, char** words) {
  const clock_t end = std::clock() + std::atoi(words[1]) * CLOCKS_PER_SEC;
  double x = 0;
  while (std::clock() < end) x += hot50(2500000) + hot30(1500000) + hot20(1000000);
  std::puts(x > 0 ? "done true" : "done false");
}
"""


def check_complete(directory, cwd, comm):
    row = totals(directory, cwd, comm)
    check_rooted(row, directory)
    check_named(row, directory)


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
    done, manifest = record_started(cwd, "node1", ["node", "hot.js", str(SECONDS)], "node")
    assert "set NODE_OPTIONS=" in done.stderr
    assert [file["kind"] for file in manifest["files"]] == ["map"]
    # Two recordings of one program have the same functions, each named by its own directory.
    run("record", "-o", "node2", "--", "node", "hot.js", str(SECONDS), cwd=cwd)
    compared = run("report", "node2", "--baseline", "node1", "--format", "json", cwd=cwd)
    changes = json.loads(compared.stdout)
    assert not [row for row in changes["functions"] if "hot" in row["name"] and row["change"] in ("appeared", "vanished")], changes
    rows = run("report", "node1", "--top", "3", cwd=cwd).stdout.splitlines()[2:5]
    found = [re.search(r"hot\d+", row) for row in rows]
    assert all(found), rows
    require([one[0] for one in found] == list(SHARES), rows)
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


def interpreters_are_explained(cwd):
    """report says why the functions that an interpreter runs have no names, and is silent where they have."""
    run("record", "-o", "java2", "--", "java", "-Xint", "-cp", ".", "Hot", "1", cwd=cwd)
    interpreted = run("report", "java2", "--top", "1", cwd=cwd)
    assert "the JVM only interprets (-Xint), so Java methods have no compiled code to name" in interpreted.stderr, interpreted
    assert "only interprets" not in run("report", "java1", "--top", "1", cwd=cwd).stderr


def living_jvm_is_asked(cwd):
    jvm = subprocess.Popen(["java", "-XX:+PreserveFramePointer", "-cp", ".", "Hot", "100", "jvm1-ended"], cwd=cwd,
                           stdout=subprocess.PIPE, text=True)
    until(lambda: processor_time(jvm.pid) > 1.5)
    began = time.monotonic()
    done = run("record", "-o", "jvm1", "-p", str(jvm.pid), "--duration", "2", cwd=cwd)
    # The time begins when perf is ready. On a busy machine, it ends late, and the first and last samples are within it.
    recorded = float(re.search(r" in ([\d.]+) s ", done.stderr)[1])
    assert recorded <= time.monotonic() - began, done.stderr
    require(recorded >= 1.5, done.stderr)
    assert " of 1 process: jvm1" in done.stderr, done.stderr
    manifest = read_manifest(f"{cwd}/jvm1")
    assert manifest["pids"] == [jvm.pid] and manifest["command"] == []
    assert not os.path.exists(manifest["files"][0]["source"])
    pathlib.Path(cwd, "jvm1-ended").touch()
    assert jvm.communicate()[0] == "done true\n"  # no dump of its stacks
    check_complete("jvm1", cwd, "java")


def jvm_that_forbids_attaching_is_left_alone(cwd):
    jvm = subprocess.Popen(["java", "-XX:+DisableAttachMechanism", "-cp", ".", "Hot", "100", "jvm2-ended"], cwd=cwd,
                           stdout=subprocess.PIPE, text=True)
    until(lambda: processor_time(jvm.pid) > 1)
    done = run("record", "-o", "jvm2", "-p", str(jvm.pid), "--duration", "1", cwd=cwd)
    assert "it runs with -XX:+DisableAttachMechanism" in done.stderr, done.stderr
    pathlib.Path(cwd, "jvm2-ended").touch()
    assert jvm.communicate()[0] == "done true\n"


def cpp_is_complete(cwd):
    pathlib.Path(cwd, "hot.cpp").write_text(CPP)
    subprocess.run(["g++", "-O2", "-g", "-o", "hot", "hot.cpp"], cwd=cwd, check=True)
    _, manifest = record_started(cwd, "cpp1", ["./hot", str(SECONDS)], "hot")
    assert manifest["variables"] == {}


def other_programs_are_not_compared_silently(cwd):
    told = run("report", "cpp1", "java2", "--baseline", "java1", cwd=cwd).stderr
    assert "different programs: java before, and hot now" in told, told
    assert "of one side are of different programs: hot in cpp1/perf.data, and java in java2/perf.data" in told, told


def children_are_named(cwd):
    before = set(os.listdir(cwd)) | {"shell1"}
    done = run("record", "-o", "shell1", "--", "sh", "-c", "node hot.js 0.5; node hot.js 0.5", cwd=cwd)
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


def other_pids_are_named(cwd):
    """A process with its own pids, and the /tmp of this system."""
    if subprocess.run(["unshare", "-p", "-f", "--mount-proc", "true"], capture_output=True).returncode != 0:
        return print("skipped in part: no namespaces here")
    before = set(os.listdir(cwd)) | {"pids1"}
    maps = set(pathlib.Path("/tmp").glob("perf-*.map"))
    done = run("record", "-o", "pids1", "--", "unshare", "-p", "-f", "--mount-proc", "node", "hot.js", "2", cwd=cwd)
    assert done.stdout == "done true\n" and "warning" not in done.stderr, done
    manifest = read_manifest(f"{cwd}/pids1")
    file, = manifest["files"]
    assert file["path"] == f"perf-{file['pid']}.map" and file["source"] == "/tmp/perf-1.map", file
    assert pathlib.Path(file["source"]) not in maps, file
    check_nothing_left(cwd, before, manifest)
    check_shares("pids1", cwd, "pids")
    check_complete("pids1", cwd, "node")
    inside = "unshare -p -f --mount-proc node hot.js 0.5"
    before.add("pids2")
    done = run("record", "-o", "pids2", "--", "sh", "-c", f"{inside}; {inside}", cwd=cwd)
    manifest = read_manifest(f"{cwd}/pids2")
    file, = manifest["files"]
    lost, = manifest["missing"]
    assert lost["pid"] != file["pid"] and lost["source"] == file["source"], manifest
    assert re.search(r"cannot use /tmp/perf-1\.map: processes \d+ and \d+ wrote it, .* the first has no names \(.* unshare --mount", done.stderr), done.stderr
    check_nothing_left(cwd, before, manifest)
    pids_are_shared(cwd, before, maps)


def pids_are_shared(cwd, before, maps):
    """Two processes open the file before anybody can see it."""
    late = "while (Date.now() % 2000 > 100) {}"
    pathlib.Path(cwd, "together.js").write_text(late + pathlib.Path(cwd, "hot.js").read_text())
    before.update({"pids3", "together.js"})
    inside = "unshare -p -f --mount-proc node together.js 1"
    done = run("record", "-o", "pids3", "--", "sh", "-c", f"{inside} & {inside} & wait", cwd=cwd)
    manifest = read_manifest(f"{cwd}/pids3")
    assert set(pathlib.Path("/tmp").glob("perf-?.map")) <= maps
    assert manifest["missing"] and len(manifest["files"]) < 2, (manifest, done.stderr)
    assert re.search(r"cannot use /tmp/perf-1\.map: processes \d+ and \d+ wrote it", done.stderr), done.stderr
    said = run("doctor", "pids3", cwd=cwd, expected=1).stdout
    assert re.search(r"the recording has no copy of /tmp/perf-1\.map: processes \d+ and \d+ wrote it", said), said
    check_nothing_left(cwd, before, manifest)


def main():
    skip_without_perf()
    run_rows([[(node_is_named, "node"), (children_are_named, "node"), (ended_containers_are_named, "node"), (other_pids_are_named, "node")],
              [(java_is_named, "javac"), (interpreters_are_explained, "javac"), (living_jvm_is_asked, "javac"),
               (jvm_that_forbids_attaching_is_left_alone, "javac"), (cpp_is_complete, "g++"),
               (other_programs_are_not_compared_silently, "javac")]])


main()
