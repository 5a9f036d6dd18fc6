# SPDX-License-Identifier: MIT
"""A simple reader of PYPYLOG, to check ours: the loops and bridges, their code, and the source line
of an address in it."""
import re

COLOUR = re.compile(r"\x1b\[[0-9;]*m")
PLACED = re.compile(r"(.+) has address 0x([0-9a-f]+) to 0x([0-9a-f]+)(?: |$)")
PART = re.compile(r" +(gc table|function|jump target|resops|failures|end): 0x([0-9a-f]+)$")
TITLE = re.compile(r"# (.+?)(?: : [a-z ]+)? with \d+ ops$")
MERGE_POINT = re.compile(r"debug_merge_point\(\d+, \d+, '.*?;(.*):(\d+)-(\d+)~#")
OPERATION = re.compile(r"\+(\d+): (.*)")


class Loop:
    def __init__(self, name, begin, end):
        self.name, self.begin, self.end = name, begin, end
        self.is_whole = False  # its parts followed, up to the end
        self.base = None  # base of the offsets of operations
        self.home = None  # file and line of the function's start
        self.lines = []  # (offset, (file, line)), ordered by offset

    def line_at(self, address):
        if not self.lines:
            return None
        return [self.home, *(place for offset, place in self.lines if self.base + offset <= address)][-1]


def loops_of(path):
    """Loops in the order of the log, whose lines all belong to one process."""
    loops, by_name, told, place = [], {}, None, None
    with open(path, errors="surrogateescape", newline="\n") as log:
        for line in log:
            line = COLOUR.sub("", line).rstrip("\r\n")
            if found := PLACED.match(line):
                loops.append(Loop(found[1], int(found[2], 16), int(found[3], 16)))
                by_name[found[1]] = loops[-1]
            elif (found := PART.match(line)) and loops:
                address = int(found[2], 16)
                if found[1] == "gc table":
                    loops[-1].base = address
                elif found[1] in ("function", "jump target"):
                    loops[-1].begin = address
                elif found[1] == "end":
                    loops[-1].end, loops[-1].is_whole = address, True
            elif found := TITLE.match(line):
                told, place = by_name.get(found[1]), None
            elif found := MERGE_POINT.match(line):
                place = (found[1], int(found[3]))
                if told and not told.home:
                    told.home = (found[1], int(found[2]))
            elif (found := OPERATION.match(line)) and told:
                if found[2] == "--end of the loop--":
                    told.lines.append((int(found[1]), told.home))  # code of failures
                    told = None
                elif place:
                    told.lines.append((int(found[1]), place))
    return loops


def loop_at(loops, address):
    """The last loop placed at an address, or None."""
    found = [loop for loop in loops if loop.begin <= address < loop.end]
    return found[-1] if found else None
