# SPDX-License-Identifier: MIT
"""Runs `perfmap doctor` on running processes of real runtimes: doctor.py PERFMAP

Exit status 77: no runtime is installed.
"""
import contextlib
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
from other_user import copy_for_all  # noqa: E402
from waiting import until  # noqa: E402

PERFMAP = str(pathlib.Path(sys.argv[1]).resolve())
LOOP = "setInterval(() => { let s = 0; for (let i = 0; i < 1e5; i++) s += i; }, 10)"
JAVA = "public class T { public static void main(String[] a) throws Exception { Thread.sleep(600000); } }"


def doctor(pid):
    """Returns the exit status and the JSON object."""
    run = subprocess.run([PERFMAP, "doctor", str(pid), "--format", "json"], capture_output=True)
    assert run.returncode in (0, 1), run.stderr
    assert run.stderr == b"", run.stderr
    return run.returncode, json.loads(run.stdout)


def text(pid):
    return subprocess.run([PERFMAP, "doctor", str(pid)], capture_output=True, text=True).stdout


@contextlib.contextmanager
def running(command, **options):
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                          **options) as process:
        try:
            yield process.pid
        finally:
            process.kill()
            for name in (f"/tmp/perf-{process.pid}.map", f"/tmp/jit-{process.pid}.dump"):
                pathlib.Path(name).unlink(missing_ok=True)


def ids(found):
    """Ids of the findings, without those that depend on settings of the machine."""
    settings = ("perf-paranoid", "kptr-restrict")
    return [one["id"] for one in found["findings"] if one["id"] not in settings]


def used(found):
    return [one["our_path"] for one in found["looked_for"] if one["fate"] == "used"]


def is_program(pid, name):
    """Whether the child has executed the program."""
    return os.path.basename(os.readlink(f"/proc/{pid}/exe")).startswith(name)


def check_native():
    with running(["sleep", "600"]) as pid:
        until(lambda: is_program(pid, "sleep"), "sleep")
        status, found = doctor(pid)
        assert (status, found["findings"], found["runtime"]) == (0, [], None), found
        assert "the process has no JIT code" in text(pid)


def check_node():
    with running(["node", "-e", LOOP]) as pid:
        until(lambda: doctor(pid)[1]["jit_memory"]["regions"], "node's code")
        status, found = doctor(pid)
        assert (status, found["runtime"], ids(found)) == (1, "node", ["no-map"]), found
        assert found["findings"][0]["fix"].startswith(
            "node --perf-basic-prof --interpreted-frames-native-stack -e 'setInterval("), found
    fixed = ["node", "--perf-basic-prof", "--interpreted-frames-native-stack", "-e", LOOP]
    with running(fixed) as pid:
        until(lambda: doctor(pid)[1]["jit_memory"]["named_bytes"], "names of node's code")
        status, found = doctor(pid)
        assert (status, ids(found)) == (0, []), found
        assert used(found) == [f"/tmp/perf-{pid}.map"], found
        assert found["findings"] or text(pid).endswith("\nno problem found\n")
        os.unlink(f"/tmp/perf-{pid}.map")
        status, found = doctor(pid)
        assert (status, ids(found)) == (1, ["lost-map"]), found
    for flags in (["--jitless"], ["--jitless", *fixed[1:3]]):
        with running(["node", *flags, "-e", LOOP]) as pid:
            until(lambda: is_program(pid, "node"), "node")
            until(lambda: len(flags) == 1 or used(doctor(pid)[1]), "the map")
            status, found = doctor(pid)
            assert (status, ids(found)) == (1, ["only-interpreted"]), found
            assert found["findings"][0]["fix"].startswith(" ".join(fixed[:3]) + " -e "), found
    with tempfile.TemporaryDirectory() as work:
        with running(["node", "--perf-prof", "-e", LOOP], cwd=work) as pid:
            dump = f"{work}/jit-{pid}.dump"
            until(lambda: used(doctor(pid)[1]) == [dump], "node's jitdump")
            until(lambda: doctor(pid)[1]["jit_memory"]["named_bytes"], "loads")
            status, found = doctor(pid)
            assert (status, ids(found)) == (0, ["perf-inject"]), found


