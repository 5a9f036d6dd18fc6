# SPDX-License-Identifier: MIT
"""docs/cli.md, sentence by sentence: contract.py PERFMAP

Each function checks the sentences that it is given as the page has them. A sentence without a
function, and a function whose sentence is no longer on the page, fail.
"""
import base64
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
from support.other_user import copy_for_all  # noqa: E402
from support.pseudo_terminal import on_terminal  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
NODE = ROOT / "tests/wild/node"
DUMP = NODE / "jit-683-lines.dump"
RECORDING = ROOT / "tests/wild/tally/perf.data"
COMMANDS = ("resolve lint tidy merge diff info convert to-json from-json stacks report annotate inject doctor watch "
            "snapshot gc write copy pypylog").split()
checks = {}


def sentences(text):
    """Sentences, rows of tables and lines of code, without headings."""
    found, paragraph = [], []

    def end():
        found.extend(part for part in re.split(r"(?<=[^.]\.) (?=[A-Z`-])", " ".join(paragraph)) if part)
        paragraph.clear()

    for line in text.splitlines():
        if line.startswith("|"):
            end()
            if not re.fullmatch(r"[| -]+", line):
                found.append(" | ".join(cell.strip() for cell in line.strip("| ").split(" | ")))
        elif line.startswith("    "):
            end()
            found.append(line.strip())
        elif not line.strip() or line.startswith("#"):
            end()
        else:
            if line.startswith("* "):
                end()
            paragraph.append(line.removeprefix("* ").strip())
    end()
    return found


def says(*texts):
    def register(check):
        for text in texts:
            checks[text] = check
        return check
    return register


def run(words, stdin=b"", status=0, **environment):
    """Standard output and standard error of `perfmap WORDS`, which must end with the status."""
    words = words.split() if isinstance(words, str) else words
    ended = subprocess.run([PERFMAP, *words], input=stdin, stdout=subprocess.PIPE,
                           stderr=subprocess.PIPE, env={**os.environ, **environment})
    assert ended.returncode == status, (words, ended)
    return ended.stdout.decode(), ended.stderr.decode()


def write(name, text):
    pathlib.Path(name).write_bytes(text if isinstance(text, bytes) else text.encode())
    return name


def name_of(address, words, **environment):
    """The name that `resolve ADDRESS WORDS` prints."""
    return run(f"resolve {address} {words}", **environment)[0].split(" ")[1].split("+")[0].strip()


def a_process():
    """A process that has memory like that of a JIT, and the address of that memory."""
    code = ("import ctypes, mmap, time\n"
            "made = mmap.mmap(-1, 1 << 16, prot=7)\n"
            "print(hex(ctypes.addressof(ctypes.c_char.from_buffer(made))), flush=True)\n"
            "time.sleep(600)")
    child = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE)
    child.address = child.stdout.readline().decode().strip()
    return child


@says("Scripts, CI pipelines and completions can rely on what this page says.")
def page():
    pass  # this test


@says("`perfmap COMMAND --help` and the manual pages list all options; they are generated from the program.")
def options_are_listed():
    for command in COMMANDS:
        listed = set(re.findall(r"(?<!\S)--[a-z][a-z-]*", run([command, "--help"])[0]))
        page = (ROOT / f"docs/man/perfmap-{command}.1.scd").read_text()
        given = set(re.findall(r"^\*(?:-\w\*, \*)?(--[a-z][a-z-]*)", page, re.M))
        assert given and given - {"--help"} <= listed, (command, given - listed)


@says("perfmap [--color auto|always|never] [-q] [-v] COMMAND [OPTIONS] [ARGUMENTS]")
def common_options():
    for words in ("--color never", "-q", "-v", "--color always -q -v"):
        assert run(f"{words} tidy a.map")[0] == "1000 10 one\n2000 10 two\n"
    assert "'sometimes' is not one of auto, always, never" in run("--color sometimes tidy a.map", status=2)[1]


@says("Answers go to standard output.", "Messages, summaries and progress go to standard error.")
def streams():
    assert run("lint repeated.map", status=1)[0].count("\n") > 1
    out, err = run("tidy bad.map")
    assert out == "1000 10 one\n" and err.startswith("perfmap: skipped 1 malformed line"), err


@says("Colour and progress appear only on a terminal.",
      "`NO_COLOR`, `CLICOLOR=0` and `TERM=dumb` turn colour off, `CLICOLOR_FORCE=1` turns it on without a "
      "terminal; `--color` wins over all of them.")
def color():
    colored = "\x1b["
    assert colored not in run("lint repeated.map", status=1)[0]
    assert colored.encode() in on_terminal([PERFMAP, "lint", "repeated.map"])[0]
    for variable in ("NO_COLOR=1", "CLICOLOR=0", "TERM=dumb"):
        assert colored.encode() not in on_terminal(["env", variable, PERFMAP, "lint", "repeated.map"])[0]
        command = ["env", variable, PERFMAP, "--color", "always", "lint", "repeated.map"]
        assert colored.encode() in on_terminal(command)[0], variable
    assert colored in run("lint repeated.map", status=1, CLICOLOR_FORCE="1")[0]
    assert colored not in run("--color never lint repeated.map", CLICOLOR_FORCE="1", status=1)[0]
    assert "\r" not in run("tidy a.map")[1]


@says(r"On a terminal, control bytes in names are printed as `\xNN`.")
def control_bytes():
    write("control.map", b"1000 10 a\x1b[31mb\n")
    assert rb"a\x1b[31mb" in on_terminal([PERFMAP, "to-json", "--to", "jsonl", "control.map"])[0] or \
        rb"a\x1b[31mb" in on_terminal([PERFMAP, "diff", "control.map", "a.map"])[0]
    assert rb"a\x1b[31mb" in on_terminal([PERFMAP, "resolve", "1000", "control.map"])[0]


@says("As a source, `-` is standard input; as the FILE of `-o`, it is standard output.",
      "`resolve - SOURCE` reads addresses from standard input.")
def dash():
    assert run("tidy - -o -", b"1000 10 one\n")[0] == "1000 10 one\n"
    assert run("resolve - a.map", b"1008\n")[0] == "1008 one+0x8 (a.map)\n"


