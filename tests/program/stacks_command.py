# SPDX-License-Identifier: MIT
"""Tests the command `stacks`: stacks_command.py PERFMAP FUZZ_CORPUS

All formats contain the same samples as the perf-script text; the number of threads does not change
the output; hostile recordings, invalid options, full disks, closed pipes and interrupts.
"""
import gzip
import os
import pathlib
import re
import signal
import struct
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "tests/support"))
import stack_checks
from pprof import Profile

WILD = ROOT / "tests/wild"
FORMATS = ("folded", "perf-script", "speedscope", "firefox", "pprof", "html", "jsonl", "chrome", "otlp", "otlp-json")
WRITERS_OPTIONS = {"pid": ["--with-pid"], "no-marks": [], "merge-tiers": ["--merge-tiers"], "lines": ["--lines"]}
tally = [WILD / "tally/perf.data", "--symfs", WILD / "tally"]


def run(*arguments, **more):
    return subprocess.run([sys.argv[1], "-q", "stacks", *map(str, arguments)], capture_output=True, timeout=120, **more)


def output(*arguments):
    done = run(*arguments)
    assert done.returncode == 0, (arguments, done)
    return done.stdout


def written(recording, form, *options):
    as_others = ["--no-inlines"] if form == "html" else []
    return output(*recording, "--format", form, *as_others, *(word for one in options for word in WRITERS_OPTIONS[one]))


def check_formats():
    stack_checks.written = written
    node = WILD / "node"
    count = 0
    for recording in (
            tally, [WILD / "tally/cut.data", "--symfs", WILD / "tally", "--stitch"],
            [node / "perf-603.data", "--map", node / "perf-603.map", "--symfs", node],
            [node / "perf-683.data", "--jitdump", node / "jit-683-samples.dump", "--symfs", node],
            *([path, "--symfs", node] for path in sorted((WILD / "recordings").glob("*/perf.data")))):
        samples = stack_checks.read_script(output(*recording, "--format", "perf-script").decode())
        # A comm or file with blanks would be fine, but speedscope's check needs periods as times.
        stack_checks.check_all(recording, samples)
        count += len(samples)
    print(f"{count} samples are in every format")


def check_pprof_names(directory):
    node, profile, named = WILD / "node", pathlib.Path(directory) / "a.pb.gz", pathlib.Path(directory) / "b.pb.gz"
    recording = [node / "perf-603.data", "--symfs", node, "--format", "pprof"]
    output(*recording, "--map-dir", directory, "-o", profile)
    output(profile, "--map-dir", node, "-o", named)
    without, later, at_once = (Profile(data) for data in (
        profile.read_bytes(), named.read_bytes(), output(*recording, "--map", node / "perf-603.map")))
    count = 0
    for first, second, third in zip(without.samples, later.samples, at_once.samples, strict=True):
        assert (first["values"], first["labels"]) == (second["values"], second["labels"])
        for unnamed, name, expected in zip(first["names"], second["names"], third["names"], strict=True):
            assert name == (expected if unnamed == "[anon]" else unnamed)
            count += name != unnamed
    assert count > 100 and gzip.decompress(output(named, "--map-dir", node)) == gzip.decompress(named.read_bytes())
    profile.unlink(), named.unlink()
    print(f"{count} frames of a profile have the names that the recording gives them")


def many_samples(directory, times):
    """Writes the recording of tally with each sample `times` times, and without features, which
    were at its end."""
    whole = tally[0].read_bytes()
    begin, size = struct.unpack_from("<QQ", whole, 40)
    records, at = [], begin
    while at < begin + size:
        length = struct.unpack_from("<H", whole, at + 6)[0]
        records.append(whole[at:at + length])
        at += length
    others = [record for record in records if record[0] != 9]
    samples = [record for record in records if record[0] == 9]
    data = b"".join([*others[:-1], *samples * times, others[-1]])
    head = bytearray(whole)
    struct.pack_into("<QQ", head, 40, len(whole), len(data))
    head[72:104] = bytes(32)
    path = pathlib.Path(directory) / "many.data"
    path.write_bytes(head + data)
    return [path, "--symfs", WILD / "tally"], len(samples) * times


