# SPDX-License-Identifier: MIT
import ctypes
import errno
import gc
import os
import subprocess
import sys
import threading
import unittest

import perfmap
from perfmap import Clock, Jitdump, Jitlog, Line, MapWriter, Timeline, Unwinding
from support import Scratch, entries, in_child


class MapWriters(Scratch):
    def test_with_closes_and_writes_what_is_buffered(self):
        path = self.file("a.map")
        with MapWriter(path, buffer_bytes=65536) as writer:
            writer.write(0x1000, 16, "foo")
            self.assertEqual(path.read_text(), "")
            writer.flush()
            self.assertEqual(path.read_text(), "1000 10 foo\n")
            writer.write(0x1010, 16, "bar")
        self.assertEqual(entries(path), ["foo", "bar"])
        writer.close()  # once more
        with self.assertRaises(OSError) as raised:
            writer.write(1, 1, "late")
        self.assertEqual(raised.exception.errno, errno.EBADF)

    def test_a_forgotten_writer_is_closed(self):
        writer = MapWriter(self.file("a.map"), buffer_bytes=65536)
        writer.write(0x1000, 16, "foo")
        del writer
        gc.collect()
        self.assertEqual(self.text("a.map"), "1000 10 foo\n")

    def test_a_mapped_writer_leaves_entries_only(self):
        with MapWriter(self.file("a.map"), mapped=True) as writer:
            writer.write(0x1000, 16, "foo")
        self.assertEqual(self.text("a.map"), "1000 10 foo\n")

    def test_threads_share_a_writer(self):
        with MapWriter(self.file("a.map"), buffer_bytes=512) as writer:
            def burst(name):
                for i in range(200):
                    writer.write(i, 1, f"{name} {i}")

            threads = [threading.Thread(target=burst, args=(name,)) for name in "abcd"]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        self.assertEqual(sorted(entries(self.file("a.map"))),
                         sorted(f"{name} {i}" for name in "abcd" for i in range(200)))

    def test_on_full_may_fail(self):
        with MapWriter(self.file("a.map"), max_bytes=20, on_full=lambda: False) as writer:
            writer.write(0x1000, 16, "foo")
            with self.assertRaises(OSError) as raised:
                writer.write(0x1000, 16, "much too long")
        self.assertEqual(raised.exception.errno, errno.EFBIG)

    def test_a_writer_without_a_place_is_an_error(self):
        with self.assertRaises(OSError) as raised:
            MapWriter("/nonexistent/a.map")
        self.assertEqual(raised.exception.errno, errno.ENOENT)
        self.assertIn("/nonexistent/a.map", str(raised.exception))

    def test_maps_are_copied(self):
        other = self.file("other.map", "1000 10 foo\n")
        with MapWriter(self.file("a.map")) as writer:
            writer.copy(other)
        self.assertEqual(self.text("a.map"), "1000 10 foo\n")


class Jitdumps(Scratch):
    def test_a_function_is_read_back_with_its_lines(self):
        path = self.file("jit-7.dump")
        with Jitdump(path=path) as dump:
            first = dump.load(0x1000, "foo", code=b"\x90" * 16, time=10,
                              lines=[Line(0x1000, 3, "a.py"), Line(0x1008, 4, "b.py", 2)])
            dump.load(0x2000, "bar", code=b"\xc3" * 8, time=20)
            dump.move(first, 0x1000, 0x3000, 16)
        with Timeline(path) as timeline:
            code = timeline.find(0x1004, 15)
            self.assertEqual((code.name, code.start, code.size, code.machine_code), ("foo", 0x1000, 16, b"\x90" * 16))
            self.assertEqual(timeline.line(0x1004, 15), ("a.py", 3))
            self.assertEqual(timeline.line(0x1009, 15), ("b.py", 4))
            self.assertIsNone(timeline.line(0x2000, 25))
            self.assertEqual(timeline.find(0x3000).name, "foo")
            self.assertIsNone(timeline.find(0x1004))
            self.assertIsNone(timeline.find(0x2000, 19))

    def test_code_is_read_from_memory_by_its_size(self):
        code = ctypes.create_string_buffer(b"\x0f\x0b\xc3")
        with Jitdump(path=self.file("jit-7.dump")) as dump:
            dump.load(ctypes.addressof(code), "foo", size=3)
        with Timeline(self.file("jit-7.dump")) as timeline:
            self.assertEqual(timeline.find(ctypes.addressof(code)).machine_code, b"\x0f\x0b\xc3")

    def test_the_own_dump_is_in_the_directory(self):
        def body():
            with Jitdump(directory=self.directory) as dump:
                dump.load(0x1000, "foo", code=b"\x90")

        self.assertTrue((self.directory / f"jit-{in_child(body)}.dump").exists())

    def test_unwinding_information_is_in_the_dump(self):
        with Jitdump(path=self.file("jit-7.dump")) as dump:
            dump.load(0x1000, "foo", code=b"\x90", unwinding=Unwinding(b"eh_frame", b"hdr.", 64))
        self.assertIn(b"eh_framehdr.", self.file("jit-7.dump").read_bytes())

    def test_lines_outside_of_the_function_are_refused(self):
        with Jitdump(path=self.file("jit-7.dump")) as dump:
            with self.assertRaises(perfmap.PerfmapError) as raised:
                dump.load(0x1000, "foo", code=b"\x90", lines=[Line(0x2000, 1, "a.py")])
        self.assertEqual(raised.exception.status, perfmap.Status.INVALID_ARGUMENT)

    def test_arguments_that_contradict_each_other_are_refused(self):
        with self.assertRaises(ValueError):
            Jitdump(path="a", directory="b")
        with Jitdump(path=self.file("jit-7.dump")) as dump:
            with self.assertRaises(ValueError):
                dump.load(0x1000, "foo")
            with self.assertRaises(ValueError):
                dump.load(0x1000, "foo", code=b"a", size=2)


