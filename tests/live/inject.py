# SPDX-License-Identifier: MIT
"""Reads the output of `perfmap inject` with perf, and compares it with that of `perf inject --jit`:
inject.py PERFMAP

Exit status 77: perf or node is not installed, or perf may not record.
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
from chance import is_at_least
from perf_record import PERF_RECORD
from trying import require, require_samples

perfmap = os.path.abspath(sys.argv[1])
PROGRAM = """
function fib(n) { return n < 2 ? n : fib(n - 1) + fib(n - 2); }
function sieve(n) {
  const marks = new Uint8Array(n);
  let count = 0;
  for (let i = 2; i < n; ++i) {
    if (marks[i]) continue;
    ++count;
    for (let k = 2 * i; k < n; k += i) marks[k] = 1;
  }
  return count;
}
const words = [];
for (let i = 0; i < 3000; ++i) words.push('word' + (i * 7919 % 3001));
let sum = 0;
while (process.cpuUsage().user < 1.5e6) {
  sum += fib(18) + sieve(20000);
  sum += words.slice().sort((a, b) => a < b ? -1 : 1).join('').replace(/d1+/g, '').length;
}
console.log(sum > 0);
"""


def skip(why):
    print(f"skipped: {why}")
    sys.exit(77)


def run(*command, **more):
    result = subprocess.run(command, capture_output=True, text=True, errors="replace", timeout=300,
                            **more)
    assert result.returncode == 0, (command, result.returncode, result.stdout[-2000:],
                                    result.stderr[-2000:])
    return result.stdout


def leaves(recording):
    """{(tid, time, address): (name, file)} of the leaves of all samples, by perf script."""
    text = run("perf", "script", "-i", recording, "-G", "--ns", "-F", "tid,time,ip,sym,dso")
    found = {}
    for line in text.splitlines():
        match = re.match(r"\s*(\d+)\s+([\d.]+):\s+([0-9a-f]+) (.*) \(([^()]*)\)$", line)
        if match:
            found[match[1], match[2], match[3]] = (match[4], match[5])
    return found


def is_left(theirs, ours):
    """Whether the code is a builtin of V8 that we name by node's ELF file and not by the dump."""
    kind, _, name = theirs.replace(".", "").partition(":")
    names = {"Builtin": f"Builtins_{name}", "BytecodeHandler": f"Builtins_{name}Handler"}
    return ours == (names.get(kind), os.path.realpath(shutil.which("node")))


def overlaps(recording):
    """Mappings of the dump's code that overlap mappings of ELF files, and paths of node's files."""
    text = run("perf", "script", "-i", recording, "--show-mmap-events", "-F", "comm,pid,ip")
    found, files = [], []
    for begin, size, name in re.findall(r"PERF_RECORD_MMAP2? -?\d+/-?\d+: \[0x([0-9a-f]+)\(0x([0-9a-f]+)\).*?: [r-][w-]x[ps] (/\S+)", text):
        begin, size = int(begin, 16), int(size, 16)
        if ".jitted-" in name:
            found += [(hex(begin), name, file) for at, end, file in files if at < begin + size and begin < end]
        elif not name.endswith(".dump") and not name.startswith("//"):
            files.append((begin, begin + size, name))
    assert files and ".jitted-" in text, text[:3000]
    return found, {name for _, _, name in files if os.path.basename(name).startswith(("node", "libnode"))}


for tool in ("perf", "node"):
    if not shutil.which(tool):
        skip(f"no {tool} here")