def check_threads(many, samples):
    for more in ([], ["--stitch", "--inlines"], ["--addresses"]):
        for form in FORMATS:
            first = output(*many, "--format", form, "--threads", 1, *more)
            for threads in (2, 8, 64) if form == FORMATS[0] else (8,):
                assert output(*many, "--format", form, "--threads", threads, *more) == first, (form, threads)
    folded = output(*many).decode().splitlines()
    assert sum(int(line.rsplit(" ", 1)[1]) for line in folded) == samples >= 1000
    assert len(folded) == len(output(*tally).splitlines())
    print(f"{samples} samples are the same for any number of threads")


def check_ends(many, directory):
    for form in FORMATS:
        with open("/dev/full", "wb") as full:
            done = subprocess.run([sys.argv[1], "stacks", *map(str, many), "--format", form], stdout=full,
                                  stderr=subprocess.PIPE)
        assert done.returncode == 2 and b"No space left on device" in done.stderr, (form, done)
        left = pathlib.Path(directory) / "left"
        done = subprocess.run([sys.argv[1], "stacks", *map(str, many), "--format", form, "-o", "/dev/full"],
                              stderr=subprocess.PIPE)
        assert done.returncode == 2 and b"/dev/full" in done.stderr, (form, done)
        reader = subprocess.Popen([sys.argv[1], "stacks", *map(str, many), "--format", form], stdout=subprocess.PIPE,
                                  stderr=subprocess.PIPE)
        reader.stdout.close()
        assert reader.wait(60) == -signal.SIGPIPE and reader.stderr.read() == b"", form
    before = sorted(os.listdir(directory))
    whole = output(*many, "--format", "jsonl")
    for delay in (0.005, 0.02, 0.05):
        going = subprocess.Popen([sys.argv[1], "stacks", *map(str, many), "--format", "jsonl", "-o", left])
        time.sleep(delay)
        going.send_signal(signal.SIGINT)
        going.wait(60)
        if left.exists():  # it was complete before the signal came
            assert left.read_bytes() == whole
            left.unlink()
        assert sorted(os.listdir(directory)) == before
    print("a full disk, a closed pipe and an interrupt leave nothing behind")


def check_hostile(directory):
    inputs = sorted(pathlib.Path(sys.argv[2]).iterdir())
    whole = tally[0].read_bytes()
    for i in range(0, len(whole), 331):
        path = pathlib.Path(directory) / f"cut-{i}"
        path.write_bytes(whole[:i] if i % 2 else whole[:i] + bytes(b ^ 0xff for b in whole[i:i + 8]) + whole[i + 8:])
        inputs.append(path)
    for n, path in enumerate(inputs):
        is_cut = path.parent == pathlib.Path(directory)
        for form in FORMATS[n % len(FORMATS):][:1] if is_cut else FORMATS:
            done = run(path, "--format", form, "--symfs", WILD / "tally", "--inlines", "--stitch", "--scan")
            assert done.returncode in (0, 2), (path, form, done)
            assert done.returncode == 0 or (done.stdout, done.stderr.count(b"\n")) == (b"", 1), (path, form, done)
        assert run(path, "--stats", "--symfs", WILD / "tally").returncode == done.returncode
        if is_cut:
            path.unlink()
    print(f"{len(inputs)} hostile recordings")


