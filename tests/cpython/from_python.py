# SPDX-License-Identifier: MIT
"""Checks libperfmap-cpython.so through ctypes, with the assertions of CPython's own tests of perf
maps and trampolines: from_python.py LIBPERFMAP LIBPERFMAP_CPYTHON"""
import ctypes
import os
import re
import sys
import traceback

perfmap = ctypes.CDLL(sys.argv[1], use_errno=True, mode=ctypes.RTLD_GLOBAL)
cpython = ctypes.CDLL(sys.argv[2], use_errno=True)
MAP = 1
Evaluator = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p)


class Options(ctypes.Structure):
    _fields_ = [("struct_size", ctypes.c_size_t), ("prefix", ctypes.c_char_p),
                ("jitdump_directory", ctypes.c_char_p), ("exceptions", ctypes.c_int)]


class Description(ctypes.Structure):
    _fields_ = [("struct_size", ctypes.c_size_t), ("name", ctypes.c_char_p),
                ("name_size", ctypes.c_size_t), ("file", ctypes.c_char_p),
                ("file_size", ctypes.c_size_t), ("first_line", ctypes.c_int32)]


class PyCodeObject(ctypes.Structure):
    _fields_ = [("trampoline", ctypes.c_void_p), ("evaluator", Evaluator)]


perfmap.perfmap_trampoline_call.argtypes = [ctypes.c_void_p] * 4 + [Evaluator]
perfmap.perfmap_trampoline_call.restype = ctypes.c_void_p
perfmap.perfmap_trampoline_free.argtypes = [ctypes.c_void_p]
write = cpython.PyUnstable_WritePerfMapEntry
write.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_char_p]
compile_code = cpython.PyUnstable_PerfTrampoline_CompileCode
set_persist = cpython.PyUnstable_PerfTrampoline_SetPersistAfterFork


class Interpreter:
    """A minimal interpreter that the library cannot distinguish from a real one."""

    def __init__(self, file=b"/run/t.py"):
        self.file = file
        self.arena = ctypes.c_void_p()
        options = Options(ctypes.sizeof(Options), b"py", None)
        assert perfmap.perfmap_trampoline_arena_new(
            ctypes.byref(options), ctypes.byref(self.arena), None) == 0

    def activate(self):
        assert perfmap.perfmap_trampoline_activate(self.arena, MAP, None) == 0

    def deactivate(self):
        perfmap.perfmap_trampoline_deactivate(self.arena)

    def code(self, name, body=lambda: None):
        given = Description(ctypes.sizeof(Description), name, len(name), self.file,
                            len(self.file), 1)
        made = PyCodeObject(None, Evaluator(lambda a, b, c: body() or a))
        trampoline = ctypes.c_void_p()
        assert perfmap.perfmap_trampoline_new(
            self.arena, ctypes.byref(given), ctypes.byref(trampoline), None) == 0
        made.trampoline = trampoline.value
        return made


def call(code):
    assert perfmap.perfmap_trampoline_call(code.trampoline, 42, None, None, code.evaluator) == 42


def own_map(pid=None):
    return f"/tmp/perf-{pid or os.getpid()}.map"


def lines(pid=None):
    try:
        with open(own_map(pid), "rb") as file:
            return file.read().decode().splitlines()
    except FileNotFoundError:
        return []


def names(pid=None):
    return [line.split(" ", 2)[2] for line in lines(pid)]


def child(body):
    """Runs `body` in a child; returns the lines of the child's map."""
    pid = os.fork()
    if pid == 0:
        status = 1
        try:
            body()
            status = 0
        except BaseException:
            traceback.print_exc()
        os._exit(status)
    assert os.waitpid(pid, 0)[1] == 0
    found = lines(pid)
    if found:
        os.unlink(own_map(pid))
    return found


