#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Root writes into a directory like /tmp, where another user has planted links and files:
shared_directories.py PERFMAP

No command may follow such a link, or write to such a file, whatever fs.protected_symlinks and its
like are. Exit status 77: not root.
"""
import os
import pathlib
import subprocess
import sys
import tempfile

PERFMAP = str(pathlib.Path(sys.argv[1]).resolve())
ENEMY = 12345
ENTRY = ("1000", "10", "name")

if os.geteuid() != 0:
    print("skipped: only root can make files of other users")
    sys.exit(77)


def run(*arguments, status):
    done = subprocess.run([PERFMAP, *map(str, arguments)], capture_output=True, text=True, timeout=200,
                          stdin=subprocess.DEVNULL)
    assert done.returncode == status, (arguments, done.returncode, done.stdout, done.stderr)
    return done.stderr


def link(path, target, owner):
    path.symlink_to(target)
    os.chown(path, owner, owner, follow_symlinks=False)
    return path


def writers(source, out):
    """Each way in which a command opens a file that the user named."""
    return [("tidy", source, "-o", out), ("merge", source, source, "-o", out), ("convert", source, "--to", "json", "-o", out),
            ("to-json", source, "-o", out), ("write", "-o", out, *ENTRY), ("write", "--jitdump", "-o", out, *ENTRY),
            ("copy", source, "-o", out)]


def check_links(work, shared, source):
    victim = work / "victim"
    for owner, status in ((ENEMY, 2), (0, 0)):
        for command in writers(source, shared / "planted"):
            # To a file that exists, and to one that is not there yet.
            for text in ("1000 10 precious\n", None):
                if text is not None and "--jitdump" not in command:
                    victim.write_text(text)
                planted = link(shared / "planted", victim, owner)
                said = run(*command, status=status)
                if status == 2:
                    assert "symbolic link of user 12345" in said, (command, said)
                    is_as_before = victim.read_text() == text if victim.exists() else True
                    assert is_as_before, (command, victim.read_text())
                else:
                    assert victim.stat().st_size != 0, command
                planted.unlink()
                victim.unlink(missing_ok=True)


def check_directories(work, shared, source):
    """The link is in the middle of the path."""
    inside = work / "inside"
    inside.mkdir()
    planted = link(shared / "sub", inside, ENEMY)
    for command in writers(source, planted / "out") + [("snapshot", os.getpid(), "-o", planted / "out")]:
        said = run(*command, status=2)
        assert "symbolic link of user 12345" in said, (command, said)
    assert not list(inside.iterdir()), list(inside.iterdir())
    planted.unlink()
    # In a directory where only its owner may write, links are the owner's business.
    own = work / "own"
    own.mkdir()
    run("tidy", source, "-o", link(own / "sub", inside, ENEMY) / "out", status=0)
    assert (inside / "out").exists()


def check_links_of_others(work, source):
    """In the place of the file, in a directory of the other user's: no sticky bit."""
    theirs = work / "theirs"
    theirs.mkdir()
    os.chown(theirs, ENEMY, ENEMY)
    ours = work / "ours.map"
    for target in (ours, work / "absent.map"):
        ours.write_text("0x1000 10 ours\n")
        planted = link(theirs / "link", target, ENEMY)
        for command in (*writers(source, planted), ("lint", "--fix", planted), ("tidy", "--in-place", planted)):
            said = run(*command, status=2)
            if target == ours or "-o" in command:
                assert "symbolic link of user 12345" in said, (command, said)
            assert ours.read_text() == "0x1000 10 ours\n" and not (work / "absent.map").exists(), command
        planted.unlink()
    own = theirs / "own"
    own.write_text("")
    os.chown(own, ENEMY, ENEMY)
    planted = link(theirs / "link", own, ENEMY)
    run("tidy", source, "-o", planted, status=0)
    assert own.read_text()


def check_files(shared, source):
    for name, kind in (("file", lambda path: path.write_text("1000 10 theirs\n")), ("fifo", os.mkfifo)):
        out = shared / name
        for command in writers(source, out):
            kind(out)
            os.chown(out, ENEMY, ENEMY)
            out.chmod(0o666)
            before = out.stat()
            said = run(*command, status=2)
            assert "of user 12345 in a directory that other users may write to" in said, (command, said)
            after = out.stat()
            assert (before.st_ino, before.st_size, before.st_uid) == (after.st_ino, after.st_size, after.st_uid), command
            out.unlink()
    # The owner of the directory may change what is in it anyway.
    os.chown(shared, ENEMY, ENEMY)
    out = shared / "file"
    out.write_text("")
    os.chown(out, ENEMY, ENEMY)
    run("tidy", source, "-o", out, status=0)
    out.unlink()
    os.chown(shared, 0, 0)


def check_group(shared, source):
    """A directory with the sticky bit that a group may write to is shared as well."""
    shared.chmod(0o1775)
    planted = link(shared / "planted", shared / "target", ENEMY)
    assert "symbolic link" in run("tidy", source, "-o", planted, status=2)
    planted.unlink()
    shared.chmod(0o1777)


def check_usual(shared, source):
    """What is nobody else's works as everywhere."""
    out = shared / "out"
    for command in writers(source, out):
        run(*command, status=0)
        run(*command, status=0)
        assert out.stat().st_size != 0
        out.unlink()
    run("write", "-o", out, *ENTRY, status=0)
    run("write", "-o", out, *ENTRY, status=0)
    assert out.read_text() == "1000 10 name\n" * 2 and out.stat().st_mode & 0o777 == 0o600
    out.unlink()
    said = run("write", "-o", "/dev/full", *ENTRY, status=2)
    assert "/dev/full" in said and "/proc/self" not in said, said
    link(shared / "missing", shared / "target", 0)
    run("tidy", source, "-o", shared / "missing", status=0)
    assert (shared / "target").exists() and (shared / "missing").is_symlink()
    dump = shared / "jit-77.dump"
    run("write", "--jitdump", "-o", dump, *ENTRY, status=0)
    assert int.from_bytes(dump.read_bytes()[20:24], "little") == 77
    assert list(shared.glob("*.tmp")) == []


def main():
    with tempfile.TemporaryDirectory() as name:
        work = pathlib.Path(name)
        shared = work / "shared"
        shared.mkdir()
        shared.chmod(0o1777)
        source = work / "source.map"
        source.write_text("1000 10 name\n")
        check_links(work, shared, source)
        check_directories(work, shared, source)
        check_links_of_others(work, source)
        check_files(shared, source)
        check_group(shared, source)
        check_usual(shared, source)
    print("no planted link was followed, and no planted file written")


main()