@says("`--` ends the options.")
def end_of_options():
    write("-odd.map", "1000 10 odd\n")
    assert run("tidy -- -odd.map")[0] == "1000 10 odd\n"
    run("tidy -odd.map", status=2)


@says("An option has at most one value.",
      "If an option is given several times, the last value counts; options that make a list, such as `-s`, keep"
      " all values.")
def values():
    assert run("tidy a.map -o", status=2)[1].startswith("perfmap: error: ")
    run("tidy a.map -o first.map -o last.map")
    assert os.path.exists("last.map") and not os.path.exists("first.map")
    assert name_of("1000", "-m a.map -m later.map") == "later"


@says("Addresses and sizes are hexadecimal, with or without `0x`.")
def hexadecimal():
    for address in ("1008", "0x1008", "0X1008", "00001008"):
        assert name_of(address, "a.map") == "one", address
    run("write -o written.map 0x10 0x20 hex")
    assert pathlib.Path("written.map").read_text() == "10 20 hex\n"


@says("Process IDs are decimal.")
def decimal():
    assert "'0x1'" in run("info -p 0x1", status=2)[1]


@says("Times are seconds with up to nine decimals; further ones are ignored.")
def times():
    lines = [json.loads(line) for line in run(f"stacks {RECORDING} --format jsonl")[0].splitlines()]
    exact = lines[3]["time"]
    assert re.fullmatch(r"\d+\.\d{9}", exact)
    for text in (exact, exact + "1234"):
        found = run(f"stacks {RECORDING} --format jsonl --from {text} --to-time {text}")[0]
        assert json.loads(found)["time"] == exact, found
    run(f"stacks {RECORDING} --from 1.2.3", status=2)


@says("An error is one line: `perfmap: error: WHAT: WHY`.",
      "`resolve -` and `write -` report a malformed line of standard input as `-:LINE:COLUMN: WHY`, go on, and end"
      " with status 2.")
def errors():
    assert run("resolve - a.map", b"zz\n1008\n", status=2) == \
        ("1008 one+0x8 (a.map)\n", "-:1:1: 'zz' is not a hexadecimal address\n")
    out, err = run("write -o lines.map -", b"10 10 good\n10 zz bad\n", status=2)
    assert err.startswith("-:2:4: ") and pathlib.Path("lines.map").read_text() == "10 10 good\n", err
    assert run("tidy gone.map", status=2)[1] == \
        "perfmap: error: cannot open gone.map: No such file or directory\n"


@says("The error for an unknown command or option suggests the nearest existing one.")
def nearest():
    assert "'resolve'" in run("resolv 10 a.map", status=2)[1]
    assert "--output" in run("tidy --outptu x a.map", status=2)[1]


@says("If the reader of its output closes the pipe, the program ends as if SIGPIPE had killed it.")
def closed_pipe():
    write("large.map", "".join(f"{i:x}0 10 name{i}\n" for i in range(1, 200000)))
    child = subprocess.Popen([PERFMAP, "tidy", "large.map"], stdout=subprocess.PIPE,
                             stderr=subprocess.PIPE, preexec_fn=lambda: signal.signal(signal.SIGPIPE, signal.SIG_DFL))
    child.stdout.read(10)
    child.stdout.close()
    assert child.wait() == -signal.SIGPIPE and child.stderr.read() == b""


@says("status | meaning",
      "0 | The command did its work. Malformed lines and records are skipped, and one message counts them.")
def status_0():
    write("worse.map", "1000 10 one\nbad\nworse\n")
    out, err = run("tidy worse.map")
    assert out == "1000 10 one\n" and err.count("\n") == 1 and "2 malformed lines" in err, err


@says("1 | The command did its work, and the answer is no: `lint` has findings at `--fail-level` or above, "
      "`resolve --strict` has an address without a name, `diff` finds a difference, `merge --check` finds a "
      "conflict, `doctor` finds that names are missing.")
def status_1():
    run("lint repeated.map --fail-level warning", status=1)
    run("lint repeated.map --fail-level error")
    run("resolve 9999 a.map --strict", status=1)
    run("resolve 9999 a.map")
    run("diff a.map later.map", status=1)
    run("diff a.map a.map")
    run("merge --check a.map later.map", status=1)
    run("merge --check a.map b.map")
    run(f"doctor {NODE / 'perf-603.data'} --map-dir .", status=1)


@says("2 | The command could not do its work: an error in the command line, a source that cannot be read, a "
      "process that does not exist or may not be examined, a failed write.")
def status_2():
    for words in ("tidy", "tidy --no-such-option", "tidy gone.map", "tidy a.map -o /dev/full"):
        run(words, status=2)
    gone = 4194304  # the kernel's largest pid is one less
    for words in ("resolve 10 -p", "lint -p", "info -p", "doctor -p", "watch -p", "tidy",
                  "snapshot -o saved -p", "merge a.map -p", "diff a.map", "convert --to json", "to-json", "copy -o out.map"):
        assert run(f"{words} {gone}", status=2)[1] == f"perfmap: error: no process {gone}\n", words
    if os.geteuid() != 0:
        return
    pid = os.getpid()
    os.mkdir("for-all")
    os.chmod(".", 0o755)
    program, environment = copy_for_all(PERFMAP, "for-all")
    for command in ("doctor", "watch", "snapshot -o saved"):
        done = subprocess.run([program, *command.split(), str(pid)], capture_output=True, user=65534, group=65534,
                              extra_groups=[], text=True, timeout=200, env=environment)
        words = f"{command.split()[0]} {pid}" + " -o saved" * command.startswith("snapshot")
        assert done.returncode == 2 and done.stderr.endswith(f"; try 'sudo perfmap {words}'\n"), (command, done)


@says("If one of several sources cannot be opened, `lint` and `resolve` print the error, use the others, and end "
      "with status 2.",
      "Commands that make one result of all sources, such as `merge` and `stacks`, print the error and write nothing.")
