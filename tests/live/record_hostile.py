# SPDX-License-Identifier: MIT
"""Root records hostile processes of another user: record_hostile.py PERFMAP [TEST...]

What that user may not read is not copied, and files of others are neither removed nor replaced. The processes have
user, mount and pid namespaces of their own. A container that shares /tmp by accident does no more.

Exit status 77: not root, perf cannot record, or there are no namespaces.
"""
import contextlib
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
from named_frames import skip
from recorded_programs import PERFMAP, read_manifest, skip_without_perf
from waiting import HANG, children_of, proc_file, running, until

USER = 65534
AS_USER = ["setpriv", f"--reuid={USER}", f"--regid={USER}", "--clear-groups"]
OWN_MOUNTS = [*AS_USER, "unshare", "--user", "--map-root-user", "--mount"]
OWN_PIDS = ["unshare", "--pid", "--fork", "--kill-child", "--mount-proc"]
PYTHON = ["/usr/bin/python3", "-B", "-c"]
SECRET = "1000 10 secret_of_root\n"
# The first argument is a file that ends the program when it exists.
SPIN = """
import os, subprocess, sys
def spin():
    # The second condition: the test has ended.
    while not os.path.exists(sys.argv[1]) and os.path.exists(os.path.dirname(sys.argv[1])): sum(range(10000))
"""
# In a namespace where it may, it becomes the process that it was told to be.
WITH_PID = SPIN + """
with open('/proc/sys/kernel/ns_last_pid', 'w') as last: last.write(str(int(sys.argv[2]) - 1))
if os.fork() == 0:
    assert os.getpid() == int(sys.argv[2])
    os.chdir(sys.argv[3])
    files = [open(f'/tmp/perf-{os.getpid()}.map', mode) for mode in sys.argv[4:]]
    spin()
    os._exit(0)
os.wait()
"""
SECRET_MAP = SPIN + """
subprocess.run(['mount', '-t', 'tmpfs', 'none', '/tmp'], check=True)
child = os.fork()
if child == 0:
    path = f'/tmp/perf-{os.getpid()}.map'
    open(path, 'w').close()
    subprocess.run(['mount', '--bind', sys.argv[2], path], check=True)
    os.chdir('/tmp')
    spin()
    os._exit(0)
os.waitpid(child, 0)
sys.stdin.read()  # this keeps the mounts
"""
# Arguments: its working directory, and a file that it makes when it is asked.
FALSE_JVM = 'cd "$1"; trap "cd /; : > $2" QUIT; while [ -e "$1" ]; do :; done'


