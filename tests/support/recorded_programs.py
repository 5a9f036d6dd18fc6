# SPDX-License-Identifier: MIT
"""Programs that spend known shares of their time in three functions, recorded by `perfmap record`."""
import concurrent.futures
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from chance import is_at_least, is_at_most, is_share
from json_schema import check
from perf_record import PERF_RECORD
from trying import require, require_samples, results_of

PERFMAP = str(pathlib.Path(sys.argv[1]).resolve())
SCHEMA = json.loads((pathlib.Path(__file__).resolve().parents[2] /
                     "docs/schema/perfmap.recording-1.json").read_text())
SHARES = {"hot50": 50, "hot30": 30, "hot20": 20}
BIAS = 2  # percent: the first rounds are interpreted, and longer loops have larger numbers, whose arithmetic takes longer
LOOP = "let s = 0; for (let i = 0; i < n; i++) { s += Math.sqrt(i) * i % 7 } return s"
JAVASCRIPT = "".join(f"function {name}(n) {{ {LOOP} }}\n" for name in SHARES) + """
// Of processor time, so that the number of samples does not depend on how busy the machine is.
const seconds = Number(process.argv[2]), begin = process.cpuUsage().user;
const enough = process.argv[3];  // a file that ends the program when it exists
let x = 0;
while (process.cpuUsage().user - begin < 1e6 * seconds && !(enough && require("fs").existsSync(enough))) { x += hot50(2500000) + hot30(1500000) + hot20(1000000) }
console.log("done", x > 0);
"""


def run(*words, cwd, expected=0, env=None):
    done = subprocess.run([PERFMAP, *words], cwd=cwd, capture_output=True, text=True,
                          env={**os.environ, **(env or {})})
    assert done.returncode == expected, (words, done.returncode, done.stdout, done.stderr)
    return done


def skip_without_perf():
    """Ends the test with status 77 if perf cannot record."""
    with tempfile.TemporaryDirectory() as cwd:
        probe = subprocess.run([*PERF_RECORD, "-o", f"{cwd}/probe", "true"],
                               capture_output=True) if shutil.which("perf") else None
    if probe is None or probe.returncode != 0:
        print("perf cannot record here")
        sys.exit(77)


def run_row(tests, cwd):
    for test, program in tests:
        name = test.__name__.replace("_", " ")
        if program is not None and shutil.which(program) is None:
            print(f"skipped: {name}: no {program}")
            continue
        began = time.monotonic()
        test(cwd)
        print(f"{name}: {time.monotonic() - began:.1f} s", flush=True)


def run_rows(rows):
    """Runs the tests (function, program that it needs) of each row in turn, and the rows at the same time, each in
    a directory of its own with hot.js."""
    with tempfile.TemporaryDirectory() as place, concurrent.futures.ThreadPoolExecutor(len(rows)) as pool:
        os.chmod(place, 0o755)
        jobs = []
        for i, tests in enumerate(rows):
            cwd = pathlib.Path(place, str(i))
            cwd.mkdir()
            (cwd / "hot.js").write_text(JAVASCRIPT)
            jobs.append(pool.submit(run_row, tests, cwd))
        results_of(jobs)


def stacks(directory, cwd):
    """(frames, samples) of each stack of the recording."""
    for line in run("stacks", directory, "--merge-tiers", cwd=cwd).stdout.splitlines():
        frames, count = line.rsplit(" ", 1)
        yield frames.split(";"), int(count)


def measured_samples(directory, cwd):
    """{function: samples}"""
    found = dict.fromkeys(SHARES, 0)
    for frames, count in stacks(directory, cwd):
        text = ";".join(frames)
        for name in SHARES:
            if re.search(rf"\b{name}(\b|_\[j\])", text):
                found[name] += count
    return found


def check_counts(found, what, least=100):
    """Each function has its name, and has samples as the programs spend their time: to BIAS, and chance."""
    require_samples(sum(found.values()), least, what)
    assert all(found.values()), (what, found)
    for name, share in SHARES.items():
        require(is_share(found[name], sum(found.values()), (share - BIAS) / 100, (share + BIAS) / 100), (what, found))


def check_shares(directory, cwd, what, least=100):
    check_counts(measured_samples(directory, cwd), what, least)


def check_named(row, what=""):
    """Of the totals of a process: all but 1 % of the JIT frames have names. That code is gone, or they are no frames."""
    assert is_at_most(row["unnamed_jit_frames"], row["frames"], 0.01), (what, row)


def check_rooted(row, what=""):
    assert is_at_least(row["ends"]["root"], row["samples"], 0.98), (what, row)


def totals(directory, cwd, comm):
    done = run("stacks", directory, "--stats", "--format", "jsonl", cwd=cwd)
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    return next(row for row in rows if row["pid"] is not None and row["comm"] == comm)


def read_manifest(directory):
    path = pathlib.Path(directory, "recording.json")
    manifest = json.loads(path.read_text())
    check(manifest, SCHEMA, SCHEMA)
    assert path.stat().st_mode & 0o777 == 0o600 and path.parent.stat().st_mode & 0o777 == 0o700
    for file in manifest["files"]:
        assert pathlib.Path(directory, file["path"]).stat().st_size == file["size"]
    return manifest


def check_nothing_left(cwd, before, manifest):
    assert set(os.listdir(cwd)) == before, os.listdir(cwd)
    for file in manifest["files"]:
        assert not os.path.exists(file["source"]), file
