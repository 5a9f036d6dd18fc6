#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Totals of a PyPy log with hexadecimal ticks, as a script would compute them: read_pypylog.py LOG

Ticks of each loop by its jit-profile sections, and of each category without its inner sections.
Handles threads, colours, sections without an end, and ticks that run backwards.
"""
import re
import sys

COLOUR = r"(?:\x1b\[[0-9;]*m)*"
SECTION = re.compile(COLOUR + r"(?:(\d+)# )?" + COLOUR + r"\[([0-9a-fA-F]+)\] (?:\{([\w-]+)|([\w-]+)\})" +
                     COLOUR + r"\r?$")
PREFIX = re.compile(COLOUR + r"(?:(\d+)# )?" + COLOUR)
categories, loops, entered, threads = {}, {}, {}, {}
waiting = {}  # threads in a jit-profile section that has not named a loop yet


class Thread:
    def __init__(self, tick):
        self.first = self.last = self.changed = tick
        self.outside = self.rest = 0
        self.open, self.loop, self.event = [], None, None

    def settle(self, tick):
        if self.loop is None:
            self.outside += tick - self.changed
        else:
            loops[self.loop] = loops.get(self.loop, 0) + tick - self.changed
        self.changed = tick

    def account(self, tick):
        tick = max(tick, self.last)
        if self.open:
            categories[self.open[-1]] = categories.get(self.open[-1], 0) + tick - self.last
        else:
            self.rest += tick - self.last
        self.last = tick

    def name(self, name):
        category, tick = self.event
        self.settle(tick)
        self.loop = name if category == "jit-profile-enter" else None
        if self.loop is not None:
            entered[name] = entered.get(name, 0) + 1
        self.event = None


with open(sys.argv[1], encoding="utf-8", errors="replace") as log:
    for line in log:
        found = SECTION.match(line) if line[0] in "[\x1b0123456789" else None
        if found is None:
            if waiting:
                prefix = PREFIX.match(line)
                number = prefix[1]
                name = line[prefix.end():].split(" #")[0].strip()
                thread = waiting.get(number)
                if thread and thread.open[-1] == thread.event[0] and name:
                    thread.name(name)
                    del waiting[number]
            continue
        number, digits, opened, closed = found.groups()
        tick = int(digits, 16)
        thread = threads.get(number)
        if thread is None:
            thread = threads[number] = Thread(tick)
        thread.account(tick)
        if opened:
            thread.open.append(opened)
            if opened.startswith("jit-profile-"):
                thread.event = (opened, thread.last)
                waiting[number] = thread
        elif closed in thread.open:
            while thread.open.pop() != closed:
                pass

for thread in threads.values():
    thread.settle(thread.last)
print(sum(thread.last - thread.first for thread in threads.values()),
      sum(thread.outside for thread in threads.values()),
      sum(thread.rest for thread in threads.values()), sum(loops.values()), sum(categories.values()))
