# SPDX-License-Identifier: MIT
"""Shared by the tests of the Python package."""
import os
import pathlib
import shutil
import tempfile
import unittest

import perfmap


class Scratch(unittest.TestCase):
    """A test with a directory of its own."""

    def setUp(self):
        self.directory = pathlib.Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.directory)

    def file(self, name, text=None):
        path = self.directory / name
        if text is not None:
            path.write_text(text)
        return path

    def text(self, name):
        return (self.directory / name).read_text()


def in_child(body, *arguments):
    """Runs `body` in a forked child, which leaves as a process does that ends; returns its pid."""
    pid = os.fork()
    if pid == 0:
        status = 1
        try:
            body(*arguments)
            status = 0
        finally:
            os._exit(status)
    assert os.waitpid(pid, 0)[1] == 0
    return pid


def entries(path):
    """The names in a map, without the filler of a mapped writer."""
    with perfmap.Map(path) as one:
        return [entry.name for entry in one if (entry.start, entry.size) != (0, 0)]
