# SPDX-License-Identifier: MIT
"""check_golden.py EMPTY_ROOT SEE_OUTSIDE: the golden harness notices every byte, every argument and every
file, and commands see nothing of the machine. Runs tests/golden/run.py on generated cases, with programs
that differ in one thing from what is expected, and EMPTY_ROOT with a program that tries each function."""
import os
import pathlib
import random
import re
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

TESTS = pathlib.Path(__file__).resolve().parent.parent
GOLDEN = TESTS / "golden"
sys.path.insert(0, str(GOLDEN))
from case_file import Case, CaseError, Section, Table, cases_below, quoted, words

EMPTY_ROOT, SEE_OUTSIDE = map(os.path.abspath, sys.argv[1:])
checked = 0


def outcome(script, text, *options, name="group/case", names=None, files={}, update="", preload=""):
    """Runs a case with a program that is `script`, or with the shell as the program. Returns the status, what
    run.py printed, and the case's file afterwards. NAMES: the arguments, instead of the case."""
    global checked
    checked += 1
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder)
        program = root / "program"
        if script is None:
            shutil.copy("/bin/sh", program)
        else:
            program.write_text("#!/bin/sh\n" + script)
            program.chmod(0o755)
        path = root / ("usage.table" if name.startswith("usage") else f"{name}.case")
        for file, data in {path: text, **{root / file: data for file, data in files.items()}}.items():
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(data if isinstance(data, bytes) else data.encode())
        environment = {key: value for key, value in os.environ.items() if key != "UPDATE_GOLDEN"}
        environment |= {"UPDATE_GOLDEN": update} if update else {}
        ran = subprocess.run([sys.executable, "-B", GOLDEN / "run.py", "--golden", root, "--preload", preload, *options,
                              program, *(names or [name])], env=environment, capture_output=True, text=True)
        return ran.returncode, ran.stdout + ran.stderr, path.read_bytes()


def passes(script, text, *options, command="$ perfmap", **more):
    code, said, _ = outcome(script, f"{command}\n{text}", "--self-check", *options, **more)
    assert code == 0 and said == "cases: 1 passed, 0 failed\n", (script, text, said)


def fails(expected, script, text, *options, command="$ perfmap", **more):
    code, said, _ = outcome(script, f"{command}\n{text}", *options, **more)
    assert code == 1 and expected in said and said.endswith("cases: 0 passed, 1 failed\n"), (script, text, code, said)


# Every byte of both channels, and the exit status.
passes(r"printf 'a\nb\n'", "=== stdout\na\nb\n")
fails(r"+a\x0d", r"printf 'a\r\nb\n'", "=== stdout\na\nb\n")
fails(r"-a\x0d", r"printf 'a\nb\n'", "=== stdout escaped\na\\r\nb\n")
fails(r"+a\x00b", r"printf 'a\000b\n'", "=== stdout\nab\n")
fails(r"-a\x00b", r"printf 'ab\n'", "=== stdout escaped\na\\x00b\n")
passes(r"printf 'a\000b\r\n'", "=== stdout escaped\na\\x00b\\r\n")
fails(r"+\xff", r"printf '\377\n'", "=== stdout\n\n")
fails("no newline at the end", "printf a", "=== stdout\na\n")
passes("printf a", "=== stdout escaped\na\\\n")
fails("stdout differs", "printf ';'", "")
fails("+[a;b", "printf '[a;b'", "=== stdout escaped\n[a\\\n")
fails(r"+e\x0d", r"printf 'e\r\n' >&2", "=== stderr\ne\n")
fails("mentions this machine", "echo of this machine >&2", "=== stderr\nof this machine\n")
passes("echo x: 0.123 s >&2", "timed\n=== stderr\nx: 0.000 s\n")
fails("0.123 s", "echo x: 0.123 s >&2", "=== stderr\nx: 0.000 s\n")
fails("y: 0.000 s", "echo y: 0.123 s >&2", "timed\n=== stderr\nx: 0.000 s\n")
passes("echo file:///share/doc/a", "=== stdout\nfile:///DOCS/a\n", "--docs-uri", "file:///share/doc")
fails("-1", "exit 2", "exit 1\n")
fails("+3", "exit 3", "")
fails("+-9", "kill -9 $$", "")
passes("exit 3", "exit 3\n")
fails("stdout differs", "printf '%0500d' 0", f"=== stdout escaped\n{'0' * 499}\\\n")

