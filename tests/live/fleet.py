# SPDX-License-Identifier: MIT
"""examples/fleet runs on GNU parallel, Slurm and DuckDB, and their answers are those of single recordings: fleet.py
PERFMAP NODE_MODULES

50 recordings of two services are converted by GNU parallel, and again by a job array of Slurm, whose daemons run here
for the test. DuckDB (npm, in NODE_MODULES) answers questions.sql, and writes Parquet, as docs/fleet.md says. The oracle
adds up `stacks --format jsonl` of each recording, a sample a line. What goes wrong (no recordings, wrong options, a full
disk, output of an earlier run) is reported, and nothing good is replaced. Exit status 77: nothing of these is installed.
A missing one is skipped and named.
"""
import collections
import contextlib
import json
import os
import pathlib
import pwd
import re
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


def refused(done, status, *words):
    """The program fails with a line that has these words, without a trace of its insides."""
    assert done.returncode == status, done
    assert all(str(word) in done.stderr for word in words), (words, done.stderr)
    assert done.stderr.count("\n") == 1, done.stderr


def check_failures_of_stacks(directory, options):
    """Nothing is lost silently: a failed conversion says so, and leaves the output of an earlier one."""
    listed = (directory / "recordings").read_text()
    first = listed.splitlines(True)[0]
    out = directory / "failures/1.jsonl.zst"
    out.parent.mkdir()
    stacks = [FLEET / "stacks.sh", out]
    passed(run(*stacks, *options, input=listed))
    good = out.read_bytes()

    def fails(done, *words):
        refused_words = [word for word in words if word not in done.stderr]
        assert done.returncode == 1 and not refused_words, (done, refused_words)
        assert out.read_bytes() == good
        assert [path.name for path in out.parent.iterdir()] == [out.name]

    fails(run(*stacks, *options, "--map-dir", directory / "nowhere", input=listed), "nowhere")
    fails(run(*stacks, "--mapdir", input=listed), "--mapdir")
    fails(run(*stacks, input=""), "no recordings")
    fails(run(*stacks, input=f"{directory}/gone.data\n"), "gone.data")
    fails(run(*stacks, input=listed, env=os.environ | {"PERFMAP": "no-perfmap"}), "no-perfmap")
    # Some recordings are missing: the others replace the earlier output.
    done = run(*stacks, *options, input=f"{first}{directory}/gone.data\n")
    assert done.returncode == 2 and "gone.data" in done.stderr, done
    assert {json.loads(line)["labels"]["build"] for line in lines_in(out.parent)} == {"1.0"}
    done = run(FLEET / "stacks.sh", directory / "no/1.jsonl.zst", *options, input=listed)
    assert done.returncode == 1 and "no/1.jsonl.zst" in done.stderr and "SEGV" not in done.stderr, done
    out.unlink()
    out.mkdir()  # the last step fails
    assert run(FLEET / "stacks.sh", out, *options, input=listed).returncode == 1
    check_full_disk(directory, options, listed)


def check_full_disk(directory, options, listed):
    full = directory / "full"
    full.mkdir()
    if run("mount", "-t", "tmpfs", "-o", "size=8k", "tmpfs", full).returncode != 0:
        return skip("a full disk", "tmpfs cannot be mounted")
    try:
        done = run(FLEET / "stacks.sh", full / "1.jsonl.zst", *options, input=listed)
        assert done.returncode == 1 and "No space left" in done.stderr, done
        assert list(full.iterdir()) == []
    finally:
        passed(run("umount", full))


def check_own_lists(directory, options):
    """The commands of docs/fleet.md that make a list, and those that need no files between."""
    def listed(command):
        page = (ROOT / "docs/fleet.md").read_text()
        assert command in page, command
        return passed(run("sh", "-c", command.replace("/data", str(directory / "data")), cwd=directory))

    (directory / "data/web-1").mkdir(parents=True)
    archive = directory / "data/web-1/1015.tar.zst"
    archive.touch()
    listed(r"find /data -name '*.tar.zst' >recordings-1")
    assert (directory / "recordings-1").read_text() == f"{archive}\n"
    listed(r"find /data -name '*.tar.zst' | sed 's|/data/\([^/]*\)/.*|&\tservice=\1|' >recordings-2")
    assert (directory / "recordings-2").read_text() == f"{archive}\tservice=web-1\n"
    page = directory / "fleet.html"
    passed(run(PERFMAP, "-q", "stacks", "--recordings", directory / "recordings", *options, "-o", page))
    assert page.stat().st_size > 50_000
    report = passed(run(PERFMAP, "-q", "report", "--recordings", directory / "recordings", *options, "--comm", "tally"))
    assert f"{COUNT} recordings" in report and " digits " in report, report
    # Paths are relative to the working directory.
    relative = directory / "maps/relative"
    relative.write_text("tally-1.0-00000.data\n")
    passed(run(PERFMAP, "-q", "report", "--recordings", relative, cwd=directory))
    assert run(PERFMAP, "-q", "report", "--recordings", relative, cwd=directory / "maps").returncode == 2


