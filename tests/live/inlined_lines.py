# SPDX-License-Identifier: MIT
"""Lines of a function that V8 inlined from another, longer file are marked in all outputs, and are no place of an
annotation in a pull request: inlined_lines.py PERFMAP

V8 names the file of the outer function for them. Exit status 77: perf or node is not installed, or perf may not record.
"""
import json
import os
import pathlib
import re
import shutil
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
from named_frames import run, skip
from perf_record import PERF_RECORD
from trying import require, require_samples

perfmap = os.path.abspath(sys.argv[1])
MIX = 139
LONG = "\n" * (MIX - 1) + "exports.mix = x => { x ^= x << 13; x ^= x >> 17; x ^= x << 5; return x | 0; };\n"
SHORT = """const { mix } = require('./long.js');
function outer(n) {
  let x = 1;
  for (let i = 0; i < n; ++i) x = mix(x + i);
  return x;
}
let sum = 0;
while (process.cpuUsage().user < process.argv[2] * 1e6) sum ^= outer(100000);
console.log(sum);
"""
MARK = f"[inlined from another file]:{MIX}"


def ours(*command, **more):
    return run(perfmap, "-q", *command, **more)


def record(name, seconds):
    run(*PERF_RECORD, "-e", "cpu-clock", "-F", "499", "-k", "mono", "-o", f"{name}.data", "node", "--perf-prof", "short.js", str(seconds))
    return f"{name}.data"


for tool in ("perf", "node"):
    if not shutil.which(tool):
        skip(f"no {tool} here")
with tempfile.TemporaryDirectory() as work:
    os.chdir(work)
    work = os.path.realpath(work)
    try:
        run(*PERF_RECORD, "-e", "cpu-clock", "-k", "mono", "-o", "probe.data", "true")
    except AssertionError:
        skip("perf may not record here")
    pathlib.Path("long.js").write_text(LONG)
    pathlib.Path("short.js").write_text(SHORT)
    # Frames by their addresses are of this recording alone.
    data = record("one", 0.8)
    dump, = pathlib.Path(work).glob("jit-*.dump")
    frames = [frame for line in ours("stacks", data, "--format", "jsonl").splitlines()
              for frame in json.loads(line)["frames"][:1] if re.search(r"\*outer ", frame["name"] or "")]
    require_samples(len(frames), 50, "optimised code")
    addresses = {frame["ip"] for frame in frames}
    resolved = {address: ours("resolve", "--lines", str(dump), address) for address in addresses}
    inlined = {address for address, text in resolved.items() if MARK in text}
    require(inlined, "mix() was not inlined")

    outputs = {
        "resolve": "".join(resolved.values()),
        "report": ours("report", data, "--by", "line"),
        "folded": ours("stacks", data, "--lines"),
        "perf-script": ours("stacks", data, "--lines", "--format", "perf-script"),
        "speedscope": ours("stacks", data, "--lines", "--format", "speedscope"),
        "annotate": ours("annotate", data, "outer"),
    }
    for what, text in outputs.items():
        assert f"short.js:{MIX}" not in text, (what, text[-2000:])
        assert (MARK if what != "speedscope" else "[inlined from another file]") in text, (what, text[-2000:])
    for frame in (json.loads(line)["frames"][0] for line in ours("stacks", data, "--lines", "--format", "jsonl").splitlines()):
        assert frame["ip"] not in inlined or frame["line"] == 0, frame
    for form in ("pprof", "otlp", "html", "firefox"):
        ours("stacks", data, "--lines", "--format", form, "-o", f"out.{form}")

    # Other programs read the lines from the ELF file that inject writes.
    ours("inject", data, "-o", "injected.data")
    script = run("perf", "script", "-i", "injected.data", "-F", "ip,sym,srcline")
    assert MARK in script and f"short.js:{MIX}" not in script, script[-2000:]
    ours("convert", str(dump), "--to", "elf", "-o", "all.elf")
    rows = run("objdump", "--dwarf=decodedline", "all.elf")
    assert re.search(rf"another file\]?\s+{MIX}\s", rows) and not re.search(rf"short\.js\s+{MIX}\s", rows), rows[-2000:]

    # The place of the annotation is one in the function, also in a checkout that is newer than the recording.
    os.utime("short.js")
    old = record("old", 0.05)
    done = ours("report", data, "--baseline", old, "--format", "github", "--normalize", "none")
    places = re.findall(r"file=([^,]*),line=(\d+),[^\n]*outer", done)
    require(places, f"outer() did not grow: {done}")
    assert {file for file, _ in places} == {f"{work}/short.js"} and {line for _, line in places} <= {"2", "3", "4", "5"}, places
print(f"{len(inlined)} of {len(addresses)} addresses are of an inlined function")