# Arguments, standard input and the environment.
passes('[ $# = 3 ] && [ -z "$2" ] && [ "$3" = "b c" ]', "", command="$ perfmap a '' 'b c'")
fails("+1", "[ $# = 1 ]", "", command="$ perfmap a ''")
passes(r'''[ "$1" = "$(printf 'a\377\nb')" ]''', "", command=r"$ perfmap $'a\xff\nb'")
passes("/bin/cat", "=== stdin escaped\n\\x00\\r\n=== stdout escaped\n\\x00\\r\n")
passes("/bin/cat", "stdin = shared/in\n=== stdout\nshared\n", files={"shared/in": "shared\n"})
passes('[ -z "$(/bin/cat)" ]', "")
os.environ["SOME_VARIABLE"] = "of the caller"
passes('[ -z "$SOME_VARIABLE$HOME" ] && [ "$A" = "b c" ] && [ "$PERFMAP_TMPDIR" = . ] && [ $(umask) = 0022 ]',
       "env 'A=b c'\n")

# Files that the command gets.
passes('[ "$(/usr/bin/stat -c %a input)" = 644 ] && /bin/cat input d/f link',
       "link link = d/f\nwith shared\n=== input input\na\n=== stdout\na\nb\nb\n", files={"shared/d/f": "b\n"})
passes('[ "$(echo *)" = "a b" ] && /bin/cat a b',
       "input a = shared/f\n=== input b escaped\nb\\\n=== stdout escaped\na\nb\\\n", files={"shared/f": "a\n"})
fails("no file", "", "input a = shared/missing\n")
fails("no folder", "", "with shared\n")
fails("outside of the scratch folder: ../a", "", "=== input ../a\n")
fails("duplicate input a", "", "input a = shared/f\n=== input a\n", files={"shared/f": ""})

# Files that the command leaves.
passes(r"printf 'x\000' > f", "=== output f escaped\nx\\x00\\\n")
fails("output f differs", "printf x > f", "=== output f escaped\nx\\x00\\\n")
fails("f was not written", "", "=== output f\nx\n")
fails("f was written, and the case has no 'output f'", ": > f", "")
fails("d/ was written", "/bin/mkdir d", "")
fails("+link to f", "/bin/ln -s f l", "=== output l\n")
fails("+new", "echo new > f", "=== input f\nold\n")
fails("f was removed", "/bin/rm f", "=== input f\n")
passes("echo new > f", "=== input f\nold\n=== output f\nnew\n")
passes("", "=== input f\nold\n=== output f\nold\n")
passes("echo shared > f", "output f = shared/f\n", files={"shared/f": "shared\n"})
fails("+other", "echo other > f", "output f = shared/f\n", files={"shared/f": "shared\n"})
passes("echo $$ > f", "leaves f\n")
fails("f was not written", "", "leaves f\n")
passes("printf '[1,2]' > f.json", "=== decoded f.json\n[1, 2]\n")
fails("+[1, 3]", "printf '[1,3]' > f.json", "=== decoded f.json\n[1, 2]\n")

# The table.
USAGE = "# Comment.\n\n$ perfmap a\nfirst\n\n$ perfmap 'b c'\nsecond\n\\n\\\nlast\n"
SCRIPT = r"""case "$1" in a) echo first;; *) printf 'second\n\nlast\n';; esac >&2; exit 2"""
code, said, _ = outcome(SCRIPT, USAGE, "--self-check", name="usage")
assert (code, said) == (0, "cases: 2 passed, 0 failed\n"), said
code, said, _ = outcome(SCRIPT, USAGE.replace("last", "lost"), name="usage")
assert code == 1 and "FAILED: usage:6: perfmap 'b c'" in said and "cases: 1 passed, 1 failed" in said, said
for change in ("exit 1", "echo out; exit 2", ": > f; exit 2", "echo more >&2; exit 2"):
    code, said, _ = outcome(SCRIPT.replace("exit 2", change), USAGE, name="usage:3")
    assert code == 1 and "cases: 0 passed, 1 failed" in said, said
