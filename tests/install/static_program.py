# SPDX-License-Identifier: MIT
"""The static program works in an empty root, and is small: static_program.py PROGRAM STATIC-PROGRAM

Its answers are those of the program with shared libraries. What needs a library that is loaded at run time
says so.
"""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "limits"))
from formats import recording_in

program, static_program = map(pathlib.Path, sys.argv[1:])
WILD = pathlib.Path(__file__).resolve().parent.parent / "wild"
MAX_SIZE = 8_000_000  # stripped
INPUTS = {"perf.map": "node/perf-603.map", "code.dump": "node/jit-683-lines.dump", "tally": "tally",
          "stacks": "stacks/tiny"}


def run(*words, status=0, **how):
    done = subprocess.run([*map(str, words)], capture_output=True, text=True, **how)
    assert done.returncode == status, (words, done)
    return done.stdout, done.stderr


def enter_root(root):
    """The command to run programs with this root directory, or None."""
    for words in ([], ["unshare", "--user", "--map-root-user"]):
        command = [*words, "chroot", root]
        if subprocess.run([*command, "/perfmap", "version"], capture_output=True).returncode == 0:
            return command
    return None


def first_data():
    return next((WILD / "stacks/tiny").glob("*.data")).name


with tempfile.TemporaryDirectory(prefix="perfmap-static-") as work:
    root = pathlib.Path(work, "root")
    root.mkdir()
    run("strip", "-o", root / "perfmap", static_program)
    size = (root / "perfmap").stat().st_size
    assert size < MAX_SIZE, f"{size} bytes"
    headers = run("readelf", "-lW", root / "perfmap")[0]
    assert "INTERP" not in headers and "DYN" in headers, headers
    assert "NEEDED" not in run("readelf", "-dW", root / "perfmap")[0]
    for name, source in INPUTS.items():
        copy = shutil.copytree if (WILD / source).is_dir() else shutil.copyfile
        copy(WILD / source, root / name)

    enter = enter_root(root)
    if enter is None:
        print("skipped in part: only root, or a user with a user namespace, can change the root directory")
        enter = []
    inside = [*enter, "/perfmap" if enter else root / "perfmap"]
    where = {} if enter else {"cwd": root}
    data = f"stacks/{first_data()}"
    address = re.search(r"^(\w+) ", (root / "perf.map").read_text(errors="replace")).group(1)
    for words in (["lint", "perf.map"], ["resolve", "perf.map", address], ["info", "code.dump"],
                  ["to-json", "code.dump"], ["stacks", data, "--format", "folded"],
                  ["stacks", data, "--format", "html"], ["report", "tally/perf.data", "--symfs", "tally"],
                  ["annotate", "tally/perf.data", "digits", "--symfs", "tally", "--source"]):
        expected = subprocess.run([str(program), *words], capture_output=True, cwd=root)
        answer = subprocess.run([*map(str, inside), *words], capture_output=True, **where)
        assert (answer.returncode, answer.stdout) == (expected.returncode, expected.stdout), \
            (words, answer.returncode, answer.stderr)
        assert answer.returncode in (0, 1) and answer.stdout, (words, answer.returncode, answer.stderr)

    for library, words in (("libZydis", ["annotate", "tally/perf.data", "digits", "--symfs", "tally", "--asm"]),
                           ("libdebuginfod", ["stacks", "tally/perf.data", "--debuginfod"])):
        out, err = run(*inside, *words, status=2, env=os.environ | {"DEBUGINFOD_URLS": "http://localhost"}, **where)
        assert out == "" and re.search(rf"perfmap: error: this perfmap is one static file, and cannot load "
                                       rf"{library}\.so\.[\d.]+: use the perfmap of a package", err), err
    told = "this perfmap is one static file, and cannot load"
    for words in (["stacks", "tally/perf.data", "--symfs", "tally", "--code", "--format", "html"],
                  ["annotate", "tally/perf.data", "digits", "--symfs", "tally"]):
        err = run(*inside, *words, **where)[1]
        assert err.count(f"instructions have no text: {told} libZydis") == 1, err
    # A stripped program, as if from a package.
    (root / "usr/bin").mkdir(parents=True)
    image = (root / "perfmap").read_bytes()
    (root / "usr/bin/app").write_bytes(image)
    (root / "stripped.data").write_bytes(recording_in(b"/usr/bin/app", image))
    out = run(*inside, "doctor", "stripped.data", "--symfs", ".", status=1, **where)[0]
    assert f"{told} libdebuginfod" in out and "apt-get" not in out, out
    print(f"the static program has {size} bytes and works alone")
