# SPDX-License-Identifier: MIT
"""Root records another user's programs: other_user.py PERFMAP

No frame that perf names may be unnamed, while the program lives and after it has ended. Files that
any user could have written are refused; the message has the command that uses them anyway.

Exit status 77: not root, or perf, node or setpriv is not installed.
"""
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "tests/support"))
from named_frames import compare, run, skip
from perf_record import PERF_RECORD, used
from waiting import running, until

PERFMAP = str(pathlib.Path(sys.argv[1]).resolve())
USER = 65534
AS_USER = ["setpriv", "--reuid", str(USER), "--regid", str(USER), "--clear-groups"]
RECORD = [*PERF_RECORD, "-e", "cpu-clock:u", "-F", "499", "-g"]
PROGRAM = """
function fib(n) { return n < 2 ? n : fib(n - 1) + fib(n - 2); }
function words(n) { let s = ''; for (let i = 0; i < n; ++i) s += 'w' + (i * 7919 % n); return s.length; }
let sum = 0;
while (process.cpuUsage().user < SECONDS * 1e6) sum += fib(18) + words(500);
console.log(process.pid, sum > 0);
"""


def node(work, flag, seconds):
    path = pathlib.Path(work, f"app{seconds}.js")
    path.write_text(PROGRAM.replace("SECONDS", str(seconds)))
    return [*AS_USER, "node", flag, "--interpreted-frames-native-stack", str(path)]


def recorded_map(*options, cwd):
    """The map of a program that was recorded until it ended."""
    said = run(*RECORD, *options, "--", *node(cwd, "--perf-basic-prof", 1), cwd=cwd)
    return pathlib.Path(f"/tmp/perf-{int(said.split()[0])}.map")


def stacks(*arguments):
    return subprocess.run([PERFMAP, "stacks", *arguments], capture_output=True, text=True)


def check_alive(work):
    """Like sudo perf record -p $(pgrep node)."""
    with running(node(work, "--perf-basic-prof", 60), cwd=work) as process:
        map_path = pathlib.Path(f"/tmp/perf-{process.pid}.map")
        until(lambda: map_path.exists() and b"fib" in map_path.read_bytes())
        run(*RECORD, "-o", "alive.data", "-p", str(process.pid), "--", *used(0.8))
        compare(PERFMAP, "alive, attached", "alive.data", 200)
        assert "foreign-owner" not in stacks("alive.data").stderr
        doctor = subprocess.run([PERFMAP, "doctor", "alive.data", "--format", "json"], capture_output=True, text=True)
        assert "foreign-owner" not in doctor.stdout, doctor.stdout
        process.kill()
        process.wait()
        # A map that was last written before the recording could be an earlier process's.
        os.utime(map_path, (1, 1))
        check_command("alive.data", map_path)
        map_path.unlink()


def check_command(data, map_path):
    """The command that is printed for a refused file works if it is pasted."""
    refused = stacks(data, "--format", "jsonl")
    assert refused.returncode == 0, refused.stderr
    assert f"foreign-owner: {map_path} of process" in refused.stderr, refused.stderr
    assert f"belongs to user {USER} and was not used: it was last written before" in refused.stderr, refused.stderr
    command = re.findall(r"(?m)^perfmap: to also use files of other users: (.*)$", refused.stderr)[0]
    assert shlex.split(command) == [PERFMAP, "stacks", data, "--format", "jsonl", "--any-owner"], command
    pasted = subprocess.run(command, shell=True, capture_output=True, text=True, check=True)
    assert "fib" in pasted.stdout and "foreign-owner" not in pasted.stderr, pasted.stderr
    doctor = subprocess.run([PERFMAP, "doctor", data], capture_output=True, text=True)
    assert doctor.returncode == 1 and f"{map_path} belongs to user {USER}" in doctor.stdout, doctor.stdout
    assert f"perfmap stacks --any-owner {data}" in doctor.stdout and "--perf-basic-prof" not in doctor.stdout
    compare(PERFMAP, "gone, with --any-owner", data, 200, "--any-owner")