code, said, left = outcome(SCRIPT, USAGE.replace("first\n", "").replace("last", "lost"), name="usage", update="1")
assert (code, left.decode(), said) == (0, USAGE, "cases: 2 written, 0 failed\n"), (left, said)
code, said, left = outcome(SCRIPT.replace("exit 2", "exit 1"), USAGE, name="usage", update="1")
assert code == 1 and "status 1, 0 lines of stdout, 0 files: not a message about wrong usage. Make it" in said and left.decode() == USAGE, said
for text, why in (("$ perfmap a\nfirst\n$ perfmap b\nsecond\n", "usage:3: no empty line before the row"),
                  ("$ perfmap a\nfirst\n\nsecond\n", "usage:4: not a row, a comment or an empty line: second")):
    code, said, left = outcome(SCRIPT, text, name="usage", update="1")
    assert code == 1 and why in said and left.decode() == text, said

# Each file below a command's folder is a case, and all cases run.
GOOD = "$ perfmap a\nexit 2\n=== stderr\nfirst\n"
for names in (["group", "usage"], ["usage", "--self-check", "group"]):
    code, said, _ = outcome(SCRIPT, GOOD, names=names, files={"usage.table": USAGE})
    assert (code, said) == (0, "cases: 3 passed, 0 failed\n"), said
for file in ("group/deep/b.case", "group/b.txt"):
    code, said, _ = outcome(SCRIPT, GOOD, names=["group"], files={file: GOOD})
    assert code == 1 and "not a case" in said and pathlib.Path(file).parts[1] in said, said
with tempfile.TemporaryDirectory() as folder:
    for path, why in (("empty", "no case in"), ("stray.case", "not a case")):
        (pathlib.Path(folder) / path).mkdir()
        try:
            cases_below(pathlib.Path(folder))
        except CaseError as error:
            assert why in str(error), error
        else:
            raise AssertionError(path)
code, said, _ = outcome("", GOOD, preload="/nowhere/empty_root.so")
assert code == 2 and "no file /nowhere/empty_root.so: build the target empty_root" in said, said

# SIGTERM leaves no files.
with tempfile.TemporaryDirectory() as folder:
    root = pathlib.Path(folder)
    (root / "cases/group").mkdir(parents=True)
    (root / "tmp").mkdir()
    (root / "cases/group/case.case").write_text("$ perfmap\n")
    (root / "program").write_text(f"#!/bin/sh\n: >{root}/started\nuntil [ -e {root}/stop ]; do /bin/sleep 0.05; done\n")
    (root / "program").chmod(0o755)
    with subprocess.Popen([sys.executable, "-B", GOLDEN / "run.py", "--golden", root / "cases", "--preload", "",
                           root / "program", "group"], env={**os.environ, "TMPDIR": str(root / "tmp")}) as running:
        while not (root / "started").exists():
            time.sleep(0.02)
        running.terminate()
        (root / "stop").touch()
    assert running.returncode == 128 + signal.SIGTERM and not [*(root / "tmp").iterdir()], running.returncode

# An update changes what differs, and nothing else. Afterwards the case passes.
script = r"printf 'o\r\n\000'; printf e >&2; echo x > f; exit 5"
text = ("# Comment.\n$ perfmap  'a'\n\n=== input i escaped\n\\x41\n=== stdout\nold\n"
        "=== output f escaped\n\\x78\n=== output g\n")
code, said, left = outcome(script, text, update="1")
assert code == 0, said
expected = ("# Comment.\n$ perfmap  'a'\n\nexit 5\n=== input i escaped\n\\x41\n=== stdout escaped\no\\r\n\\x00\\\n"
            "=== output f escaped\n\\x78\n=== stderr escaped\ne\\\n")
