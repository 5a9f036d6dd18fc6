# SPDX-License-Identifier: MIT
"""Runs one golden case: run.py PROGRAM CASE SCRATCH

A case is a folder with `cmd` (the arguments, quoted as for a shell), its input files, and any of
`stdin`, `stdout`, `stderr` and `exit`. A missing file means empty, or 0. All bytes are compared.
The command runs in a copy of the folder, together with the files of those folders of tests/ that
`with` names, one per line. If there is a file `timed`, seconds at the ends of lines of stderr are
compared as "0.000 s". The URI of the documentation is compared as "file:///DOCS". Files in
`expected/` are compared with the files that the command left, and `expected/NAME.decoded` with the
text that decoded.py makes of NAME. With UPDATE_GOLDEN=1 in the environment, the expected files are
rewritten instead of compared: read the diff before you commit it.
"""
import difflib
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys

TESTS = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(TESTS / "golden"))
DECODED = ".decoded"
HERE = b"this machine"  # how messages refer to the machine of the test
MOST_LINES = 60
WIDTH = 160


def copy(folder, scratch):
    shutil.copytree(folder, scratch, symlinks=True, dirs_exist_ok=True)


def same_modes(scratch):
    """Resets file modes, so that the umask of the checkout has no effect on commands."""
    for path in [scratch, *scratch.rglob("*")]:
        if not path.is_symlink():
            path.chmod(0o755 if path.is_dir() or path.stat().st_mode & 0o100 else 0o644)


def run(program, case, scratch):
    shutil.rmtree(scratch, ignore_errors=True)
    copy(case, scratch)
    if (case / "with").exists():
        for folder in (case / "with").read_text().split():
            copy(TESTS / folder, scratch)
    same_modes(scratch)
    stdin = case / "stdin"
    with open(stdin if stdin.exists() else os.devnull, "rb") as source:
        done = subprocess.run([program, *shlex.split((case / "cmd").read_text())], cwd=scratch, stdin=source,
                              capture_output=True, env=os.environ | {"PERFMAP_TMPDIR": "."}, umask=0o022)
    stderr = done.stderr
    docs = os.environ.get("PERFMAP_DOCS_URI")
    stdout = done.stdout.replace(docs.encode(), b"file:///DOCS") if docs else done.stdout
    if (case / "timed").exists():
        stderr = re.sub(rb"\b\d+\.\d{3} s$", b"0.000 s", stderr, flags=re.M)
    return {"stdout": stdout, "stderr": stderr, "exit": b"%d\n" % done.returncode}


def left(scratch, name):
    """The bytes for expected/NAME, or None."""
    path = scratch / name.removesuffix(DECODED)
    if not path.is_file():
        return None
    if name.endswith(DECODED):
        import decoded
        return decoded.text_of(path.name, path.read_bytes()).encode()
    return path.read_bytes()


def shown(data):
    """Lines of text in which every byte is visible. Long lines are shortened."""
    lines = []
    for line in data.split(b"\n"):
        text = line.replace(b"\\", b"\\\\").decode(errors="backslashreplace")
        text = "".join(c if c.isprintable() or c == "\t" else f"\\x{ord(c):02x}" for c in text)
        lines += [text[i:i + WIDTH] for i in range(0, len(text), WIDTH)] or [""]
    if not data.endswith(b"\n") and data:
        lines.append("\\ no newline at the end")
    return lines


def difference(name, expected, got):
    diff = list(difflib.unified_diff(shown(expected), shown(got), f"expected {name}", f"got {name}",
                                     lineterm="", n=2))
    cut = [f"... {len(diff) - MOST_LINES} more lines"] if len(diff) > MOST_LINES else []
    return "\n".join([f"{name} differs"] + diff[:MOST_LINES] + cut)


def check(case, got, scratch):
    """The differences, as texts."""
    problems = []
    if HERE in got["stderr"]:
        problems.append("stderr tells about this machine: elsewhere it differs (--kallsyms /dev/null?)")
    for name, data in got.items():
        path = case / name
        expected = path.read_bytes() if path.exists() else b"0\n" if name == "exit" else b""
        if data != expected:
            problems.append(difference(name, expected, data))
    for path in expected_files(case):
        name = str(path.relative_to(case / "expected"))
        data = left(scratch, name)
        if data is None:
            problems.append(f"{name} was not written")
        elif data != path.read_bytes():
            problems.append(difference(name, path.read_bytes(), data))
    return problems


def expected_files(case):
    return [path for path in sorted((case / "expected").rglob("*")) if path.is_file()]


def update(case, got, scratch):
    for name, data in got.items():
        (case / name).unlink(missing_ok=True)
        if data != (b"0\n" if name == "exit" else b""):
            (case / name).write_bytes(data)
    for path in expected_files(case):
        data = left(scratch, str(path.relative_to(case / "expected")))
        path.unlink() if data is None else path.write_bytes(data)


def main():
    program, case, scratch = pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2]), pathlib.Path(sys.argv[3])
    got = run(program, case, scratch)
    if os.environ.get("UPDATE_GOLDEN"):
        update(case, got, scratch)
        return 0
    problems = check(case, got, scratch)
    print("\n\n".join(problems), end="\n" if problems else "")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
