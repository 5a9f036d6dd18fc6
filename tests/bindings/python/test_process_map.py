# SPDX-License-Identifier: MIT
import errno
import os

import perfmap
from perfmap import ForkPolicy, NamePolicy, StartState, process_map
from support import Scratch, entries, in_child


class ProcessMap(Scratch):
    """Each test is in a child: there is one map in each process."""

    def in_child(self, body):
        return self.directory / f"perf-{in_child(body)}.map"

    def test_an_entry_is_in_the_file_when_its_write_returns(self):
        def body():
            process_map.configure(directory=self.directory)
            process_map.write(0x7F0000001000, 64, "jit::add")
            path = self.directory / f"perf-{os.getpid()}.map"
            assert path.read_text() == "7f0000001000 40 jit::add\n"
            assert process_map.began_with() == StartState.MADE

        self.in_child(body)

    def test_names_are_text_or_bytes(self):
        def body():
            with process_map.opened(directory=self.directory):
                process_map.write(1, 1, "näme")
                process_map.write(2, 1, b"n\xc3\xa4me")
                process_map.write(3, 1, "invalid \udcff")

        self.assertEqual(entries(self.in_child(body)), ["näme", "näme", "invalid \\xff"])

    def test_failures_are_os_errors(self):
        def body():
            process_map.configure(directory="/nonexistent")
            try:
                process_map.write(1, 1, "abc")
            except OSError as error:
                assert isinstance(error, perfmap.PerfmapError)
                assert (error.errno, error.status) == (errno.ENOENT, perfmap.Status.NOT_FOUND), error
                assert error.reason is perfmap.Reason.SYSTEM, error.reason
                assert error.filename.startswith(b"/nonexistent/perf-"), error.filename
            else:
                raise AssertionError("no exception")

        in_child(body)

    def test_a_name_with_a_null_byte_is_refused(self):
        with self.assertRaises(ValueError):
            process_map.write(1, 1, "a\0b")

    def test_names_may_be_refused(self):
        def body():
            process_map.configure(directory=self.directory, names=NamePolicy.REFUSE)
            try:
                process_map.write(1, 1, "a\nb")
            except OSError as error:
                assert error.errno == errno.EILSEQ, error
            else:
                raise AssertionError("no exception")

        in_child(body)

    def test_options_of_an_open_map_cannot_be_changed(self):
        def body():
            with process_map.opened(directory=self.directory):
                try:
                    process_map.configure()
                except OSError as error:
                    assert error.errno == errno.EBUSY, error
                else:
                    raise AssertionError("no exception")

        in_child(body)

    def test_on_full_makes_room(self):
        called = []

        def body():
            def on_full():
                called.append(1)
                process_map.close()
                path = self.directory / f"perf-{os.getpid()}.map"
                path.rename(self.directory / "old.map")
                return True

            process_map.configure(directory=self.directory, max_bytes=40, on_full=on_full)
            for i in range(4):
                process_map.write(0x1000 + i, 1, f"entry {i}")
            assert called == [1], called
            process_map.close()

        path = self.in_child(body)
        self.assertEqual(entries(self.file("old.map")) + entries(path), [f"entry {i}" for i in range(4)])

    def test_an_exception_in_on_full_is_raised_by_the_write(self):
        def body():
            process_map.configure(directory=self.directory, max_bytes=10, on_full=lambda: 1 // 0)
            try:
                process_map.write(0x1000, 1, "too long for it")
            except ZeroDivisionError:
                pass
            else:
                raise AssertionError("no exception")
            try:
                process_map.write(0x1000, 1, "too long for it")  # not called again
            except OSError as error:
                assert error.errno == errno.EFBIG, error

        in_child(body)

    def test_an_exception_in_on_full_is_raised_by_a_jitdump(self):
        def body():
            process_map.configure(directory=self.directory, max_bytes=10, on_full=lambda: 1 // 0)
            with perfmap.Jitdump(directory=self.directory, state_map=True) as dump:
                try:
                    dump.load(0x1000, "too long for it", code=b"\x90")
                except ZeroDivisionError:
                    pass
                else:
                    raise AssertionError("no exception")

        in_child(body)

    def test_children_follow_the_fork_policy(self):
        for policy, expected in ((ForkPolicy.FRESH, ["child"]), (ForkPolicy.INHERIT, ["parent", "child"]),
                                 (ForkPolicy.OFF, None)):
            def body():
                process_map.configure(directory=self.directory, fork=policy)
                process_map.write(0x1000, 1, "parent")
                pid = in_child(lambda: process_map.write(0x2000, 1, "child"))
                path = self.directory / f"perf-{pid}.map"
                found = entries(path) if path.exists() else None
                assert found == expected, (policy, found)

            in_child(body)

    def test_a_map_of_another_process_is_copied(self):
        other = self.file("perf-1.map", "1000 10 foo\n2000 10 bar\n")

        def body():
            with process_map.opened(directory=self.directory):
                process_map.copy(other)

        self.assertEqual(entries(self.in_child(body)), ["foo", "bar"])
