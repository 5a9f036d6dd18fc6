# SPDX-License-Identifier: MIT
"""Root records PostgreSQL's LLVM JIT, which runs as another user: postgres_jit.py PERFMAP

Without options, perfmap doctor says which the server needs. With these, no frame that perf names after
perf inject may be unnamed, while the backend lives and after it has ended.

Exit status 77: not root, or PostgreSQL with llvmjit, perf or setpriv is not installed.
"""
import contextlib
import glob
import os
import pathlib
import pwd
import shutil
import signal
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "tests/support"))
from named_frames import compare, run, skip
from perf_record import PERF_RECORD
from trying import require, require_samples
from waiting import HANG, open_files, processor_time, until

PERFMAP = str(pathlib.Path(sys.argv[1]).resolve())
ADVICE = "JITDUMPDIR=/tmp postgres -c jit_profiling_support=on ..."
SECONDS = 1.5
QUERY = "select sum(i*3.5+sqrt(i)) from (select generate_series(1,600000) i) t where i%7<>3;"


def find_server():
    """The directory of the newest server that has llvmjit."""
    found = [path for path in glob.glob("/usr/lib/postgresql/*/bin/postgres")
             if pathlib.Path(path).parent.parent.joinpath("lib/llvmjit.so").exists()]
    return pathlib.Path(max(found)).parent if found else None


def as_user(user):
    return ["setpriv", "--reuid", str(user.pw_uid), "--regid", str(user.pw_gid), "--clear-groups"]


@contextlib.contextmanager
def server(binaries, user, place, profiled):
    """`profiled`: the options of ADVICE."""
    data = place / "data"
    if not data.exists():
        run(*as_user(user), str(binaries / "initdb"), "-D", str(data), "-A", "trust", "-U", "postgres")
    settings = {"listen_addresses": "", "unix_socket_directories": str(place), "jit": "on", "jit_above_cost": "0",
                "jit_inline_above_cost": "0", "jit_optimize_above_cost": "0",
                "max_parallel_workers_per_gather": "0", "fsync": "off"}
    options = [word for name, value in settings.items() for word in ("-c", f"{name}={value}")]
    directory = {"JITDUMPDIR": str(place)} if profiled else {}
    if profiled:
        options += ["-c", "jit_profiling_support=on"]
    with open(place / "log", "w") as log:
        process = subprocess.Popen([*as_user(user), str(binaries / "postgres"), "-D", str(data), *options],
                                   stdout=log, stderr=log, env={**os.environ, **directory})
    try:
        def is_ready():
            said = (place / "log").read_text()
            if process.poll() is not None:
                skip(f"PostgreSQL does not start: {said[-300:]}")
            return (place / ".s.PGSQL.5432").exists() and "ready to accept" in said

        until(is_ready, "PostgreSQL is ready")
        yield
    finally:
        process.send_signal(signal.SIGINT)  # does not wait for sessions
        process.wait(timeout=HANG)


