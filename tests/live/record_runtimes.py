# SPDX-License-Identifier: MIT
"""Records programs of further runtimes with `perfmap record`: record_runtimes.py PERFMAP [--measure]

Each program spends 50, 30 and 20 % of its time in three functions. The table has what a recording without
options must reach; the catalogue of runtimes (perfmap doctor --runtimes) has the measured values. --measure
prints them.

Deno and Bun may be in the PATH, or in build/npm (npm install --prefix build/npm deno bun). Exit status 77:
perf cannot record, or none of the runtimes is installed.
"""
import concurrent.futures
import dataclasses
import glob
import json
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
from chance import is_at_least
from other_user import copy_for_all
from recorded_programs import (JAVASCRIPT, PERFMAP, SHARES, check_counts, check_nothing_left, measured_samples,
                               read_manifest, run, skip_without_perf, stacks)
from trying import require, results_of
from waiting import HANG, until

SECONDS = "2"
PHP = "<?php\n" + "".join(
    f"function {name}($n) {{ $s = 0; for ($i = 0; $i < $n; $i++) {{ $s += ($i * 3) % 7; }} return $s; }}\n"
    for name in SHARES) + """
function used() { $all = getrusage(); return $all["ru_utime.tv_sec"] + 1e-6 * $all["ru_utime.tv_usec"]; }
$end = used() + (float)$argv[1];
$x = 0;
while (used() < $end) { $x += hot50(2500000) + hot30(1500000) + hot20(1000000); }
echo $x > 0 ? "done true\\n" : "done false\\n";
"""
CSHARP = "using System;\nusing System.Runtime.CompilerServices;\nclass Hot {\n" + "".join(
    "[MethodImpl(MethodImplOptions.NoInlining)]\n"
    f"static long {name}(int n) {{ long s = 0; for (int i = 0; i < n; i++) s += i * 3L % 7 ^ s >> 3; return s; }}\n"
    for name in SHARES) + """
static double Used() { return System.Diagnostics.Process.GetCurrentProcess().TotalProcessorTime.TotalSeconds; }
static void Main(string[] words) {
  double end = Used() + Double.Parse(words[0]);
  long x = 0;
  while (Used() < end) x += hot50(2500000) + hot30(1500000) + hot20(1000000);
  Console.WriteLine(x != 0 ? "done true" : "done false");
}}
"""
PYTHON = "import sys, time\n" + "".join(f"""
def {name}(n):
    s = 0
    for i in range(n):
        s += i * 3 % 7
    return s
""" for name in SHARES) + """
end = time.process_time() + float(sys.argv[1])
x = 0
while time.process_time() < end:
    x += hot50(5000000) + hot30(3000000) + hot20(2000000)
print("done true" if x > 0 else "done false")
"""
QUERY = "select sum(i*3.5+sqrt(i)) from (select generate_series(1,600000) i) t where i%7<>3;"


@dataclasses.dataclass
class Case:
    """`rooted` and `named`: least percent of the samples, and of the JIT frames."""
    word: str
    program: str
    source: str
    text: str
    command: list
    rooted: float
    named: float
    kind: str
    variable: str
    prepare: tuple = ()


CASES = [
    Case("php", "php", "hot.php", PHP, ["hot.php", SECONDS], 0, 99, "map", "PHP_INI_SCAN_DIR"),
    Case("mono", "mono", "hot.cs", CSHARP, ["hot.exe", SECONDS], 98, 99, "map", "MONO_ENV_OPTIONS",
         ("mcs", "-out:hot.exe", "hot.cs")),
    Case("deno", "deno", "hot.js", JAVASCRIPT, ["run", "hot.js", SECONDS], 97, 99, "map", "DENO_V8_FLAGS"),
    Case("bun", "bun", "hot.js", JAVASCRIPT, ["hot.js", SECONDS], 98, 99, "dump", "BUN_JSC_useJITDump"),
    Case("pypy", "pypy3", "hot.py", PYTHON, ["hot.py", SECONDS], 0, 99, "map", "PYPYLOG"),
]


def find(name):
    npm = ROOT / "build/npm/node_modules/.bin" / name
    has_npm = npm.exists()
    return shutil.which(name) or (str(npm.resolve()) if has_npm else None)


def measure(directory, cwd, runtime):
    """Percent of the stacks to the root, percent of the JIT frames with a name, and the counts."""
    done = subprocess.run([PERFMAP, "doctor", directory, "--format", "json"], cwd=cwd, capture_output=True, text=True)
    rows = [row for row in json.loads(done.stdout)["processes"] if row["runtime"] == runtime]
    row = {key: sum(one[key] for one in rows) for key in ("samples", "root", "jit_frames", "unnamed_jit_frames")}
    require(row["samples"], done.stdout)
    row["named"] = row["jit_frames"] - row["unnamed_jit_frames"]
    return 100 * row["root"] / row["samples"], 100 * row["named"] / max(row["jit_frames"], 1), row


def reaches(row, rooted, named):
    """Whether the shares are at least these, in percent."""
    return is_at_least(row["root"], row["samples"], rooted / 100) and is_at_least(row["named"], row["jit_frames"], named / 100)


