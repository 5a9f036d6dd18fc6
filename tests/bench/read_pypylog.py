#!/usr/bin/env python3
"""Totals of a log of PyPy, as a script would make them: read_pypylog.py LOG

Ticks of each loop by its jit-profile sections, and of each category without the sections inside it,
for a log of one thread in hexadecimal ticks.
"""
import re
import sys

SECTION = re.compile(r"\[([0-9a-f]+)\] (?:\{([\w-]+)|([\w-]+)\})$")
categories, loops, entered = {}, {}, {}
stack, loop, event = [], None, None
first = last = changed = None
outside = rest = 0

with open(sys.argv[1], encoding="utf-8", errors="replace") as log:
    for line in log:
        found = SECTION.match(line) if line[0] == "[" else None
        if found is None:
            if event is not None and stack and stack[-1] == event[0]:
                name = line.split(" #")[0].strip()
                if loop is None:
                    outside += event[1] - changed
                else:
                    loops[loop] = loops.get(loop, 0) + event[1] - changed
                changed = event[1]
                loop = name if event[0] == "jit-profile-enter" else None
                if loop is not None:
                    entered[loop] = entered.get(loop, 0) + 1
                event = None
            continue
        tick = int(found[1], 16)
        if first is None:
            first = last = changed = tick
        if stack:
            categories[stack[-1]] = categories.get(stack[-1], 0) + tick - last
        else:
            rest += tick - last
        last = tick
        if found[2]:
            stack.append(found[2])
            if found[2].startswith("jit-profile-"):
                event = (found[2], tick)
        elif stack:
            stack.pop()
if loop is None:
    outside += last - changed
else:
    loops[loop] = loops.get(loop, 0) + last - changed
print(last - first, outside, rest, sum(loops.values()), sum(categories.values()))