def check_namespaces():
    """Like a container: a pid namespace, first with a /tmp of its own, then with our /tmp."""
    for flags in (["--mount"], []):
        script = "mount -t tmpfs none /tmp && " if flags else ""
        command = ["unshare", "--pid", "--fork", "--kill-child", *flags, "sh", "-c",
                   f"{script}exec node --perf-basic-prof --interpreted-frames-native-stack -e '{LOOP}'"]
        with running(command) as outer:
            children = pathlib.Path(f"/proc/{outer}/task/{outer}/children")
            until(lambda: children.exists() and children.read_text().split(), "the child")
            pid = int(children.read_text())
            until(lambda: is_program(pid, "node"), "node in its namespaces")
            until(lambda: doctor(pid)[1]["jit_memory"]["named_bytes"], "names in a namespace")
            status, found = doctor(pid)
            if flags:
                assert (status, ids(found)) == (0, []), found
                assert used(found) == [f"/proc/{pid}/root/tmp/perf-1.map"], found
                continue
            assert (status, ids(found)) == (1, ["perf-path"]), found
            fix = found["findings"][0]["fix"]
            assert fix == f"ln -s /tmp/perf-1.map /tmp/perf-{pid}.map", fix
            subprocess.run(fix, shell=True, check=True)
            try:
                assert ids(doctor(pid)[1]) == [], doctor(pid)
            finally:
                os.unlink(f"/tmp/perf-{pid}.map")
        pathlib.Path("/tmp/perf-1.map").unlink(missing_ok=True)


def check_java():
    with tempfile.TemporaryDirectory() as work:
        pathlib.Path(work, "T.java").write_text(JAVA)
        with running(["java", "-XX:+PreserveFramePointer", f"{work}/T.java"]) as pid:
            until(lambda: doctor(pid)[1]["jit_memory"]["regions"], "the code cache")
            status, found = doctor(pid)
            assert (status, found["runtime"], ids(found)) == (1, "jvm", ["no-map"]), found
            assert int(found["runtime_version"].split(".")[0]) >= 17, found
            fix = found["findings"][0]["fix"]
            assert fix == f"jcmd {pid} Compiler.perfmap", fix
            until(lambda: subprocess.run(fix, shell=True, capture_output=True).returncode == 0, fix)
            status, found = doctor(pid)
            assert (status, ids(found)) == (0, []), found
            assert found["jit_memory"]["named_bytes"] > 100000, found


def check_python(name):
    with running([name, "-c", "import time; time.sleep(60)"]) as pid:
        until(lambda: is_program(pid, "python"), name)
        status, found = doctor(pid)
        old = tuple(map(int, found["runtime_version"].split("."))) < (3, 12)
        expected = (1, "cpython", ["too-old" if old else "no-map"])
        assert (status, found["runtime"], ids(found)) == expected, found
        assert " -X perf -c 'import time; time.sleep(60)'" in found["findings"][0]["fix"], found


def check_other_user():
    """For another user's process, the error message says which command to run as root."""
    with running(["sleep", "600"]) as pid:
        with tempfile.TemporaryDirectory() as place:
            program, environment = copy_for_all(PERFMAP, place)
            run = subprocess.run(["setpriv", "--reuid", "65534", "--clear-groups", "--inh-caps=-all",
                                  "--bounding-set=-all", program, "doctor", str(pid)],
                                 capture_output=True, text=True, env=environment)
        assert run.returncode == 2, run
        assert run.stderr.endswith(f"; try 'sudo perfmap doctor {pid}'\n"), run.stderr


WORK = tempfile.TemporaryDirectory()  # V8 writes logs to its working directory
os.chdir(WORK.name)
check_native()
done = ["native"]
for program, check in (("node", check_node), ("java", check_java)):
    if shutil.which(program) and (program != "java" or shutil.which("jcmd")):
        check()
        done.append(program)
    else:
        print(f"skipped in part: there is no {program}, or no jcmd for it")
for program in ("python3.11", "python3.12"):
    if shutil.which(program) and subprocess.run([program, "-c", ""], capture_output=True).returncode == 0:
        check_python(program)
        done.append(program)
if os.geteuid() == 0 and shutil.which("node") and not pathlib.Path("/tmp/perf-1.map").exists():
    if subprocess.run(["unshare", "--pid", "--fork", "--mount", "true"], capture_output=True).returncode == 0:
        check_namespaces()
        done.append("namespaces")
    else:
        print("skipped in part: no pid and mount namespaces may be made here")
if os.geteuid() == 0 and shutil.which("setpriv"):
    check_other_user()
    done.append("another user")
else:
    print("skipped in part: only root, with setpriv, can be another user")
print("examined:", ", ".join(done))
if done == ["native"]:
    print("skipped: no runtime is here")
    sys.exit(77)