def check_hostile_words(directory):
    """Words of the command line are not read again: not by a shell, and not by GNU parallel."""
    listed = directory / "of-tally"
    listed.write_text("".join(line for line in (directory / "recordings").read_text().splitlines(True) if "tally" in line))
    files = directory / "my files {} {#} $HOME"
    shutil.copytree(WILD / "tally", files)
    out = directory / "s 3; {} {1} 'x'"
    injected = directory / "injected"
    comm = f"a;touch {injected};`touch {injected}`{{= system('touch {injected}') =}},tally"
    passed(run(FLEET / "parallel.sh", listed, out, "--symfs", files, "--comm", comm))
    assert {frame["name"] for line in lines_in(out) for frame in json.loads(line)["frames"]} >= {"digits", "sum"}
    assert not injected.exists()


def check_refusals(script, directory, options):
    """Of parallel.sh and slurm.sh, before anything is converted."""
    listed = directory / "recordings"
    old = directory / f"old-{script}"
    old.mkdir()
    (old / "7.jsonl.zst").touch()
    refused(run(FLEET / script, listed, old, *options), 255, script, old)
    empty = directory / "empty"
    empty.touch()
    for path in (empty, directory / "gone", directory):
        refused(run(FLEET / script, path, directory / "unused", *options), 255, script, path)
    assert not (directory / "unused").exists()
    refused(run(FLEET / script, listed), 255, script, "OUT")


