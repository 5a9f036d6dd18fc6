# SPDX-License-Identifier: MIT
"""Call stacks, from the registers of threads and copies of their stacks."""
from __future__ import annotations

import ctypes
import enum
import platform
from dataclasses import dataclass
from typing import Any, Iterable, Iterator, List, Mapping, Optional, Tuple, Union

from . import _library
from .errors import PerfmapError, Status
from .profile import NOW, AddressName, Detail, Tracker, UnwindSpace

EM_386, EM_ARM, EM_X86_64, EM_AARCH64 = 3, 40, 62, 183
_HOST = {"x86_64": EM_X86_64, "aarch64": EM_AARCH64}


def registers_of_interest(machine: int) -> int:
    """The sample_regs_user of perf_event_attr for stacks of that machine to be unwound."""
    return int(_library.profile().perfmap_preferred_regs_mask(machine))


@dataclass(frozen=True)
class Sample:
    """A thread at a moment, as perf's samples have it."""

    registers: Mapping[int, int]  #: by their numbers in the kernel's perf_regs.h
    stack: bytes  #: from the stack pointer on
    time: int = NOW  #: for code of jitdumps: CLOCK_MONOTONIC
    machine: int = _HOST.get(platform.machine(), 0)  #: e_machine of ELF
    stack_is_full: bool = False  #: there was no room for more of the stack


class FrameSource(enum.IntEnum):
    """How a frame was found."""

    INITIAL = 0
    LEAF = 1
    EH_CFI = 2
    DEBUG_FRAME = 3
    JIT_CFI = 4
    FRAME_POINTER = 5
    PLT = 6
    SCAN = 7
    STITCHED = 8
    CALLCHAIN = 9
    KERNEL = 10
    REPAIRED = 11
    SIGNAL = 12


class StackEnd(enum.IntEnum):
    """Why a stack has no more frames."""

    ROOT = 0
    TRUNCATED = 1
    NO_INFO = 2
    BAD_MEMORY = 3
    LOOP = 4
    LIMIT = 5
    CALLCHAIN = 6
    OTHER = 7


@dataclass(frozen=True)
class Frame:
    pc: int  #: a caller's is its return address
    sp: int
    source: Union[FrameSource, int]
    is_return: bool
    name: Optional[AddressName] = None

    @property
    def address(self) -> int:
        """The address that says which function and line this is."""
        return self.pc - 1 if self.is_return else self.pc


@dataclass(frozen=True)
class Stack:
    frames: Tuple[Frame, ...]  #: the leaf first
    end: Union[StackEnd, int]


class Unwinder(_library.ClosableHandle):
    """Finds callers, and remembers what it computed: best one for each thread."""

    def __init__(self, *, max_frames: int = 0, scan: bool = False, jit_cfi_first: bool = False) -> None:
        self._library = library = _library.profile()
        options = _library.new(library, "perfmap_unwinder_options", most_frames=max_frames, scan=scan,
                               jit_cfi_first=jit_cfi_first)
        super().__init__(_library.made(library.perfmap_unwinder_begin, ctypes.byref(options)),
                         library.perfmap_unwinder_end)

    def unwind(self, space: UnwindSpace, sample: Sample) -> Stack:
        library = self._library
        numbers = sorted(sample.registers)
        values = (ctypes.c_uint64 * len(numbers))(*(sample.registers[number] for number in numbers))
        row = _library.new(
            library, "perfmap_sample", machine=sample.machine, is_stack_full=sample.stack_is_full,
            time=sample.time, register_mask=sum(1 << number for number in numbers),
            registers=ctypes.addressof(values), register_count=len(numbers),
            stack=_library.address_of(sample.stack), stack_size=len(sample.stack))
        frames: List[Frame] = []
        type_ = library.structures["perfmap_frame"]

        def take(frame: int, _context: Optional[int]) -> int:
            one: Any = type_.from_address(frame)
            frames.append(Frame(one.pc, one.sp, _library.known(FrameSource, one.source), bool(one.is_return)))
            return 0

        end = ctypes.c_int32()
        with self._lock:
            _library.check(library.perfmap_unwind_sample, self._handle, space._handle, ctypes.byref(row),
                           _library.TakeFrame(take), None, ctypes.byref(end))
        return Stack(tuple(frames), _library.known(StackEnd, end.value))


def stacks(tracker: Tracker, pid: int, samples: Iterable[Sample], *, detail: Detail = Detail.SYMBOLS,
           time: int = NOW, **options: Any) -> Iterator[Stack]:
    """The stacks of samples of one process, with names, in their order. `options` are those of
    Unwinder; `time` is the tracker's, of the memory that the process had."""
    space = tracker.unwind_space(pid, time)
    if space is None:
        raise PerfmapError(Status.NOT_FOUND, f"the tracker knows no process {pid}")
    with Unwinder(**options) as unwinder:
        for sample in samples:
            found = unwinder.unwind(space, sample)
            yield Stack(tuple(
                Frame(frame.pc, frame.sp, frame.source, frame.is_return,
                      tracker.name(pid, frame.address, time, sample.time, detail))
                for frame in found.frames), found.end)
