# SPDX-License-Identifier: MIT
"""The other commands, of a recording of another machine with code made at run time."""
import json
import os
import pathlib
import shutil
import struct
import subprocess

from support.elf_file import ElfFile

JIT_CODE_LOAD = 0


def run(*command, good=(0,), **more):
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, **more)
    assert done.returncode in good, (command, done.returncode, done.stdout[-1000:], done.stderr[-2000:])
    return done.stdout


def loads_of(dump):
    """(time, address, size, name) of the code in a jitdump of this byte order."""
    data, loads = pathlib.Path(dump).read_bytes(), []
    at = struct.unpack_from("<I", data, 8)[0]
    while at + 16 <= len(data):
        kind, size, time = struct.unpack_from("<IIQ", data, at)
        if kind == JIT_CODE_LOAD:
            address, length = struct.unpack_from("<16xQQ", data, at + 16)
            loads.append((time, address, length, data[at + 56:data.index(b"\0", at + 56)].decode()))
        at += size
    return loads


def name_at(loads, address, time):
    found = [name for loaded, begin, size, name in loads if loaded <= time and begin <= address < begin + size]
    return found[-1] if found else None


def jit_frames(recording, stacks):
    """(sample, frame) of the frames in code made at run time."""
    for sample, stack in zip(recording.dump.samples, stacks):
        for number, frame in enumerate(stack["frames"]):
            if recording.truth.is_jit(int(frame["ip"], 16) - (number > 0)):
                yield sample, number, frame


def check_names(recording, loads, stacks):
    """JIT code has the name of what was there at the time of the sample."""
    seen = set()
    for sample, number, frame in jit_frames(recording, stacks):
        address = int(frame["ip"], 16) - (number > 0)
        assert frame["name"] == name_at(loads, address, sample.time), (frame, sample.time)
        seen.add(frame["name"])
    assert seen == {name for *_, name in loads}, seen


def check_doctor(perfmap, recording, loads):
    found = json.loads(run(perfmap, "doctor", recording.data, "--symfs", recording.sysroot, "--format", "json", good=(0, 1)))
    assert found["samples"] == len(recording.dump.samples)
    reported = {finding["id"] for finding in found["findings"]}
    known = recording.machine.findings | ({"no-build-ids"} if recording.variant.files_by == "inode" else set())
    assert reported <= known, (reported, found["findings"])
    if loads:
        dump = [one for one in found["processes"][0]["looked_for"] if one["kind"] == "jitdump"][0]
        assert (dump["fate"], dump["entries"], dump["damage"]) == ("used", len(loads), None), dump


def check_inject(perfmap, recording, stacks, dump, loads):
    """Once injected, the recording has the same names without the dump."""
    output = recording.place / "injected.data"
    run(perfmap, "inject", recording.data, "--symfs", recording.sysroot, "-o", output)
    images = list(recording.place.glob("injected.data.jitted-*.so"))
    assert len(images) == 1, images
    image = ElfFile(images[0])
    assert image.machine == recording.dump.machine, image.machine
    assert sorted(name for *_, name in image.functions) == sorted(name for *_, name in loads), image.functions
    assert all(image.has_rules(address) for address, _, _ in image.functions)
    copy = pathlib.Path(f"{recording.sysroot}{images[0]}")
    copy.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(images[0], copy)
    away = recording.place / "dump"
    os.rename(dump, away)
    again = stacks(output)
    os.rename(away, dump)
    names = [(stack["time"], [frame["name"] for frame in stack["frames"]]) for stack in again]
    before = [(stack["time"], [frame["name"] for frame in stack["frames"]]) for stack in stacks()]
    # Callers that were guessed wrongly may be guessed otherwise with the rules of the image.
    different = [(a, b) for a, b in zip(names, before) if a != b and b[1][-1] == "_start"]
    assert len(names) == len(before) and not different, (len(names), len(different), different[:2])
    assert any(recording.truth.is_jit(int(frame["ip"], 16)) and frame["module"].endswith(".so")
               for stack in again for frame in stack["frames"])


def check_resolve(perfmap, dump, loads):
    """The names of all code, each at its time; and of addresses in the text of perf script."""
    questions = "".join(f"{address + 4:x} {time // 10**9}.{time % 10**9:09}\n" for time, address, *_ in loads)
    answers = run(perfmap, "resolve", "-", "--jitdump", dump, "--format", "jsonl", input=questions).splitlines()
    names = [json.loads(line) for line in answers]
    assert [answer["name"] for answer in names] == [name for *_, name in loads], names[:3]
    text = "".join(f"probe 1/1 {time // 10**9}.{time % 10**9:09}: 1 cycles: \n\t{address + 4:x} [unknown] (//anon)\n\n"
                   for time, address, *_ in loads)
    lines = run(perfmap, "resolve", "--perf-script", "--jitdump", dump, input=text).splitlines()
    frames = [line.split() for line in lines if line.startswith("\t")]
    assert [frame[1].split("+")[0] for frame in frames] == [name for *_, name in loads], frames[:3]


def check_commands(perfmap, recording, stacks):
    """`stacks(data)` are those of the recording, or of another file."""
    dumps = list(pathlib.Path(recording.sysroot).rglob("jit-*.dump"))
    loads = loads_of(dumps[0]) if dumps else []
    check_doctor(perfmap, recording, loads)
    if loads:
        check_names(recording, loads, stacks())
        check_resolve(perfmap, dumps[0], loads)
        check_inject(perfmap, recording, stacks, dumps[0], loads)
    print(f"{recording.variant.name}: doctor{', inject, resolve, names at their times' if loads else ''}")
