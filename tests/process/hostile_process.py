#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Root examines a hostile process, whose user has replaced its files: hostile_process.py PERFMAP

Each command must end within five seconds of processor time, open no file outside of the process's root (checked with
inotify), and print no name from such a file. Exit status 77: not root.
"""
import ctypes
import mmap
import os
import pathlib
import shutil
import signal
import struct
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
from waiting import HANG, costs_at_most  # noqa: E402

PERFMAP = str(pathlib.Path(sys.argv[1]).resolve())
ENEMY = 12345
SECRET = "a_secret_name"
libc = ctypes.CDLL(None, use_errno=True)
IN_ACCESS, IN_OPEN = 0x1, 0x20

if os.geteuid() != 0:
    print("skipped: only root can be attacked so")
    sys.exit(77)


class Watch:
    """Detects all opens (except with O_PATH) and reads of files."""

    def __init__(self, *paths):
        self.fd = libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
        self.names = {}
        for path in paths:
            number = libc.inotify_add_watch(self.fd, os.fsencode(str(path)), IN_OPEN | IN_ACCESS)
            assert number >= 0, path
            self.names[number] = path

    def touched(self):
        try:
            events = os.read(self.fd, 65536)
        except BlockingIOError:
            return set()
        touched = set()
        while events:
            number, _, _, length = struct.unpack_from("iIII", events)
            touched.add(self.names.get(number))
            events = events[16 + length:]
        return touched


class CannotPrepare(Exception):
    """This machine does not allow such a process."""


class Enemy:
    """A process with its own writable root. `prepare` runs in it as root, before it changes its
    user id; `said` is the address at which it has mapped /lib/evil.so."""

    def __init__(self, jail, prepare=lambda: None, jailed=True):
        read, write = os.pipe()
        self.pid = os.fork()
        if self.pid == 0:
            libc.prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG
            prepare()
            if jailed:
                os.chroot(jail)
                os.chdir("/")
            os.setgid(ENEMY)
            os.setuid(ENEMY)
            with open("/lib/evil.so" if jailed else jail / "lib/evil.so", "rb") as file:
                code = mmap.mmap(file.fileno(), 0, flags=mmap.MAP_PRIVATE,
                                 prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
            os.write(write, b"%d\n" % ctypes.addressof(ctypes.c_char.from_buffer(code)))
            while True:
                signal.pause()
        os.close(write)
        with os.fdopen(read) as said:
            line = said.readline()
        if not line:
            os.waitpid(self.pid, 0)
            raise CannotPrepare
        self.said = int(line)

    def __enter__(self):
        return self

    def __exit__(self, *ignored):
        os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)


def run(*arguments):
    """Returns the output. The command must not block or die from a signal."""
    done = subprocess.run([PERFMAP, *map(str, arguments)], capture_output=True, text=True, timeout=HANG,
                          preexec_fn=costs_at_most(5), stdin=subprocess.DEVNULL)
    assert done.returncode in (0, 1, 2), (arguments, done.returncode, done.stderr)
    return done.stdout + done.stderr


def attack(what, enemy, watch):
    """Runs all commands that examine a process."""
    watch.touched()
    said = ""
    for arguments in (("resolve", hex(enemy.said + 0x1000), "--pid", enemy.pid),
                      ("resolve", hex(enemy.said + 0x1000), "--pid", enemy.pid, "--any-owner",
                       "--lines", "--inlines", "--format", "json"),
                      ("lint", enemy.pid), ("lint", enemy.pid, "--any-owner", "--format", "json"),
                      ("info", enemy.pid), ("to-json", enemy.pid)):
        said += run(*arguments)
    assert not watch.touched(), f"{what}: opened"
    assert SECRET not in said, f"{what}: {said}"
    return said


def remove(path):
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def sparse(path):
    with open(path, "wb") as file:
        file.write(b"1000 10 beginning\n")
        file.truncate(1 << 40)


def disguises(secret, fifo):
    """What a hostile user can put in place of a file, and lint's rule for it in a map's place."""
    return {
        "a link to an absolute path": (lambda path: path.symlink_to(secret), "PM062"),
        "a link up and out": (lambda path: path.symlink_to("../" * 12 + str(secret)), "PM062"),
        "a link to a FIFO": (lambda path: path.symlink_to(fifo), "PM062"),
        "a link to itself": (lambda path: path.symlink_to(path.name), "PM062"),
        "a link into /proc": (lambda path: path.symlink_to("/proc/self/mem"), "PM062"),
        "a FIFO": (os.mkfifo, "PM062"),
        "a device that waits": (lambda path: os.mknod(path, 0o20666, os.makedev(5, 0)), "PM062"),
        "a device without end": (lambda path: os.mknod(path, 0o20666, os.makedev(1, 5)), "PM062"),
        "a socket": (lambda path: os.mknod(path, 0o140666), "PM062"),
        "a directory": (lambda path: path.mkdir(), "PM062"),
        "a terabyte of nothing": (sparse, "PM067"),
    }


def make_jail(work):
    """Creates a root directory with a library, and secret files outside of it."""
    jail = work / "jail"
    for folder in ("tmp", "lib", "outside"):
        (jail / folder if folder != "outside" else work / folder).mkdir(parents=True)
    os.chmod(work, 0o755)
    library = next(line.split()[-1] for line in open("/proc/self/maps") if "libc.so" in line)
    shutil.copy(library, jail / "lib/evil.so")
    shutil.copy(library, work / "outside/secret.so")
    (work / "outside/secret.map").write_text(f"0 ffffffffffffff {SECRET}\n")
    (work / "outside/shadow").write_text(f"0 ffffffffffffff {SECRET}\n")
    os.chmod(work / "outside/shadow", 0o600)
    os.mkfifo(work / "outside/fifo")
    for path in (jail, jail / "tmp", jail / "lib", jail / "lib/evil.so"):
        os.chown(path, ENEMY, ENEMY)
    return jail


def check_files_of_names(work, jail, watch):
    """Disguises in place of map and dump."""
    outside = work / "outside"
    for what, (plant, rule) in disguises(outside / "secret.map", outside / "fifo").items():
        with Enemy(jail) as enemy:
            for name in (f"perf-{enemy.pid}.map", f"jit-{enemy.pid}.dump"):
                plant(jail / "tmp" / name)
            said = attack(what, enemy, watch)
            assert rule in said, f"{what}: {said}"
            for name in (f"perf-{enemy.pid}.map", f"jit-{enemy.pid}.dump"):
                remove(jail / "tmp" / name)


def check_ourselves(work, jail, watch):
    """Checks the test itself: normal files are used, and Watch detects accesses."""
    assert (work / "outside/secret.map").read_text() and watch.touched(), "the watch sees nothing"
    libc_file = next(line.split()[-1] for line in open("/proc/self/maps") if "libc.so" in line)
    base = next(int(line.split("-")[0], 16) for line in open("/proc/self/maps")
                if libc_file in line and line.split()[2] == "00000000")
    offset = ctypes.cast(libc.qsort, ctypes.c_void_p).value - base
    with Enemy(jail) as enemy:
        path = jail / "tmp" / f"perf-{enemy.pid}.map"
        path.write_text("1000 10 of_the_enemy\n")
        os.chown(path, ENEMY, ENEMY)
        said = attack("nothing", enemy, watch)
        assert "of_the_enemy" in said and "PM111" in said, said
        said = run("resolve", hex(enemy.said + offset), "--pid", enemy.pid)
        assert "qsort" in said and "/lib/evil.so" in said, said
        path.unlink()


def check_foreign_owner(jail, watch):
    with Enemy(jail) as enemy:
        path = jail / "tmp" / f"perf-{enemy.pid}.map"
        path.write_text(f"0 ffffffffffffff {SECRET}\n")
        os.chown(path, ENEMY + 1, ENEMY + 1)
        said = run("resolve", hex(enemy.said), "--pid", enemy.pid) + run("lint", enemy.pid)
        assert SECRET not in said and "PM060" in said, said
        path.unlink()


def check_directories(work, jail, watch):
    """Directories of the path are links to places outside of the root."""
    with Enemy(jail) as enemy:
        (work / "outside" / f"perf-{enemy.pid}.map").write_text(f"0 ffffffffffffff {SECRET}\n")
        planted = Watch(work / "outside" / f"perf-{enemy.pid}.map")
        (jail / "tmp").rename(jail / "tmp.before")
        for target in (work / "outside", pathlib.Path("../" * 12 + str(work / "outside"))):
            (jail / "tmp").symlink_to(target)
            attack(f"/tmp is a link to {target}", enemy, watch)
            assert not planted.touched(), target
            (jail / "tmp").unlink()
        (jail / "tmp.before").rename(jail / "tmp")


def check_mapped_files(work, jail, watch):
    """Disguises in place of a mapped library."""
    outside = work / "outside"
    library = (jail / "lib/evil.so").read_bytes()
    for what, (plant, _) in disguises(outside / "secret.so", outside / "fifo").items():
        with Enemy(jail) as enemy:
            remove(jail / "lib/evil.so")
            plant(jail / "lib/evil.so")
            attack(f"a library became {what}", enemy, watch)
        remove(jail / "lib/evil.so")
        (jail / "lib/evil.so").write_bytes(library)


def check_debug_directories(work, jail, watch):
    """Links and FIFOs in place of directories for debug files."""
    debug = jail / "usr/lib"
    debug.mkdir(parents=True)
    with Enemy(jail) as enemy:
        for target in (work / "outside", work / "outside/fifo"):
            (debug / "debug").symlink_to(target)
            attack(f"debug files at {target}", enemy, watch)
            (debug / "debug").unlink()
        os.mkfifo(debug / "debug")
        attack("debug files in a FIFO", enemy, watch)


def check_mount_namespace(work, jail):
    """A process with its own /tmp: its map is a link to a file that only root may read."""
    clone_newns, ms_rec_private, enough = 0x20000, 0x44000, ctypes.create_string_buffer(b"none")

    def prepare():
        failed = libc.unshare(clone_newns) or libc.mount(None, b"/", None, ms_rec_private, None)
        failed = failed or libc.mount(enough, os.fsencode(str(jail / "tmp")), b"tmpfs", 0, None)
        if failed:
            os._exit(3)
        for name in (f"perf-{os.getpid()}.map", f"jit-{os.getpid()}.dump"):
            (jail / "tmp" / name).symlink_to(shadow)
        inner = jail / shadow.relative_to("/")
        inner.parent.mkdir(parents=True)
        inner.write_text(f"0 ffffffffffffff {SECRET}\n")

    shadow = work / "outside/shadow"
    try:
        with Enemy(jail, prepare) as enemy:
            said = attack("a mount namespace", enemy, Watch(shadow))
            assert "PM062" in said, said
    except CannotPrepare:
        print("skipped in part: no mount namespace may be made here")


def main():
    with tempfile.TemporaryDirectory() as name:
        work = pathlib.Path(name)
        jail = make_jail(work)
        outside = work / "outside"
        watch = Watch(outside, outside / "secret.map", outside / "secret.so", outside / "fifo",
                      outside / "shadow")
        check_ourselves(work, jail, watch)
        check_files_of_names(work, jail, watch)
        check_foreign_owner(jail, watch)
        check_directories(work, jail, watch)
        check_mapped_files(work, jail, watch)
        check_debug_directories(work, jail, watch)
        check_mount_namespace(work, jail)
    print("nothing was opened that should not be, and nothing waited")


main()
