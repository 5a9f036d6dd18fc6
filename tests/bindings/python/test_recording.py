# SPDX-License-Identifier: MIT
import collections
import os
import pathlib
import unittest
from unittest import mock

import perfmap
from perfmap.recording import recorded_stacks

TALLY = pathlib.Path(__file__).resolve().parents[2] / "wild/tally"
OPTIONS = ["--symfs", str(TALLY)]


class RecordedStacks(unittest.TestCase):
    def test_stacks_have_named_frames(self):
        stacks = list(recorded_stacks(TALLY / "perf.data", OPTIONS))
        leaves = collections.Counter(stack.frames[0].name for stack in stacks)
        self.assertEqual(leaves, {"digits": 16, "sum": 6})
        self.assertEqual([stack.time for stack in stacks], sorted(stack.time for stack in stacks))
        first = stacks[0]
        self.assertEqual((first.time, first.comm, first.event, first.period, first.end),
                         (72477294235607, "tally", "cpu-clock:u", 10101010, "root"))
        self.assertEqual((first.frames[0].address, first.frames[0].offset, first.frames[0].module),
                         (0x401079, 41, "/srv/tally/tally"))
        self.assertEqual(first.frames[-1].name, "_start")

    def test_a_caller_may_stop_early(self):
        stacks = recorded_stacks(TALLY / "perf.data", OPTIONS)
        self.assertEqual(next(stacks).comm, "tally")
        stacks.close()

    def test_what_cannot_be_read_is_an_error(self):
        with self.assertRaises(perfmap.PerfmapError) as raised:
            list(recorded_stacks("/nonexistent"))
        self.assertEqual(str(raised.exception), "cannot open /nonexistent: No such file or directory")
        with mock.patch.dict(os.environ, {"PERFMAP_PROGRAM": "/nonexistent/perfmap"}):
            with self.assertRaises(perfmap.PerfmapError) as raised:
                list(recorded_stacks("/nonexistent"))
            self.assertEqual(raised.exception.status, perfmap.Status.NOT_FOUND)