with tempfile.TemporaryDirectory() as work:
    os.chdir(work)
    probe = subprocess.run([*PERF_RECORD, "-e", "cpu-clock", "-k", "mono", "-o", "probe.data",
                            "true"], capture_output=True, text=True)
    if probe.returncode != 0:
        skip(f"perf may not record here: {probe.stderr.splitlines()[:1]}")
    open("app.js", "w").write(PROGRAM)
    run(*PERF_RECORD, "-e", "cpu-clock", "-F", "499", "-k", "mono", "-g", "-o", "perf.data",
        "node", "--perf-prof", "--interpreted-frames-native-stack", "app.js")
    run("perf", "inject", "--jit", "-i", "perf.data", "-o", "theirs.data")
    run(perfmap, "inject", "perf.data", "-o", "ours.data", "--any-owner")
    theirs, ours = leaves("theirs.data"), leaves("ours.data")
    assert theirs.keys() == ours.keys(), len(theirs.keys() ^ ours.keys())
    jit = {at: name for at, (name, dso) in theirs.items() if "/jitted-" in dso}
    require_samples(len(jit), 30, "JIT code")
    left = {at for at, name in jit.items() if is_left(name, ours[at])}
    same = {at for at, name in jit.items() if ours[at][0] == name} | left
    different = collections.Counter((jit[at], ours[at]) for at in jit.keys() - same)
    for (their, our), count in different.most_common(10):
        print(f"{count} x {their}: {our}")
    print(f"{len(same)} of {len(jit)} samples of JIT code have the name that perf inject gives")
    assert is_at_least(len(same), len(jit), 0.99), (len(same), len(jit))
    elsewhere = [(jit[at], ours[at]) for at in same - left if ".jitted-" not in ours[at][1]]
    assert not elsewhere, elsewhere[:10]
    covered, files = overlaps("ours.data")
    if any(b"Builtins_" in open(file, "rb").read() for file in files):
        assert not covered, covered[:3]
        require(left, "no sample in a builtin")
        print(f"{len(left)} of them are builtins, named by {os.path.realpath(shutil.which('node'))}")
    else:  # Debian's libnode has no symbols for them
        assert covered and not left, len(left)
    assert os.stat("ours.data").st_mode & 0o077 == 0, "others may read what was in memory"
    first_dump = next(name for name in os.listdir(".") if re.fullmatch(r"jit-\d+\.dump", name))
    elves = [name for name in os.listdir(".") if name.startswith("ours.data.jitted-")]
    assert len(elves) == 1, elves

    top = collections.Counter(name for name in jit.values() if "sieve" in name).most_common(1)[0][0]
    report = run("perf", "report", "--stdio", "-i", "ours.data", "--no-children", "-g", "none")
    assert top in report, report[:3000]
    text = run("perf", "annotate", "--stdio", "-i", "ours.data", "-s", top)
    lines = re.findall(r"(?m)^\s*[\d.]*\s*:\s+[0-9a-f]+:\s+\w+", text)
    assert len(lines) >= 10, text[:3000]
    # perf's unwinder gets as far through JIT code as with the files of perf inject.
    os.mkdir("dwarf")
    run(*PERF_RECORD, "-e", "cpu-clock", "-F", "99", "-k", "mono", "--call-graph",
        "dwarf,16384", "-o", "dwarf/perf.data", "node", "--perf-prof",
        "--interpreted-frames-native-stack", "app.js")
    frames = {}
    run("perf", "inject", "--jit", "-i", "dwarf/perf.data", "-o", "dwarf/theirs.data")
    run(perfmap, "inject", "dwarf/perf.data", "-o", "dwarf/ours.data", "--any-owner")
    for name in ("theirs", "ours"):
        text = run("perf", "script", "--no-inline", "-i", f"dwarf/{name}.data", "-F", "ip,sym,dso")
        frames[name] = len(re.findall(r"(?m)^\s+[0-9a-f]+ (?!\[unknown\])", text))
    print(f"named frames, unwound through JIT code: {frames}")
    assert frames["ours"] >= 0.95 * frames["theirs"] > 0, frames

    content = bytearray(open(first_dump, "rb").read())
    content[12:16] = bytes(4)  # the machine
    content[32:40] = (1 << 4).to_bytes(8, sys.byteorder)  # an unknown flag
    open(first_dump, "wb").write(content)
    refused = subprocess.run(["perf", "inject", "--jit", "-i", "perf.data", "-o", "refused.data"],
                             capture_output=True)
    assert refused.returncode != 0, "perf takes unknown flags now"
    run(perfmap, "inject", "perf.data", "-o", "repaired.data", "--any-owner")
    repaired = leaves("repaired.data")
    assert all(repaired[at][0] == name for at, (name, _) in ours.items())
    text = run("perf", "annotate", "--stdio", "-i", "repaired.data", "-s", top)
    assert len(re.findall(r"(?m)^\s*[\d.]*\s*:\s+[0-9a-f]+:\s+\w+", text)) == len(lines)
    print(f"perf annotate shows {len(lines)} instructions of {top}")