def record(case, program, place):
    """Records the program in a directory of its own; returns a line of measured values."""
    cwd = pathlib.Path(place, case.word)
    cwd.mkdir()
    (cwd / case.source).write_text(case.text)
    os.utime(cwd / case.source, (10**9, 10**9))  # PHP does not compile files that were written just now
    if case.prepare:
        subprocess.run(case.prepare, cwd=cwd, check=True)
    before = set(os.listdir(cwd)) | {"rec"}
    done = run("record", "-o", "rec", "--", program, *case.command, cwd=cwd)
    assert done.stdout == "done true\n", (case.word, done.stdout, done.stderr)
    assert f"set {case.variable}=" in done.stderr, done.stderr
    manifest = read_manifest(cwd / "rec")
    check_nothing_left(cwd, before, manifest)
    assert case.kind in [file["kind"] for file in manifest["files"]], manifest
    kept = {"perf.data", "recording.json", *(file["path"] for file in manifest["files"])}
    kept |= {module["path"] for module in manifest["modules"]}
    assert set(os.listdir(cwd / "rec")) == kept, os.listdir(cwd / "rec")
    rooted, named, row = measure("rec", cwd, case.word)
    found = measured_samples("rec", cwd)
    whole = sum(found.values())
    line = (f"{case.word}: {row['samples']} samples, {rooted:.1f} % rooted, {named:.1f} % of {row['jit_frames']} JIT "
            f"frames named; " + ", ".join(f"{name} {100 * count / max(whole, 1):.1f} %" for name, count in found.items()))
    if "--measure" in sys.argv:
        return f"{line} ({whole})\n{done.stderr}"
    assert reaches(row, case.rooted, case.named), (line, done.stderr)
    check_counts(found, line)
    return line


def as_user():
    """Words that run a command as a user who may start a server."""
    if os.geteuid() != 0:
        return []
    user = pwd.getpwnam("postgres")
    return ["setpriv", "--reuid", str(user.pw_uid), "--regid", str(user.pw_gid), "--clear-groups"]


def record_postgres(server, place):
    """A server that is started for the recording, and serves a client until it is stopped."""
    cwd = pathlib.Path(place, "postgres")
    cwd.mkdir()
    user = as_user()
    if user:
        shutil.chown(cwd, "postgres")
    subprocess.run([*user, str(server.parent / "initdb"), "-D", str(cwd / "data"), "-A", "trust", "-U", "postgres"],
                   check=True, stdout=subprocess.DEVNULL)
    settings = {"listen_addresses": "", "unix_socket_directories": str(cwd), "jit_above_cost": "0",
                "jit_inline_above_cost": "0", "jit_optimize_above_cost": "0",
                "max_parallel_workers_per_gather": "0", "fsync": "off"}
    options = [word for name, value in settings.items() for word in ("-c", f"{name}={value}")]
    programs = cwd / "programs"
    programs.mkdir()
    perfmap, environment = copy_for_all(PERFMAP, programs)
    with open(cwd / "log", "w") as log:
        process = subprocess.Popen([*user, perfmap, "record", "-o", "rec", "--", str(server), "-D", str(cwd / "data"),
                                    *options], cwd=cwd, stdout=log, stderr=log, env=environment)
        try:
            def is_ready():
                said = (cwd / "log").read_text()
                assert process.poll() is None, said
                return "ready to accept" in said

            until(is_ready, "PostgreSQL")
            subprocess.run(["psql", "-h", str(cwd), "-U", "postgres", "-At", "-q"], input=QUERY * 3, text=True, check=True,
                           stdout=subprocess.DEVNULL)
        finally:
            postmaster = cwd / "data/postmaster.pid"
            if postmaster.exists():
                os.kill(int(postmaster.read_text().split()[0]), signal.SIGINT)
            process.wait(timeout=HANG)
    said = (cwd / "log").read_text()
    assert process.returncode == 0 and "added -c jit_profiling_support=on" in said, said
    manifest = read_manifest(cwd / "rec")
    assert "dump" in [file["kind"] for file in manifest["files"]], (manifest, said)
    assert not (cwd / "rec/runtime").exists()
    rooted, named, row = measure("rec", cwd, "postgresql")
    names = {frame for frames, _ in stacks("rec", cwd) for frame in frames}
    line = f"postgresql: {row['samples']} samples, {rooted:.1f} % rooted, {named:.1f} % of {row['jit_frames']} JIT frames named"
    assert any(name.startswith("evalexpr_") for name in names), (line, names)
    assert "--measure" in sys.argv or reaches(row, 30, 99), line
    return line


def guile_is_left_alone(place):
    cwd = pathlib.Path(place, "guile")
    cwd.mkdir()
    done = run("record", "-o", "rec", "--", "guile", "--no-auto-compile", "-c", "(display 1)", cwd=cwd)
    assert done.stdout == "1" and "Guile: names are not turned on, because its perf map has addresses" in done.stderr, done
    assert read_manifest(cwd / "rec")["variables"] == {}
    return "guile: nothing is set"


def main():
    skip_without_perf()
    with tempfile.TemporaryDirectory() as place:
        os.chmod(place, 0o755)
        jobs, missing = [], []
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            for case in CASES:
                program = find(case.program)
                if program is None or (case.prepare and shutil.which(case.prepare[0]) is None):
                    missing.append(case.word)
                else:
                    jobs.append(pool.submit(record, case, program, place))
            servers = [pathlib.Path(path) for path in glob.glob("/usr/lib/postgresql/*/bin/postgres")
                       if pathlib.Path(path).parent.parent.joinpath("lib/llvmjit.so").exists()]
            if servers and shutil.which("psql"):
                jobs.append(pool.submit(record_postgres, max(servers), place))
            else:
                missing.append("postgresql")
            if shutil.which("guile"):
                jobs.append(pool.submit(guile_is_left_alone, place))
            if "--measure" in sys.argv:
                for job in jobs:
                    print("FAILED " + repr(job.exception())[:3000] if job.exception() else job.result(), flush=True)
            else:
                print("\n".join(results_of(jobs)))
        for word in missing:
            print(f"skipped: there is no {word}")
        if not jobs:
            sys.exit(77)


main()