def check_options():
    def refused(*options):
        done = run(*tally, *options)
        assert done.returncode == 2 and done.stdout == b"" and done.stderr.count(b"\n") == 1, (options, done)

    for option, *values in (
            ("--from", "", "a", "1,2", "-1", "99999999999999999999"), ("--to-time", "", "1.5x"), ("--pid", "", "-1", "x", "1,x"),
            ("--tid", "4294967296", "0x10"), ("--threads", "0", "65", "-1", "x"), ("--max-stack", "0", "-1", "1000001"),
            ("--format", "", "FOLDED", "svg"), ("--map", "/", "missing"), ("--jitdump", "/", tally[0]),
            ("--kallsyms", "missing", "/")):
        for value in values:
            refused(option, value)
    full = output(*tally)
    for fine in (["--from", "0"], ["--to-time", "99999999"], ["--max-stack", 1000000], ["--scan"],
                 ["--jit-cfi"], ["--kallsyms", "/dev/null"], ["--map", "/dev/null"], ["--no-demangle"], ["--stitch"],
                 ["--event", "cpu-clock"], ["--event", "x,cpu-clock:u"], ["--comm", "tally"], ["--any-owner"]):
        assert output(*tally, *fine) == full, fine
    for nothing in (["--to-time", "0"], ["--pid", 1], ["--tid", 1], ["--comm", ""], ["--comm", "tall"], ["--event", "cpu"]):
        assert output(*tally, *nothing) == b"", nothing
        for form in FORMATS:
            output(*tally, *nothing, "--format", form)
    assert b"cannot write format pprof to a terminal" in on_terminal("--format", "pprof")
    assert b"cannot write format otlp to a terminal" in on_terminal("--format", "otlp")
    assert b"halves" in on_terminal()
    print("options mean what they say")


def check_doubts():
    """The summary of doubtful frames, what --verbose adds to it, and reading marked text."""
    stitched = [WILD / "tally/cut.data", "--symfs", WILD / "tally", "--stitch"]

    def said(*options):
        done = subprocess.run([sys.argv[1], *options, "stacks", *map(str, stitched), "--format", "perf-script"],
                              capture_output=True, text=True, timeout=60, check=True)
        return done.stdout, done.stderr

    text, summary = said()
    marked = text.count("\t(?)\n")
    frames = len(re.findall(r"^\t", text, re.M))
    assert 0 < marked < frames
    doubtful = f"perfmap: {marked} of {frames} frames are doubtful: {marked} stitched-frame"
    assert summary == f"{doubtful} (--verbose explains)\n", summary
    verbose_text, explained = said("--verbose")
    assert f"{doubtful}\nperfmap: stitched-frame: this frame comes from another sample" in explained, explained
    assert verbose_text == text.replace("\t(?)", "\t(?stitched-frame)")
    assert said("--quiet") == (text, "")
    # The regular expression of stackcollapse-perf.pl, speedscope and the Firefox Profiler.
    for line, plain in zip(verbose_text.split("\n"), text.replace("\t(?)", "").split("\n"), strict=True):
        expression = re.compile(r"^\s*(\w+)\s*(.+) \((\S*)\)")
        found, expected = expression.match(line), expression.match(plain)
        assert (found and found.groups()) == (expected and expected.groups()), line
    again = subprocess.run([sys.argv[1], "-q", "resolve", "--perf-script", "--map", "/dev/null"], input=verbose_text,
                           capture_output=True, text=True, check=True).stdout
    assert again == verbose_text
    print(f"{marked} doubtful frames are counted, marked and read")


def on_terminal(*options):
    master, slave = os.openpty()
    done = subprocess.run([sys.argv[1], "stacks", *map(str, tally), *options], stdout=slave, stderr=slave, timeout=60)
    os.close(slave)
    text = os.read(master, 1 << 16)
    os.close(master)
    assert done.returncode == (2 if options else 0)
    return text


with tempfile.TemporaryDirectory() as directory:
    check_formats()
    check_options()
    check_doubts()
    check_pprof_names(directory)
    many, samples = many_samples(directory, 48)
    check_threads(many, samples)
    check_ends(many, directory)
    many[0].unlink()
    check_hostile(directory)
