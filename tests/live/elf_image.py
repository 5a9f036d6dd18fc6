# SPDX-License-Identifier: MIT
"""Reads the ELF file of a real dump with common tools: elf_image.py PERFMAP DUMP

Tools that are not installed are skipped; exit status 77 if none is installed.
"""
import re
import shutil
import subprocess
import sys
import tempfile

perfmap, dump = sys.argv[1:3]
# From the dump: name and address of a LOAD, and its second line; AT is without the 0x40 that V8
# adds to addresses of lines.
FUNCTION, ADDRESS = "JS:*arrow /tmp/corpus-work/src/node/workload.js:32:15", "0x7f5bf9fd1600"
FILE, LINE, AT = "/tmp/corpus-work/src/node/workload.js", 30, "0x7f5bf9fd1648"
ran = []


def run(*command):
    result = subprocess.run(command, capture_output=True, text=True, errors="replace", timeout=120)
    assert result.returncode == 0, (command, result.returncode, result.stdout, result.stderr)
    return result.stdout + result.stderr


def have(tool):
    if shutil.which(tool):
        ran.append(tool)
        return True
    print(f"skipped in part: no {tool} here")
    return False


def expect(what, text):
    assert what in text, f"no {what!r} in:\n{text[:3000]}"


def check(elf):
    if have("eu-elflint"):
        expect("No errors", run("eu-elflint", elf))
        expect("No errors", run("eu-elflint", "--gnu-ld", elf))
    if have("readelf"):
        text = run("readelf", "-aW", "-wlLifra", elf)
        assert not re.search(r"(?im)^readelf: (warning|error)", text), text[-3000:]
        expect(FUNCTION, text)
    if have("objdump"):
        text = run("objdump", "-d", f"--start-address={ADDRESS}", elf)
        expect(f"{int(ADDRESS, 16):016x} <{FUNCTION}>:", text)
    if have("addr2line"):
        assert run("addr2line", "-fie", elf, AT) == f"{FUNCTION}\n{FILE}:{LINE}\n"
    if have("llvm-symbolizer"):
        expect(f"{FUNCTION}\n{FILE}:{LINE}:", run("llvm-symbolizer", "-e", elf, AT))
    if have("llvm-dwarfdump"):
        expect("No errors", run("llvm-dwarfdump", "--verify", elf))
    if have("gdb"):
        text = run("gdb", "-nx", "-batch", "-ex", f"add-symbol-file {elf}",
                   "-ex", f"info symbol {ADDRESS}", "-ex", f"info line *{AT}",
                   "-ex", f"x/i {ADDRESS}", elf)
        expect(f"{FUNCTION} in section .text", text)
        expect(f'Line {LINE} of "{FILE}" starts at address {AT}', text)
        expect(f"{ADDRESS} <{FUNCTION}>:", text)


with tempfile.TemporaryDirectory() as work:
    run(perfmap, "convert", dump, "--to", "elf", "-o", work + "/jit.elf")
    check(work + "/jit.elf")
print("read by", ", ".join(ran))
sys.exit(0 if ran else 77)
