# SPDX-License-Identifier: MIT
"""examples/fleet runs on GNU parallel, Slurm and DuckDB, and their answers are those of single recordings: fleet.py
PERFMAP NODE_MODULES

50 recordings of two services are converted by GNU parallel, and again by a job array of Slurm, whose daemons run here
for the test. DuckDB (npm, in NODE_MODULES) answers questions.sql, as docs/fleet.md says. The oracle adds up `stacks --format jsonl` of each
recording, a sample a line. Exit status 77: nothing of these is installed. A missing one is skipped and named.
"""
import collections
import contextlib
import json
import os
import pathlib
import pwd
import shutil
import socket
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
FLEET = ROOT / "examples/fleet"
WILD = ROOT / "tests/wild"
PERFMAP, MODULES = map(os.path.abspath, sys.argv[1:])
COUNT, EACH, HOSTS = 50, 10, 10


def run(*words, **more):
    return subprocess.run([*map(str, words)], capture_output=True, text=True, **more)


def passed(done):
    assert done.returncode == 0, (done.args, done.returncode, done.stdout, done.stderr)
    return done.stdout


def skip(what, why):
    print(f"skipped: {what}: {why}", flush=True)


class Sums:
    """What the questions ask for: own samples by service, build and function; frames by host."""

    def __init__(self):
        self.own = collections.Counter()
        self.frames = collections.Counter()
        self.unnamed = collections.Counter()

    def add(self, labels, frames, count):
        leaf = frames[0]
        name = leaf["name"] or f"[{leaf['module'].rsplit('/', 1)[-1]}]"
        self.own[labels["service"], labels["build"], name] += count
        self.frames[labels["host"]] += count * len(frames)
        self.unnamed[labels["host"]] += count * sum(frame["name"] is None for frame in frames)

    def __eq__(self, other):
        return (self.own, self.frames, self.unnamed) == (other.own, other.frames, other.unnamed)


def sums_of_samples(directory, options):
    """Each recording alone, without labels."""
    sums = Sums()
    for number, line in enumerate((directory / "recordings").read_text().splitlines()):
        path, *pairs = line.split("\t")
        labels = dict(pair.split("=", 1) for pair in pairs) | {"host": f"host-{number // 4 % HOSTS:04}"}
        for row in passed(run(PERFMAP, "-q", "stacks", path, *options, "--format", "jsonl")).splitlines():
            sums.add(labels, json.loads(row)["frames"], 1)
    return sums


def lines_in(out):
    files = sorted(out.glob("*.jsonl.zst"))
    return [line for file in files for line in passed(run("zstd", "-dcq", file)).splitlines()]


def sums_of_stacks(lines):
    sums = Sums()
    for line in map(json.loads, lines):
        sums.add(line["labels"], line["frames"], line["count"])
    return sums


def check_parallel(directory, options):
    out = directory / "parallel"
    passed(run(FLEET / "parallel.sh", directory / "recordings", out, *options))
    assert len(list(out.glob("*.zst"))) == COUNT // EACH
    # A torn recording: its job fails, and the others' stacks are there.
    torn = directory / "torn.data"
    torn.write_bytes(pathlib.Path((directory / "recordings").read_text().split("\t")[0]).read_bytes()[:60])
    listed = directory / "with-torn"
    listed.write_text((directory / "recordings").read_text() + f"{torn}\n")
    other = directory / "parallel-torn"
    done = run(FLEET / "parallel.sh", listed, other, *options)
    assert done.returncode == 1, done
    assert str(torn) in done.stderr, done.stderr
    assert lines_in(other) == lines_in(out)
    return lines_in(out)


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


