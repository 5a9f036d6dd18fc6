# SPDX-License-Identifier: MIT
"""The golden harness notices every byte, every argument and every file: runs run.py on generated
cases and programs that differ in one thing from what is expected."""
import os
import pathlib
import subprocess
import sys
import tempfile

RUN = pathlib.Path(__file__).resolve().parent.parent / "golden/run.py"
checked = 0


def outcome(script, files, update=False):
    """Runs run.py with a program that is `script`. Returns its result and the case's files
    afterwards."""
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder)
        program = root / "program"
        program.write_text("#!/bin/sh\n" + script)
        program.chmod(0o755)
        case = root / "case"
        for name, data in files.items():
            (case / name).parent.mkdir(parents=True, exist_ok=True)
            (case / name).write_bytes(data)
        environment = {key: value for key, value in os.environ.items() if key != "UPDATE_GOLDEN"}
        if update:
            environment["UPDATE_GOLDEN"] = "1"
        ran = subprocess.run([sys.executable, RUN, program, case, root / "scratch"], env=environment,
                             capture_output=True, text=True)
        left = {str(path.relative_to(case)): path.read_bytes() for path in case.rglob("*") if path.is_file()}
        return ran.returncode, ran.stdout + ran.stderr, left


def passes(script, **files):
    global checked
    checked += 1
    code, said, _ = outcome(script, {"cmd": b"", **files})
    assert code == 0, (script, said)


def fails(words, script, **files):
    global checked
    checked += 1
    code, said, _ = outcome(script, {"cmd": b"", **files})
    assert code == 1 and words in said, (script, code, said)


# Every byte of both channels, and the exit code.
passes(r"printf 'a\nb\n'", stdout=b"a\nb\n")
fails(r"+a\x0d", r"printf 'a\r\nb\n'", stdout=b"a\nb\n")
fails(r"-a\x0d", r"printf 'a\nb\n'", stdout=b"a\r\nb\n")
fails(r"+a\x00b", r"printf 'a\000b\n'", stdout=b"ab\n")
fails(r"-a\x00b", r"printf 'ab\n'", stdout=b"a\x00b\n")
passes(r"printf 'a\000b\r\n'", stdout=b"a\x00b\r\n")
fails(r"+\xff", r"printf '\377\n'", stdout=b"\n")
fails("no newline at the end", "printf a", stdout=b"a\n")
fails("stdout differs", "printf ';'", stdout=b"")
fails("+[a;b", "printf '[a;b'", stdout=b"[a")
fails(r"+e\x0d", r"printf 'e\r\n' >&2", stderr=b"e\n")
fails("tells about this machine", "echo of this machine >&2", stderr=b"of this machine\n")
passes("echo x: 0.123 s >&2", stderr=b"x: 0.000 s\n", timed=b"")
fails("0.123 s", "echo x: 0.123 s >&2", stderr=b"x: 0.000 s\n")
fails("y: 0.000 s", "echo y: 0.123 s >&2", stderr=b"x: 0.000 s\n", timed=b"")
fails("-1", "exit 2", exit=b"1\n")
fails("+3", "exit 3")
passes("exit 3", exit=b"3\n")
fails("stdout differs", "printf '%0500d' 0", stdout=b"0" * 499)

# Arguments, including empty ones, and standard input.
passes('[ $# = 3 ] && [ -z "$2" ] && [ "$3" = "b c" ]', cmd=b"a '' 'b c'\n")
fails("+1", '[ $# = 1 ]', cmd=b"a ''\n")
passes("cat", stdin=b"\x00\r\n", stdout=b"\x00\r\n")
passes('[ -z "$(cat)" ]')

# Files that the command leaves.
passes(r"printf 'x\000' > f", **{"expected/f": b"x\x00"})
fails("f differs", r"printf x > f", **{"expected/f": b"x\x00"})
fails("f was not written", "true", **{"expected/f": b"x"})
passes("printf '[1,2]' > f.json", **{"expected/f.json.decoded": b"[1, 2]\n"})
fails("+[1, 3]", "printf '[1,3]' > f.json", **{"expected/f.json.decoded": b"[1, 2]\n"})
passes('[ "$(stat -c %a input)" = 644 ]', input=b"")

# After an update the case passes, and removed files are not kept.
script = r"printf 'o\r\n\000'; printf e >&2; printf x > f; exit 5"
code, said, left = outcome(script, {"cmd": b"", "stdout": b"old", "expected/f": b"", "expected/g": b""}, update=True)
assert code == 0, said
assert left == {"cmd": b"", "stdout": b"o\r\n\x00", "stderr": b"e", "exit": b"5\n", "expected/f": b"x"}, left
passes(script, **left)
_, _, left = outcome("true", left, update=True)
assert left == {"cmd": b""}, left
print(f"{checked} cases")
