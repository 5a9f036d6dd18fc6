# SPDX-License-Identifier: MIT
"""Selects and orders the unit and property tests to run against a change. Used by mutants.py.

A few tests take nearly all of the time, and the quick ones notice most changes, so they run first.
Tests that cannot reach a source are left out: no chain of symbols leads from the test's object
through other objects to the source's object.
"""
import os
import pathlib
import re
import subprocess
import xml.etree.ElementTree as ElementTree
from typing import NamedTuple

LIMITS = (1e-3, 1e-2, 1.0)  # upper limits of each group, as fractions of the time of all tests


class Case(NamedTuple):
    title: str
    file: str
    seconds: float


def parse(text):
    """The cases that Catch2's XML reporter lists; none if the text is not such a list."""
    try:
        root = ElementTree.fromstring(text)
    except ElementTree.ParseError:
        return []
    return [Case(case.get("name"), pathlib.Path(case.get("filename")).stem,
                 float(case.find("OverallResult").get("durationInSeconds")))
            for case in root.iter("TestCase")]


def failures(text):
    """FILE:LINE: CHECK of the failed checks that Catch2's XML reporter lists; else the end of the text."""
    try:
        root = ElementTree.fromstring(text)
    except ElementTree.ParseError:
        return text[-3000:]
    lines = [f"{check.get('filename')}:{check.get('line')}: {(check.findtext('Expanded') or check.text or '').strip()}"
             for check in root.iter() if check.tag in ("Exception", "FatalErrorCondition") or check.get("success") == "false"
             and check.tag == "Expression"]
    return "\n".join(lines) or text[-3000:]


def symbols(folder, objects):
    """{object: (symbols it defines, symbols it uses, whether it runs code before main)}."""
    listed = subprocess.run(["nm", "-P", *objects], cwd=folder, capture_output=True, text=True,
                            check=True).stdout
    found, name = {}, objects[0]
    found[name] = (set(), set(), [])
    for line in listed.splitlines():
        if line.endswith(".o:"):
            name = line[:-1]
            found[name] = (set(), set(), [])
            continue
        symbol, kind = line.split()[:2]
        defines, wants, starts = found[name]
        if kind in "Uvw":
            wants.add(symbol)
        elif kind.isupper() or kind == "u":
            defines.add(symbol)
        if symbol.startswith("_GLOBAL__sub_I_"):
            starts.append(symbol)
    return found


class Reach:
    """Maps test files to the sources whose code they may run."""

    def __init__(self, folder, link_command):
        objects = [word for word in link_command if word.endswith(".o")]
        self.known = symbols(folder, objects)
        self.definers = {}
        for name, (defines, _, _) in self.known.items():
            for symbol in defines:
                self.definers.setdefault(symbol, []).append(name)
        self.starts = {name for name, (_, _, starts) in self.known.items() if starts}
        self.reached = {}

    @staticmethod
    def stem(name):
        return os.path.basename(name).removesuffix(".o").removesuffix(".cpp")

    def closure(self, name):
        if name not in self.reached:
            seen, todo = {name}, [name]
            while todo:
                for symbol in self.known[todo.pop()][1]:
                    new = set(self.definers.get(symbol, ())) - seen
                    seen |= new
                    todo += new
            self.reached[name] = seen
        return self.reached[name]

    def files(self, source):
        """Stems of the test files that may reach this object; None: all may."""
        if source not in self.known or source in self.starts:
            return None
        return {self.stem(name) for name in self.known if source in self.closure(name)}


def groups(cases, near, reach):
    """[(whether they are slow, the cases of a run)], ordered by expected success per time. near:
    stems of the files that test the source; reach: stems of the files that may reach it, or None
    for all."""
    total = sum(case.seconds for case in cases)
    found, least = [], -1.0
    for limit in LIMITS:
        most = limit * total
        level = [case for case in cases if least < case.seconds <= most
                 and (reach is None or case.file in reach or case.file in near)]
        for group in ([case for case in level if case.file in near],
                      [case for case in level if case.file not in near]):
            found += [(limit == LIMITS[-1], group)] if group else []
        least = most
    return found


def write(path, cases):
    """Writes the file from which Catch2 reads the titles of the tests to run."""
    escaped = (re.sub(r'([\\\\",\[\]])', r"\\\1", case.title) for case in cases)
    path.write_text("".join(f'"{title}"\n' for title in escaped))
