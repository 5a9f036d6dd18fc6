#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Root examines a process that has mounted files of root over its own: process_rights.py PERFMAP

An unprivileged process can do so in user and mount namespaces of its own. Root's commands must print
no byte of such a file, and say why; files that the process may read must go on being read.

Exit status 77: not root, or user namespaces are not allowed here.
"""
import ctypes
import os
import pathlib
import signal
import subprocess
import sys
import tempfile

PERFMAP = str(pathlib.Path(sys.argv[1]).resolve())
ENEMY = 12345
SECRET = "a_secret_name"
CLONE_NEWNS, CLONE_NEWUSER, MS_BIND, MS_REC_PRIVATE = 0x20000, 0x10000000, 0x1000, 0x44000
libc = ctypes.CDLL(None, use_errno=True)


def skip(why):
    print(f"skipped: {why}")
    sys.exit(77)


class CannotPrepare(Exception):
    """This machine does not allow such a process."""


def checked(result):
    if result != 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))


def mount(source, target, kind=None, flags=0, data=None):
    source, target = os.fsencode(str(source)), os.fsencode(str(target))
    checked(libc.mount(source, target, kind, flags, data))


def drop(user, groups=()):
    os.setgroups(list(groups))
    os.setresgid(user, user, user)
    os.setresuid(user, user, user)


class Process:
    """A child that runs `prepare` and waits."""

    def __init__(self, prepare):
        read, write = os.pipe()
        self.pid = os.fork()
        if self.pid == 0:
            libc.prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG
            try:
                prepare()
                # The kernel forgets it when a process changes its user.
                libc.prctl(1, signal.SIGKILL)
                os.write(write, b"ready\n")
            except OSError as error:
                os.write(write, f"{error}\n".encode())
            while True:
                signal.pause()
        os.close(write)
        with os.fdopen(read) as said:
            self.said = said.readline().strip()
        if self.said != "ready":
            self.__exit__()
            raise CannotPrepare(self.said)

    def __enter__(self):
        return self

    def __exit__(self, *ignored):
        os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)


def run(*arguments, status=(0, 1, 2)):
    done = subprocess.run([PERFMAP, *map(str, arguments)], capture_output=True, text=True, timeout=200,
                          stdin=subprocess.DEVNULL)
    assert done.returncode in status, (arguments, done.returncode, done.stderr)
    return done.stdout + done.stderr


def commands(pid, work):
    """All that reads a map or a dump of a process."""
    out = work / "out"
    return [("lint", pid), ("lint", pid, "--any-owner"), ("to-json", pid), ("to-json", pid, "--any-owner"),
            ("tidy", pid), ("tidy", pid, "--any-owner"), ("info", pid), ("info", pid, "--any-owner"),
            ("copy", pid, "-o", out), ("copy", pid, "--any-owner", "-o", out),
            ("merge", pid, pid), ("merge", pid, pid, "--any-owner"), ("diff", pid, pid),
            ("convert", pid, "--to", "json", "--any-owner"), ("doctor", pid),
            ("resolve", "0x1010", "--pid", pid), ("resolve", "0x1010", "--pid", pid, "--any-owner"),
            ("watch", pid, "--for", "0.3", "--any-owner"),
            ("snapshot", pid, "--any-owner", "-o", work / "snapshot")]


def attack(what, pid, work):
    """Runs them all; returns what they printed."""
    said = ""
    for arguments in commands(pid, work):
        text = run(*arguments)
        assert SECRET not in text, f"{what}: {arguments}: {text}"
        said += text
    for path in work.rglob("*"):
        if path.is_file() and path.name not in ("secret", "secret.so", "secret.debug"):
            assert SECRET.encode() not in path.read_bytes(), f"{what}: {path}"
    subprocess.run(["rm", "-rf", work / "snapshot", work / "out"], check=True)
    return said


def enter_namespaces():
    """As an unprivileged user: in user and mount namespaces of its own, where it may mount."""
    drop(ENEMY)
    checked(libc.prctl(4, 1))  # PR_SET_DUMPABLE: its files in /proc are its own again
    checked(libc.unshare(CLONE_NEWUSER | CLONE_NEWNS))
    for file, text in (("setgroups", "deny"), ("uid_map", f"{ENEMY} {ENEMY} 1"), ("gid_map", f"{ENEMY} {ENEMY} 1")):
        pathlib.Path("/proc/self", file).write_text(text)


def own_tmp(tmp):
    """In such namespaces, with an empty directory there."""
    enter_namespaces()
    mount("none", tmp, b"tmpfs", 0, b"mode=1777")


def plant(path, secret):
    pathlib.Path(path).write_text("")
    mount(secret, path, None, MS_BIND)


def check_map_and_dump(work, secret):
    def prepare():
        own_tmp("/tmp")
        pid = os.getpid()
        plant(f"/tmp/perf-{pid}.map", secret)
        plant(f"/tmp/jit-{pid}.dump", secret)

    with Process(prepare) as process:
        said = attack("a mounted map", process.pid, work)
        assert f"/tmp/perf-{process.pid}.map: process {process.pid} may not read it" in said, said
        for command in ("lint", "to-json", "tidy"):
            text = run(command, process.pid, "--any-owner", status=(1, 2))
            assert f"process {process.pid} may not read it" in text, (command, text)
        # Nor does the file of that name that the host has stand in for it.
        host_map = pathlib.Path(f"/tmp/perf-{process.pid}.map")
        host_map.write_text("1000 1000 name_of_the_host\n")
        try:
            for arguments in commands(process.pid, work):
                text = run(*arguments)
                if arguments[0] in ("lint", "doctor"):  # which look at both, and say so
                    continue
                assert "name_of_the_host" not in text, (arguments, text)
                if arguments[0] in ("to-json", "tidy", "info", "copy", "merge", "diff", "convert", "resolve"):
                    assert f"process {process.pid} may not read it" in text, (arguments, text)
            subprocess.run(["rm", "-rf", work / "snapshot", work / "out"], check=True)
        finally:
            host_map.unlink()


def check_path_over_directory(work, secret):
    """The whole directory of the secret is mounted over /tmp: permission to search it counts, too."""
    directory = work / "closed"
    directory.mkdir(mode=0o700)

    def prepare():
        pid = os.getpid()
        for name in (f"perf-{pid}.map", f"jit-{pid}.dump"):
            path = directory / name
            path.write_text(f"1000 1000 {SECRET}\n")
            path.chmod(0o644)
        enter_namespaces()
        mount(directory, "/tmp", None, MS_BIND)

    try:
        with Process(prepare) as process:
            said = ""
            for arguments in commands(process.pid, work):
                text = run(*arguments)
                assert SECRET not in text, (arguments, text)
                said += text
            assert "may not read it" in said, said
    except CannotPrepare as why:
        print(f"skipped in part: a closed directory: {why}")  # it cannot be reached to be mounted
    subprocess.run(["rm", "-rf", directory, work / "snapshot", work / "out"], check=True)


def check_hard_link(work, secret):
    """Where the kernel does not protect hard links, a file of root may have a name in /tmp."""
    with Process(lambda: drop(ENEMY)) as process:
        path = pathlib.Path(f"/tmp/perf-{process.pid}.map")
        os.link(secret, path)
        try:
            said = attack("a hard link", process.pid, work)
            assert "may not read it" in said, said
        finally:
            path.unlink()
    # Nothing is known of a process that has ended, so the number of names counts.
    gone = process.pid
    path = pathlib.Path(f"/tmp/perf-{gone}.map")
    os.link(secret, path)
    try:
        text = run("to-json", gone)
        assert SECRET not in text and "it has 2 names" in text, text
    finally:
        path.unlink()


def check_readable(work):
    """What a process may read is read: by its user, its group, one of its groups, or as root."""
    cases = {
        "its user": (ENEMY, ENEMY, 0o400, ()),
        "its group": (0, ENEMY, 0o440, ()),
        "a supplementary group": (0, 4711, 0o440, (4711,)),
        "anybody": (0, 0, 0o444, ()),
    }
    for what, (user, group, mode, groups) in cases.items():
        with Process(lambda: drop(ENEMY, groups)) as process:
            path = pathlib.Path(f"/tmp/perf-{process.pid}.map")
            path.write_text("1000 1000 of_the_process\n")
            os.chown(path, user, group)
            path.chmod(mode)
            try:
                for command in ("to-json", "tidy", "lint"):
                    text = run(command, process.pid)
                    assert "of_the_process" in text, (what, command, text)
            finally:
                path.unlink()
    with Process(lambda: None) as process:
        path = pathlib.Path(f"/tmp/perf-{process.pid}.map")
        path.write_text("1000 1000 of_root\n")
        path.chmod(0o000)
        try:
            assert "of_root" in run("to-json", process.pid)
        finally:
            path.unlink()


def check_set_user_id(work, secret):
    """A set-user-ID program has the rights of the user who started it."""
    with Process(lambda: (os.setgroups([]), os.setresgid(ENEMY, 0, 0), os.setresuid(ENEMY, 0, 0))) as process:
        path = pathlib.Path(f"/tmp/perf-{process.pid}.map")
        path.write_text(f"1000 1000 {SECRET}\n")
        path.chmod(0o600)
        try:
            text = run("to-json", process.pid)
            assert SECRET not in text and "may not read it" in text, text
        finally:
            path.unlink()


def check_container(work):
    """A process in namespaces of its own, whose map only it may read."""
    def prepare():
        own_tmp("/tmp")
        path = pathlib.Path(f"/tmp/perf-{os.getpid()}.map")
        path.write_text("1000 1000 in_the_container\n")
        path.chmod(0o400)

    with Process(prepare) as process:
        for command in ("to-json", "tidy", "lint"):
            text = run(command, process.pid)
            assert "in_the_container" in text, (command, text)
        run("snapshot", process.pid, "-o", work / "snapshot", status=(0,))
        found = subprocess.run(["grep", "-rl", "in_the_container", work / "snapshot"], capture_output=True)
        assert found.returncode == 0
        subprocess.run(["rm", "-rf", work / "snapshot"], check=True)


def check_debug_file(work):
    """A debug file below the root of the process, mounted over a file of its own."""
    build_id = "5ec3e75ec3e75ec3e75ec3e75ec3e75ec3e75ec3"
    source, library, debug = work / "lib.c", work / "lib.so", work / "secret.debug"
    source.write_text("static __attribute__((noinline)) int a_secret_name(int x) { return x * x; }\n"
                      "int visible(int x) { return a_secret_name(x) + 1; }\n")
    built = subprocess.run(["gcc", "-O1", "-shared", "-fPIC", f"-Wl,--build-id=0x{build_id}", "-o", debug, source],
                           capture_output=True)
    stripped = built.returncode == 0 and subprocess.run(["strip", "-o", library, debug], capture_output=True)
    if not stripped or stripped.returncode != 0:
        print("skipped in part: debug files: no gcc or no strip here")
        return
    table = subprocess.run(["nm", debug], capture_output=True, text=True, check=True).stdout
    offset = next(int(line.split()[0], 16) for line in table.splitlines() if line.endswith(f"t {SECRET}"))
    library.chmod(0o644)
    for mode, is_shown in ((0o644, True), (0o600, False)):
        debug.chmod(mode)
        address = work / "address"

        def prepare():
            own_tmp("/usr/lib/debug")
            directory = pathlib.Path("/usr/lib/debug/.build-id", build_id[:2])
            directory.mkdir(parents=True)
            plant(directory / f"{build_id[2:]}.debug", debug)
            ctypes.CDLL(str(library))

        pathlib.Path("/usr/lib/debug").mkdir(exist_ok=True)
        with Process(prepare) as process:
            maps = pathlib.Path(f"/proc/{process.pid}/maps").read_text().splitlines()
            base = next(int(line.split("-")[0], 16) for line in maps if line.endswith(str(library)))
            text = run("resolve", hex(base + offset), "--pid", process.pid)
            assert (SECRET in text) == is_shown, (oct(mode), text)


def main():
    if os.geteuid() != 0:
        skip("only root reads the files of other users")
    with tempfile.TemporaryDirectory(dir="/var/tmp") as name:
        work = pathlib.Path(name)
        work.chmod(0o755)
        secret = work / "secret"
        secret.write_text(f"1000 1000 {SECRET}\n")
        secret.chmod(0o600)
        check_readable(work)
        check_set_user_id(work, secret)
        check_hard_link_or_skip(work)
        try:
            check_map_and_dump(work, secret)
        except CannotPrepare as why:
            skip(f"no namespaces for other users here: {why}")
        check_path_over_directory(work, secret)
        check_container(work)
        check_debug_file(work)
    print("nothing was read that its process could not read")


def check_hard_link_or_skip(work):
    """Hard links need one file system."""
    secret = pathlib.Path(tempfile.mkstemp(dir="/tmp", prefix="perfmap-secret-")[1])
    secret.write_text(f"1000 1000 {SECRET}\n")
    try:
        check_hard_link(work, secret)
    finally:
        secret.unlink()


main()
