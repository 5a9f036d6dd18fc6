# SPDX-License-Identifier: MIT
"""The machines and the variants of programs that are sampled, and how many of their stacks have to be
right. Shares are in percent, and chance is allowed for (three standard deviations). If rules for
unwinding are added, raise the shares to the goals."""
import dataclasses
import shutil

from support.recorded import FLAGS_OF_I386


@dataclasses.dataclass(frozen=True)
class Variant:
    name: str
    flags: tuple
    equal: float  # at least, of the samples that can be right: see IMPOSSIBLE in truth.py
    wrong: float  # at most
    goal: float  # of `equal`
    is_cpp: bool = False
    has_jit: bool = False
    is_clang: bool = False
    files_by: str = "record"  # see write_recording()
    qemu_flags: tuple = ()
    has_39_bits: bool = False  # addresses of the recorded machine

    def compiler(self, machine):
        if self.is_clang:
            return ["clang", f"--target={machine.triple}"]
        return machine.cpp_compiler if self.is_cpp else machine.c_compiler

    def missing(self, machine):
        """Why it cannot be built here; None if it can."""
        program = self.compiler(machine)[0]
        return None if shutil.which(program) else f"there is no {program}"


@dataclasses.dataclass(frozen=True)
class Machine:
    name: str
    triple: str
    qemu: str
    uname: str
    abi: int  # perf's: 1 for addresses of 32 bits, 2 for 64
    pc: int  # perf's number of the register
    sp: int
    variants: tuple
    classes: dict  # {class of samples in all variants: (share of equal stacks at least, goal)}
    findings: frozenset  # what `perfmap doctor` may report
    probe_flags: tuple = ()
    is_native: bool = False  # its libraries are among those of this machine, whose compiler makes its code
    qemu_flags: tuple = ()

    @property
    def root(self):
        return "/" if self.is_native else f"/usr/{self.triple}"

    @property
    def c_compiler(self):
        return ["gcc-12", *FLAGS_OF_I386] if self.is_native else [f"{self.triple}-gcc"]

    @property
    def cpp_compiler(self):
        return ["g++-12", *FLAGS_OF_I386] if self.is_native else [f"{self.triple}-g++"]


USUAL_FINDINGS = frozenset(
    {"cut-stacks", "early-ends", "frame-pointers", "no-symbols", "other-stack", "unknown-jit"})

AARCH64 = Machine(
    "aarch64", "aarch64-linux-gnu", "qemu-aarch64", "aarch64", 2, 32, 31,
    (Variant("O2", ("-O2",), 99, 1, 100, has_jit=True),
     Variant("O0", ("-O0",), 99, 1, 100, has_jit=True, files_by="inode"),
     Variant("no-frame-pointer", ("-O2", "-fomit-frame-pointer"), 99, 1, 100, has_jit=True, files_by="header"),
     Variant("pac", ("-O2", "-mbranch-protection=standard"), 99, 1, 100, has_jit=True),
     Variant("pac-39-bits", ("-O2", "-mbranch-protection=standard"), 99, 1, 100, has_jit=True, has_39_bits=True),
     # glibc does not sign the addresses that such a PLT authenticates, so it is for processors without.
     Variant("pac-plt", ("-O2", "-mbranch-protection=standard", "-Wl,-z,pac-plt"), 99, 1, 100,
             qemu_flags=("-cpu", "cortex-a57")),
     Variant("static", ("-O2", "-static"), 99, 1, 100, files_by="header"),
     Variant("cpp", ("-O2",), 98.5, 1, 100, is_cpp=True),
     # clang's rules describe call sites only: neither prologues nor epilogues.
     Variant("clang", ("-O2",), 97, 2, 99, is_clang=True)),
    {"body": (99, 100), "dynamic loader": (90, 95), "epilogue": (96, 99), "exception": (99, 100), "jit": (98, 100),
     "leaf": (99, 100), "library": (99, 100), "own stack": (97, 100), "plt": (94, 100), "prologue": (98, 100),
     "signal handler": (97, 99)},
    USUAL_FINDINGS | {"unnamed-jit"})

# Debian's libc has rules for a quarter of its functions.
RISCV64 = Machine(
    "riscv64", "riscv64-linux-gnu", "qemu-riscv64", "riscv64", 2, 0, 2,
    (Variant("O2", ("-O2", "-fasynchronous-unwind-tables"), 92, 1.5, 96),
     Variant("frame-pointer", ("-O2", "-fasynchronous-unwind-tables", "-fno-omit-frame-pointer"), 92, 1.5, 98),
     Variant("static", ("-O2", "-fasynchronous-unwind-tables", "-static"), 92, 1.5, 96),
     Variant("cpp", ("-O2", "-fasynchronous-unwind-tables"), 91, 1.5, 96, is_cpp=True)),
    {"body": (99, 100), "epilogue": (98, 100), "exception": (99, 100), "leaf": (99, 100), "library": (98, 100),
     "no rules": (74, 85), "own stack": (97, 100), "plt": (82, 100), "prologue": (99, 100),
     "signal handler": (97, 100)},
    USUAL_FINDINGS, ("-fasynchronous-unwind-tables",))

ARM = Machine(
    "arm", "arm-linux-gnueabihf", "qemu-arm", "armv7l", 1, 15, 13,
    (Variant("O2", ("-O2", "-funwind-tables"), 86, 2, 95),
     Variant("arm-code", ("-O2", "-marm", "-fno-omit-frame-pointer", "-funwind-tables"), 92, 5, 98),
     Variant("cpp", ("-O2",), 42, 3, 70, is_cpp=True)),
    # Tables of EHABI describe call sites only, and Debian's libm and part of libc have none.
    {"body": (97, 100), "leaf": (98, 100), "library": (73, 90), "no rules": (6, 50), "own stack": (95, 100),
     "plt": (50, 100), "prologue": (97, 100), "signal handler": (80, 100)},
    USUAL_FINDINGS, ("-funwind-tables",))

# No exceptions: qemu or the probe ends with SIGSEGV in the C++ program.
X86 = Machine(
    "x86", "i386-linux-gnu", "qemu-i386", "i686", 1, 8, 7,
    (Variant("O2", ("-O2",), 98.5, 1.5, 100),
     Variant("O0", ("-O0",), 98.5, 1.5, 100, files_by="inode"),
     Variant("no-frame-pointer", ("-O2", "-fomit-frame-pointer"), 98.5, 1.5, 100, files_by="header"),
     Variant("no-pie", ("-O2", "-fno-pie", "-no-pie"), 98.5, 1.5, 100),
     Variant("static", ("-O2", "-static"), 98.5, 1.5, 100, files_by="header")),
    {"body": (98.5, 100), "dynamic loader": (97, 100), "epilogue": (97, 100), "leaf": (98.5, 100), "library": (98.5, 100),
     "own stack": (97, 100), "prologue": (98.5, 100), "signal handler": (97, 100)},
    USUAL_FINDINGS, is_native=True,
    # After a signal, qemu 7.2 loses registers of the x87 if it has saved them with fxsave; no SSE, since fsave
    # leaves that out.
    qemu_flags=("-cpu", "pentium2,-fxsr"))

MACHINES = {machine.name: machine for machine in (AARCH64, RISCV64, ARM, X86)}
