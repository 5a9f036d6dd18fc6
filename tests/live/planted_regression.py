# SPDX-License-Identifier: MIT
"""`perfmap report --baseline` names a function that makes a program take 10 % longer, in three runtimes, and nothing
in recordings of one program: planted_regression.py PERFMAP

The versions of a program are in different directories, and its functions at different lines. Exit status 77: perf
cannot record.
"""
import itertools
import json
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
from support import recorded  # noqa: E402
from support.chance import most  # noqa: E402
from support.trying import require, try_again  # noqa: E402

PERFMAP = str(pathlib.Path(sys.argv[1]).resolve())
# Thousandths of the work.
OLD = {"parse": 600, "render": 100, "hash": 150, "sort": 150}
BODY = "for (int i = 0; i < n; i++) s = (s * 31 + i) % 65521; return s;"
BASELINES = 3


def calls(work):
    return " + ".join(f"{name}({10 * rounds})" for name, rounds in work.items())


def cpp(place, work):
    functions = "".join(f"__attribute__((noipa)) int {name}(int n) {{ unsigned s = 1; {BODY} }}\n" for name in work)
    (place / "work.cpp").write_text(
        f"{functions}int main() {{ long x = 0; for (int i = 0; i < 14000; i++) x += {calls(work)}; return x == 0; }}\n")
    subprocess.run(["g++", "-O1", place / "work.cpp", "-o", place / "work"], check=True)
    return [place / "work"]


def node(place, work):
    functions = "".join(f"function {name}(n) {{ let s = 1; {BODY.replace('int', 'let')} }}\n" for name in work)
    moved = "// A line more.\n" if work != OLD else ""
    (place / "work.js").write_text(f"{moved}{functions}let x = 0; for (let i = 0; i < 14000; i++) x += {calls(work)};\n")
    return ["node", "--no-turbo-inlining", place / "work.js"]


def java(place, work):
    functions = "".join(f"static int {name}(int n) {{ int s = 1; {BODY} }}\n" for name in work)
    (place / "Work.java").write_text(f"public class Work {{\n{functions}public static void main(String[] words) {{\n"
                                     f"long x = 0; for (int i = 0; i < 10000; i++) x += {calls(work)};\n}}}}\n")
    subprocess.run(["javac", place / "Work.java"], check=True)
    return ["java", "-XX:CompileCommand=quiet", "-XX:CompileCommand=dontinline,Work::*", "-cp", place, "Work"]


def version(place, make, work):
    place.mkdir(parents=True)
    return [str(word) for word in make(place, work)]


def record(directory, command):
    # Only the sampled function counts, so stacks are not copied.
    made = subprocess.run([PERFMAP, "record", "-q", "-F", "3999", "--call-graph", "fp", "-o", directory, "--", *command],
                          capture_output=True, text=True)
    if made.returncode != 0:
        raise recorded.CannotRecord(made.stderr.strip())
    return str(directory)


def compare(new, old, *options):
    """The status, how the total changed, and how each function did, by its own name."""
    baselines = [word for one in old for word in ("--baseline", one)]
    done = subprocess.run([PERFMAP, "report", *new, *baselines, "--fail-above", "5%", "--format", "json", *options],
                          capture_output=True, text=True)
    assert done.returncode in (0, 1), done
    found = json.loads(done.stdout)
    for function in found["functions"]:
        assert function["confidence_ppm"] >= 950_000, function
    own = {re.search(r"\w+(?=\(| /)", one["name"])[0]: one["change"] for one in found["functions"]
           if re.search(r"\w+(?=\(| /)", one["name"])}
    return done.returncode, found["total"]["change"], own


def check_program(place, make):
    """Takes the recordings in turns, so that changes of the machine are in all versions."""
    old = version(place / "old", make, OLD)
    changed = version(place / "new", make, {**OLD, "render": 200})
    baselines, one = [], []
    for i in range(BASELINES):
        baselines.append(record(place / f"old-{i}", old))
        if i < 2:
            one.append(record(place / f"new-{i}", changed))

    for new, before in zip(one, baselines):
        # How much it grew is known to about 3 %, which may be less than --fail-above.
        functions = compare([new], [before])[2]
        require(functions.get("render") == "grew", (make, functions))
    status, total, functions = compare(one, baselines, "--normalize", "none")
    require(status == 1 and functions.get("render") == "grew", (make, total, functions))
    return baselines


def check_hottest(place, make, baselines):
    """Shares hide that the hottest function grew: of 60 % of the samples, it has 64 % then. The more the machine is
    loaded, the more recordings it takes to see it."""
    old = version(place / "old-hottest", make, OLD)
    changed = version(place / "hottest", make, {**OLD, "parse": 700})
    before, new = list(baselines), [record(place / f"hottest-{i}", changed) for i in range(2)]
    for i in range(2, 8):
        new.append(record(place / f"hottest-{i}", changed))
        found = compare(new, before, "--normalize", "none")
        if found[0] == 1 and found[2].get("parse") == "grew":
            return
        before.append(record(place / f"old-hottest-{i}", old))
    try_again((make, found))


def false_alarms(baselines):
    """Of the comparisons of one program, and how many there are."""
    pairs = list(itertools.combinations(baselines, 2))
    return [pair for pair in pairs if compare([pair[0]], [pair[1]])[::2] != (0, {})], len(pairs)


def main(place):
    alarms, compared, names = [], 0, []
    for make, needed in ((cpp, "g++"), (node, "node"), (java, "javac")):
        if not shutil.which(needed):
            continue
        baselines = check_program(place / make.__name__, make)
        if make == cpp:
            check_hottest(place / make.__name__, make, baselines)
        found, count = false_alarms(baselines)
        alarms += found
        compared += count
        names.append(make.__name__)
    if not names:
        raise recorded.CannotRecord("there is no compiler and no runtime")
    # One in twenty may be a false alarm, by design.
    require(len(alarms) <= most(compared, 0.05), alarms)
    print(f"{', '.join(names)}: named; {len(alarms)} false alarms in {compared} comparisons")


with tempfile.TemporaryDirectory() as folder:
    try:
        main(pathlib.Path(folder))
    except recorded.CannotRecord as why:
        print(f"skipped: {why}")
        sys.exit(77)
