# SPDX-License-Identifier: MIT
"""Stacks of recordings of perf, as the program perfmap makes them.

The C interface has no recordings, so this runs `perfmap stacks --format jsonl`: the program that
PERFMAP_PROGRAM names, or the one in PATH.
"""
from __future__ import annotations

import json
import os
import subprocess
import tempfile
from dataclasses import dataclass
from typing import Any, Dict, Iterator, Optional, Sequence, Tuple

from ._library import StrPath
from .errors import PerfmapError, Status

PROGRAM = "PERFMAP_PROGRAM"


@dataclass(frozen=True)
class RecordedFrame:
    address: int  #: as sampled: a caller's is its return address
    name: Optional[str]
    offset: int  #: of the address in the function
    module: str  #: "": nothing is mapped there
    source: str  #: how the frame was found: "eh-cfi", "callchain", "kernel", …
    is_inlined: bool
    file: str  #: "": not known
    line: int  #: 0: not known
    doubts: Tuple[str, ...]  #: why the frame or its name may be wrong


@dataclass(frozen=True)
class RecordedStack:
    time: int  #: nanoseconds of the recording's clock
    pid: int
    tid: int
    comm: str
    event: str
    period: int
    end: str  #: why it has no more frames: "root", "truncated", "callchain", …
    frames: Tuple[RecordedFrame, ...]  #: the leaf first, inlined frames before the one that holds them


def _frame(row: Dict[str, Any]) -> RecordedFrame:
    return RecordedFrame(int(row["ip"], 16), row["name"], row["offset"], row["module"], row["source"],
                         row["inlined"], row["file"], row["line"], tuple(row.get("doubts", ())))


def _stack(line: str) -> RecordedStack:
    row = json.loads(line)
    return RecordedStack(int(row["time"].replace(".", "")), row["pid"], row["tid"], row["comm"], row["event"],
                         row["period"], row["end"], tuple(_frame(frame) for frame in row["frames"]))


def recorded_stacks(path: StrPath, options: Sequence[str] = ()) -> Iterator[RecordedStack]:
    """The stacks of a recording, in the order of their times, while the program makes them.

    `options` are those of `perfmap stacks`, such as ["--inlines", "--pid", "42"].
    """
    program = os.environ.get(PROGRAM) or "perfmap"
    command = [program, "stacks", "--quiet", "--format", "jsonl", *options, "--", os.fsdecode(path)]
    with tempfile.TemporaryFile("w+", errors="replace") as said:
        try:
            process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=said,
                                       encoding="utf-8", errors="surrogateescape")
        except FileNotFoundError:
            raise PerfmapError(Status.NOT_FOUND, f"no program {program} ({PROGRAM} can name it)") from None
        assert process.stdout is not None
        try:
            for line in process.stdout:
                yield _stack(line)
        finally:
            process.stdout.close()  # a caller that wants no more: the program ends at its next line
            status = process.wait()
        if status != 0:
            said.seek(0)
            raise PerfmapError(Status.BAD_FORMAT, said.read().strip().removeprefix("perfmap: error: "))
