# SPDX-License-Identifier: MIT
"""How functions of the library fail."""
from __future__ import annotations

import enum
import os
from typing import Union


class Status(enum.IntEnum):
    """perfmap_status; NOT_FOUND is None instead where it is an answer."""

    OK = 0
    IO = 1
    NOT_FOUND = 2
    BAD_FORMAT = 3
    UNSUPPORTED = 4
    INVALID_ARGUMENT = 5
    REFUSED = 6
    TOO_LARGE = 7
    NO_MEMORY = 8
    INTERNAL = 9


class PerfmapError(Exception):
    """A function of the library failed.

    `status` is a Status (or the number of one that this package does not know), `errno` the number
    of the system call's error or 0, `offset` the place in the input, in bytes.
    """

    status: Union[Status, int]
    errno: int
    offset: int

    def __init__(self, status: Union[Status, int], message: str, errno: int = 0, offset: int = 0) -> None:
        super().__init__(message)
        self.status = status
        self.errno = errno
        self.offset = offset
        self.message = message

    def __str__(self) -> str:
        return self.message


class PerfmapOSError(PerfmapError, OSError):
    """The same, where a system call failed: also an OSError."""


class LibraryNotFound(PerfmapError, ImportError):
    """No library of perfmap could be loaded."""

    def __init__(self, message: str) -> None:
        super().__init__(Status.NOT_FOUND, message)


def error_of(status: int, message: str, errno: int, offset: int) -> PerfmapError:
    known: Union[Status, int] = status
    if status in Status.__members__.values():
        known = Status(status)
    if errno:
        return PerfmapOSError(known, message or os.strerror(errno), errno, offset)
    return PerfmapError(known, message, errno, offset)
