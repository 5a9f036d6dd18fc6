# SPDX-License-Identifier: MIT
"""Pastes what `perfmap doctor` proposes for runtimes from Debian and npm: doctor_runtimes.py PERFMAP

Each is started without options for names. The proposed command is started in its place, and its code
has names then, in the process, in a snapshot and in a recording. Of a runtime without such an option,
doctor gives the reason.

Deno and Bun may be in the PATH, or in build/npm (npm install --prefix build/npm deno bun). Exit status
77: none is installed.
"""
import contextlib
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
from perf_record import PERF_RECORD, used
from waiting import until

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
PERFMAP = str(pathlib.Path(sys.argv[1]).resolve())

SCRIPTS = {
    "loop.js": """
function hot(n) { let s = 0; for (let i = 0; i < n; i++) s += Math.sqrt(i) ^ (s & 7); return s; }
function mid(n) { return hot(n) + hot(n >> 1); }
const end = Date.now() + 600000;
let total = 0;
while (Date.now() < end) total += mid(20000);
console.log(total);
""",
    "loop.scm": """
(define (hot n) (let lp ((i 0) (s 0)) (if (= i n) s (lp (+ i 1) (logxor s (* i 3))))))
(define end (+ (current-time) 600))
(let lp () (when (< (current-time) end) (hot 200000) (lp)))
""",
    "loop.lisp": """
(defun hot (n) (declare (fixnum n)) (let ((s 0)) (dotimes (i n s) (setf s (logxor s (* i 3))))))
(let ((end (+ (get-universal-time) 600))) (loop while (< (get-universal-time) end) do (hot 2000000)))
""",
    "loop.rkt": """#lang racket/base
(define (hot n) (let lp ((i 0) (s 0)) (if (= i n) s (lp (+ i 1) (bitwise-xor s (* i 3))))))
(define end (+ (current-seconds) 600))
(let lp () (when (< (current-seconds) end) (hot 200000) (lp)))
""",
}


def doctor(source):
    run = subprocess.run([PERFMAP, "doctor", str(source), "--format", "json"], capture_output=True)
    assert run.returncode in (0, 1) and run.stderr == b"", run.stderr
    return run.returncode, json.loads(run.stdout)


def ids(found):
    settings = ("perf-paranoid", "kptr-restrict")
    return [one["id"] for one in found["findings"] if one["id"] not in settings]


@contextlib.contextmanager
def running(command):
    """The process of a command line of sh(1)."""
    with subprocess.Popen(f"exec env {command}", shell=True, stdout=subprocess.DEVNULL,
                          stderr=subprocess.DEVNULL) as process:
        try:
            yield process.pid
        finally:
            process.kill()


def names_of(pid):
    return subprocess.run([PERFMAP, "tidy", str(pid)], capture_output=True, text=True, errors="replace").stdout


def find(name):
    npm = ROOT / "build/npm/node_modules/.bin" / name
    has_npm = npm.exists()
    return shutil.which(name) or (str(npm.resolve()) if has_npm else None)


def recorded(pid, name):
    """A recording of the process, or nothing if perf may not record."""
    made = subprocess.run([*PERF_RECORD, "-e", "cpu-clock:u", "-F", "499", "-k", "mono", "-g", "-o", name,
                           "-p", str(pid), *used(0.8)], capture_output=True) if shutil.which("perf") else None
    return name if made is not None and made.returncode == 0 else None


def check_named(word, command, function):
    """The proposed command gives names to the code."""
    with running(command) as pid:
        until(lambda: doctor(pid)[1]["runtime"] == word, word)
        until(lambda: doctor(pid)[1]["jit_memory"]["regions"], f"code of {word}")
        status, found = doctor(pid)
        assert (status, ids(found)) == (1, ["no-map"]), found
        fix = found["findings"][0]["fix"]
    print(f"{word}: {fix}")
    with running(fix) as pid:
        until(lambda: doctor(pid)[1]["jit_memory"]["named_bytes"], f"names of {word}")
        until(lambda: function in names_of(pid), f"{function} of {word}")
        time.sleep(1)
        status, found = doctor(pid)
        assert set(ids(found)) <= {"dump-name"}, found
        snapshot = subprocess.run([PERFMAP, "snapshot", str(pid), "-o", f"{word}.snapshot"], capture_output=True)
        assert snapshot.returncode == 0 and b"no perf map" not in snapshot.stderr, snapshot.stderr
        info = subprocess.run([PERFMAP, "info", f"{word}.snapshot"], capture_output=True)
        assert info.returncode == 0, info.stderr
        data = recorded(pid, f"{word}.data")
        if data is None:
            print(f"skipped in part: perf may not record {word} here")
            return
        stacks = subprocess.run([PERFMAP, "stacks", data], capture_output=True, text=True, errors="replace")
        assert stacks.returncode == 0, stacks.stderr
        assert function in stacks.stdout, (function, stacks.stdout[-2000:], stacks.stderr)
        found = doctor(data)[1]
        assert "no-map" not in ids(found) and "unknown-jit" not in ids(found), found


def check_unnamed(word, command, why):
    """Nothing gives names to the code, and doctor says so."""
    with running(command) as pid:
        until(lambda: doctor(pid)[1]["runtime"] == word, word)
        until(lambda: doctor(pid)[1]["jit_memory"]["regions"], f"code of {word}")
        time.sleep(1)
        status, found = doctor(pid)
        assert (status, ids(found)) == (1, ["no-map"]), found
        assert why in found["findings"][0]["message"] and found["findings"][0]["fix"] is None, found
        data = recorded(pid, f"{word}.data")
        if data is not None:
            found = doctor(data)[1]
            assert found["processes"][0]["runtime"] == word, found
            assert "unknown-jit" not in ids(found), found


NAMED = {"deno": ("{} run loop.js", "/loop.js:"), "bun": ("{} loop.js", "JSC-FTL: "),
         "guile": ("{} --no-auto-compile loop.scm", ",+")}
UNNAMED = {"sbcl": "{} --script loop.lisp", "racket": "{} loop.rkt"}


def main():
    done = []
    for word, (command, function) in NAMED.items():
        if (program := find(word)) is not None:
            check_named(word, command.format(program), function)
            done.append(word)
    for word, command in UNNAMED.items():
        if (program := find(word)) is not None:
            check_unnamed(word, command.format(program), " cannot write a perf map or a jitdump")
            done.append(word)
    for word in [*NAMED, *UNNAMED]:
        if word not in done:
            print(f"skipped in part: there is no {word}")
    if not done:
        print("skipped: no runtime is here")
        sys.exit(77)
    print("examined:", ", ".join(done))


with tempfile.TemporaryDirectory() as place:
    os.chdir(place)  # V8 leaves logs in it
    for file, text in SCRIPTS.items():
        pathlib.Path(file).write_text(text)
    main()