def slurm_conf(directory, host):
    """For one node, without systemd and control groups."""
    return f"""
ClusterName=one
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={free_port()}
SlurmdPort={free_port()}
SlurmUser=root
AuthType=auth/munge
AuthInfo=socket={directory}/munge/socket
StateSaveLocation={directory}/state
SlurmdSpoolDir={directory}/spool
SlurmctldPidFile={directory}/slurmctld.pid
SlurmdPidFile={directory}/slurmd.pid
SlurmctldLogFile={directory}/slurmctld.log
SlurmdLogFile={directory}/slurmd.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
MpiDefault=none
ReturnToService=2
CommunicationParameters=NoCtldInAddrAny,NoInAddrAny
SchedulerParameters=batch_sched_delay=0,sched_interval=1,sched_min_interval=0
NodeName={host} NodeAddr=127.0.0.1 CPUs={os.cpu_count()} State=UNKNOWN
PartitionName=p Nodes={host} Default=YES MaxTime=INFINITE State=UP
"""


@contextlib.contextmanager
def slurm(directory):
    """Runs munged, slurmctld and slurmd; yields the environment for clients."""
    for name in ("state", "spool", "munge"):
        (directory / name).mkdir(parents=True)
    munge = directory / "munge"
    (munge / "key").write_bytes(os.urandom(128))
    user = pwd.getpwnam("munge")
    for path in (munge, munge / "key"):
        os.chown(path, user.pw_uid, user.pw_gid)
        path.chmod(0o755 if path.is_dir() else 0o400)
    conf = directory / "slurm.conf"
    conf.write_text(slurm_conf(directory, socket.gethostname().split(".")[0]))
    env = os.environ | {"SLURM_CONF": str(conf)}
    commands = [
        ["runuser", "-u", "munge", "--", "munged", "-F", "--force", f"--socket={munge}/socket", f"--key-file={munge}/key",
         f"--log-file={munge}/log", f"--pid-file={munge}/pid", f"--seed-file={munge}/seed"],
        ["slurmctld", "-D", "-f", conf],
        ["slurmd", "-D", "-f", conf],
    ]
    running = []
    try:
        for command in commands:
            running.append(subprocess.Popen([*map(str, command)], env=env, stdin=subprocess.DEVNULL,
                                            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL))
            time.sleep(0.3)
        yield env
    finally:
        for process in reversed(running):
            process.terminate()
        for process in running:
            try:
                process.wait(timeout=20)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def wait_for_node(env):
    end = time.monotonic() + 60
    while time.monotonic() < end:
        done = run("sinfo", "-h", "-o", "%T", env=env)
        if done.stdout.strip() == "idle":
            return True
        time.sleep(0.5)
    return False


def check_slurm(directory, options, expected):
    out = directory / "slurm"
    with slurm(directory / "cluster") as env:
        if not wait_for_node(env):  # such as with a host name that is not this machine's
            return skip("Slurm", f"its node does not start: {last_errors(directory / 'cluster')}")
        done = run("sbatch", "--parsable", f"--array=1-{COUNT // EACH}", "--output=/dev/null", FLEET / "array.sbatch",
                   directory / "recordings", out, *options, env=env | {"STACKS": str(FLEET / "stacks.sh")})
        job = passed(done).strip()
        end = time.monotonic() + 120
        while run("squeue", "-h", "-j", job, env=env).stdout.strip() and time.monotonic() < end:
            time.sleep(0.3)
        states = run("scontrol", "-o", "show", "job", job, env=env).stdout
    assert states.count("JobState=COMPLETED") == COUNT // EACH, states
    assert sorted(lines_in(out)) == sorted(expected)


def last_errors(directory):
    logs = [line for log in directory.glob("slurm*.log") for line in log.read_text().splitlines() if "error" in line]
    return logs[-10:]