class Session:
    """A connection and its backend process."""

    def __init__(self, place):
        self.place = place
        self.psql = subprocess.Popen(["psql", "-h", str(place), "-U", "postgres", "-At", "-q"], text=True,
                                     stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.pid = int(self.ask("select pg_backend_pid();"))

    def ask(self, query):
        self.psql.stdin.write(query + "\n")
        self.psql.stdin.flush()
        return self.psql.stdout.readline()

    def require_backend(self):
        """A backend that ended by itself is the server's doing, whose log tells why."""
        log = (self.place / "log").read_text()
        require(pathlib.Path(f"/proc/{self.pid}").exists(), f"backend {self.pid} has ended; the server's log: {log[-400:]}")

    def end(self):
        self.psql.stdin.close()
        self.psql.wait()
        until(lambda: not pathlib.Path(f"/proc/{self.pid}").exists(), "the backend has ended")


def record(session, data):
    """Runs queries in the session while perf records, until the backend has run for SECONDS; the caller ends the session or
    perf. So many queries take so many samples on an idle machine only if it is as fast as the one of their author."""
    perf = subprocess.Popen([*PERF_RECORD, "-e", "cpu-clock:u", "-F", "499", "-k", "mono", "-g", "-o", data,
                             "-p", str(session.pid)], stdout=subprocess.DEVNULL)
    def has_begun():
        if perf.poll() is not None:
            session.require_backend()
            raise AssertionError(f"perf has ended with status {perf.returncode}")
        return any("perf_event" in file for file in open_files(perf.pid))

    until(has_begun, "perf records")
    end = processor_time(session.pid) + SECONDS
    while processor_time(session.pid) < end:
        session.require_backend()
        session.ask(QUERY)
    return perf


def check_advice(place):
    session = Session(place)
    perf = record(session, "unnamed.data")
    perf.send_signal(2)
    perf.wait()
    said = subprocess.run([PERFMAP, "doctor", "unnamed.data"], capture_output=True, text=True).stdout
    assert "postgresql (recognized by its library" in said and "PostgreSQL writes no jitdump" in said, said
    assert f"fix: {ADVICE}\n" in said, said
    session.end()


def check(place):
    session = Session(place)
    perf = record(session, "alive.data")
    perf.send_signal(2)
    perf.wait()
    run("perf", "inject", "--jit", "-f", "-i", "alive.data", "-o", "alive.theirs")
    check_names("the backend lives", "alive")
    session.end()
    session = Session(place)
    perf = record(session, "gone.data")
    session.end()
    perf.wait()
    run("perf", "inject", "--jit", "-f", "-i", "gone.data", "-o", "gone.theirs")
    check_names("the backend is gone", "gone")
    said = subprocess.run([PERFMAP, "inject", "gone.data", "-o", "gone.ours"], capture_output=True, text=True)
    assert said.returncode == 0, said.stderr
    ours = run("perf", "script", "-f", "-i", "gone.ours", "-F", "ip,sym,dso")
    theirs = run("perf", "script", "-f", "-i", "gone.theirs", "-F", "ip,sym,dso")
    assert ours.count("evalexpr") == theirs.count("evalexpr"), (ours.count("evalexpr"), theirs.count("evalexpr"))
    require_samples(ours.count("evalexpr"), 50, "frames of compiled expressions")


def check_names(what, name):
    stacks = compare(PERFMAP, what, f"{name}.data", 200, theirs=f"{name}.theirs")
    compiled = [frame for stack in stacks.values() for _, frame, _ in stack if frame and frame.startswith("evalexpr_")]
    require_samples(len(compiled), 50, f"{what}: frames of compiled expressions")
    said = subprocess.run([PERFMAP, "doctor", f"{name}.data"], capture_output=True, text=True).stdout
    assert "foreign-owner" not in said and "postgresql (recognized by its library" in said, said


if os.geteuid() != 0:
    skip("only root can be another user")
for tool in ("perf", "setpriv", "psql"):
    if not shutil.which(tool):
        skip(f"no {tool} here")
binaries = find_server()
if binaries is None:
    skip("no PostgreSQL with llvmjit here")
try:
    user = pwd.getpwnam("postgres")
except KeyError:
    user = pwd.getpwnam("nobody")
with tempfile.TemporaryDirectory(dir="/var/tmp") as directory:
    place = pathlib.Path(directory)
    os.chown(place, user.pw_uid, user.pw_gid)
    os.chmod(place, 0o755)
    os.chdir(place)
    probe = subprocess.run([*PERF_RECORD, "-e", "cpu-clock:u", "-k", "mono", "-o", "probe.data", "true"],
                           capture_output=True, text=True)
    if probe.returncode != 0:
        skip(f"perf may not record here: {probe.stderr.splitlines()[:1]}")
    with server(binaries, user, place, profiled=False):
        check_advice(place)
    with server(binaries, user, place, profiled=True):
        check(place)