def missing_sources():
    missing = "perfmap: error: cannot open gone.map: No such file or directory\n"
    for sources in ("gone.map a.map", "a.map gone.map"):
        assert run(f"resolve 1008 {sources}", status=2) == ("1008 one+0x8 (a.map)\n", missing)
        assert run(f"resolve - {sources}", b"1008\n", status=2) == ("1008 one+0x8 (a.map)\n", missing)
    out, err = run("lint repeated.map gone.map bad.map", status=2)
    assert "repeated.map:2" in out and "bad.map:2" in out and missing in err, (out, err)
    for words in ("merge a.map gone.map", "tidy gone.map", f"stacks {RECORDING} a.map gone.map", "diff a.map gone.map"):
        assert run(words, status=2) == ("", missing), words


@says("A SOURCE is a path, `-`, or a pid: decimal digits that are not the name of a file.",
      "`./123` is always a file.")
def sources():
    child = a_process()
    try:
        pid = str(child.pid)
        write(f"tmp/perf-{pid}.map", "5000 10 own\n")
        where = {"PERFMAP_TMPDIR": os.path.realpath("tmp")}
        assert run(["tidy", pid], **where)[0] == "5000 10 own\n"
        assert "No such file" in run(["tidy", "./" + pid], status=2, **where)[1]
        write(pid, "6000 10 file\n")
        assert run(["tidy", pid], **where)[0] == "6000 10 file\n"
        os.unlink(pid)
    finally:
        child.kill()
        child.wait()


@says("A process that has ended is a source as long as its map or a jitdump exists.")
def ended_process():
    child = a_process()
    child.kill()
    child.wait()
    write(f"tmp/perf-{child.pid}.map", "5000 10 own\n")
    where = {"PERFMAP_TMPDIR": os.path.realpath("tmp")}
    assert run(["tidy", str(child.pid)], **where)[0] == "5000 10 own\n"
    os.unlink(f"tmp/perf-{child.pid}.map")
    assert str(child.pid) in run(["tidy", str(child.pid)], status=2, **where)[1]


@says("The directory of a snapshot is a source, too.")
def snapshot():
    child = a_process()
    try:
        write(f"tmp/perf-{child.pid}.map", f"{child.address} 10 own\n")
        run(["snapshot", str(child.pid), "-o", "saved"], PERFMAP_TMPDIR=os.path.realpath("tmp"))
    finally:
        child.kill()
        child.wait()
    assert name_of(child.address, "saved") == "own"


def two_processes():
    """A recording directory of processes 41 and 42, and an archive of it."""
    os.makedirs("both", exist_ok=True)
    write("both/perf.data", "")
    write("both/perf-41.map", "1000 10 first\n")
    write("both/perf-42.map", "1000 10 second\n")
    subprocess.run("tar -czf both.tar.gz both", shell=True, check=True)
    return "both", "both.tar.gz"


@says("A directory of `record`, or an archive of one, is a source: the perf maps and jitdumps in it.",
      "`lint` and `info` read those of all its processes.",
      "Other commands read those of one process, and if there are several, they require `-p`.",
      "With such a source, `-p PID` selects processes of the recording.",
      "In `resolve`, the ELF files that the process had mapped when it, or the recording, ended are sources, too.",
      "Commands that read processes or logs, such as `watch` and `pypylog`, refuse it.",
      "`tidy --in-place` and `lint --fix` do not change an archive.")
def recorded_names():
    for name in two_processes():
        for command in ("lint", "info"):
            never = " --fail-level never" if command == "lint" else ""
            assert run(f"{command} {name} --format json{never}")[0].count("perf-4") == 2, name
        for command in ("resolve 1000", "tidy", "merge", "to-json"):
            assert "several processes: 41, 42" in run(f"{command} {name}", status=2)[1]
            assert "second" in run(f"{command} {name} -p 42")[0]
        assert name_of("1000", f"{name} -p 41") == "first"
        for command in ("watch", "pypylog"):
            assert name in run(f"{command} {name}", status=2)[1]
    pathlib.Path("of-process").mkdir()
    write("of-process/perf.data", RECORDING.read_bytes())
    assert name_of("401079", f"of-process --symfs {RECORDING.parent}") == "digits"
    before = pathlib.Path("both.tar.gz").read_bytes()
    run("tidy --in-place both.tar.gz -p 41", status=2)
    assert pathlib.Path("both.tar.gz").read_bytes() == before


@says("The kind (perf map, jitdump, JSON, PyPy log) is detected by content; `--kind` sets it.")
def kinds():
    shutil.copy(DUMP, "called.map")
    assert run("info called.map")[0].startswith("jitdump") or "jitdump" in run("info called.map")[0]
    run("to-json a.map -o called.json")
    os.rename("called.json", "called.dump")
    assert run("tidy called.dump")[0] == "1000 10 one\n2000 10 two\n"
    assert "jitdump" in run("tidy a.map --kind jitdump", status=2)[1]


@says("A command for one source or process refuses several.")
def one_source():
    for words in ("info a.map b.map", "tidy a.map -m b.map", "to-json a.map b.map", "copy a.map b.map -o c.map",
                  "doctor 1 2"):
        assert "expected one SOURCE: a path, '-' or a pid; got 2" in run(words, status=2)[1], words
    for words in ("watch 1 2", "watch 1 -p 2", "snapshot -p 1 -p 2 -o saved"):
        assert run(words, status=2)[1] == "perfmap: error: expected one PID; got 2\n", words


@says("Sources are positional in every command, except that a pid needs `-p` in `resolve`, where a number is an"
      " address.",
      "All sources keep the order of the command line, which decides which entry wins if sources overlap.",
      "These options give sources, too; commands that read only one kind of input, such as `watch` (processes), have"
      " only those for it:")
def order():
    for command in COMMANDS:
        usage = run([command, "--help"])[0].splitlines()[0]
        assert re.search(r"SOURCE|RECORDING|PID|LOG|COMMAND| A B ", usage) or command == "gc", usage
    assert "expected a SOURCE" in run("resolve 1000 4242", status=2)[1]
    assert name_of("1000", "-m a.map later.map") == "later"
    assert name_of("1000", "later.map -i a.map") == "one"
    assert name_of("1000", "-s later.map -m a.map") == "one"