def check_parallel(directory, options):
    out = directory / "parallel"
    check_refusals("parallel.sh", directory, options)
    check_hostile_words(directory)
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
    # The page says how many failed jobs the status counts, and that their order is that of the list.
    gone = directory / "all-gone"
    gone.write_text(f"{directory}/gone.data\n" * 102)
    several = directory / "parallel-gone"
    for each, status in (("50", 3), ("1", 101)):
        done = run(FLEET / "parallel.sh", gone, several, env=os.environ | {"RECORDINGS_EACH": each})
        assert done.returncode == status and "gone.data" in done.stderr, done
    failed = [line.split("\t") for line in (other / "jobs").read_text().splitlines()[1:] if line.split("\t")[6] != "0"]
    assert [line[0] for line in failed] == [str(COUNT // EACH + 1)], failed
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
    end = time.monotonic() + 200
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
        env |= {"SBATCH_OUTPUT": "/dev/null"}
        check_refusals("slurm.sh", directory, options)
        # The last line need not have an end, and each task has its recordings.
        listed = directory / "not-ended"
        listed.write_text((directory / "recordings").read_text() + str(directory / "torn.data"))
        (directory / "torn.data").write_bytes(b"PERFILE2")
        states = states_of_job(run(FLEET / "slurm.sh", listed, out, *options, cwd=directory, env=env), env)
        assert states == ["COMPLETED"] * (COUNT // EACH) + ["FAILED 1"], states
        assert sorted(lines_in(out)) == sorted(expected)
        # One task again, as slurm.sh says.
        shutil.copy(directory / "tally-1.0-00000.data", directory / "torn.data")
        done = run("sbatch", f"--array={COUNT // EACH + 1}", FLEET / "slurm.sh", listed, out, *options,
                   env=env | {"STACKS": str(FLEET / "stacks.sh")})
        assert states_of_job(done, env) == ["COMPLETED"]
        assert len(lines_in(out)) > len(expected)
        done = run("sbatch", f"--array={COUNT // EACH + 2}", FLEET / "slurm.sh", listed, out, *options,
                   env=env | {"STACKS": str(FLEET / "stacks.sh")})
        assert states_of_job(done, env) == ["FAILED 1"]


def states_of_job(submitted, env):
    """When all its tasks have ended, by their numbers: COMPLETED, or FAILED and the exit status."""
    job = passed(submitted).split()[-1]
    end = time.monotonic() + 400
    while run("squeue", "-h", "-j", job, env=env).stdout.strip() and time.monotonic() < end:
        time.sleep(0.3)
    states = {}
    for line in run("scontrol", "-o", "show", "job", job, env=env).stdout.splitlines():
        words = dict(word.split("=", 1) for word in line.split() if "=" in word)
        status = words["ExitCode"].split(":")[0]
        states[int(words["ArrayTaskId"])] = words["JobState"] + (f" {status}" if status != "0" else "")
    return [states[task] for task in sorted(states)]


def last_errors(directory):
    logs = [line for log in directory.glob("slurm*.log") for line in log.read_text().splitlines() if "error" in line]
    return logs[-10:]


def ask(*words, modules=MODULES, **more):
    return run("node", FLEET / "ask.mjs", *words, env=os.environ | {"NODE_PATH": modules}, **more)


def check_failures_of_ask(directory):
    empty = directory / "no-stacks"
    empty.mkdir()
    refused(ask(), 2, "ask.mjs", "DIRECTORY")
    refused(ask(directory / "nowhere"), 2, "ask.mjs", "nowhere")
    refused(ask(directory / "recordings"), 2, "ask.mjs", "recordings")
    refused(ask(empty), 2, "ask.mjs", "*.jsonl.zst")
    refused(ask(empty, directory / "no.sql"), 2, "ask.mjs", "no.sql")
    refused(ask(empty, modules="", cwd=empty), 2, "ask.mjs", "npm install")


def check_parquet(directory):
    """The statement of the page, below the view of questions.sql."""
    copy = re.search(r"`(COPY [^`]*)`", (ROOT / "docs/fleet.md").read_text())[1].replace("\n", " ")
    view = next(part for part in (FLEET / "questions.sql").read_text().split(";") if "CREATE VIEW stacks" in part)
    query = directory / "parquet.sql"
    query.write_text(f"{view};\n{copy};\n-- same: all samples\nSELECT (SELECT sum(count) FROM stacks)::BIGINT,"
                     " (SELECT sum(count) FROM 'stacks.parquet')::BIGINT;\n")
    [[lines, parquet]] = json.loads(passed(ask(directory / "alone", query)))["rows"]
    assert lines == parquet and int(lines) > 1000, (lines, parquet)


def check_duckdb(out, expected):
    done = ask(out)
    answers = {line["question"]: line["rows"] for line in map(json.loads, passed(done).splitlines())}
    page = (ROOT / "docs/fleet.md").read_text()
    shown = {line["question"]: line["rows"] for line in map(json.loads, re.findall(r'(?m)^ +(\{"question":.*)$', page))}
    assert [shown[name] for name in ("hottest", "difference")] == [answers[name] for name in ("hottest", "difference")], done.stdout
    # The libraries of this machine name some frames: by how many depends on its packages.
    for (host, percent), (shown_host, shown_percent) in zip(answers["unnamed"], shown["unnamed"], strict=True):
        assert host == shown_host and abs(percent - shown_percent) < 1, done.stdout
    builds = sorted({key[:2] for key in expected.own})
    hottest = [min((-samples, name) for (*key, name), samples in expected.own.items() if tuple(key) == build) for build in builds]
    assert [(*row[:3], int(row[3])) for row in answers["hottest"]] == [
        (*build, name, -samples) for build, (samples, name) in zip(builds, hottest)], answers["hottest"]

    def share(build, name):
        of_build = {key[2]: samples for key, samples in expected.own.items() if key[:2] == ("web", build)}
        return 100 * of_build.get(name, 0) / sum(of_build.values())

    # The second build runs the hottest code half as often (make_recordings.py).
    assert [round(after - before) < -3 for _, before, after in answers["difference"]].count(True) == 2, answers["difference"]
    for name, before, after in answers["difference"]:
        assert abs(before - share("7", name)) < 0.06 and abs(after - share("8", name)) < 0.06, (name, before, after)
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
        check_failures_of_stacks(directory, options)
        check_own_lists(directory, options)
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
            check_failures_of_ask(directory)
            check_parquet(directory)
    return 0


sys.exit(main())