def check_duckdb(out, expected):
    done = run("node", FLEET / "ask.mjs", out, env=os.environ | {"NODE_PATH": MODULES})
    answers = {line["question"]: line["rows"] for line in map(json.loads, passed(done).splitlines())}
    page = (ROOT / "docs/fleet.md").read_text()
    assert all(line in page for line in done.stdout.splitlines()), done.stdout
    builds = sorted({key[:2] for key in expected.own})
    hottest = [min((-samples, name) for (*key, name), samples in expected.own.items() if tuple(key) == build) for build in builds]
    assert [(*row[:3], int(row[3])) for row in answers["hottest"]] == [
        (*build, name, -samples) for build, (samples, name) in zip(builds, hottest)], answers["hottest"]

    def share(build, name):
        of_build = {key[2]: samples for key, samples in expected.own.items() if key[:2] == ("tally", build)}
        return 100 * of_build.get(name, 0) / sum(of_build.values())

    assert answers["difference"]
    for name, before, after in answers["difference"]:
        assert abs(before - share("1.0", name)) < 0.06 and abs(after - share("1.1", name)) < 0.06, (name, before, after)
    worst = sorted(expected.frames, key=lambda host: (-round(100 * expected.unnamed[host] / expected.frames[host], 1), host))
    assert [row[0] for row in answers["unnamed"]] == worst[:5], (answers["unnamed"], worst)
    for host, percent in answers["unnamed"]:
        assert abs(percent - 100 * expected.unnamed[host] / expected.frames[host]) < 0.06, (host, percent)


def check_report(directory, options, expected):
    """`report --by label:build` has the samples of each build, as on the page."""
    printed = passed(run(PERFMAP, "-q", "report", "--recordings", directory / "recordings", *options, "--by", "label:build"))
    sums = collections.Counter()
    for (_, build, _), samples in expected.own.items():
        sums[build] += samples
    rows = [line.split() for line in printed.splitlines() if "%  " in line]
    assert {row[-1]: int(row[0]) for row in rows if row[0] != "SELF"} == sums, (printed, sums)
    page = (ROOT / "docs/fleet.md").read_text()
    assert "".join(f"    {line}\n" if line else "\n" for line in printed.splitlines()) in page, printed


def check_threads(directory, options):
    """The output is the same with any number of threads."""
    outputs = {passed(run(PERFMAP, "-q", "stacks", "--recordings", directory / "recordings", *options, "--threads", threads,
                          "--format", "jsonl", "--label", "host")) for threads in (1, 2, 16)}
    assert len(outputs) == 1


def stacks_without_parallel(directory, options):
    out = directory / "alone"
    out.mkdir()
    passed(run(FLEET / "stacks.sh", out / "1.jsonl.zst", *options, input=(directory / "recordings").read_text()))
    return lines_in(out)


def main():
    if shutil.which("zstd") is None:
        return skip("all", "zstd is not installed") or 77
    os.environ |= {"PERFMAP": PERFMAP, "RECORDINGS_EACH": str(EACH)}
    with tempfile.TemporaryDirectory() as temporary:
        directory = pathlib.Path(temporary)
        directory.chmod(0o755)  # munged runs as another user
        passed(run(sys.executable, FLEET / "make_recordings.py", WILD, directory, COUNT))
        options = ["--map-dir", directory / "maps", "--symfs", WILD / "tally"]
        expected = sums_of_samples(directory, options)
        lines = stacks_without_parallel(directory, options)
        assert sums_of_stacks(lines) == expected
        check_threads(directory, options)
        check_report(directory, options, expected)
        print(f"{len(lines)} stacks of {COUNT} recordings", flush=True)
        if shutil.which("parallel") is None:
            skip("GNU parallel", "it is not installed")
        else:
            assert sorted(check_parallel(directory, options)) == sorted(lines)
        if not all(map(shutil.which, ("slurmctld", "slurmd", "munged", "sbatch"))):
            skip("Slurm", "it is not installed")
        elif os.geteuid() != 0:
            skip("Slurm", "only root can run its daemons")
        else:
            check_slurm(directory, options, lines)
        if not pathlib.Path(MODULES, "@duckdb/node-api").exists():
            skip("DuckDB", "@duckdb/node-api is not installed")
        else:
            check_duckdb(directory / "alone", expected)
    return 0


sys.exit(main())