@says("option | source",
      "`-p PID`, `--pid` | a process: its map and its jitdumps; in `resolve` also its ELF files",
      "`-m FILE`, `--map` | a file of any kind, such as a perf map; never a pid",
      "`-j FILE`, `--jitdump` | a jitdump; a file of another kind is an error, in `lint` a finding",
      "`-s SOURCE`, `--source` | any source",
      "`-i FILE`, `--input` | the same as `-m FILE`")
def source_options():
    child = a_process()
    try:
        pid = str(child.pid)
        where = {"PERFMAP_TMPDIR": os.path.realpath("tmp")}
        write(f"tmp/perf-{pid}.map", f"{child.address} 10 own\n")
        assert name_of(child.address, f"-p {pid}", **where) == "own"
        assert run(["tidy", "-s", pid], **where)[0] == f"{child.address[2:]} 10 own\n"
        for option in ("-i", "-m", "-j"):
            assert "No such file" in run(["tidy", option, pid], status=2, **where)[1]
        libc = next(line for line in open(f"/proc/{pid}/maps") if re.search(r" r-xp .*/libc\.so", line))
        answer = run(f"resolve {libc.split('-')[0]} -p {pid}", **where)[0]
        assert libc.split()[-1] in answer, (answer, libc)
    finally:
        child.kill()
        child.wait()
    assert run("tidy -m a.map")[0] == run("tidy -i a.map")[0] == run("tidy -s a.map")[0]
    assert run(f"to-json -j {DUMP}")[0] == run(f"to-json {DUMP}")[0]
    run("tidy -j a.map", status=2)
    assert "[JD101]" in run("lint --format gcc -j a.map", status=1)[0]
    assert run(f"to-json -m {DUMP}")[0] == run(f"to-json {DUMP}")[0]


@says("`resolve ADDR... SOURCE...`: a hexadecimal word is an address, even if a file has that name.",
      "A word that has a `/` or is not hexadecimal is a file.",
      "A hexadecimal word of more than 64 bits is an error.")
def words_of_resolve():
    assert "has more than 64 bits" in run("resolve 11111111111111111 a.map", status=2)[1]
    assert name_of("0000000000000001000", "a.map") == "one"
    write("beef", "beef 10 file\n")
    assert run("resolve beef a.map")[0].startswith("beef [unknown]")
    assert name_of("beef", "./beef") == "file"


@says("A RECORDING may be a directory of `record`.",
      "Then names of JIT code come from the files in it, unless `--map-dir` is given, and names of ELF files from the "
      "copies in it, unless `--symfs` has the file.")
def recording_directory():
    os.makedirs("recorded", exist_ok=True)
    os.makedirs("named", exist_ok=True)
    shutil.copy(NODE / "perf-603.data", "recorded/perf.data")
    samples = [json.loads(line) for line in run("stacks recorded --format jsonl")[0].splitlines()]
    pid, address = next((sample["pid"], int(frame["ip"], 16)) for sample in samples for frame in sample["frames"]
                        if frame["name"] is None and frame["module"] == "//anon")
    write(f"recorded/perf-{pid}.map", f"{address:x} 1000 in_the_directory\n")
    write(f"named/perf-{pid}.map", f"{address:x} 1000 in_map_dir\n")
    assert "in_the_directory" in run("stacks recorded")[0]
    assert "in_map_dir" in run("stacks recorded --map-dir named")[0]
    assert "recorded/perf.data" in run("doctor recorded", status=1)[0]
    os.makedirs("tallied", exist_ok=True)
    shutil.copy(RECORDING, "tallied/perf.data")
    shutil.copy(RECORDING.parent / "srv/tally/tally", "tallied/elf-1")
    assert "digits" not in run("report tallied")[0]
    build_id = "882f85b3e5cad8f38c0545c7f53fbf26e5c5aa83"
    write("tallied/recording.json", json.dumps({"schema": "perfmap.recording/1", "modules": [
        {"path": "elf-1", "source": "/srv/tally/tally", "build_id": build_id, "size": os.path.getsize("tallied/elf-1")}]}))
    assert "digits" in run("report tallied")[0]
    os.makedirs("stripped/srv/tally", exist_ok=True)
    subprocess.run(["strip", "-o", "stripped/srv/tally/tally", RECORDING.parent / "srv/tally/tally"], check=True)
    assert "digits" not in run("report tallied --symfs stripped")[0]


@says("An archive of the directory may take its place in every command.",
      "It is unpacked into a temporary directory below `TMPDIR`, which is removed at the end.")
def archive():
    recording_directory()
    os.makedirs("unpacked", exist_ok=True)
    subprocess.run("tar -czf recorded.tar.gz recorded", shell=True, check=True)
    where = {"TMPDIR": os.path.realpath("unpacked")}
    assert "in_the_directory" in run("stacks recorded.tar.gz", **where)[0]
    assert not os.listdir("unpacked")
    assert "(in /gone; set TMPDIR" in run("stacks recorded.tar.gz", status=2, TMPDIR="/gone")[1]


@says("`record --archive` writes an archive in place of the directory, and so does `-o NAME.tar.zst`.",
      "An existing archive is not replaced.",
      "`record --open` makes a flame graph, `flame.html` in the directory or NAME.html beside the archive, and opens it "
      "by the commands in `BROWSER`, or else by `xdg-open`.",
      "If it cannot be opened, a message says where it is and why.")
def recorded_archive():
    # live.record-archive records, where perf can.
    write("there.tar.zst", "mine")
    for words in ("-o there --archive", "-o there.tar.zst"):
        refused = run(f"record {words} -- true", status=2)[1]
        assert "there.tar.zst: it exists" in refused or "perf" in refused, refused
    assert pathlib.Path("there.tar.zst").read_text() == "mine"
    assert not os.path.exists("there")
    listed = run("record --help")[0]
    assert "--archive" in listed and "--open" in listed


@says("`record -- COMMAND [ARG]...` records a program, `record -p PID` processes.",
      "Without one of them it is an error.")
def recording():
    assert run("record", status=2)[1].startswith("perfmap: error: nothing to record")
    assert run("record -p 4194303", status=2)[1] == "perfmap: error: no process 4194303\n"
    assert run("record -- ./nosuch", status=2)[1] == "perfmap: error: cannot run ./nosuch: no such program\n"