def check_gone(work):
    """The whole life of the process is recorded: its map is used, with and without -k."""
    for name, clock in (("monotonic", ["-k", "mono"]), ("perf's clock", [])):
        map_path = recorded_map(*clock, "-o", "gone.data", cwd=work)
        assert map_path.stat().st_uid == USER
        compare(PERFMAP, f"gone, {name}", "gone.data", 200)
        assert "foreign-owner" not in stacks("gone.data").stderr
        # A copy that was made later has a later change time, even if its mtime was set back.
        facts = map_path.stat()
        text = map_path.read_bytes()
        time.sleep(2.1)
        map_path.unlink()
        map_path.write_bytes(text)
        os.chown(map_path, USER, USER)
        os.utime(map_path, ns=(facts.st_mtime_ns, facts.st_mtime_ns))
        said = stacks("gone.data").stderr
        assert "it was changed after the process was last seen" in said, said
        map_path.unlink()


def check_inject(work):
    run(*RECORD, "-k", "mono", "-o", "dump.data", "--", *node(work, "--perf-prof", 1), cwd=work)
    dump = next(pathlib.Path(work).glob("jit-*.dump"))
    compare(PERFMAP, "a dump, gone", "dump.data", 0)
    said = subprocess.run([PERFMAP, "inject", "dump.data", "-o", "out.data"], capture_output=True, text=True)
    assert said.returncode == 0 and "guessed-owner" in said.stderr, said
    run("perf", "inject", "--jit", "-f", "-i", "dump.data", "-o", "theirs.data")
    # Builtins are in node's ELF file, whose symbols differ from the dump's names.
    compare(PERFMAP, "a dump, against perf inject", "dump.data", 200, theirs="theirs.data", wanted="JS:|LazyCompile:")
    report = run("perf", "script", "-f", "-i", "out.data", "-F", "ip,sym")
    assert "fib" in report, report[:2000]
    os.unlink("out.data")
    os.link(dump, f"{dump}.other")
    refused = subprocess.run([PERFMAP, "inject", "dump.data", "-o", "out.data"], capture_output=True, text=True)
    assert refused.returncode == 2 and not os.path.exists("out.data"), refused
    assert "it has 2 names (hard links)" in refused.stderr and "did not write out.data" in refused.stderr, refused.stderr
    command = re.findall(r"(?m)^perfmap: to also use files of other users: (.*)$", refused.stderr)[0]
    subprocess.run(command, shell=True, capture_output=True, check=True)
    assert "fib" in run("perf", "script", "-f", "-i", "out.data", "-F", "ip,sym")


def check_container(work):
    """A process with its own /tmp and pid namespace."""
    script = f"mount -t tmpfs -o mode=1777 none /tmp && exec {shlex.join(node('/', '--perf-basic-prof', 60))}"
    script = script.replace("/app60.js", f"{work}/app60.js")
    outer = ["unshare", "--pid", "--fork", "--kill-child", "--mount", "sh", "-c", script]
    if subprocess.run(["unshare", "--pid", "--fork", "--mount", "true"], capture_output=True).returncode != 0:
        print("not checked: a process in namespaces of its own: unshare is not allowed here")
        return
    with running(outer) as process:
        children = pathlib.Path(f"/proc/{process.pid}/task/{process.pid}/children")
        until(lambda: children.read_text())
        pid = int(children.read_text())
        inner = pathlib.Path(f"/proc/{pid}/root/tmp/perf-1.map")
        until(lambda: inner.exists() and b"fib" in inner.read_bytes())
        run(*RECORD, "-o", "inside.data", "-p", str(pid), "--", *used(0.8))
        compare(PERFMAP, "in a container", "inside.data", 200)


if os.geteuid() != 0:
    skip("only root can be another user")
for tool in ("perf", "node", "setpriv"):
    if not shutil.which(tool):
        skip(f"no {tool} here")
with tempfile.TemporaryDirectory(dir="/var/tmp") as directory:
    os.chmod(directory, 0o777)
    os.chdir(directory)
    probe = subprocess.run([*RECORD, "-o", "probe.data", "--", *AS_USER, "true"], capture_output=True, text=True)
    if probe.returncode != 0:
        skip(f"perf may not record here: {probe.stderr.splitlines()[:1]}")
    check_gone(directory)
    check_alive(directory)
    check_inject(directory)
    check_container(directory)
