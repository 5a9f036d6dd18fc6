# SPDX-License-Identifier: MIT
"""What the stack of a sample is, and how far a stack that was found agrees with it.

Two witnesses: libgcc's backtrace, which has every frame but fails in code without rules, and the
list of functions that the program had entered, with their return addresses, which never fails but
has only the functions of the probe. A backtrace counts if it agrees with the list."""
import re

TRAMPOLINE_SIZE = 8  # two instructions
HANDLERS = {"on_raised", "on_interval", "on_own_stack"}
# Registers are being loaded or replaced: the rules say nothing of where the caller's are.
IMPOSSIBLE = {"landing", "longjmp"}
READ, WRITE, EXECUTE = 1, 2, 4
PC_THUNK = "__x86"  # the plain name of __x86.get_pc_thunk.*
LINKAGE_TABLES = (".plt", ".iplt", ".plt.got", ".plt.sec")


def plain_name(symbol):
    """A function's own name, without namespaces, parameters and the compiler's suffixes."""
    symbol = symbol.split(".")[0]
    nested = re.match(r"_ZN?K?(?=\d)", symbol)
    if not nested:
        return symbol
    at, name = nested.end(), symbol
    while digits := re.match(r"\d+", symbol[at:]):
        at += digits.end()
        name = symbol[at:at + int(digits[0])]
        at += int(digits[0])
    return name