@says("`stacks RECORDING [SOURCE...]`: the sources name code of every process.",
      "`stacks`: `-p` selects processes.", "`--baseline` supports only folded, html and jsonl, and takes no other sources.",
      "`--code` supports only html.",
      "Inlined functions are frames of html without `--baseline` and `--code`; `--inlines` and `--no-inlines` choose.")
def stacks():
    named = f"stacks {RECORDING} --symfs {RECORDING.parent} "
    for words, is_inlined in {"--format html": True, "--format html --no-inlines": False, "--format html --code": False,
                              "": False, "--inlines": True}.items():
        text = run(named + words)[0]
        assert (";weight" in text or '"weight"' in text) == is_inlined, words
    assert "supports only --format html" in run(f"stacks {RECORDING} --code", status=2)[1]
    assert '"listings":[{' in run(f"stacks {RECORDING} --symfs {RECORDING.parent} --code --format html")[0]
    for refused in ("speedscope", "firefox", "pprof", "perf-script"):
        assert "no place for two counts" in run(f"stacks {RECORDING} --baseline {RECORDING} --format {refused}", status=2)[1]
    run(f"stacks {RECORDING} a.map --baseline {RECORDING}", status=2)
    assert run(f"stacks {RECORDING} --baseline {RECORDING}")[0]
    run(f"resolve 0 {NODE / 'perf-603.map'}")
    plain = run(f"stacks {RECORDING}")[0]
    assert plain
    assert run(f"stacks {RECORDING} -p 4194303")[0] == ""
    named = run(f"stacks {NODE / 'perf-603.data'} {NODE / 'perf-603.map'}")[0]
    assert named.count("JS:") > run(f"stacks {NODE / 'perf-603.data'} --map-dir .")[0].count("JS:")


def samples_in(folded):
    return sum(int(line.rsplit(" ", 1)[1]) for line in folded.splitlines())


@says("`stacks` and `report` without `--baseline` leave out one of several recordings that cannot be read: they print "
      "the error, write the result of the others, also to `-o FILE`, and end with status 2.",
      "If none can be read, they write nothing.",
      "A further argument that is a recording, a directory or archive of one, or a pprof profile, is a further RECORDING; "
      "so is what is no map or dump, neither by its content nor by its name.", "With several, other sources are an error.",
      "`--recordings FILE` lists further ones: a path in each line, after which KEY=VALUE may follow, each after a tab; "
      "empty lines are ignored.", "With `--null`, only paths, each ended by NUL.", "A file counts once, also by another path.",
      "The output must be none of these files.",
      "The order is RECORDING, further arguments, the list; the output does not depend on `--threads`.",
      "Several recordings support folded, html, jsonl, otlp, otlp-json and pprof; `--label` all but folded and html.")
def several_recordings():
    other = NODE / "perf-603.data"
    each = [samples_in(run(f"stacks {one} --map-dir .")[0]) for one in (RECORDING, other)]
    both = run(f"stacks {RECORDING} {other} --map-dir .")[0]
    assert samples_in(both) == sum(each)
    run(f"stacks {other} --map-dir . -o other.pb.gz")
    shutil.rmtree("single", ignore_errors=True)
    os.mkdir("single")
    shutil.copy(other, "single/perf.data")
    subprocess.run(["tar", "czf", "single.tar.gz", "single"], check=True)
    for further in ("other.pb.gz", "single", "single.tar.gz"):
        assert samples_in(run(f"stacks {RECORDING} {further}")[0]) == sum(each), further
    missing = "perfmap: error: cannot open gone.data: No such file or directory\n"
    for command in ("stacks", "report"):
        whole = run(f"{command} {RECORDING} {other} --map-dir .")[0]
        out, err = run(f"{command} {RECORDING} gone.data {other} --map-dir .", status=2)
        assert out == whole and missing in err, (out, err)
        assert run(f"{command} {RECORDING} gone.data {other} --map-dir . -o left", status=2)[0] == ""
        assert pathlib.Path("left").read_text() == whole
        pathlib.Path("left").unlink()
        out, err = run(f"{command} gone.data gone2.data --recordings {write('gone.list', 'gone3.data')} -o left", status=2)
        assert out == "" and missing in err and not pathlib.Path("left").exists(), err
    assert "do not support another source" in run(f"stacks {RECORDING} {other} a.map", status=2)[1]
    write("list", f"\n{other}\tservice=web\tzone=eu\n\n")
    assert run(f"stacks {RECORDING} --recordings list --map-dir .")[0] == both
    labelled = [json.loads(line) for line in run(f"stacks {RECORDING} --recordings list --map-dir . --format jsonl")[0].splitlines()]
    assert {"service": "web", "zone": "eu"} in [line.get("labels") for line in labelled], labelled[:2]
    write("list0", f"{other}\0")
    assert run(f"stacks {RECORDING} --recordings list0 --null --map-dir .")[0] == both
    os.path.lexists("link.data") or os.symlink(other, "link.data")
    for again in (RECORDING, "link.data"):
        out, err = run(f"stacks {RECORDING} {other} {again} --map-dir .")
        assert out == both and "counts once" in err, err
    out, err = run(f"stacks {RECORDING} {write('notes.txt', 'words')} --map-dir .", status=2)
    assert samples_in(out) == each[0] and "notes.txt is not a recording" in err, err
    for mine in ("mine.data", "mine.list", "single/perf.data"):
        shutil.copy(other, "mine.data")
        write("mine.list", "mine.data")
        before = pathlib.Path(mine).read_bytes()
        for command in ("stacks", "report"):
            run(f"{command} {RECORDING} single --recordings mine.list --map-dir . -o {mine}", status=2)
            assert pathlib.Path(mine).read_bytes() == before, mine
    for threads in (1, 2, 16):
        assert run(f"stacks {RECORDING} {other} --map-dir . --threads {threads}")[0] == both
    for chosen in ("folded", "html", "jsonl", "otlp", "otlp-json", "pprof", "speedscope", "firefox", "chrome", "perf-script"):
        merges = chosen in ("folded", "html", "jsonl", "otlp", "otlp-json", "pprof")
        run(f"stacks {RECORDING} {other} --map-dir . --format {chosen} -o merged", status=0 if merges else 2)
        takes = merges and chosen not in ("folded", "html")
        run(f"stacks {RECORDING} --map-dir . --label zone=eu --format {chosen} -o merged", status=0 if takes else 2)


