# SPDX-License-Identifier: MIT
"""Independent decoders read `stacks --format otlp`, and find what jsonl has: otlp.py PERFMAP PROTOBUFJS

protoc decodes the file and encodes it again to the same bytes; protobufjs (npm; PROTOBUFJS is its directory) decodes
it to the JSON that --format otlp-json writes. Both know only tests/schema/otlp-profiles.proto. Exit status 77: neither
is installed.
"""
import collections
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "tests/support"))
from otlp import SCHEMA, Profiles, decode, from_json
from stack_checks import of_module

WILD = ROOT / "tests/wild"
PERFMAP, PROTOBUFJS = map(os.path.abspath, sys.argv[1:])
RECORDINGS = {
    "C with inlined functions": ([WILD / "tally/perf.data", "--symfs", WILD / "tally", "--inlines"], {"native"}),
    "Node.js, perf map": ([WILD / "node/perf-603.data", "--map", WILD / "node/perf-603.map", "--symfs", WILD / "node", "--lines"],
                          {"v8js"}),
    "Node.js, jitdump": ([WILD / "node/perf-683.data", "--jitdump", WILD / "node/jit-683-samples.dump", "--symfs", WILD / "node", "--lines"],
                         {"v8js"}),
}
DECODE = """
const [directory, schema, file] = process.argv.slice(1);
const protobuf = require(directory);
const type = protobuf.loadSync(schema).lookupType("otlp_test.ProfilesData");
const bytes = require("fs").readFileSync(file);
const message = type.decode(bytes);
if (Buffer.compare(Buffer.from(type.encode(message).finish()), bytes) !== 0) throw new Error("encoded to other bytes");
// OTLP's JSON has ids as hexadecimal digits.
console.log(JSON.stringify(type.toObject(message, {longs: String}), (key, value) =>
  value && value.type === "Buffer" ? Buffer.from(value.data).toString("hex") : value));
"""


def run(*words, **more):
    return subprocess.run([*map(str, words)], check=True, capture_output=True, **more).stdout


def stacks(arguments, form, output=None):
    return run(PERFMAP, "-q", "stacks", *arguments, "--format", form, *(["-o", output] if output else []))


def check_samples(what, arguments, profiles, types):
    """jsonl is the oracle: a sample has its process, thread, time, functions, lines and addresses."""
    rows = [json.loads(line) for line in stacks(arguments, "jsonl").splitlines()]
    time_of = lambda row: int(row["time"].replace(".", ""))
    # From the clock of the samples to that of the wall.
    shift = min(sample["time"] for sample in profiles.samples) - min(map(time_of, rows))
    found = collections.Counter(
        (sample["time"] - shift, sample["resource"]["process.pid"], sample["attributes"]["thread.id"], sample["attributes"]["thread.name"],
         tuple((name or of_module(module), file, line) for name, file, line, _, _, module in sample["frames"])) for sample in profiles.samples)
    expected = collections.Counter(
        (time_of(row), row["pid"], row["tid"], row["comm"],
         tuple((frame["name"] or of_module(frame["module"]), frame["file"], frame["line"]) for frame in row["frames"])) for row in rows)
    assert found == expected and len(rows) > 10, (what, [*(found - expected)][:1], [*(expected - found)][:1])
    kinds = {kind for sample in profiles.samples for *_, kind, _, _ in sample["frames"]}
    assert types <= kinds, (what, kinds)


def check_build_ids():
    """Of a recording that has them in its records."""
    path = WILD / "recordings/buildid-mmap/perf.data"
    data = from_json(json.loads(stacks([path], "otlp-json")))
    keys = {data["dictionary"]["stringTable"][one["keyStrindex"]] for one in data["dictionary"]["attributeTable"] if one}
    assert "process.executable.build_id.gnu" in keys, keys


def check_collector():
    """The configuration is YAML, and its pipelines have components that it declares."""
    if not shutil.which("ruby"):
        return print("skipped in part: there is no ruby to read YAML")
    to_json = "require 'yaml'; require 'json'; puts JSON.generate(YAML.safe_load(File.read(ARGV[0])))"
    config = json.loads(run("ruby", "-e", to_json, ROOT / "examples/otlp/collector.yaml"))
    for pipeline in config["service"]["pipelines"].values():
        for kind in ("receivers", "exporters"):
            assert pipeline[kind] and {*pipeline[kind]} <= {*config[kind]}, (pipeline, config[kind].keys())


def main():
    decoders = collections.Counter()
    check_build_ids()
    check_collector()
    with tempfile.TemporaryDirectory() as place:
        for what, (arguments, types) in RECORDINGS.items():
            path = pathlib.Path(place, "profile.otlp")
            stacks(arguments, "otlp", path)
            text, = stacks(arguments, "otlp-json").decode().splitlines()
            data = decode(path.read_bytes())
            assert from_json(json.loads(text)) == data, what
            profiles = Profiles(data)
            profiles.check_tables()
            check_samples(what, arguments, profiles, types)
            if shutil.which("protoc"):
                protoc = ["protoc", f"--proto_path={SCHEMA.parent}", SCHEMA.name]
                shown = run(*protoc, "--decode=otlp_test.ProfilesData", input=path.read_bytes())
                assert b"resource_profiles {" in shown and b"\n1: " not in shown, shown[:300]  # no unknown field
                assert run(*protoc, "--encode=otlp_test.ProfilesData", input=shown) == path.read_bytes(), what
                decoders["protoc"] += 1
            if shutil.which("node") and os.path.isdir(PROTOBUFJS):
                decoded = run("node", "-e", DECODE, PROTOBUFJS, SCHEMA, path)
                assert from_json(json.loads(decoded)) == data, what
                decoders["protobufjs"] += 1
    for decoder in ("protoc", "protobufjs"):
        if decoder not in decoders:
            print(f"skipped in part: there is no {decoder}")
    print(f"{len(RECORDINGS)} recordings, decoded by {', '.join(decoders) or 'the tests alone'}")
    if not decoders:
        sys.exit(77)


main()
