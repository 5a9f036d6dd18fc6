# SPDX-License-Identifier: MIT
"""The examples in docs/bindings.md answer what the page says."""
import contextlib
import doctest
import os
import pathlib
import unittest

from perfmap import process_map

ROOT = pathlib.Path(__file__).resolve().parents[3]


class Page(unittest.TestCase):
    def test_examples(self):
        before = os.getcwd()
        os.chdir(ROOT / "tests/wild/node")
        try:
            failed, tried = doctest.testfile(str(ROOT / "docs/bindings.md"), module_relative=False)
        finally:
            os.chdir(before)
            process_map.close()
            with contextlib.suppress(FileNotFoundError):
                os.unlink(f"/tmp/perf-{os.getpid()}.map")
        self.assertEqual(failed, 0)
        self.assertGreater(tried, 10)