assert left.decode() == expected, left
assert outcome(script, left)[0] == 0
_, _, left = outcome("echo new > f; printf '{}' > g.json", left, update="1")
expected = ("# Comment.\n$ perfmap  'a'\n\n=== input i escaped\n\\x41\n=== output f\nnew\n"
            "=== output g.json escaped\n{}\\\n")
assert left.decode() == expected, left
_, _, left = outcome("echo new > f", "$ perfmap\noutput f = shared/f\nexit 1\nleaves g\n", files={"shared/f": ""},
                     update="1")
assert left.decode() == "$ perfmap\n=== output f\nnew\n", left
for update, arguments, why in (("1", [], "ended with signal 9"), ("1", ["--self-check"], "cannot be used with"),
                               ("0", [], "exit differs")):
    code, said, left = outcome("kill -9 $$", "$ perfmap\n", *arguments, update=update)
    assert code and why in said and "Traceback" not in said and left.decode() == "$ perfmap\n", said

# The format has every byte. What is printed is read as the same, and printed the same.
rng = random.Random(1)
pieces = [*(bytes([byte]) for byte in range(256)), b"\n", b"\\", b"===", b"=== stdout\n", b" \n", b"\\x41", b"\r\n",
          b"$ ", "ü\u202e\u2028".encode(), b"#"]
for number in range(2000):
    data = b"".join(rng.choice(pieces) for _ in range(rng.randrange(20))) if number else bytes(range(256))
    name = b"".join(rng.choice(pieces) for _ in range(rng.randrange(1, 9))).decode(errors="surrogateescape")
    if name == "escaped":
        continue
    sections = [Section.of(title, data) for title in (("stdin",), ("input", name), ("stderr",))]
    printed = f"$ perfmap {quoted(name)}\n".encode() + b"".join(section.print() for section in sections)
    case = Case("random", printed, GOLDEN)
    assert case.print() == printed and case.command == [name], printed
    assert [(section.title, section.data) for section in case.sections] == \
        [(section.title, data) for section in sections], printed
    table = Table("usage", b"# Comment\n$ perfmap a\nfirst\n\n$ perfmap b\nsecond\n", GOLDEN)
    table.set_message(table.rows[0][1], data)
    table = Table("usage", table.print(), GOLDEN)
    assert [row.stream("stderr") for _, row in table.rows] == [data, b"second\n"], table.print()
for line in ("a b", "  a  'b c' ", r"""a\ b "c \" \a" ''""", "a'b'\"c\"d", "#a b"):
    assert words(line) == shlex.split(line), line
for text, why in (("$ perfmap 'a\n", "not closed"),
                  ("# nothing\n", "no line '$ perfmap"),
                  ("$ perfmap\nexti 1\n", "exti 1"),
                  ("$ perfmap\n$ perfmap\n", "$ perfmap"),
                  ("$ perfmap\n=== stdoot\n", "'=== stdoot' is not a section: stdin, "),
                  ("$ perfmap\n=== input\n", "'=== input' is not a section: "),
                  ("$ perfmap\n=== stdout\n=== stdout\n", "duplicate section"),
                  ("$ perfmap\n=== stdout\na", "no newline"),
                  ("$ perfmap\n=== stdout escaped\n\\q\n", r"unknown escape \q")):
    try:
        Case("wrong", text.encode(), GOLDEN)
    except CaseError as error:
        assert why in str(error), error
    else:
        raise AssertionError(text)

# No file of tests/golden is forgotten.
cases = cases_below(GOLDEN)
assert all(case.print() == (GOLDEN / f"{case.name}.case").read_bytes() for case in cases)
used = {path for case in cases
        for path in [*case.inputs.values(), *case.outputs.values(), case.stdin_path]}
used |= {f"{folder}/{path.relative_to(GOLDEN / folder)}" for case in cases for folder in case.folders
         for path in (GOLDEN / folder).rglob("*")}
