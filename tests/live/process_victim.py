# SPDX-License-Identifier: MIT
"""The process that resolve_process.py examines: process_victim.py MODE DIRECTORY [LIBRARY]

Maps code, prints addresses as JSON, and waits for the end of its standard input, or for a line
"exec SECONDS".
"""
import ctypes
import json
import mmap
import os
import shutil
import sys

EXEC = mmap.PROT_READ | mmap.PROT_EXEC
KEPT = []


def address_of(mapped):
    libc = ctypes.CDLL(None, use_errno=True)
    libc.mmap.restype = ctypes.c_void_p
    libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]
    fd, flags = mapped
    return libc.mmap(None, 8192, EXEC, flags, fd, 0)


def write_map(directory, pid, begin, name):
    with open(f"{directory}/perf-{pid}.map", "a") as out:
        out.write(f"{begin:x} 1000 {name}\n")


def jit(directory, name="jitted"):
    begin = address_of((-1, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS))
    write_map(directory, os.getpid(), begin, name)
    return {"named": begin + 16, "not-covered": begin + 0x1000, "data": id(KEPT), "unmapped": 0x10}


def memfd(directory):
    fd = os.memfd_create("doublemapper")
    os.ftruncate(fd, 8192)
    begin = address_of((fd, mmap.MAP_SHARED))
    write_map(directory, os.getpid(), begin, "double::mapped")
    return {"named": begin + 1}


def loaded(_, library):
    KEPT.append(ctypes.CDLL(library))
    return {"function": ctypes.cast(KEPT[0].victim_function, ctypes.c_void_p).value + 1,
            "hidden": ctypes.c_void_p.in_dll(KEPT[0], "hidden_pointer").value}


def deleted(directory, library):
    copy = shutil.copy(library, f"{directory}/gone.so")
    addresses = loaded(directory, copy)
    os.unlink(copy)
    return addresses


def forked(directory):
    addresses = jit(directory, "of the parent")
    addresses["parent"] = os.getpid()
    child = os.fork()
    if child:
        os.waitpid(child, 0)
        os._exit(0)
    return addresses


def main():
    mode, directory, *rest = sys.argv[1:]
    addresses = {"jit": jit, "memfd": memfd, "loaded": loaded, "deleted": deleted, "forked": forked}[mode](directory, *rest)
    addresses["pid"] = os.getpid()
    print(json.dumps(addresses), flush=True)
    for line in sys.stdin:
        if line.startswith("exec "):
            os.execv("/bin/sleep", ["sleep", line.split()[1]])
    return 0


sys.exit(main())
