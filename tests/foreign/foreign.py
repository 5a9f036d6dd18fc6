# SPDX-License-Identifier: MIT
"""Unwinds samples of programs of other machines: foreign.py PERFMAP MACHINE [--examples FILE]

Programs of each variant sample themselves with qemu-user; their samples become recordings of perf,
and the stacks that perfmap finds are compared with what the programs know of them. Exit status 77: a
compiler or qemu is missing. With --examples, stacks that are not equal are described there.
"""
import argparse
import collections
import concurrent.futures
import dataclasses
import json
import pathlib
import shutil
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
from commands import check_commands
from dumps import Memory, read_dump, sign_with_16_bits, write_recording
from machines import MACHINES
from support.chance import is_at_least, is_at_most
from support.trying import require, require_samples
from truth import IMPOSSIBLE, Truth, plain_name

RESULTS = ("equal", "longer", "shorter", "wrong")
SAMPLES, SECONDS = 1000, 20
RECORDED = "/opt/probe"


class Missing(Exception):
    """Has the reason as its message."""


def run(*command, **more):
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, **more)
    assert done.returncode == 0, (command, done.returncode, done.stdout[-1000:], done.stderr[-2000:])
    return done


def one_instruction_a_block(qemu):
    """Otherwise qemu delivers signals only where blocks of instructions end."""
    text = subprocess.run([qemu, "-help"], capture_output=True, text=True).stdout
    return "-one-insn-per-tb" if "-one-insn-per-tb" in text else "-singlestep"


def missing(machine):
    """Why its programs cannot be built and run; None if they can."""
    for program in (machine.c_compiler[0], machine.cpp_compiler[0], machine.qemu):
        if not shutil.which(program):
            return f"there is no {program}"
    for language, compiler in (("c", machine.c_compiler), ("c++", machine.cpp_compiler)):
        with tempfile.TemporaryDirectory() as folder:
            done = subprocess.run([*compiler, "-x", language, "-", "-o", f"{folder}/empty"], capture_output=True, text=True,
                                  input="#include <errno.h>\nint main(void) { return 0; }\n")
        if done.returncode != 0:
            return f"{' '.join(compiler)} cannot compile and link: {done.stderr.strip().splitlines()[-1:]}"
    return None


def build(machine, variant, place):
    program = place / f"{machine.name}-{variant.name}"
    probe = place / f"{program.name}.o"
    run(*machine.c_compiler, "-O2", "-g", "-Wall", "-Wextra", "-Werror", *machine.probe_flags, "-c",
        HERE / "probe/probe.c", "-o", probe)
    sources = ["shapes_cpp.cpp"] if variant.is_cpp else ["shapes.c", *(["jit.c"] if variant.has_jit else [])]
    defines = ["-DWITH_JIT"] if variant.has_jit else []
    compiler = variant.compiler(machine)
    run(*compiler, *variant.flags, "-g", "-Wall", "-Wextra", "-Werror", "-fno-builtin", *defines,
        *(HERE / "probe" / source for source in sources), probe, "-o", program, "-lm")
    return program


def sample(machine, variant, program, place):
    output = place / f"{program.name}.samples"
    command = [machine.qemu, *machine.qemu_flags, *variant.qemu_flags, one_instruction_a_block(machine.qemu),
               "-L", machine.root, program, output, str(SAMPLES), str(SECONDS)]
    run(*command, *([place] if variant.has_jit else []))
    return read_dump(output)


def recorded_path(machine, program):
    """Where files are on the recorded machine: libraries below its root, not below qemu's."""
    def path_of(path):
        if path.startswith(f"{program.parent}/"):
            return f"{RECORDED}/{path.removeprefix(f'{program.parent}/')}"
        return path.removeprefix(machine.root) if path.startswith(machine.root + "/") else path
    return path_of


def fill_sysroot(memory, path_of, sysroot):
    for path in memory.files:
        copy = pathlib.Path(f"{sysroot}{path_of(path)}")
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, copy)


@dataclasses.dataclass
class Recording:
    machine: object
    variant: object
    dump: object
    memory: object
    truth: object
    data: pathlib.Path
    sysroot: pathlib.Path
    place: pathlib.Path


def record(machine, variant, place):
    place = place / variant.name
    place.mkdir(exist_ok=True)
    program = build(machine, variant, place)
    dump = sample(machine, variant, program, place)
    require_samples(len(dump.samples), 300, variant.name)
    memory = Memory(dump)
    path_of = recorded_path(machine, program)
    sysroot, data = place / f"{program.name}.root", place / f"{program.name}.data"
    fill_sysroot(memory, path_of, sysroot)
    change = sign_with_16_bits(memory) if variant.has_39_bits else None
    write_recording(dump, memory, machine, path_of, variant.files_by, change, data)
    return Recording(machine, variant, dump, memory, Truth(dump, memory, machine, str(program)), data, sysroot, place)


def stacks(perfmap, recording, data=None):
    done = run(perfmap, "stacks", data or recording.data, "--symfs", recording.sysroot, "--format", "jsonl",
               "--no-demangle", "--threads", "1")
    return [json.loads(line) for line in done.stdout.splitlines()]