class Truth:
    """The samples of a dump, and what their stacks are."""

    def __init__(self, dump, memory, machine, program):
        self.memory = memory
        self.program = program
        self.pc, self.sp = machine.pc, machine.sp
        self.is_thumb = dump.machine == 40
        self.own = {name for sample in dump.samples for name, _ in sample.entered}
        self.trampolines = {caller & ~1 if self.is_thumb else caller
                            for sample in dump.samples for name, caller in sample.entered if name in HANDLERS}
        self.trampolines |= {mapping.begin for mapping in dump.mappings if self.is_code_of_system(mapping)}
        # The tables of arm say that _start cannot be unwound, and libgcc leaves it out.
        self.root = "__libc_start_main" if self.is_thumb else "_start"
        self._names = {}

    def is_trampoline(self, address):
        return any(begin <= address < begin + TRAMPOLINE_SIZE for begin in self.trampolines)

    def name(self, address):
        if address not in self._names:
            self._names[address] = plain_name(self.memory.function(address))
        return self._names[address]

    def backtrace(self, sample):
        """Of libgcc, if it is complete and true; otherwise None."""
        frames = [frame & ~1 if self.is_thumb else frame for frame in sample.backtrace]
        while frames and frames[-1] == 0:
            frames.pop()
        names = self.names(frames)
        is_whole = bool(frames) and names[-1] == self.root and self.agreement(frames, names, sample.entered) == "equal"
        return frames if is_whole else None

    def names(self, frames):
        names, was_called = [], False
        for frame in frames:
            names.append(self.name(frame - 1 if was_called else frame))
            was_called = not self.is_trampoline(frame)
        return names

    def agreement(self, frames, names, entered):
        """"equal", "shorter" (the frames end before the functions do) or "wrong"."""
        callers = [(name, caller & ~1 if self.is_thumb else caller) for name, caller in reversed(entered)]
        return self._match(frames, names, callers, 0, 0, 0)

    def _match(self, frames, names, callers, at, done, begin):
        """`begin` is where the frames begin, or go on after a signal."""
        while done < len(callers):
            if at + 1 >= len(frames):
                is_possible = at == len(frames) or names[at] not in self.own or (
                    names[at] == callers[done][0] or self.may_be_outside(names, at, begin))
                return "shorter" if is_possible else "wrong"
            is_outside = names[at] in self.own and self.may_be_outside(names, at, begin)
            if is_outside and self._match(frames, names, callers, at + 1, done, -1) == "equal":
                return "equal"
            if (names[at], frames[at + 1]) == callers[done]:
                done += 1
            elif names[at] in self.own and not is_outside:
                return "wrong"
            if self.is_trampoline(frames[at]):
                begin = at + 1
            at += 1
        return "equal"

    @staticmethod
    def may_be_outside(names, at, begin):
        """Whether a function may not have been entered yet, or be left already: one that was
        interrupted, that does not come back from its last call, or that asks for its own address
        first, as position-independent code of i386 does."""
        called = names[at - 1].split("@")[0]
        return at == begin or names[at] == "ends_with_call" or called in ("_Unwind_Resume", PC_THUNK)

    def judge(self, sample, frames, names, end):
        """How frames with names agree with the truth: "equal", "longer", "shorter" or "wrong"."""
        truth = self.backtrace(sample)
        if truth is None:
            agrees = self.agreement(frames, names, sample.entered)
            is_whole = agrees == "equal" and end == "root" and names[-1] == "_start"
            is_cut = self.is_on_own_stack(sample) and any(map(self.is_trampoline, frames[:-1])) and agrees == "shorter"
            return "equal" if is_whole or is_cut else "shorter" if agrees == "equal" else agrees
        if frames[len(truth):] and names[-1] == "_start" != self.root:
            frames = frames[:-1]
        if frames == truth or self.is_cut_at_own_stack(sample, frames, truth):
            return "equal"
        if frames[:len(truth)] == truth:
            return "longer"
        return "shorter" if truth[:len(frames)] == frames else "wrong"

    def is_cut_at_own_stack(self, sample, frames, truth):
        """A copy of a handler's own stack ends there: the registers of the interrupted function are
        on it, but its callers are not."""
        if not self.is_on_own_stack(sample) or truth[:len(frames)] != frames:
            return False
        below = [i for i, frame in enumerate(truth) if self.is_trampoline(frame)]
        return bool(below) and len(frames) >= below[-1] + 2

    def is_on_own_stack(self, sample):
        mapping = self.memory.find(sample.registers[self.sp])[0]
        return mapping is not None and mapping.path != "[stack]"

    def class_of(self, sample):
        """The first that fits, so that the counts of classes add up to the samples. In "landing"
        libgcc writes over saved registers, to enter the code that handles an exception, so that it
        cannot unwind itself either."""
        pc = sample.registers[self.pc]
        mapping, file, place = self.memory.find(pc)
        names = {name for name, _ in sample.entered}
        known = [pc, *sample.backtrace]
        if self.is_on_own_stack(sample):
            return "own stack"
        if "called_by_jit" in names or any(self.is_jit(frame) for frame in known):
            return "jit"
        if HANDLERS & names or any(self.is_trampoline(frame) for frame in known[2:]):
            return "signal handler"
        if self.is_trampoline(pc):
            return "trampoline"
        if file is None:
            return "no code"
        if file.section_at(place) in LINKAGE_TABLES:
            return "plt"
        if "/ld-" in mapping.path:
            return "dynamic loader"
        if sample.entered[-1][0] == "returns_by_jump" and (mapping.path != self.program or "jmp" in self.name(pc)):
            return "longjmp"
        is_whole = self.backtrace(sample) is not None
        if any(self.name(frame).startswith("_Unwind_") for frame in known) or (
                "/libgcc_s" in mapping.path and not is_whole):
            return "exception" if is_whole else "landing"
        if not file.has_rules(place):
            return "no rules"
        if mapping.path != self.program:
            return "library"
        begin, size, symbol = file.function_at(place) or (place, 1, "")
        name = plain_name(symbol)
        if name in self.own and sample.entered[-1][0] != name:
            return "prologue" if 2 * (place - begin) < size else "epilogue"
        return "leaf" if name.startswith("leaf") else "body"

    @staticmethod
    def is_code_of_system(mapping):
        """qemu's page for the return from signals."""
        return not mapping.path and mapping.protection == READ | EXECUTE

    def is_jit(self, address):
        mapping, file, _ = self.memory.find(address)
        return mapping is not None and file is None and mapping.protection == READ | WRITE | EXECUTE
