# SPDX-License-Identifier: MIT
import ctypes
import mmap
import os
import pathlib
import platform
import re
import struct
import subprocess
import sys
import time
import unittest

import perfmap
from perfmap import process_map
from perfmap.profile import NOW, Access, Imported, ModuleCache, NoName, ProcessBegin, Tracker
from perfmap.stacks import EM_X86_64, Sample, StackEnd, Unwinder, registers_of_interest, stacks
from support import Scratch

BP, SP, IP = 6, 7, 8  # PERF_REG_X86_...

# Code with a frame pointer that calls the function whose address it is given.
JIT_CODE = bytes.fromhex("554889e5ffd75dc3")


def blocked_in_jit_code():
    """Waits in code of a JIT, which the process's map names."""
    memory = mmap.mmap(-1, 4096, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS,
                       mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
    memory.write(JIT_CODE)
    address = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    process_map.write(address, len(JIT_CODE), "jit::waits")
    pause = ctypes.cast(ctypes.CDLL(None).pause, ctypes.c_void_p).value
    print(address, flush=True)
    ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p)(address)(pause)


def sample_of_blocked(pid, jit_address):
    """The registers that /proc shows of a thread that waits, and a copy of its stack."""
    while True:
        words = pathlib.Path(f"/proc/{pid}/syscall").read_text().split()
        if len(words) == 9 and int(words[0]) == 34:  # pause
            break
        time.sleep(0.01)
    sp, ip = int(words[7], 16), int(words[8], 16)
    lines = pathlib.Path(f"/proc/{pid}/maps").read_text().splitlines()
    end = next(int(line.split("-")[1].split()[0], 16) for line in lines if "[stack]" in line)
    with open(f"/proc/{pid}/mem", "rb") as memory:
        memory.seek(sp)
        stack = memory.read(min(end - sp, 65536))
    # The frame pointer is not shown. It points above the return address into the code.
    bp = sp + stack.index(struct.pack("<Q", jit_address + len(JIT_CODE) - 2)) + 8
    return Sample({IP: ip, SP: sp, BP: bp}, stack)


class LivingProcess(Scratch):
    @classmethod
    def setUpClass(cls):
        if platform.machine() != "x86_64":
            print("skipped in part: the code of this test is of x86-64")
            raise unittest.SkipTest("no x86-64")

    def setUp(self):
        super().setUp()
        self.child = subprocess.Popen([sys.executable, "-B", __file__, "blocked"], stdout=subprocess.PIPE)
        self.pid = self.child.pid
        self.address = int(self.child.stdout.readline())
        self.addCleanup(self.end)

    def end(self):
        self.child.kill()
        self.child.wait()
        self.child.stdout.close()
        os.unlink(f"/tmp/perf-{self.pid}.map")

    def test_addresses_have_names(self):
        jit, elsewhere = perfmap.resolve(self.pid, [self.address + 4, 16])
        self.assertEqual((jit.name, jit.offset, jit.is_jit, jit.source),
                         ("jit::waits", 4, True, f"/tmp/perf-{self.pid}.map"))
        self.assertEqual((elsewhere.name, elsewhere.why), (None, NoName.UNMAPPED))

    def test_a_tracker_knows_memory_code_and_files(self):
        with Tracker() as tracker:
            self.assertIsNone(tracker.find_process(self.pid))
            self.assertEqual(tracker.import_process(self.pid), Imported.BEGAN)
            self.assertTrue(tracker.refresh_jit(self.pid))
            process = tracker.find_process(self.pid)
            self.assertEqual((process.began, process.until), (ProcessBegin.IMPORTED, NOW))
            self.assertEqual(tracker.find_jit(self.pid, self.address).name, "jit::waits")
            self.assertIsNone(tracker.find_jit(self.pid, 16))
            space = tracker.space(self.pid)
            self.assertEqual(space.process, process)
            self.assertEqual(space.find(self.address).access, Access.READ | Access.WRITE | Access.EXECUTE)
            self.assertEqual(len(list(space)), len(space))
            libc = next(region for region in space if re.search(r"/libc\.so", region.name)
                        and region.access & Access.EXECUTE)
            module, vaddr = tracker.find_elf(self.pid, libc.begin)
            self.assertRegex(module.path, r"/libc\.so")
            self.assertEqual((module.machine, vaddr), (EM_X86_64, libc.offset))
            self.assertEqual(tracker.modules.opened, 1)
        self.assertRegex(module.path, "libc")  # also after the tracker
        self.assertIsNone(module.find_symbol(0))

    def test_a_stack_goes_through_code_of_a_jit(self):
        sample = sample_of_blocked(self.pid, self.address)
        with Tracker() as tracker:
            tracker.import_process(self.pid)
            tracker.refresh_jit(self.pid)
            answers = list(stacks(tracker, self.pid, [sample, sample]))
            self.assertEqual(answers[0], answers[1])
            names = [frame.name.name for frame in answers[0].frames]
            self.assertRegex(names[0], "pause")
            self.assertEqual(names[1], "jit::waits")
            self.assertEqual([frame.is_return for frame in answers[0].frames[:3]], [False, True, True])
            self.assertIn("main", "".join(filter(None, names)))
            self.assertEqual(answers[0].end, StackEnd.ROOT)
            few = list(stacks(tracker, self.pid, [sample], max_frames=2))
            self.assertEqual((len(few[0].frames), few[0].end), (2, StackEnd.LIMIT))

    def test_a_process_that_is_gone_is_not_found(self):
        self.child.kill()
        self.child.wait()
        with self.assertRaises(perfmap.PerfmapError) as raised:
            list(perfmap.resolve(self.pid, [1]))
        self.assertEqual(raised.exception.status, perfmap.Status.NOT_FOUND)