def describe(truth, sample, pc, found, kind, where):
    mapping, file, place = truth.memory.find(pc)
    code = ""
    if file and place is not None:
        offset = pc - mapping.begin + mapping.offset
        code = f"{file.bytes[max(0, offset - 16):offset].hex(' ', 4)} | {file.bytes[offset:offset + 16].hex(' ', 4)}"
    symbol = file.function_at(place) if file and place is not None else None
    at = f"{symbol[2]}+{place - symbol[0]:#x}" if symbol else "?"
    best = truth.backtrace(sample) or []
    lines = [f"{kind}: {where}: pc {pc:#x} {at} in {mapping.path if mapping else None}, section "
             f"{file.section_at(place) if file and place is not None else None}",
             f"  code before | at pc: {code}",
             "  perfmap: " + " ".join(f"{frame['ip'][2:]}:{frame['name'] or '?'}[{frame['source']}]"
                                      for frame in found["frames"][:12]) + f" end {found['end']}",
             "  libgcc:  " + (" ".join(f"{ip:x}:{name}" for ip, name in zip(best, truth.names(best)))[:1500] or "-"),
             "  entered: " + " ".join(f"{name}<-{caller:x}" for name, caller in reversed(sample.entered))[:1000]]
    return "\n".join(lines)


def percent(number, of):
    return 100 * number / max(1, of)


def is_below(number, of, share):
    """Whether chance does not explain that a number of samples is below the share in percent."""
    return not is_at_least(number, of, share / 100)


def is_above(number, of, share):
    return not is_at_most(number, of, share / 100)


class Counts:
    """{class of samples: {result: how many}}"""

    def __init__(self):
        self.of = collections.defaultdict(collections.Counter)
        self.examples = []

    def add(self, one, result):
        self.of[one][result] += 1

    def number(self, result, classes):
        """Of the samples in the classes: how many have the result, and how many there are."""
        counts = sum((self.of[one] for one in classes), collections.Counter())
        return counts[result], sum(counts.values())

    def possible(self):
        return [one for one in self.of if one not in IMPOSSIBLE]

    def lines(self):
        yield f"  {'':24}{'samples':>8}" + "".join(f"{word:>8}" for word in RESULTS)
        for one in sorted(self.of):
            counts = self.of[one]
            yield f"  {one:24}{sum(counts.values()):8}" + "".join(f"{counts[word]:8}" for word in RESULTS)


def compare(perfmap, recording):
    """Counts of results by class."""
    counts, truth = Counts(), recording.truth
    found = stacks(perfmap, recording)
    assert len(found) == len(recording.dump.samples), (len(found), len(recording.dump.samples))
    for sample, stack in zip(recording.dump.samples, found):
        assert stack["time"] == f"{sample.time // 10**9}.{sample.time % 10**9:09}", (stack["time"], sample.time)
        frames = [int(frame["ip"], 16) for frame in stack["frames"]]
        names = [plain_name(frame["name"] or "") for frame in stack["frames"]]
        result = truth.judge(sample, frames, names, stack["end"])
        pc = sample.registers[recording.machine.pc]
        one = truth.class_of(sample)
        counts.add(one, result)
        if result != "equal":
            counts.examples.append((one, describe(truth, sample, pc, stack, result, f"{recording.variant.name}, {one}")))
    return counts


def compare_variant(perfmap, machine, variant, place):
    recording = record(machine, variant, place)
    counts = compare(perfmap, recording)
    check_commands(perfmap, recording, lambda data=None: stacks(perfmap, recording, data))
    addresses = len({sample.registers[machine.pc] for sample in recording.dump.samples})
    whole = sum(recording.truth.backtrace(sample) is not None for sample in recording.dump.samples)
    return recording, counts, addresses, whole


def check(perfmap, machine, place, examples):
    problems, missed, total = [], [], Counts()
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        variants = [variant for variant in machine.variants if not variant.missing(machine)]
        for variant in machine.variants:
            if variant.missing(machine):
                print(f"skipped in part: {variant.name}: {variant.missing(machine)}")
        runs = [pool.submit(compare_variant, perfmap, machine, variant, place) for variant in variants]
        for variant, started in zip(variants, runs):
            recording, counts, addresses, whole = started.result()
            equal, wrong = (counts.number(result, counts.possible()) for result in ("equal", "wrong"))
            print(f"{machine.name} {variant.name}: {len(recording.dump.samples)} samples at {addresses} addresses, "
                  f"{whole} with a whole backtrace; equal {percent(*equal):.1f} % (at least {variant.equal}, goal {variant.goal}), "
                  f"wrong {percent(*wrong):.1f} % (at most {variant.wrong})")
            for line in counts.lines():
                print(line)
            if is_below(*equal, variant.equal) or is_above(*wrong, variant.wrong):
                problems.append(f"{variant.name}: {percent(*equal):.1f} % of stacks are equal, {percent(*wrong):.1f} % wrong")
            for one, results in counts.of.items():
                total.of[one].update(results)
            total.examples += counts.examples
    print(f"{machine.name}, all variants:")
    for line in total.lines():
        print(line)
    for one, (least, goal) in machine.classes.items():
        equal = total.number("equal", [one])
        print(f"  {one}: equal {percent(*equal):.1f} % of {equal[1]} (at least {least}, goal {goal})")
        if not total.of[one]:
            missed.append(one)
        elif is_below(*equal, least):
            problems.append(f"{one}: {percent(*equal):.1f} % of stacks are equal, not {least}")
    if examples:
        kinds = collections.Counter()
        with open(examples, "w") as out:
            for leaf, text in total.examples:
                kinds[leaf, text.split(":")[0]] += 1
                if kinds[leaf, text.split(":")[0]] <= 6:
                    print(text, file=out)
    require(problems or not missed, f"no sample is in {', '.join(missed)}")
    return problems + [f"no sample is in the class {one}" for one in missed]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("perfmap")
    parser.add_argument("machine", choices=MACHINES)
    parser.add_argument("--examples")
    arguments = parser.parse_args()
    machine = MACHINES[arguments.machine]
    if reason := missing(machine):
        print(f"skipped: {reason}")
        return 77
    with tempfile.TemporaryDirectory() as folder:
        place = pathlib.Path(folder).resolve()
        problems = check(arguments.perfmap, machine, place, arguments.examples)
    print("\n".join(problems) or "no problems")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
