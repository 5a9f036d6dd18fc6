# SPDX-License-Identifier: MIT
"""A JIT in Python whose code perf names, in workers of multiprocessing, too (x86-64):
jit.py fork|spawn|forkserver plain|buffered|mapped SECONDS"""
import ctypes
import mmap
import multiprocessing
import sys
import time

from perfmap import process_map

MODES = {"plain": {}, "buffered": {"buffer_bytes": 65536}, "mapped": {"mapped": True}}


class Jit:
    """Puts machine code into memory, and its name into the map of the process."""

    def __init__(self):
        self.memory = mmap.mmap(-1, 65536, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS,
                                mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
        self.begin = ctypes.addressof(ctypes.c_char.from_buffer(self.memory))

    def compile(self, name, code):
        address = self.begin + self.memory.tell()
        self.memory.write(code.ljust(-len(code) // 16 * -16, b"\xcc"))
        process_map.write(address, len(code), f"py::{name}")
        return address


# Both keep a frame pointer: loop(n) counts down, call(function, n) calls function(n).
LOOP = bytes.fromhex("55 4889e5 4889f8 4883e801 75fa 5d c3")
CALL = bytes.fromhex("55 4889e5 4889f8 4889f7 ffd0 5d c3")
PROTOTYPE = ctypes.CFUNCTYPE(ctypes.c_uint64, ctypes.c_void_p, ctypes.c_uint64)


def run(names, seconds):
    """Compiles one function that is called by another, and runs them."""
    jit = Jit()
    loop = jit.compile(names[0], LOOP)
    call = PROTOTYPE(jit.compile(names[1], CALL))
    end = time.process_time() + seconds
    while time.process_time() < end:
        call(loop, 1000000)


def work(number, method, mode, seconds):
    if method != "fork":  # a forked worker has its parent's options
        process_map.configure(**MODES[mode])
    run((f"loop_of_worker_{number}", f"call_of_worker_{number}"), seconds)


if __name__ == "__main__":
    chosen, writing, duration = sys.argv[1], sys.argv[2], float(sys.argv[3])
    process_map.configure(**MODES[writing])
    context = multiprocessing.get_context(chosen)
    workers = [context.Process(target=work, args=(n, chosen, writing, duration)) for n in range(2)]
    for worker in workers:
        worker.start()
    run(("loop", "call"), duration)
    for worker in workers:
        worker.join()
