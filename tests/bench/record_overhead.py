# SPDX-License-Identifier: MIT
"""Compares `perfmap record` with plain perf record: record_overhead.py PERFMAP [PAIRS]

Both run perf with the same options and the same environment, in alternation, for a Node.js and a C++
program with a fixed amount of work. Prints the median of the processor time that perfmap itself uses
until perf ends, which is what a recorded program competes with, as a share of all that plain perf record
and its program use. Then it prints the paired differences of the processor time, user and system, of all
processes together: until perf ends, and in total, which includes the analysis that perfmap prints at the
end. Those vary with the machine. At the end it prints how long the first answer takes: from the end of a
Node.js program that ran for 10 s until `perfmap record` has ended, and `perfmap report` after it.
"""
import json
import os
import pathlib
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

PERFMAP = str(pathlib.Path(sys.argv[1]).resolve())
PAIRS = int(sys.argv[2]) if len(sys.argv) > 2 else 5
LOOP = "double s = 0; for (long i = 0; i < n; i++) s += std::sqrt(i) * (i % 7); return s;"
CPP = f"""#include <cmath>
#include <cstdio>
__attribute__((noinline)) double hot(long n) {{ {LOOP} }}
int main() {{ double x = 0; for (int i = 0; i < 1300; i++) x += hot(1000000); return x > 0 ? 0 : 1; }}
"""
NODE = """
function hot(n) { let s = 0; for (let i = 0; i < n; i++) s += Math.sqrt(i) * (i % 7); return s }
let x = 0;
for (let i = 0; i < 1300; i++) x += hot(1000000);
if (!(x > 0)) process.exit(1);
"""
TEN_SECONDS = NODE.replace("i < 1300", "Date.now() < end").replace("let x = 0", "let x = 0; const end = Date.now() + 10000") + """
console.log(Date.now() / 1000);
"""


def own_seconds(pid):
    """Processor time of one process, without its children."""
    tasks = pathlib.Path(f"/proc/{pid}/task").iterdir()
    return sum(int((task / "schedstat").read_text().split()[0]) for task in tasks) / 1e9


def children(pid):
    return pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split()


def seconds_of_children():
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def run_plain(words, variables, cwd):
    before = seconds_of_children()
    subprocess.run(words, cwd=cwd, check=True, env={**os.environ, **variables}, capture_output=True)
    return seconds_of_children() - before


def run_perfmap(command, name, cwd):
    """Processor time of perfmap itself until perf ends, and of all until perf ends, and in total."""
    before = seconds_of_children()
    process = subprocess.Popen([PERFMAP, "record", "-o", name, "--", *command], cwd=cwd, stderr=subprocess.DEVNULL)
    own = 0
    perf = []
    while process.poll() is None:
        try:
            now = own_seconds(process.pid)
            has_perf = any(b"perf" in pathlib.Path(f"/proc/{child}/comm").read_bytes() for child in children(process.pid))
        except (OSError, IndexError):
            continue
        if has_perf:
            perf.append(now)
        own = max(own, now)
        time.sleep(0.01)
    assert process.returncode == 0, process.returncode
    total = seconds_of_children() - before
    after = own - perf[-1]
    return perf[-1], total - after, total


def compare(title, command, cwd):
    shutil.rmtree(cwd / "first", ignore_errors=True)
    run_perfmap(command, "first", cwd)
    manifest = json.loads((cwd / "first/recording.json").read_text())
    own, during, total, plain = [], [], [], []
    for i in range(PAIRS):
        measured = run_perfmap(command, f"record{i}", cwd)
        words = [word.replace(str(cwd / "first"), str(cwd)) for word in manifest["perf"]]
        seconds = run_plain(words, manifest["variables"], cwd)
        plain.append(seconds)
        own.append(100 * measured[0] / seconds)
        during.append(100 * (measured[1] / seconds - 1))
        total.append(100 * (measured[2] / seconds - 1))
        shutil.rmtree(cwd / f"record{i}")
    spread = f"{min(during):+.1f} to {max(during):+.1f} %"
    print(f"{title}: plain perf record {statistics.median(plain):.2f} s; perfmap itself "
          f"{statistics.median(own):.2f} % until perf ends; all {statistics.median(during):+.1f} % until perf ends ({spread}), {statistics.median(total):+.1f} % in total; "
          f"{PAIRS} pairs", flush=True)


def first_answer(cwd):
    (cwd / "ten.js").write_text(TEN_SECONDS)
    recorded, reported = [], []
    for i in range(PAIRS):
        done = subprocess.run([PERFMAP, "record", "-q", "-o", f"ten{i}", "--", "node", "ten.js"], cwd=cwd, check=True,
                              capture_output=True, text=True)
        recorded.append(time.time() - float(done.stdout))
        before = time.time()
        subprocess.run([PERFMAP, "report", f"ten{i}"], cwd=cwd, check=True, capture_output=True)
        reported.append(time.time() - before)
        shutil.rmtree(cwd / f"ten{i}")
    both = [a + b for a, b in zip(recorded, reported)]
    print(f"first answer after 10 s of Node.js: {statistics.median(both):.2f} s ({min(both):.2f} to {max(both):.2f}); record "
          f"ends after {statistics.median(recorded):.2f} s, report takes {statistics.median(reported):.2f} s", flush=True)


def main():
    with tempfile.TemporaryDirectory() as place:
        cwd = pathlib.Path(place).resolve()
        (cwd / "hot.cpp").write_text(CPP)
        subprocess.run(["g++", "-O2", "-o", "hot", "hot.cpp"], cwd=cwd, check=True)
        compare("C++", ["./hot"], cwd)
        if shutil.which("node"):
            (cwd / "hot.js").write_text(NODE)
            compare("Node.js", ["node", "hot.js"], cwd)
            first_answer(cwd)


main()
