#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""resolve --pid names all kinds of code of living processes, and reports why other addresses have
no name: resolve_process.py PERFMAP"""
import http.server
import json
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
import threading

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../support"))
from waiting import HANG, proc_file, until  # noqa: E402

PERFMAP = sys.argv[1]
HERE = os.path.dirname(os.path.abspath(__file__))
SOURCE = """
volatile int sink;
static inline __attribute__((always_inline)) void inner(int x) { sink = x * 3; }
__attribute__((noinline)) void victim_function(int x) {
  inner(x);
  sink += 1;
}
static __attribute__((noinline)) void hidden(void) { sink = 7; }
void (*hidden_pointer)(void) = hidden;
"""


class Victim:
    """A process that runs process_victim.py."""

    def __init__(self, scratch, mode, *rest, wrap=()):
        self.tmp = scratch
        command = [*wrap, sys.executable, f"{HERE}/process_victim.py", mode, scratch, *rest]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        line = self.process.stdout.readline()
        assert line, f"{mode}: the process did not begin"
        self.said = json.loads(line)
        self.pid = self.said["pid"]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()
        self.process.stdin.close()
        self.process.stdout.close()

    def ask(self, *addresses, options=(), pid=None):
        command = [PERFMAP, "resolve", *[f"{a:x}" for a in addresses], "--pid", str(pid or self.pid),
                   "--format", "jsonl", *options]
        done = subprocess.run(command, capture_output=True, text=True, timeout=HANG, env=environment(self.tmp))
        assert done.returncode == 0, done.stderr
        return [json.loads(line) for line in done.stdout.splitlines()]


def environment(tmp):
    return {**os.environ, "PERFMAP_TMPDIR": tmp}


def check(what, got, wanted):
    assert got == wanted, f"{what}: {got!r} instead of {wanted!r}"


def jit_code(scratch):
    with Victim(scratch, "jit") as victim:
        said = victim.said
        named, other, data, nothing = victim.ask(*[said[k] for k in ("named", "not-covered", "data", "unmapped")])
        check("jit", (named["name"], named["offset"], named["entry_line"]), ("jitted", 16, 1))
        check("a page without entry", (other["name"], other["why"]), (None, "not-covered"))
        check("data", (data["name"], data["why"]), (None, "no-source"))
        check("nothing", (nothing["name"], nothing["why"]), (None, "unmapped"))
        os.unlink(f"{scratch}/perf-{victim.pid}.map")
        (without,) = victim.ask(said["named"])
        check("without map", without["why"], "no-source")


def other_memory(scratch):
    with Victim(scratch, "memfd") as victim:
        check("memfd", victim.ask(victim.said["named"])[0]["name"], "double::mapped")


def forked_child(scratch):
    with Victim(scratch, "forked") as victim:
        try:
            (answer,) = victim.ask(victim.said["named"])
            check("a forked child", (answer["name"], os.path.basename(answer["source"])),
                  ("of the parent", f"perf-{victim.said['parent']}.map"))
        finally:
            os.kill(victim.pid, 9)


def deleted_library(scratch):
    source = f"{scratch}/victim.c"
    with open(source, "w") as out:
        out.write(SOURCE)
    library = f"{scratch}/victim.so"
    subprocess.run(["cc", "-g", "-O2", "-fno-toplevel-reorder", "-shared", "-fPIC", source, "-o", library], check=True)
    subprocess.run(["objcopy", "--strip-symbol=hidden", library], check=True)
    with Victim(scratch, "deleted", library) as victim:
        (answer,) = victim.ask(victim.said["function"], options=("--lines", "--inlines"))
        if os.geteuid() != 0 and answer["why"] == "unreadable":
            print("not root: files that were deleted cannot be read")
            return
        check("a deleted library", answer["name"], "victim_function")
        check("its source", answer["file"], source)
        assert 4 <= answer["source_line"] <= 7, answer
        begin = victim.said["function"] - answer["offset"]
        chains = victim.ask(*range(begin, begin + answer["size"]), options=("--lines", "--inlines"))
        inlined = {frame["name"]: frame["line"] for one in chains for frame in one["inlined"]}
        check("an inlined function", inlined, {"inner": 3})
        for options in ((), ("--lines",), ("--lines", "--inlines")):
            (answer,) = victim.ask(victim.said["hidden"], options=options)
            check("a function without symbol", (answer["name"], answer.get("source_line", 8)), ("hidden", 8))


def another_tree(scratch):
    """--symfs: a different file at the same path is not used."""
    source, library, other = f"{scratch}/victim.c", f"{scratch}/victim.so", f"{scratch}/tree"
    with open(source, "w") as out:
        out.write(SOURCE)
    subprocess.run(["cc", "-O2", "-shared", "-fPIC", "-Wl,--build-id", source, "-o", library], check=True)
    with Victim(scratch, "loaded", library) as victim:
        os.makedirs(other + scratch)
        shutil.copy(library, other + scratch)
        (answer,) = victim.ask(victim.said["function"], options=("--symfs", other))
        check("the same file", answer["name"], "victim_function")
        with open(source, "a") as out:
            out.write("int more;\n")
        subprocess.run(["cc", "-O2", "-shared", "-fPIC", "-Wl,--build-id", source, "-o", other + library], check=True)
        (answer,) = victim.ask(victim.said["function"], options=("--symfs", other))
        check("another file", (answer["name"], answer["why"]), (None, "unreadable"))


def another_root(_):
    """A container: pid 1 in its namespace, with its map in its own /tmp."""
    if os.geteuid() != 0:
        print("not root: no namespaces of its own")
        return
    inside = "mount -t tmpfs tmpfs /tmp && exec \"$@\""
    wrap = ("unshare", "--pid", "--fork", "--mount", "sh", "-c", inside, "sh")
    try:
        probe = subprocess.run([*wrap, "true"], capture_output=True, text=True, timeout=30)
        if probe.returncode != 0:
            raise OSError(probe.stderr)
    except OSError as error:
        print("no namespaces here:", error)
        return
    with open(f"{HERE}/process_victim.py") as victim:  # not visible there if it is below /tmp
        command = [*wrap, sys.executable, "-c", victim.read(), "jit", "/tmp"]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    said = json.loads(process.stdout.readline())
    check("the pid inside", said["pid"], 1)
    with open(f"/proc/{process.pid}/task/{process.pid}/children") as children:
        outside = int(children.read().split()[0])
    try:
        done = subprocess.run([PERFMAP, "resolve", f"{said['named']:x}", "--pid", str(outside), "--format", "jsonl"],
                              capture_output=True, text=True, timeout=HANG)
        check("in a container", json.loads(done.stdout)["name"], "jitted")
    finally:
        process.stdin.close()
        process.wait()


def stream_of_the_ended(scratch, end, why, note):
    """A thousand queries about a process that has ended or has executed another program return no
    old name."""
    with Victim(scratch, "jit") as victim:
        stream = subprocess.Popen([PERFMAP, "resolve", "-", "--pid", str(victim.pid), "--format", "jsonl"], stdin=subprocess.PIPE,
                                  stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment(scratch))
        address = f"{victim.said['named']:x}\n"

        def ask():
            stream.stdin.write(address)
            stream.stdin.flush()
            return stream.stdout.readline()

        check("before the end", json.loads(ask())["name"], "jitted")
        end(victim)
        answers = {ask() for _ in range(1000)}
        check("answers", len(answers), 1)
        check("after the end", json.loads(answers.pop()), {"address": f"0x{victim.said['named']:x}", "name": None, "why": why})
        stream.stdin.close()
        notes = stream.stderr.read()
        check("exit", stream.wait(timeout=HANG), 0)
        check("notes", notes, f"perfmap: process {victim.pid} {note}\n")
    never = subprocess.run([PERFMAP, "resolve", "10", "--pid", "4194305", "--format", "jsonl"], capture_output=True,
                           text=True, env=environment(scratch))
    check("a process that never was", (never.returncode, never.stdout, never.stderr),
          (2, "", "perfmap: error: no process 4194305\n"))


def killed(victim):
    victim.process.kill()
    victim.process.wait()


def executed(victim):
    victim.process.stdin.write("exec 60\n")
    victim.process.stdin.flush()
    until(lambda: proc_file(victim.pid, "comm") == "sleep\n", "it executes sleep")


def is_in_section(path, offset):
    """Whether a section of the file has the byte at this offset."""
    listed = subprocess.run(["readelf", "-SW", path], capture_output=True, text=True, check=True).stdout
    sections = re.findall(r"\] \S+ +(?!NOBITS)\S+ +[0-9a-f]{16} ([0-9a-f]+) ([0-9a-f]+) ", listed)
    assert len(sections) > 5, listed
    return any(int(at, 16) <= offset < int(at, 16) + int(size, 16) for at, size in sections)


def agrees_with_elfutils(scratch):
    """Compares random addresses in the code of all files of a process."""
    if shutil.which("eu-addr2line") is None:
        print("skipped in part: no eu-addr2line: names of a process's files are not compared")
        return
    chance = random.Random(20)
    with Victim(scratch, "jit") as victim:
        addresses = []
        places = []  # the file of each address, and the offset in it
        with open(f"/proc/{victim.pid}/maps") as maps:
            for line in maps:
                field = line.split()
                if "x" in field[1] and len(field) > 5 and field[5].startswith("/"):
                    begin, end = (int(x, 16) for x in field[0].split("-"))
                    for _ in range(150):
                        addresses.append(chance.randrange(begin, end))
                        places.append((field[5], addresses[-1] - begin + int(field[2], 16)))
        text = "".join(f"0x{a:x}\n" for a in addresses)
        theirs = subprocess.run(["eu-addr2line", "-S", "-p", str(victim.pid)], input=text, capture_output=True,
                                text=True, timeout=HANG).stdout.splitlines()[0::2]
        ours = subprocess.run([PERFMAP, "resolve", "-", "--no-demangle", "--pid", str(victim.pid)], input=text,
                              capture_output=True, text=True, timeout=HANG, env=environment(scratch)).stdout.splitlines()
    check("answers", (len(ours), len(theirs)), (len(addresses), len(addresses)))
    compared = 0
    for mine, other, place in zip(ours, theirs, places):
        name = re.fullmatch(r"[0-9a-f]+ (.*) \(.*\)", mine)[1]
        # elfutils has no names in PLTs and in files without symbols.
        if other == "??" or other.startswith("()") or name.split("+")[0].endswith("@plt"):
            continue
        if name == "[unknown]":
            # Padding between two sections: elfutils prints the symbol before it.
            check(f"{mine} (theirs: {other})", is_in_section(*place), False)
            continue
        if "+" not in other:
            other += "+0x0"
        compared += 1
        # Compares offsets, not names: a function may have several names.
        check(f"{mine} (theirs: {other})", name.rsplit("+", 1)[1], other.rsplit("+", 1)[1])
    assert compared > 100, compared
    print(f"{compared} of {len(addresses)} addresses compared")


def debug_file_of_a_server(scratch):
    """A stripped file: without the option, no server is asked for its debug file."""
    source, library, debug = f"{scratch}/victim.c", f"{scratch}/victim.so", f"{scratch}/victim.debug"
    with open(source, "w") as out:
        out.write(SOURCE)
    subprocess.run(["cc", "-g", "-O2", "-shared", "-fPIC", "-Wl,--build-id", source, "-o", library], check=True)
    notes = subprocess.run(["readelf", "-nW", library], capture_output=True, text=True).stdout
    wanted = "/buildid/" + re.search(r"Build ID: ([0-9a-f]+)", notes)[1] + "/debuginfo"
    subprocess.run(["objcopy", "--only-keep-debug", library, debug], check=True)
    subprocess.run(["strip", library], check=True)
    asked = []

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            asked.append(self.path)
            self.send_response(200 if self.path == wanted else 404)
            self.end_headers()
            if self.path == wanted:
                with open(debug, "rb") as file:
                    self.wfile.write(file.read())

        def log_message(self, *_):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    os.environ.update(DEBUGINFOD_URLS=f"http://127.0.0.1:{server.server_port}", DEBUGINFOD_CACHE_PATH=f"{scratch}/cache")
    with Victim(scratch, "deleted", library) as victim:
        before = victim.ask(victim.said["function"], options=("--lines",))[0]
        check("nobody was asked", asked, [])
        try:
            after = victim.ask(victim.said["function"], options=("--lines", "--debuginfod"))[0]
        except AssertionError as error:
            if "cannot load libdebuginfod" not in str(error):
                raise
            print(error)
            return
        if after.get("why") == "unreadable":
            return
        check("the server was asked", wanted in asked, True)
        check("without and with a server", ("file" in before, after.get("file")), (False, source))
    server.shutdown()


def main():
    tests = [jit_code, debug_file_of_a_server, other_memory, forked_child, deleted_library, another_tree, another_root, agrees_with_elfutils,
             lambda scratch: stream_of_the_ended(scratch, killed, "gone", "has ended"),
             lambda scratch: stream_of_the_ended(scratch, executed, "unmapped", "runs another program now")]
    for test in tests:
        with tempfile.TemporaryDirectory() as scratch:
            test(scratch)
    return 0


sys.exit(main())