@contextlib.contextmanager
def recording(*words, cwd):
    record = subprocess.Popen([PERFMAP, "record", *words], cwd=cwd, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        yield record
    finally:
        record.kill()
        record.communicate()


def end(record, expected=0):
    said = record.communicate(timeout=HANG)[1]
    assert record.returncode == expected, (record.returncode, said)
    return said


def has_seen(record, place):
    """Whether perfmap holds this directory of a recorded process."""
    assert record.poll() is None, record.communicate()
    wanted = place.stat()
    for link in pathlib.Path(f"/proc/{record.pid}/fd").iterdir():
        with contextlib.suppress(FileNotFoundError):
            if os.path.samestat(link.stat(), wanted):
                return True
    return False


def has_begun(record, data):
    assert record.poll() is None, record.communicate()
    return data.exists() and data.stat().st_size >= 100_000


def descendants(pid):
    found = children_of(pid)
    return found + [one for child in found for one in descendants(child)]


def process_in(place, pid):
    """The descendant whose working directory this is."""
    def find():
        for one in descendants(pid):
            with contextlib.suppress(FileNotFoundError):
                if place(one) and os.path.samestat(os.stat(f"/proc/{one}/cwd"), os.stat(place(one))):
                    return one
        return None
    return until(find, "the hostile process")


def contents(directory):
    return b"".join(path.read_bytes() for path in directory.iterdir() if path.is_file() and path.name != "perf.data")


def secrets_stay(work):
    """A file that only root may read, mounted over the map of a process that has ended."""
    secret = work / "secret"
    secret.write_text(SECRET)
    secret.chmod(0o600)
    go = work / "go1"
    with running([*OWN_MOUNTS, *PYTHON, SECRET_MAP, str(go), str(secret)], stdin=subprocess.PIPE) as parent:
        child = process_in(lambda one: f"/proc/{one}/root/tmp", os.getpid())
        until(lambda: pathlib.Path(f"/proc/{child}/root/tmp/perf-{child}.map").read_text() == SECRET)
        os.utime(secret)
        with recording("-o", "r1", "-p", str(child), cwd=work) as record:
            until(lambda: has_begun(record, work / "r1/perf.data") and has_seen(record, pathlib.Path(f"/proc/{child}/root/tmp")))
            go.touch()
            end(record)
        parent.stdin.close()
    assert b"secret_of_root" not in contents(work / "r1"), os.listdir(work / "r1")


@contextlib.contextmanager
def living_runtime():
    """A process of root that writes a map, and a line for each that it reads. Yields it and the map."""
    write = ("import os, sys\nwith open(f'/tmp/perf-{os.getpid()}.map', 'a') as file:\n"
             "    for line in sys.stdin: print('1000 10 of_another', file=file, flush=True)")
    with running([*PYTHON, write], stdin=subprocess.PIPE) as process:
        path = pathlib.Path(f"/tmp/perf-{process.pid}.map")
        try:
            until(path.exists)
            yield process, path
        finally:
            path.unlink(missing_ok=True)


def write_line(runtime, path):
    size = path.stat().st_size
    runtime.stdin.write(b"\n")
    runtime.stdin.flush()
    until(lambda: path.stat().st_size > size)


def pids_prove_nothing(work, name, start, modes, is_attached=False):
    """A process whose pid in its namespace is that of a living process outside has neither its map nor its log."""
    app = work / f"app-{name}"
    app.mkdir()
    go = work / f"go-{name}"
    with contextlib.ExitStack() as stack:
        runtime, path = stack.enter_context(living_runtime())
        log = app / f"isolate-0x1234-{runtime.pid}-v8.log"
        words = [*start, *PYTHON, WITH_PID, str(go), str(runtime.pid), str(app), *modes]
        # The shell has to go on, for all that it started to be recorded.
        what = ["--runtime", "node", "--", "sh", "-c", '"$@"; true', "sh", *words]
        if is_attached:
            process = stack.enter_context(running(words))
            what = ["-p", str(process_in(lambda _: app, process.pid))]
        record = stack.enter_context(recording("-o", name, *what, cwd=work))
        if not is_attached:
            process_in(lambda _: app, record.pid)
        until(lambda: has_begun(record, work / name / "perf.data") and has_seen(record, app))
        log.write_text("")
        write_line(runtime, path)
        before = path.stat()
        if is_attached:
            record.terminate()
        else:
            go.touch()
        said = end(record)
        assert path.exists() and os.path.samestat(path.stat(), before), ("the map of another process", said)
        assert log.exists(), said
        assert not read_manifest(work / name)["files"] and b"of_another" not in contents(work / name), said
        assert f"cannot use {path}: " in said, said
        go.touch()


def hostile_pids_prove_nothing(work):
    start = [*OWN_MOUNTS, *OWN_PIDS]
    pids_prove_nothing(work, "r2", start, [])
    pids_prove_nothing(work, "r3", start, ["r"])
    pids_prove_nothing(work, "r3a", start, ["r"], is_attached=True)


def shared_tmp_is_no_loss(work):
    """A container of the same user, in which a runtime may write to the map of the process outside."""
    pids_prove_nothing(work, "r4", OWN_PIDS, [])
    pids_prove_nothing(work, "r5", OWN_PIDS, ["a"])
    pids_prove_nothing(work, "r5a", OWN_PIDS, [], is_attached=True)


def private_programs_stay(work):
    """An ELF file that only root may read, with the path and the build ID of one that the process has in its own mounts."""
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        return print("not checked: programs that only root may read: no C compiler here")
    private = work / "private"
    private.mkdir(mode=0o700)
    source = work / "hot.c"
    for program, text in ((work / "hot", "public"), (private / "hot", "secret_of_root")):
        source.write_text('#include <unistd.h>\nvolatile const char* text = "%s";\n'
                          "int main(int n, char** words) { while (access(words[1], F_OK) != 0 && getppid() != 1) for (int i = 0; i < 100000; i++) *(volatile int*)&n = i; }\n" % text)
        subprocess.run([compiler, "-g", "-O1", "-w", "-Wl,--build-id=0xaaaa1111", "-o", program, source], check=True)
    (private / "hot").chmod(0o700)
    go = work / "go6"
    script = 'mount -t tmpfs none "$1" && cp "$2" "$1/hot" && cd "$1" && exec "$1/hot" "$3"'
    with running([*OWN_MOUNTS, "sh", "-c", script, "sh", str(private), str(work / "hot"), str(go)]) as hot:
        until(lambda: proc_file(hot.pid, "comm") == "hot\n")
        with recording("-o", "r6", "-p", str(hot.pid), cwd=work) as record:
            until(lambda: has_begun(record, work / "r6/perf.data"))
            go.touch()
            end(record)
    assert b"secret_of_root" not in contents(work / "r6"), os.listdir(work / "r6")


def moved_directories_replace_nothing(work):
    """The user, whose directory it is, puts a link to a directory of root in the place of the recording."""
    home = work / "home"
    home.mkdir()
    os.chown(home, USER, USER)
    with running([*AS_USER, *PYTHON, SPIN + "spin()", str(work / "never")]) as busy:
        earlier = work / "r7"
        with recording("-o", "r7", "-p", str(busy.pid), "--duration", "0.5", cwd=work) as record:
            end(record)
        for name, words, file in (("recording", [], "perf.data"), ("archive", ["--archive"], "perf.data"), ("page", ["--open"], "perf.data"), ("no-recording", [], "no")):
            victim = work / f"victim-{name}"
            victim.mkdir(mode=0o700)
            for one in earlier.iterdir() if file == "perf.data" else []:
                shutil.copy(one, victim)
            if file == "no":
                (victim / "perf.data").write_text("mine")
            before = {one.name: one.read_bytes() for one in victim.iterdir()}
            with recording("-p", str(busy.pid), "-o", name, *words, "--duration", "1000", cwd=home) as record:
                until(lambda: has_begun(record, home / name / "perf.data"))
                os.rename(home / name, home / f"{name}.old")
                os.symlink(victim, home / name)
                record.terminate()
                said = end(record, expected=2)
            assert {one.name: one.read_bytes() for one in victim.iterdir()} == before, (name, os.listdir(victim), said)
            assert f"the recording is in {home / name}.old" in said, said
            assert read_manifest(home / f"{name}.old")["pids"] == [busy.pid]
            assert not (home / f"{name}.tar.zst").exists()


def perf_replaces_nothing(work):
    """The same, before perf opens its file."""
    home = work / "early"
    home.mkdir()
    os.chown(home, USER, USER)
    victim = work / "victim-early"
    victim.mkdir(mode=0o700)
    (victim / "perf.data").write_text("mine")
    perf = work / "perf"
    perf.write_text(f'#!/bin/sh\n[ -L rec ] || {{ mv rec rec.old && ln -s {victim} rec; }}\nexec perf "$@"\n')
    perf.chmod(0o755)
    with recording("--perf", str(perf), "-o", "rec", "--runtime", "none", "--", "true", cwd=home) as record:
        said = end(record, expected=2)
    assert os.listdir(victim) == ["perf.data"] and (victim / "perf.data").read_text() == "mine", said
    assert f"the recording is in {home}/rec.old" in said, said


def triggers_stay_nowhere(work):
    """What only looks like a JVM gets no file in a directory where it may create none."""
    place = work / "etc"
    place.mkdir()
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        return print("not checked: files for a JVM: no C compiler here")
    library = work / "libjvm.so"
    subprocess.run([compiler, "-shared", "-x", "c", "-o", library, "/dev/null"], check=True)
    left = work / "left"
    left.mkdir()
    left.chmod(0o777)
    handles = [*AS_USER, "env", f"LD_PRELOAD={library}", "sh", "-c", FALSE_JVM, "sh", str(place), str(left / "now")]

    def is_ready(pid):
        caught = [int(line.split()[1], 16) for line in proc_file(pid, "status").splitlines() if line.startswith("SigCgt:")]
        return f"{library}\n" in proc_file(pid, "maps") and caught and caught[0] >> signal.SIGQUIT - 1 & 1

    with running(handles) as jvm:
        until(lambda: is_ready(jvm.pid))
        with recording("-o", "r8", "-p", str(jvm.pid), "--duration", "0.1", cwd=work) as record:
            said = end(record)
    assert (left / "now").exists() and "it does not answer" in said, said
    assert not os.listdir(place), os.listdir(place)
    assert not list(pathlib.Path("/tmp").glob(".attach_pid*")), os.listdir("/tmp")


if os.geteuid() != 0:
    skip("only root can record processes of another user")
skip_without_perf()
for words in (OWN_MOUNTS + OWN_PIDS, OWN_PIDS):
    if shutil.which("setpriv") is None or subprocess.run([*words, "true"], capture_output=True).returncode != 0:
        skip("no namespaces here")
with tempfile.TemporaryDirectory(dir="/var/tmp") as directory:
    os.chmod(directory, 0o755)
    for test in (secrets_stay, hostile_pids_prove_nothing, shared_tmp_is_no_loss, private_programs_stay,
                 moved_directories_replace_nothing, perf_replaces_nothing, triggers_stay_nowhere):
        if len(sys.argv) == 2 or test.__name__ in sys.argv[2:]:
            test(pathlib.Path(directory))
            print(test.__name__.replace("_", " "), flush=True)
