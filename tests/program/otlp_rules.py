# SPDX-License-Identifier: MIT
"""Rules of OpenTelemetry for profiles, as its SIG checks them, of `stacks --format otlp`: otlp_rules.py PERFMAP

Of real recordings with each kind of code, of profiles of pprof, and of several recordings as one profile.
"""
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "support"))
from otlp import Profiles, check_rules, decode

PERFMAP = str(pathlib.Path(sys.argv[1]).resolve())
WILD, GOLDEN = ROOT / "wild", ROOT / "golden/inputs"
RECORDINGS = sorted([*WILD.glob("recordings/*/perf.data"), *WILD.glob("tally*/*.data"), *GOLDEN.glob("*.data"),
                     *WILD.glob("stacks/tiny/*.data")])
NODE = [WILD / "node/perf-683.data", "--jitdump", WILD / "node/jit-683-samples.dump"]
MAP = [WILD / "node/perf-603.data", "--map", WILD / "node/perf-603.map"]
TALLY = [WILD / "tally/perf.data", "--symfs", WILD / "tally"]


def cases(empty):
    for path in RECORDINGS:
        yield [path]
        yield [path, "--symfs", empty]
    for path in sorted(GOLDEN.glob("*.pb*")):
        yield [path]
    for more in ([], ["--lines"], ["--inlines"], ["--merge-tiers"]):
        yield from ([*case, *more] for case in (NODE, MAP, TALLY))
    yield [*TALLY, TALLY[0]]
    yield [TALLY[0], WILD / "recordings/fp/perf.data", "--symfs", empty]
    yield [*NODE[:1], *MAP[:1], "--symfs", empty]


def path_of(case):
    return str(case[0])


checked = refused = 0
with tempfile.TemporaryDirectory() as place:
    for case in cases(place):
        path = pathlib.Path(place, "profile.otlp")
        done = subprocess.run([PERFMAP, "-q", "stacks", *map(str, case), "--format", "otlp", "-o", path], capture_output=True, text=True)
        if done.returncode != 0:  # some inputs are damaged, and formats of JIT runtimes cannot be merged by options
            assert done.returncode in (1, 2) and done.stderr, (case, done)
            print("refused:", *(str(word).removeprefix(str(ROOT)) for word in case), done.stderr.strip()[:200])
            refused += 1
            continue
        data = decode(path.read_bytes())
        path.unlink()
        try:
            check_rules(data, is_of_pprof=".pb" in path_of(case))
            Profiles(data).check_tables()
        except AssertionError:
            print("failed:", *map(str, case))
            raise
        checked += 1
print(f"{checked} profiles keep to the rules; {refused} inputs were refused")
assert checked > 40, checked
