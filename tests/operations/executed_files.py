# SPDX-License-Identifier: MIT
"""Prints which source files a program executes: executed_files.py PROGRAM [ARGUMENT...]

Every address in the DWARF line tables becomes a breakpoint when main() starts. At the first stop in
a file all breakpoints of that file are removed, so there is one stop per file, and no instrumented
build is needed. Other tests call the function below. For Linux on x86-64 and programs built with
-g1 or more.
"""
import collections
import ctypes
import functools
import os
import pathlib
import re
import signal
import subprocess
import sys

TRACEME, CONT, GETREGS, SETREGS, SETOPTIONS = 0, 7, 12, 13, 0x4200
TRACE_CLONE, TRACE_EXIT_KILL = 0x8, 0x100000
RIP, RSP, REGISTERS = 16, 19, 27  # 64-bit words of struct user_regs_struct
libc = ctypes.CDLL(None, use_errno=True)
libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
libc.ptrace.restype = ctypes.c_long


def ptrace(request, pid, address=0, data=0):
    if libc.ptrace(request, pid, address, data) < 0:
        raise OSError(ctypes.get_errno(), f"ptrace {request}")


DIRECTORY = re.compile(r'include_directories\[ *(\d+)\] = "(.*)"')
NAME = re.compile(r'^ +name: "(.*)"$')


@functools.cache
def line_addresses(binary, root):
    """The addresses of all lines of code, before relocation: {address: file below the root}"""
    printed = subprocess.run(["llvm-dwarfdump-16", "--debug-line", binary], capture_output=True, text=True, check=True)
    root = os.path.realpath(root) + "/"
    begins = of_every_file(binary)
    found, directories, files, number = {}, {}, {}, None
    for line in printed.stdout.splitlines():
        if line.startswith("0x"):
            words = line.split()
            if words[-1] == "end_sequence":  # the address after the last instruction
                continue
            address = int(words[0], 16)
            if (file := files.get(words[3])) and not any(b <= address < e for b, e in begins.get(address >> 12, ())):
                found.setdefault(address, file)
        elif line.startswith("debug_line["):
            directories, files = {}, {}
        elif match := DIRECTORY.match(line):
            directories[match[1]] = os.path.join(directories.get("0", ""), match[2])
        elif line.startswith("file_names["):
            number = line[11:line.index("]")].strip()
        elif match := NAME.match(line):
            name = match[1]
        elif line.startswith("      dir_index:"):
            path = os.path.normpath(os.path.join(directories[line.split()[1]], name))
            files[number] = path.removeprefix(root) if path.startswith(root) else None
    return found


def of_every_file(binary):
    """Functions that a sanitizer adds to every file and that run at exit: {page: [(begin, end)]}"""
    listed = subprocess.run(["nm", "-S", binary], capture_output=True, text=True, check=True).stdout
    pages = {}
    for begin, size in re.findall(r"^(\w+) (\w+) t _(?:GLOBAL__)?sub_[ID]", listed, re.M):
        first, last = int(begin, 16), int(begin, 16) + int(size, 16)
        for page in range(first >> 12, (last >> 12) + 1):
            pages.setdefault(page, []).append((first, last))
    return pages


def loaded(pid):
    """{path of a file: [(where its first byte is mapped), (ranges of code)...]}"""
    maps = {}
    for line in pathlib.Path(f"/proc/{pid}/maps").read_text().splitlines():
        words = line.split(None, 5)
        if len(words) != 6:
            continue
        begin, end = (int(word, 16) for word in words[0].split("-"))
        of_file = maps.setdefault(words[5], [begin - int(words[2], 16)])
        if "x" in words[1]:
            of_file.append((begin, end))
    return maps


def address_of_main(program):
    listed = subprocess.run(["nm", program], capture_output=True, text=True, check=True).stdout
    return int(re.search(r"^(\w+) T main$", listed, re.M)[1], 16)


class Breakpoints:
    def __init__(self, pid):
        self.memory = os.open(f"/proc/{pid}/mem", os.O_RDWR)
        self.byte = {}  # address: original bytes

    def add(self, address):
        self.byte[address] = os.pread(self.memory, 1, address)
        os.pwrite(self.memory, b"\xcc", address)

    def remove(self, address):
        if address in self.byte:
            os.pwrite(self.memory, self.byte.pop(address), address)


def executed_files(command, binaries, root, environment=None):
    """The executed files below `root` and the exit status. Only lines of `binaries` count."""
    lines = {os.path.realpath(path): line_addresses(path, root) for path in binaries}
    pid = os.fork()
    if pid == 0:
        libc.ptrace(TRACEME, 0, None, None)
        os.execvpe(command[0], command, {**os.environ, **(environment or {}), "ASAN_OPTIONS": "detect_leaks=0"})
    os.waitpid(pid, 0)
    ptrace(SETOPTIONS, pid, 0, TRACE_CLONE | TRACE_EXIT_KILL)
    points = Breakpoints(pid)
    program = os.path.realpath(command[0])  # static initializers run before main() and do not count
    start = loaded(pid)[program][0] + address_of_main(program)
    points.add(start)
    ptrace(CONT, pid)
    registers = (ctypes.c_ulonglong * REGISTERS)()
    owner, of_file, met, end = {}, collections.defaultdict(list), set(), None
    while True:
        stopped, how = os.waitpid(-1, 0x40000000)  # __WALL
        if os.WIFEXITED(how) or os.WIFSIGNALED(how):
            if stopped == pid:
                return met, os.waitstatus_to_exitcode(how), pid
            continue
        signal_number = os.WSTOPSIG(how)
        if signal_number != signal.SIGTRAP or how >> 16:
            ptrace(CONT, stopped, 0, 0 if how >> 16 or signal_number in (signal.SIGTRAP, signal.SIGSTOP) else signal_number)
            continue
        ptrace(GETREGS, stopped, 0, ctypes.addressof(registers))
        at = registers[RIP] - 1
        if at == start and not owner:
            points.remove(start)
            maps = loaded(pid)
            for path, addresses in lines.items():
                base, *code = maps.get(path, [0])
                for address, file in addresses.items():
                    if any(begin <= base + address < end for begin, end in code):
                        owner[base + address] = file
                        of_file[file].append(base + address)
            for address in owner:
                points.add(address)
            # After main() has returned, destructors and handlers of exit(3) run.
            end = int.from_bytes(os.pread(points.memory, 8, registers[RSP]), "little")
            points.add(end)
        elif at == end:
            points.remove(end)
            for address in owner:
                points.remove(address)
        elif at in owner:
            met.add(owner[at])
            for address in of_file.pop(owner[at], ()):
                points.remove(address)
        registers[RIP] = at
        ptrace(SETREGS, stopped, 0, ctypes.addressof(registers))
        ptrace(CONT, stopped)


if __name__ == "__main__":
    here = pathlib.Path(__file__).resolve().parent.parent.parent
    program = os.path.realpath(sys.argv[1])
    beside = [str(path) for path in pathlib.Path(program).parents[2].glob("lib/**/*.so")]
    files, code, _ = executed_files([program, *sys.argv[2:]], [program, *beside], here)
    print("\n".join(sorted(files)))
    print(f"{len(files)} files, exit status {code}")