@says("`report RECORDING [SOURCE...]`: as `stacks`, without `--label`; `--by label:KEY` counts by the value of one label, "
      "of the list or of the recording (host, build, time, arch, kernel), and merges also a single recording.", "A pprof profile takes no other sources.",
      "With `--baseline`, further arguments are further recordings.", "Equal recordings of a side count once.",
      "Inlined functions count by their own names, except with `--baseline`; `--inlines` and `--no-inlines` choose.",
      "With `--baseline`, `--total` compares the samples in functions and in what they called.")
def report():
    assert run(f"report {RECORDING} -p 4194303")[0] == ""
    run(f"report {RECORDING} --label zone=eu", status=2)
    for key in ("host", "build", "time", "arch", "kernel"):
        assert len(json.loads(run(f"report {RECORDING} --by label:{key} --format json")[0])["events"][0]["rows"]) == 1, key
    by_zone = run(f"report --recordings {write('zones', f'{RECORDING}	zone=eu')} --by label:zone")[0]
    assert by_zone.splitlines()[-1].split()[-1] == "eu", by_zone
    run(f"report {RECORDING} --by label:zone", status=2)
    named = run(f"report {NODE / 'perf-603.data'} {NODE / 'perf-603.map'}")[0]
    assert "workload.js" in named and "workload.js" not in run(f"report {NODE / 'perf-603.data'} --map-dir .")[0]
    run(f"stacks {RECORDING} -o profile.pb.gz")
    assert run("report profile.pb.gz")[0]
    run("report profile.pb.gz a.map", status=2)
    run(f"report {RECORDING} a.map --baseline {RECORDING}", status=2)
    several = ROOT / "tests/golden/inputs"
    new = several / "new.pb"
    assert "(mean of 2)" in run(f"report {new} {several / 'new2.pb'} --baseline {several / 'old.pb'}")[0]
    assert "in what it called are compared" in run(f"report {new} --baseline {several / 'old.pb'} --total")[0]
    compared, said = run(f"report {new} {new} --baseline {several / 'old.pb'}")
    assert "(mean of" not in compared and "counts once" in said
    for words, is_inlined in {"": True, "--no-inlines": False}.items():
        rows = run(f"report {RECORDING} --symfs {RECORDING.parent} {words}")[0]
        assert ("weight" in rows) == is_inlined, rows
    compared = f"report {RECORDING} --symfs {RECORDING.parent} --baseline {RECORDING} --normalize weight"
    run(compared, status=2)
    run(compared + " --inlines", status=0)


@says("`annotate RECORDING FUNCTION`: a word that several functions contain is an error.",
      "`-m` and `-j` name code of every process.",
      "`--source` selects what is printed.",
      "`--at` of `annotate` selects the code that existed then.")
def annotate():
    found = run(f"annotate {RECORDING} digits --symfs {RECORDING.parent}")[0]
    assert found.startswith("digits: 16 samples") and "movabs" in found
    lines = run(f"annotate {RECORDING} digits --symfs {RECORDING.parent} --source")[0]
    assert "movabs" not in lines and "LINE  SOURCE" in lines
    assert "matches 3 functions" in run(f"annotate {RECORDING} i --symfs {RECORDING.parent}", status=2)[1]
    data, dump = NODE / "perf-683.data", NODE / "jit-683-samples.dump"
    for source in (f"-j {dump}", f"-m {dump}"):
        assert "sieve" in run(f"annotate {data} sieve {source} --at 4527")[0]
    run(f"annotate {data} sieve -j {dump} --at 4526.04", status=2)


@says("`write` and `copy` append to `-o FILE` or to the map of `--to-pid PID`.")
def appending():
    where = {"PERFMAP_TMPDIR": os.path.realpath("tmp")}
    for _ in range(2):
        run("write -o twice.map 10 10 again")
        run("copy a.map -o copied.map")
        run("write --to-pid 77 10 10 of_77", **where)
    assert pathlib.Path("twice.map").read_text() == "10 10 again\n" * 2
    assert pathlib.Path("copied.map").read_text() == "1000 10 one\n2000 10 two\n" * 2
    assert pathlib.Path("tmp/perf-77.map").read_text() == "10 10 of_77\n" * 2


@says("A path on the command line is opened as it is.",
      "A path that perfmap finds by a pid is not trusted: perfmap follows no link, reads only regular files, "
      "and requires that the owner is the process's user, root or you, unless `--any-owner` is given.")
def trust():
    os.symlink("a.map", "link.map")
    assert run("tidy link.map")[0] == run("tidy a.map")[0]
    child = a_process()
    try:
        pid = str(child.pid)
        where = {"PERFMAP_TMPDIR": os.path.realpath("tmp")}
        planted = f"tmp/perf-{pid}.map"
        os.symlink(os.path.realpath("a.map"), planted)
        run(["tidy", pid], status=2, **where)
        os.unlink(planted)
        os.mkfifo(planted)
        run(["tidy", pid], status=2, **where)
        os.unlink(planted)
        if os.geteuid() == 0:
            write(planted, "5000 10 foreign\n")
            os.chown(planted, 12345, 12345)
            run(["tidy", pid], status=2, **where)
            assert run(["tidy", pid, "--any-owner"], **where)[0] == "5000 10 foreign\n"
    finally:
        child.kill()
        child.wait()


@says("A directory of `--map-dir` or `--symfs` that does not exist is an error.")
def directories():
    for option in ("--map-dir gone", "--symfs gone"):
        for words in (f"stacks {RECORDING}", f"inject {RECORDING} -o out.data", f"doctor {RECORDING}", "resolve 10 a.map"):
            assert run(f"{words} {option}", status=2)[1] == \
                "perfmap: error: cannot open gone: No such file or directory\n", words


@says("`PERFMAP_TMPDIR` replaces `/tmp` as the place of maps and dumps.")
def directory():
    sources()