inputs = {str(path.relative_to(GOLDEN)) for path in (GOLDEN / "inputs").rglob("*") if path.is_file()}
assert inputs <= used, f"inputs of no case: {sorted(inputs - used)}"

# Commands see nothing outside of their folder.
SIGHT = ('[ ! -e /etc/passwd ] && [ ! -e ../stdin ] && [ -e "$PWD/f" ] && [ -e "../${PWD##*/}/f" ] && [ -d / ] && '
         "[ -e /dev/null ] && [ -e /proc/self/stat ] && [ ! -e /proc/1 ] && [ ! -e /bin/sh ]")
passes(None, "=== input f\n", command=f"$ perfmap -c {quoted(SIGHT)}", preload=EMPTY_ROOT)
fails("+1", None, "=== input f\n", command=f"$ perfmap -c {quoted(SIGHT)}")


def seen(folder, path, preload, inputs=""):
    """The calls that see something at PATH, which leads from FOLDER/scratch to FOLDER/outside."""
    root = pathlib.Path(folder)
    shutil.rmtree(root / "outside", ignore_errors=True)
    shutil.rmtree(root / "scratch", ignore_errors=True)
    for name in ("scratch", "outside", "nothing"):
        (root / name).mkdir(exist_ok=True)
    (root / "outside/file").write_text("file")
    (root / "outside/link").symlink_to("target")
    shutil.copy("/bin/true", root / "outside/true")
    (root / "scratch/script").write_text("#!/bin/sh\n")
    (root / "scratch/script").chmod(0o755)
    (root / "scratch/link").symlink_to(root / "outside")
    (root / "scratch/upwards").symlink_to("../outside")
    (root / "scratch/folder").mkdir()
    with socket.socket(socket.AF_UNIX) as local, socket.create_server(("127.0.0.1", 0)) as server:
        local.bind(f"{folder}/outside/socket")
        local.listen()
        environment = {"PATH": "/bin"}
        if preload:
            environment |= {"LD_PRELOAD": EMPTY_ROOT, "EMPTY_ROOT_FOLDER": f"{folder}/nothing",
                            "EMPTY_ROOT_INPUTS": inputs}
        ran = subprocess.run([SEE_OUTSIDE, f"{path}/file", path, f"{path}/true", f"{path}/socket",
                              str(server.getsockname()[1]), str(os.getpid())], cwd=root / "scratch",
                             capture_output=True, text=True, env=environment, start_new_session=True)
    assert ran.returncode == 0 and not ran.stderr, ran
    return ran.stdout.splitlines()


with tempfile.TemporaryDirectory() as folder:
    folder = os.path.realpath(folder)
    calls = set(re.findall(r"^  (?:OPENS|WORKS|FINDS)\((.*)\);$|^  SEES\(\"([^\"]*)\", ",
                           (TESTS / "support/see_outside.c").read_text(), re.M))
    for path in (f"{folder}/outside", "../outside", "link", "upwards", "folder/../../outside",
                 "/proc/self/cwd/../outside", f"/proc/self/root{folder}/outside",
                 f"{folder}/scratch/../outside", f"/usr/../{folder}/outside"):
        everything = seen(folder, path, preload=False)
        assert {a or b for a, b in calls} <= {*everything}, {a or b for a, b in calls} - {*everything}
        assert not (through := seen(folder, path, preload=True)), (path, through)
        checked += 2
    # Inputs can be read, and not changed.
    reads = {*seen(folder, f"{folder}/outside", preload=True, inputs=f"/nonexistent:{folder}/outside")}
    source = (TESTS / "support/see_outside.c").read_text()
    changing = {a or b for a, b in re.findall(r"^  (?:OPENS|WORKS|FINDS)\((.*)\);$|^  SEES\(\"([^\"]*)\", ", source[
        source.index("static void change("):source.index("static void look_further(")], re.M)}
    assert "open(file, O_RDONLY)" in reads and not reads & changing, reads & changing
    checked += 1
print(f"{checked} runs")
