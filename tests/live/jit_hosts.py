#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Records hosts of JIT code with perf, and compares the names of its frames sample by sample, as perf
and as perfmap print them: jit_hosts.py luajit|python|rust|interpreter PERFMAP SOURCE LIBPERFMAP
LIBPERFMAP_PROFILE INTERPRETER

Every frame in code of a JIT has to have a name. The part of a host that calls perfmap has to have
less than 40 lines. Exit status 77: the host's program or perf is not installed, or perf may not
record.
"""
import collections
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
from perf_record import PERF_RECORD
import stack_checks  # noqa: E402
from trying import require, require_samples  # noqa: E402

host, perfmap = sys.argv[1], os.path.abspath(sys.argv[2])
source = pathlib.Path(sys.argv[3]).resolve()
libraries = ":".join(os.path.dirname(os.path.abspath(path)) for path in sys.argv[4:6])
interpreter_program = os.path.abspath(sys.argv[6])
ENVIRONMENT = {**os.environ, "LD_LIBRARY_PATH": libraries, "PERFMAP_LIBRARY_PATH": libraries,
               "PYTHONPATH": str(source / "bindings/python"), "PYTHONDONTWRITEBYTECODE": "1"}
MAX_LINES = 39
FIELDS = "comm,pid,tid,time,period,event,ip,sym,symoff,dso"


def skip(why):
    print(f"skipped: {why}")
    sys.exit(77)


def need(*programs):
    for name in programs:
        if shutil.which(name) is None:
            skip(f"no {name} here")


def run(*command, cwd=None):
    made = subprocess.run([str(word) for word in command], capture_output=True, text=True, errors="replace",
                          timeout=300, cwd=cwd, env=ENVIRONMENT)
    assert made.returncode == 0, (command, made.returncode, made.stdout[-2000:], made.stderr[-2000:])
    return made.stdout


def code_lines(text, comment):
    return [line for line in text.splitlines() if line.strip() and not line.strip().startswith(comment)]


def check_length(what, lines):
    assert 5 < len(lines) <= MAX_LINES, (what, len(lines))
    print(f"{what}: {len(lines)} lines")


def jit_names(sample):
    return [name for name, kind in sample["frames"] if kind == "j"]


def compare(what, expected, command, cwd, is_dump=False):
    """Records the command. `expected`: stacks of names, the leaf first, that have to be there. All names are those of perf;
    which of them have samples, and what a runtime compiles, is chance."""
    run(*PERF_RECORD, "-k", "mono", "-e", "cpu-clock:u", "-F", "1999", "-g", "-o", "host.data", "--", *command,
        cwd=cwd)
    data = cwd / "host.data"
    pids = set(run("perf", "script", "-i", data, "-F", "pid").split())
    try:
        injected = data
        if is_dump:
            injected = cwd / "injected.data"
            run("perf", "inject", "--jit", "-i", data, "-o", injected, cwd=cwd)
        theirs = stack_checks.read_script(run("perf", "script", "-i", injected, "--ns", "--no-inline", "-F", FIELDS))
        ours = stack_checks.read_script(run(perfmap, "stacks", data, "--format", "perf-script"))
    finally:
        for pid in pids:
            pathlib.Path(f"/tmp/perf-{pid}.map").unlink(missing_ok=True)
    assert len(theirs) == len(ours), (len(theirs), len(ours))
    require_samples(len(ours), 100, what)
    found = collections.Counter()
    for their, our in zip(theirs, ours):
        names = jit_names(our)
        # A call chain without an entry, or one that perf discards as broken. We keep the leaf, whose address the sample
        # itself has.
        if not their["frames"]:
            assert len(our["frames"]) == 1 or our["frames"] and not names, our
            continue
        assert jit_names(their) == names, (their, our)
        assert not any(name.startswith("[") for name in names), our  # [perf-PID.map]: no name
        found[tuple(names)] += 1
    frames = sum(len(names) * count for names, count in found.items())
    require_samples(frames, 50, f"{what}: frames of JIT code")
    for wanted in expected:
        require(any(all(map(re.fullmatch, wanted, names)) for names in found if len(wanted) == len(names)), (what, wanted, found))
    print(f"{what}: all {frames} frames of JIT code in {len(ours)} samples have names, the same as perf's")


def luajit(work):
    need("luajit")
    place = source / "examples/luajit"
    check_length("perfmap.lua", code_lines((place / "perfmap.lua").read_text(), "--"))
    for name in ("perfmap.lua", "app.lua"):
        shutil.copy(place / name, work)
    expected = [[r"lua::trace\d+:app\.lua:\d+"], [r"lua::trace\d+<-\d+:app\.lua:\d+"]]
    for dump in (False, True):
        compare("LuaJIT, jitdump" if dump else "LuaJIT, map", expected, ["luajit", "app.lua", "1", *["."] * dump],
                work, dump)


def python(work):
    script = source / "examples/python/jit.py"
    text = script.read_text()
    check_length("jit.py", code_lines(text[text.index("MODES ="):text.index("# Both")] +
                                      text[text.index("def work"):text.index("if __name__")], "#"))
    expected = [[f"py::loop{who}", f"py::call{who}"] for who in ("", "_of_worker_0", "_of_worker_1")]
    for method in ("fork", "spawn", "forkserver"):
        for mode in ("plain", "buffered", "mapped"):
            compare(f"CPython, {method}, {mode}", expected, [sys.executable, script, method, mode, "0.3"], work)


def rust(work):
    need("cargo", "rustc")
    crate = source / "bindings/rust"
    text = (crate / "perfmap/examples/jit.rs").read_text()
    check_length("jit.rs", code_lines(text[text.index("/// Puts"):text.index("// Both")], "//"))
    ENVIRONMENT["CARGO_TARGET_DIR"] = str(work / "target")
    run("cargo", "build", "--offline", "--locked", "--quiet", "--release", "--example", "jit", cwd=crate)
    program = work / "target/release/examples/jit"
    compare("Rust, map", [["rs::loop", "rs::call"]], [program, "1"], work)
    compare("Rust, jitdump", [["rs::loop", "rs::call"]], [program, "1", "."], work, is_dump=True)


def interpreter(work):
    place = source / "examples/interpreter"
    text = (place / "main.c").read_text()
    lines = code_lines(text[text.index("static void name_code"):text.index("static int32_t backend_of")] +
                       text[text.index("static void start_"):text.index("/* Frees everything")], "/*")
    for path in place.glob("*.[ch]"):
        lines += [line for line in path.read_text().splitlines()
                  if re.search(r"perfmap_trampoline(_call|_free|_arena_free|\*| *\*|_arena\*)", line)]
    check_length("interpreter", lines)
    shutil.copy(place / "demo.lisp", work)
    names = [rf"lisp::{name}:demo\.lisp" for name in ("leaf", "middle", "outer")]
    for backend in ("map", "jitdump"):
        compare(f"interpreter, {backend}", [names], [interpreter_program, backend, "demo.lisp", "."], work, backend == "jitdump")


need("perf")
with tempfile.TemporaryDirectory() as scratch:
    folder = pathlib.Path(scratch)
    probe = subprocess.run([*PERF_RECORD, "-e", "cpu-clock:u", "-k", "mono", "-o", folder / "probe.data", "true"],
                           capture_output=True, text=True)
    if probe.returncode != 0:
        skip(f"perf may not record here: {probe.stderr.splitlines()[:1]}")
    {"luajit": luajit, "python": python, "rust": rust, "interpreter": interpreter}[host](folder)