def entries_are_written():
    assert write(0x1234, 5678, b"entry1") == 0
    assert write(0x2345, 6789, b"entry2") == 0
    assert write(0x3456, 1 << 33, b"entry3") == 0
    assert lines() == ["1234 162e entry1", "2345 1a85 entry2", "3456 200000000 entry3"]
    cpython.PyUnstable_PerfMapState_Fini()


def functions_that_call_each_other_are_named():
    interpreter = Interpreter()
    interpreter.activate()
    baz = interpreter.code(b"baz")
    bar = interpreter.code(b"bar", lambda: call(baz))
    foo = interpreter.code(b"foo", lambda: call(bar))
    call(foo)
    call(foo)
    assert names() == ["py::foo:/run/t.py", "py::bar:/run/t.py", "py::baz:/run/t.py"]
    for line in lines():
        assert re.fullmatch(r"[0-9a-f]+ [0-9a-f]+", " ".join(line.split()[:2]))
        assert not line.startswith("0x")


def a_file_name_that_is_no_text_is_no_reason_to_crash():
    interpreter = Interpreter("bad\ud800file".encode("utf-8", "surrogatepass"))
    interpreter.activate()
    call(interpreter.code(b"foo"))
    assert names() == ["py::foo:bad\\xed\\xa0\\x80file"]


def parent_and_child_have_names_of_their_own():
    interpreter = Interpreter()
    interpreter.activate()
    before = [interpreter.code(name) for name in (b"foo", b"bar", b"baz")]
    after = [interpreter.code(name) for name in (b"foo_fork", b"bar_fork", b"baz_fork")]
    for code in before:
        call(code)
    found = child(lambda: [call(code) for code in after])
    assert [line.split(" ", 2)[2] for line in found] == [
        f"py::{name}_fork:/run/t.py" for name in ("foo", "bar", "baz")]
    assert names() == [f"py::{name}:/run/t.py" for name in ("foo", "bar", "baz")]


def a_child_may_free_many_code_objects():
    interpreter = Interpreter()
    interpreter.activate()
    codes = [interpreter.code(b"f%d" % i) for i in range(2000)]
    for code in codes:
        call(code)

    def free_them():
        for code in codes[::2]:
            call(code)
        for code in codes:
            perfmap.perfmap_trampoline_free(code.trampoline)
        for i in range(1000):
            call(interpreter.code(b"g%d" % i))

    assert len(child(free_them)) == 2000


def what_runs_while_deactivated_is_not_named():
    interpreter = Interpreter()
    foo, bar, baz = (interpreter.code(name) for name in (b"foo", b"bar", b"baz"))
    interpreter.activate()
    interpreter.activate()
    call(foo)
    interpreter.deactivate()
    call(bar)
    assert compile_code(ctypes.byref(bar)) == 0
    interpreter.activate()
    call(baz)
    assert names() == ["py::foo:/run/t.py", "py::baz:/run/t.py"]


def what_is_compiled_before_a_fork_persists():
    interpreter = Interpreter()
    interpreter.activate()
    assert set_persist(1) == 0
    codes = [interpreter.code(name) for name in (b"foo_fork", b"bar_fork")]
    for code in codes:
        assert compile_code(ctypes.byref(code)) == 0
    before = lines()

    def run():
        for code in codes:
            call(code)
        call(interpreter.code(b"baz_fork"))

    found = child(run)
    assert len(before) == 2 and found[:2] == before and lines() == before
    assert found[2].endswith(" py::baz_fork:/run/t.py") and len(found) == 3
    assert set_persist(0) == 0
    call(codes[0])
    assert child(lambda: None) == []


for test in (entries_are_written, functions_that_call_each_other_are_named,
             a_file_name_that_is_no_text_is_no_reason_to_crash,
             parent_and_child_have_names_of_their_own, a_child_may_free_many_code_objects,
             what_runs_while_deactivated_is_not_named, what_is_compiled_before_a_fork_persists):
    def in_child(body=test):
        try:
            body()
        finally:
            if os.path.exists(own_map()):
                os.unlink(own_map())

    child(in_child)
    print(test.__name__.replace("_", " "))