class Jitlogs(Scratch):
    def test_events_are_sections(self):
        with Jitlog(self.file("log"), clock=Clock.MONOTONIC, one_thread=True) as log:
            loop = log.loop("loop1")
            self.assertEqual(log.loop("loop1"), loop)
            log.enter(loop)
            log.exit(loop)
            self.assertEqual(log.lost, 0)
            with self.assertRaises(perfmap.PerfmapError):
                log.enter(loop + 1)
        text = self.text("log")
        self.assertIn("CLOCK_MONOTONIC ns", text)
        self.assertIn("{jit-profile-enter\nloop1\n", text)
        self.assertIn("{jit-profile-exit\nloop1\n", text)

    def test_a_child_has_a_log_of_its_own(self):
        with Jitlog(self.directory / "log-%d", clock=Clock.MONOTONIC, buffer_events=1) as log:
            loop = log.loop("loop1")
            log.enter(loop)
            pid = in_child(lambda: log.exit(loop))
        self.assertIn("jit-profile-exit", self.text(f"log-{pid}"))
        self.assertNotIn("jit-profile-exit", self.text(f"log-{os.getpid()}"))


class UnwindingInformation(Scratch):
    def test_it_is_made_for_a_function(self):
        frame = Unwinding.frame_pointer(4, mapped_size=200)
        none = Unwinding.no_frame(4, 8)
        self.assertEqual(frame.eh_frame_hdr[:4], bytes([1, 0x1b, 3, 0x3b]))
        self.assertNotEqual(frame.eh_frame, none.eh_frame)
        self.assertEqual((frame.mapped_size, none.mapped_size), (200, 0))
        cie_size = 4 + int.from_bytes(none.eh_frame[:4], sys.byteorder)
        again = Unwinding.from_fde(4, none.eh_frame[:cie_size], none.eh_frame[cie_size:])
        self.assertEqual(len(again.eh_frame_hdr), len(none.eh_frame_hdr))
        with self.assertRaises(perfmap.PerfmapError) as raised:
            Unwinding.from_eh_frame(0x1000, 4, bytes(4), 0x2000)
        self.assertEqual(raised.exception.status, perfmap.Status.NOT_FOUND)
        path = self.file("a.dump")
        with Jitdump(path=path) as dump:
            dump.load(0x1000, "foo", code=bytes(4), unwinding=frame)
        self.assertIn(frame.eh_frame + frame.eh_frame_hdr, path.read_bytes())


WRITER_ALONE = """
import perfmap, sys
with perfmap.MapWriter(sys.argv[1]) as writer:
    writer.write(0x1000, 16, "foo")
with perfmap.Jitdump(path=sys.argv[1] + ".dump") as dump:
    dump.load(0x1000, "foo", code=b"1234")
try:
    perfmap.Map(sys.argv[1])
except perfmap.PerfmapError as error:
    print(error.status.name, error)
"""


class WriterAlone(Scratch):
    @unittest.skipUnless("PERFMAP_WRITER_DIRECTORY" in os.environ, "no libperfmap-writer to test")
    def test_libperfmap_writer_is_enough_to_write(self):
        environment = {**os.environ, "PERFMAP_LIBRARY_PATH": os.environ["PERFMAP_WRITER_DIRECTORY"]}
        done = subprocess.run([sys.executable, "-c", WRITER_ALONE, str(self.file("a.map"))], env=environment,
                              capture_output=True, text=True)
        self.assertEqual(done.stderr, "")
        self.assertRegex(done.stdout, "^UNSUPPORTED .*libperfmap-writer.so.0 has no perfmap_map_open")
        self.assertEqual(self.text("a.map"), "1000 10 foo\n")
