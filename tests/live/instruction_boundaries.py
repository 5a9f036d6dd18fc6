# SPDX-License-Identifier: MIT
"""Compares where instructions begin in all functions of libc and libcrypto, by `perfmap annotate` and by objdump:
instruction_boundaries.py PERFMAP

A function is what has rules for unwinding. The program gets each as code of a jitdump with a sample in it, and objdump
the same bytes in an object file. Exit status 77: objdump, the assembler, or the disassembler's library is not installed.
"""
import os
import pathlib
import platform
import re
import shutil
import struct
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
from elf_file import ElfFile  # noqa: E402
from perf_data import PerfData  # noqa: E402

perfmap = os.path.abspath(sys.argv[1])
PID = 7
MACHINES = {"x86_64": 62, "aarch64": 183}


def functions_of(path):
    """[bytes], each once"""
    elf = ElfFile(path)
    found = {}
    for begin, end in elf.rule_ranges():
        for kind, offset, address, size, flags in elf.segments:
            if kind == 1 and flags & 1 and address <= begin and end <= address + size:
                found[begin] = elf.bytes[offset + begin - address:offset + end - address]
    return list(found.values())


def write_recording(functions, machine):
    """All functions are versions of one, so one command prints them."""
    dump = struct.pack("<IIIIIIQQ", 0x4A695444, 1, 40, machine, 0, PID, 0, 0)
    data = PerfData()
    data.comm(PID, b"app", is_exec=True)
    data.mmap(PID, 0x10000, 4096, f"{os.getcwd()}/jit-{PID}.dump".encode())
    address = 1 << 32
    addresses = []
    for number, code in enumerate(functions):
        body = struct.pack("<IIQQQQ", PID, PID, address, address, len(code), number) + b"f\0" + code
        dump += struct.pack("<IIQ", 0, 16 + len(body), number) + body
        addresses.append(address)
        address += len(code) + 64
    data.advance(len(functions))
    for address in addresses:
        data.sample(PID, address)
    pathlib.Path(f"jit-{PID}.dump").write_bytes(dump)
    pathlib.Path("perf.data").write_bytes(data.to_bytes())
    return addresses


def by_perfmap(functions, machine):
    """[{offset}] by function"""
    addresses = write_recording(functions, machine)
    result = subprocess.run([perfmap, "annotate", "perf.data", "f", "--asm", "--any-owner"], capture_output=True, text=True)
    if "is libzydis" in result.stderr or "is libcapstone" in result.stderr:
        print("skipped:", result.stderr.strip())
        sys.exit(77)
    assert result.returncode == 0, result.stderr[-2000:]
    found = {}
    for part in re.split(r"(?m)^(?=f: )", result.stdout)[1:]:
        address = int(re.search(r", 0x([0-9a-f]+), \d+ bytes?", part)[1], 16)
        found[address] = {int(offset, 16) for offset in re.findall(r"(?m)\| +([0-9a-f]+)  \S", part)}
    assert sorted(found) == addresses, (len(found), len(addresses))
    return [found[address] for address in addresses]


def by_objdump(functions):
    """[({offset}, {offset of bytes that objdump does not know})] by function"""
    pathlib.Path("all.bin").write_bytes(b"".join(functions))
    lines, at = [".text"], 0
    for number, code in enumerate(functions):
        lines += [f"f{number}:", f'.incbin "all.bin", {at}, {len(code)}']
        at += len(code)
    pathlib.Path("all.s").write_text("\n".join(lines) + "\n")
    subprocess.run(["as", "-o", "all.o", "all.s"], check=True)
    text = subprocess.run(["objdump", "-d", "-w", "-z", "--no-show-raw-insn", "all.o"], check=True, capture_output=True,
                          text=True).stdout
    found = []
    begin = 0
    for line in text.splitlines():
        if head := re.match(r"([0-9a-f]+) <f\d+>:$", line):
            begin = int(head[1], 16)
            found.append((set(), set()))
        elif row := re.match(r" *([0-9a-f]+):\t(.*)", line):
            offset = int(row[1], 16) - begin
            found[-1][0].add(offset)
            # Unknown, or a prefix that belongs to no instruction.
            if re.search(r"\(bad\)|\.byte|\.inst|^(rex\S*|data16|lock|repn?z|[c-gs]s)( \1)* *$|lock lock", row[2]):
                found[-1][1].add(offset)
    assert len(found) == len(functions), (len(found), len(functions))
    return found


def compare(path, machine):
    functions = functions_of(path)
    rows = wrong = data = 0
    for number, (ours, (theirs, unknown)) in enumerate(zip(by_perfmap(functions, machine), by_objdump(functions))):
        if unknown:
            data += 1  # it contains data, such as tables
            continue
        rows += len(ours)
        wrong += len(ours - theirs)
        if ours != theirs:
            print(f"function {number} of {path}, {len(functions[number])} bytes: only perfmap: "
                  f"{sorted(map(hex, ours - theirs))[:8]}, only objdump: {sorted(map(hex, theirs - ours))[:8]}")
    print(f"{path}: {len(functions)} functions, {data} of them with data, {rows} rows, {wrong} that objdump does not have")
    assert wrong == 0 and rows > 10000 and data < len(functions) / 100


machine = MACHINES.get(platform.machine())
missing = [tool for tool in ("objdump", "as") if not shutil.which(tool)]
if machine is None or missing:
    print(f"skipped: {missing[0] + ' is not installed' if missing else 'an unknown machine'}")
    sys.exit(77)
libraries = subprocess.run(["ldconfig", "-p"], capture_output=True, text=True,
                           env=os.environ | {"PATH": os.environ["PATH"] + ":/usr/sbin:/sbin"}).stdout
for name in ("libc.so.6", "libcrypto.so.3"):
    path = re.search(rf"\t{re.escape(name)} \(libc6,(?:x86-64|AArch64).* => (\S+)", libraries)
    if path is None:
        print(f"skipped in part: {name} is not installed")
        continue
    with tempfile.TemporaryDirectory(prefix="b", dir="/tmp") as work:
        os.chdir(work)
        compare(path[1], machine)
        os.chdir("/")