class Events(Scratch):
    def test_a_space_is_what_was_mapped_at_the_time(self):
        with Tracker(modules=ModuleCache(debug_directories=None)) as tracker:
            tracker.on_mmap(8, 1, 0x1000, 0x1000, 0x200, "/bin/sh", inode=7, build_id=b"\1\2\3")
            tracker.on_mmap(8, 2, 0x3000, 0x1000, 0, "//anon", access=Access.READ)
            tracker.on_fork(9, 9, 8, 3)
            tracker.on_comm(9, 9, 5, "cc1", exec=True)
            tracker.on_mmap(9, 6, 0x5000, 0x1000, 0, "/usr/bin/cc1")
            tracker.on_unmap(8, 6, 0, 0x2000)
            before, after = tracker.space(9, 4), tracker.space(9)
            self.assertEqual([region.begin for region in tracker.space(8)], [0x3000])
            tracker.on_exit(9, 9, 7)
            self.assertIsNone(tracker.find_process(9))
            self.assertIsNone(tracker.space(10))
        self.assertEqual([region.name for region in before][:1], ["/bin/sh"])
        self.assertEqual((before.find(0x1001).build_id, before.find(0x1001).inode), (b"\1\2\3", 7))
        self.assertEqual([region.begin for region in after], [0x5000])
        self.assertEqual(after.process.comm, "cc1")

    def test_an_unknown_machine_is_an_invalid_argument(self):
        self.assertEqual(registers_of_interest(4711), 0)
        self.assertNotEqual(registers_of_interest(EM_X86_64) & (1 << IP | 1 << SP), 0)
        with Tracker() as tracker, Unwinder() as unwinder:
            tracker.import_process(os.getpid())
            with self.assertRaises(perfmap.PerfmapError) as raised:
                unwinder.unwind(tracker.unwind_space(os.getpid()), Sample({IP: 1}, b"", machine=4711))
            self.assertEqual(raised.exception.status, perfmap.Status.INVALID_ARGUMENT)


if __name__ == "__main__":
    if sys.argv[1:] == ["blocked"]:
        blocked_in_jit_code()
    else:
        unittest.main()
