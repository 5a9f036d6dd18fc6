# SPDX-License-Identifier: MIT
import errno
import os
import threading

import perfmap
from perfmap import Index, Map, Overlap, Severity, TruncationGuard, decode_name
from support import Scratch

TEXT = b"1000 10 foo\nnonsense\n1008 10 bar\n2000 8 \xff name\n"


class Maps(Scratch):
    def test_entries_are_in_file_order(self):
        with Map.from_bytes(TEXT) as one:
            found = list(one)
            self.assertEqual([(entry.start, entry.size, entry.name) for entry in found],
                             [(0x1000, 16, "foo"), (0x1008, 16, "bar"), (0x2000, 8, "\udcff name")])
            self.assertEqual([one.line_number(entry.offset) for entry in found], [1, 3, 4])
            self.assertFalse(one.was_truncated)
        with self.assertRaises(ValueError):
            list(one)

    def test_findings_are_those_of_lint(self):
        with Map.from_bytes(TEXT) as one:
            found = {finding.rule: finding for finding in one.lint()}
            self.assertEqual((found["PM002"].line, found["PM002"].severity), (2, Severity.ERROR))
            self.assertEqual(found["PM002"].message, "expected a hexadecimal address")
            self.assertEqual(len([f for f in one.lint(1) if f.rule == "PM109"]), 1)

    def test_a_map_that_is_not_there_is_an_os_error(self):
        with self.assertRaises(OSError) as raised:
            Map(self.file("none.map"))
        self.assertEqual(raised.exception.errno, errno.ENOENT)

    def test_a_process_without_a_map_is_not_found(self):
        with self.assertRaises(perfmap.PerfmapError) as raised:
            Map.of_process(os.getpid())
        self.assertEqual(raised.exception.status, perfmap.Status.NOT_FOUND)

    def test_another_kind_of_file_is_unsupported(self):
        path = self.file("jit-7.dump")
        perfmap.Jitdump(path=path).close()
        with self.assertRaises(perfmap.PerfmapError) as raised:
            Map(path)
        self.assertEqual(raised.exception.status, perfmap.Status.UNSUPPORTED)

    def test_truncation_is_reported_under_a_guard(self):
        path = self.file("a.map", "1000 10 foo\n" * 1000)
        with TruncationGuard(), Map(path) as one:
            os.truncate(path, 0)
            self.assertEqual(list(one), [])
            self.assertTrue(one.was_truncated)


class Indexes(Scratch):
    def test_the_later_entry_wins_unless_asked_otherwise(self):
        with Map.from_bytes(TEXT) as one:
            for overlap, expected in ((Overlap.LAST, "bar"), (Overlap.FIRST, "foo")):
                with Index(one, overlap) as index:
                    self.assertEqual(index.find(0x1009).name, expected)

    def test_an_index_outlives_its_maps(self):
        maps = [Map.from_bytes(b"1000 10 foo\n"), Map.from_bytes(b"2000 10 bar\n")]
        with Index(maps) as index:
            for one in maps:
                one.close()
            self.assertEqual((index.find(0x2000).name, index.find(0x2000).map_index), ("bar", 1))

    def test_many_addresses_are_answered_in_their_order(self):
        text = "".join(f"{0x1000 + 16 * i:x} 8 f{i}\n" for i in range(5000)).encode()
        with Map.from_bytes(text) as one, Index(one) as index:
            found = list(index.find_all(0x1000 + 8 * i for i in range(10000)))
        self.assertEqual([entry and entry.name for entry in found],
                         [f"f{i // 2}" if i % 2 == 0 else None for i in range(10000)])

    def test_appended_entries_are_taken_in(self):
        path = self.file("a.map", "1000 10 foo\n")
        with Map(path) as one, Index(one) as index:
            self.assertEqual(index.refresh(), 0)
            with path.open("a") as file:
                file.write("2000 10 bar\n")
            self.assertIsNone(index.find(0x2000))
            self.assertEqual(index.refresh(), 1)
            self.assertEqual(index.find(0x2000).name, "bar")

    def test_a_map_without_overlaps_is_written(self):
        with Map.from_bytes(TEXT) as one, Index(one) as index:
            index.write(self.file("out.map"))
        self.assertTrue(self.text("out.map").startswith("1000 8 foo\n1008 10 bar\n"))

    def test_threads_may_share_an_index(self):
        with Map.from_bytes(TEXT) as one, Index(one) as index:
            wrong = []

            def ask():
                for _ in range(300):
                    if [e.name for e in index.find_all([0x1000, 0x1008])] != ["foo", "bar"]:
                        wrong.append(1)

            threads = [threading.Thread(target=ask) for _ in range(4)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            self.assertEqual(wrong, [])


class Names(Scratch):
    def test_a_name_is_taken_apart(self):
        name = decode_name("JS:*sieve /tmp/w.js:6:15")
        self.assertEqual((name.runtime, name.tier, name.function, name.file, name.line, name.column),
                         ("v8", "turbofan", "sieve", "/tmp/w.js", 6, 15))

    def test_a_chain_of_inlined_functions_is_listed(self):
        self.assertEqual(decode_name("Lfoo;::outer->Lbar;::inner").inlined, ("Lfoo;::outer", "Lbar;::inner"))
        self.assertEqual(decode_name("foo").inlined, ())