@says("`--time` is an instant: the command uses the names that were valid then.")
def instant():
    lines = [json.loads(line) for line in run(f"to-json --to jsonl {DUMP}")[0].splitlines()]
    load = next(line for line in lines if "name" in line and "time" in line)
    seconds, ns = load["time"].split(".")
    before = f"{seconds}.{int(ns) - 1:09}"
    assert name_of(load["start"], f"{DUMP} --time {before}") == "[unknown]"
    assert name_of(load["start"], f"{DUMP} --time {load['time']}") in load["name"]


@says("`--from` and `--to-time` are the ends of a span, both included; in `pypylog` they are ticks, and the "
      "end is not included.")
def span():
    lines = [json.loads(line) for line in run(f"stacks {RECORDING} --format jsonl")[0].splitlines()]
    first, last = lines[0]["time"], lines[-1]["time"]
    everything = run(f"stacks {RECORDING} --format jsonl --from {first} --to-time {last}")[0]
    assert everything.count("\n") == len(lines)
    one = run(f"stacks {RECORDING} --format jsonl --from {first} --to-time {first}")[0]
    assert one.count("\n") == sum(line["time"] == first for line in lines)
    write("log", "[100] {jit-backend\n[110] jit-backend}\n[200] {gc-minor\n[210] gc-minor}\n")
    for end in (200, 205):
        profile = json.loads(run(f"pypylog log --format json --from 100 --to-time {end}")[0])
        assert profile["total_ticks"] == end - 100, profile


@says("`-o FILE` replaces FILE when all is written, and leaves it untouched if anything fails; `write` and "
      "`copy` append.")
def replacing():
    write("kept.map", "old\n")
    run("tidy gone.map -o kept.map", status=2)
    assert pathlib.Path("kept.map").read_text() == "old\n"
    run("tidy a.map -o kept.map")
    assert pathlib.Path("kept.map").read_text() == "1000 10 one\n2000 10 two\n"


@says("A device or FIFO is written in place.")
def in_place():
    run("tidy a.map -o /dev/null")
    assert pathlib.Path("/dev/null").is_char_device()
    os.mkfifo("fifo")
    reader = subprocess.Popen(["cat", "fifo"], stdout=subprocess.PIPE)
    run("tidy a.map -o fifo")
    assert reader.communicate()[0] == b"1000 10 one\n2000 10 two\n"


@says("FILE must not be the input of `stacks`, `report`, `annotate`, `inject`, `lint`, `pypylog`, `convert`, `to-json`, "
      "`from-json` or `copy`.")
def onto_itself():
    run("to-json a.map -o a.json")
    shutil.copy(RECORDING, "recording")
    for words, name in {"stacks recording": "recording", "report recording": "recording",
                        "annotate recording digits": "recording", "inject recording": "recording", "lint a.map": "a.map",
                        "pypylog log": "log", "convert a.map --to perf-map": "a.map", "to-json a.map": "a.map",
                        "from-json a.json --to perf-map": "a.json", "copy a.map": "a.map",
                        "convert recording.dump --to elf": "recording.dump"}.items():
        shutil.copy(DUMP, "recording.dump")
        os.link(name, "again")
        before = pathlib.Path(name).read_bytes()
        assert "it is the input" in run(f"{words} -o again", status=2)[1], words
        assert pathlib.Path(name).read_bytes() == before, words
        os.unlink("again")


@says("`--format` selects the format of the output, and `--format text` always selects the default.")
def formats():
    for words in ("resolve 1000 a.map", "lint good.map", "info a.map", "diff a.map a.map",
                  f"stacks {RECORDING}", f"report {RECORDING}", "pypylog log"):
        assert run(f"{words} --format text", status=0)[0] == run(words)[0], words


@says("`--to` is the target of a conversion.", "Without them, the suffix of `-o FILE` chooses:",
      "command | suffixes")
def targets():
    run("convert a.map --to json -o converted")
    assert json.loads(pathlib.Path("converted").read_text())
    run("convert a.map -o converted.json")
    assert pathlib.Path("converted.json").read_text() == pathlib.Path("converted").read_text()


def check_suffixes(command, inputs, by_suffix, option):
    """Each suffix gives what the option gives."""
    for suffix, form in by_suffix.items():
        run(f"{command} {inputs} -o by{suffix}")
        run(f"{command} {inputs} -o by-option {option} {form}")
        assert pathlib.Path("by" + suffix).read_bytes() == pathlib.Path("by-option").read_bytes(), suffix
        assert pathlib.Path("by" + suffix).stat().st_size, suffix


@says("`stacks` | `.html`, `.folded`, `.pb.gz` and `.pb` (pprof), `.speedscope.json`, `.firefox.json`, "
      "`.trace.json` (chrome), `.otlp`, `.otlp.json` (otlp-json), `.jsonl`, `.txt` (perf-script)")
def suffixes_of_stacks():
    check_suffixes("stacks", RECORDING, {
        ".html": "html", ".folded": "folded", ".pb.gz": "pprof", ".pb": "pprof", ".speedscope.json": "speedscope",
        ".firefox.json": "firefox", ".trace.json": "chrome", ".otlp": "otlp", ".otlp.json": "otlp-json", ".jsonl": "jsonl", ".txt": "perf-script"}, "--format")


@says("`report` | `.txt` (text), `.json`, `.csv`")
def suffixes_of_report():
    check_suffixes("report", RECORDING, {".txt": "text", ".json": "json", ".csv": "csv"}, "--format")


@says("`annotate` | `.txt` (text), `.json`, `.html`")
def suffixes_of_annotate():
    check_suffixes("annotate", f"{RECORDING} digits --symfs {RECORDING.parent}", {".txt": "text", ".json": "json", ".html": "html"}, "--format")


@says("`lint` | `.sarif`, `.json`, `.jsonl`")
def suffixes_of_lint():
    check_suffixes("lint", "--fail-level error repeated.map", {".sarif": "sarif", ".json": "json", ".jsonl": "jsonl"}, "--format")


@says("`pypylog` | `.flame.html` (flame-graph), `.html`, `.folded`, `.speedscope.json`, `.json`, `.txt` (text); "
      "`.map` and `.dump` select `--to`")
