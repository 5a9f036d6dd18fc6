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


class Reason(enum.IntEnum):
    """perfmap_reason: what exactly failed. perfmap_writer.h has the meanings."""

    OTHER = 0
    SYSTEM = 1
    NOT_REGULAR = 2
    SYMBOLIC_LINK = 3
    KERNEL_FILE = 4
    HARD_LINKS = 5
    FOREIGN_OWNER = 6
    OLDER_THAN_PROCESS = 7
    OTHER_PROCESS = 8
    OTHER_FILE = 9
    OTHER_BUILD = 10
    DELETED = 11
    PRIVATE = 12
    REPLACED = 13
    TRUNCATED = 14
    CHANGED = 15
    TOO_LARGE = 16
    TOO_MANY = 17
    EXISTS = 18
    IS_INPUT = 19
    NO_PROCESS = 20
    PROCESS_ENDED = 21
    OTHER_KIND = 22
    NOT_OF_KIND = 23
    NOT_INSTALLED = 24
    FORBIDDEN = 25
    HIDDEN_ADDRESSES = 26
    UNREACHABLE = 27
    UNSUITABLE = 28


class PerfmapError(Exception):
    """A function of the library failed.

    `status` is a Status (or the number of one that this package does not know), `errno` the number
    of the system call's error or 0, `offset` the place in the input, in bytes. `reason` is a Reason
    (or a number), and `filename` the file that the error is about, or b"".
    """

    status: Union[Status, int]
    errno: int
    offset: int
    reason: Union[Reason, int]
    filename: bytes

    def __init__(self, status: Union[Status, int], message: str, errno: int = 0, offset: int = 0,
                 reason: Union[Reason, int] = Reason.OTHER, filename: bytes = b"") -> None:
        super().__init__(message)
        self.status = status
        self.errno = errno
        self.offset = offset
        self.reason = reason
        self.filename = filename
        self.message = message

    def __str__(self) -> str:
        return self.message


class PerfmapOSError(PerfmapError, OSError):
    """The same, where a system call failed: also an OSError."""


class LibraryNotFound(PerfmapError, ImportError):
    """No library of perfmap could be loaded."""

    def __init__(self, message: str) -> None:
        super().__init__(Status.NOT_FOUND, message)


def error_of(status: int, message: str, errno: int = 0, offset: int = 0, reason: int = 0, filename: bytes = b"") -> PerfmapError:
    known: Union[Status, int] = Status(status) if status in Status.__members__.values() else status
    why: Union[Reason, int] = Reason(reason) if reason in Reason.__members__.values() else reason
    if errno:
        return PerfmapOSError(known, message or os.strerror(errno), errno, offset, why, filename)
    return PerfmapError(known, message, errno, offset, why, filename)
