# SPDX-License-Identifier: MIT
"""Go's pprof names functions that `perfmap stacks --format pprof` could not name, by the program's file, of one
recording and of two recordings as one profile: pprof_names_later.py PERFMAP

Exit status 77: there is no `go tool pprof`, or no C compiler, or perf may not record.
"""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
from named_frames import run, skip
from perf_record import PERF_RECORD
from trying import require_samples

perfmap = os.path.abspath(sys.argv[1])
# The call in last() is the last instruction of its code, so its return address is in the next function.
PROGRAM = """
#include <stdlib.h>
#define OWN __attribute__((noinline, noclone)) static
static volatile unsigned long sink;
OWN void hot(long n) { for (long i = 0; i < n; ++i) sink += i; }
OWN void warm(long n) { for (long i = 0; i < n; ++i) sink += i; }
OWN __attribute__((noreturn)) void work(long rounds) {
  while (rounds-- > 0) { hot(3000000); warm(1000000); }
  exit(0);
}
OWN __attribute__((noreturn)) void last(long rounds) { sink = 1; work(rounds); }
OWN void next(void) { sink = 2; }
int main(int argc, char **argv) {
  if (argc == 2) last(atol(argv[1]));
  next();
}
"""


OWN_FUNCTIONS = ("hot", "warm", "work", "last", "next", "main")


def pprof(profile, *program, symbolize="local", **environment):
    """{function: (flat, cumulated samples)} of the program."""
    made = subprocess.run(["go", "tool", "pprof", f"-symbolize={symbolize}", "-top", "-nodecount=10000", "-nodefraction=0",
                           "-sample_index=samples", *program, profile], capture_output=True, text=True,
                          env={**os.environ, "HOME": os.getcwd(), "PPROF_TMPDIR": os.getcwd(), **environment})
    assert made.returncode == 0, made.stderr
    rows = re.findall(r"(?m)^ *(\d+) +[\d.]+% +[\d.]+% +(\d+) +[\d.]+%  (.*?)(?: \(inline\))?$", made.stdout)
    assert rows, made
    assert not program or "prog]" not in made.stdout, made.stdout
    return {name: (int(flat), int(total)) for flat, total, name in rows if name in OWN_FUNCTIONS}


def check_build(what, flags, name_later):
    os.mkdir(what)
    os.chdir(what)
    pathlib.Path("prog.c").write_text(PROGRAM)
    for directory in ("full", "run", "empty"):
        os.mkdir(directory)
    run("gcc", "-g", "-O1", "-fno-omit-frame-pointer", "-fno-optimize-sibling-calls", *flags, "prog.c", "-o", "full/prog")
    run("strip", "-o", "run/prog", "full/prog")
    for name in ("a", "b"):
        run(*PERF_RECORD, "-e", "cpu-clock:u", "-F", "999", "-g", "-o", f"{name}.data", os.path.abspath("run/prog"), "200")
    profiles = {
        "stripped": ["a.data"],
        "without files": ["a.data", "--symfs", "empty"],
        "two stripped": ["a.data", "b.data"],
        "two without files": ["a.data", "b.data", "--symfs", "empty"],
    }
    found = {}
    for case, arguments in profiles.items():
        profile = case.replace(" ", "-") + ".pb.gz"
        run(perfmap, "-q", "stacks", *arguments, "--format", "pprof", "-o", profile)
        assert not pprof(profile, symbolize="none"), (what, case)
        found[case] = name_later(profile)
    # The names that perfmap has for the program with its symbols.
    os.replace("full/prog", "run/prog")
    for case, arguments in profiles.items():
        run(perfmap, "-q", "stacks", *(word for word in arguments if word.endswith(".data")), "--format", "pprof", "-o", "named.pb.gz")
        named = pprof("named.pb.gz", symbolize="none")
        require_samples(sum(flat for flat, _ in named.values()), 100, what)
        assert {"hot", "warm", "last"} <= named.keys() and "next" not in named, (what, named)
        assert found[case] == named, (what, case, found[case], named)
    os.chdir("..")


if shutil.which("go") is None or subprocess.run(["go", "tool", "-n", "pprof"], capture_output=True).returncode:
    skip("there is no `go tool pprof`")
for tool in ("perf", "gcc", "strip", "addr2line"):
    if not shutil.which(tool):
        skip(f"no {tool} here")
with tempfile.TemporaryDirectory() as work:
    os.chdir(work)
    try:
        run(*PERF_RECORD, "-e", "cpu-clock:u", "-o", "probe.data", "true")
    except AssertionError:
        skip("perf may not record here")
    # Go's pprof does not read build IDs, and takes files of PPROF_BINARY_PATH only for mappings without.
    check_build("no-id", ["-Wl,--build-id=none"], lambda profile: pprof(profile, PPROF_BINARY_PATH="full"))
    check_build("id", ["-Wl,--build-id"], lambda profile: pprof(profile, "full/prog"))
    check_build("no-pie", ["-no-pie", "-Wl,--build-id"], lambda profile: pprof(profile, "full/prog"))
print("named by Go's pprof: of one recording and of two")