def suffixes_of_pypylog():
    write("log", "[100] {jit-backend\n[110] jit-backend}\n[200] {gc-minor\n[210] gc-minor}\n")
    check_suffixes("pypylog", "log", {
        ".flame.html": "flame-graph", ".html": "html", ".folded": "folded", ".speedscope.json": "speedscope",
        ".json": "json", ".txt": "text"}, "--format")
    check_suffixes("pypylog", ROOT / "tests/wild/pypy/profile/pypylog", {".map": "perf-map", ".dump": "jitdump"}, "--to")


TARGETS = {".map": "perf-map", ".json": "json", ".dump": "jitdump"}


@says("`merge` | `.map`, `.json`, `.dump` (jitdump)")
def suffixes_of_merge():
    check_suffixes("merge", DUMP, TARGETS, "--to")


@says("`convert`, `to-json`, `from-json` | those of `merge`, `.jsonl`, `.o` and `.elf`")
def suffixes_of_conversions():
    forms = {**TARGETS, ".jsonl": "jsonl", ".o": "elf", ".elf": "elf"}
    run(f"to-json {DUMP} --code -o of.json")
    for command, source in (("convert", DUMP), ("to-json", DUMP), ("from-json", "of.json")):
        check_suffixes(command, source, forms, "--to")


@says("If a suffix is unknown, or belongs to several formats, such as `.json` of `stacks`, the command uses the"
      " default and prints a note.")
def unknown_suffix():
    for name in ("unknown.what", "several.json"):
        _, err = run(f"stacks {RECORDING} -o {name}")
        assert "folded" in err, err
        assert pathlib.Path(name).read_text() == run(f"stacks {RECORDING}")[0]


@says("A suffix that contradicts `--format` or `--to` is an error.")
def contradiction():
    run(f"stacks {RECORDING} -o wrong.html --format pprof", status=2)
    run("convert a.map -o wrong.json --to jitdump", status=2)
    run("pypylog log -o wrong.json --to perf-map", status=2)
    assert not os.path.exists("wrong.html") and not os.path.exists("wrong.json")


@says("`tidy` and `merge --keep` always write a perf map, so the suffix of another format is an error.")
def only_maps():
    for words in ("tidy a.map", "merge --keep a.map b.map"):
        run(f"{words} -o wrong.json", status=2)
        assert not os.path.exists("wrong.json")
        assert run(f"{words} -o right.map") == run(f"{words} -o right.txt") == ("", "")


@says("Every JSON output has a schema in [schema/](schema), which is installed in `share/perfmap/schema`.",
      "JSON lines have a schema for a line, such as `perfmap.lint-line-1.json`.",
      "The schemas refuse unknown members, which a later release may add ([stability.md](stability.md#json-and-its-schemas)).")
def schemas():
    names = [path.name for path in (ROOT / "docs/schema").glob("*.json")]
    assert "perfmap.lint-line-1.json" in names
    for words in ("lint --fail-level error repeated.map --format json", "info a.map --format json", "to-json a.map"):
        schema = json.loads(run(words)[0])["schema"].replace("/", "-")
        assert schema + ".json" in names, schema
    # meta.schema validates each JSON output of the golden cases, and each with a member more.


@says("Addresses are strings, because a double cannot represent every 64-bit number; a name that is not UTF-8 "
      "has its exact bytes in base64 beside it.")
def strings():
    write("odd.map", b"ffffffff80000001 10 odd\xff\n")
    entry = json.loads(run("to-json --to jsonl odd.map")[0])
    assert int(entry["start"], 16) == 0xffffffff80000001, entry
    assert b"odd\xff" in [base64.b64decode(value) for key, value in entry.items() if key == "name_bytes"], entry


@says("`--overlap` has one meaning in all commands:", "policy | which entry wins",
      "`last` (default) | the later line, and the later source; the rest of the older entry keeps its name",
      "`first` | the earlier line, and the earlier source",
      "`inner` | the shortest entry; among equals the later one",
      "`perf` | the entry that perf 6 finds (`resolve`)")
def overlap():
    write("over.map", "1000 100 long\n1010 10 short\n1010 10 again\n1000 80 middle\n")
    for policy, name in {"last": "middle", "first": "long", "inner": "again"}.items():
        assert name_of("1015", f"over.map --overlap {policy}") == name
        tidied = run(f"tidy over.map --overlap {policy}")[0]
        assert any(line.endswith(name) and int(line.split()[0], 16) <= 0x1015 for line in tidied.splitlines())
    assert name_of("1015", "over.map") == "middle" and name_of("1090", "over.map") == "long"
    assert name_of("1000", "a.map later.map --overlap first") == "one"
    run("resolve 1015 over.map --overlap perf")
    run("tidy over.map --overlap perf", status=2)


def main():
    global PERFMAP
    PERFMAP = os.path.realpath(sys.argv[1])
    page_sentences = sentences((ROOT / "docs/cli.md").read_text())
    unchecked = [text for text in page_sentences if text not in checks]
    unknown = [text for text in checks if text not in page_sentences]
    failed = [f"no check for: {text}" for text in unchecked] + [f"not on the page: {text}" for text in unknown]
    for name in ("NO_COLOR", "CLICOLOR", "CLICOLOR_FORCE", "PERFMAP_TMPDIR"):
        os.environ.pop(name, None)
    for check in dict.fromkeys(checks.values()):
        with tempfile.TemporaryDirectory() as folder:
            os.chdir(folder)
            os.mkdir("tmp")
            write("a.map", "1000 10 one\n2000 10 two\n")
            write("good.map", "7f0000001000 10 one\n")
            write("b.map", "3000 10 three\n")
            write("later.map", "1000 10 later\n")
            write("bad.map", "1000 10 one\nbad\n")
            write("repeated.map", "7f0000001000 10 one\n7f0000001000 10 one\n")
            write("log", "[100] {jit-backend\n[110] jit-backend}\n")
            try:
                check()
            except Exception as error:  # reported with all others
                failed.append(f"{check.__name__}: {type(error).__name__}: {error}")
            os.chdir("/")
    assert not failed, "\n" + "\n".join(failed)


main()
