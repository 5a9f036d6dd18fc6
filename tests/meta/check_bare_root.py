# SPDX-License-Identifier: MIT
"""scripts/bare_root.sh --base: without rights or debootstrap the status is 77, a folder of others is left alone, a root
that exists is used again, and two runs do not use a folder at the same time. Nothing is installed."""
import fcntl
import pathlib
import shutil
import subprocess
import tempfile

SCRIPT = pathlib.Path(__file__).resolve().parent.parent.parent / "scripts/bare_root.sh"
NEEDED = ("bash", "dirname", "readlink", "mkdir", "ls", "touch", "env", "flock")


def stand_in(path, text):
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)


def start(programs, place, uid):
    stand_in(programs / "id", f"echo {uid}")
    return subprocess.Popen([shutil.which("bash"), SCRIPT, "--base", place], env={"PATH": str(programs)},
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def answer(programs, place, uid):
    running = start(programs, place, uid)
    printed, said = running.communicate()
    return running.returncode, printed, said


with tempfile.TemporaryDirectory() as scratch:
    folder = pathlib.Path(scratch).resolve()
    programs, place, others = folder / "bin", folder / "place", folder / "others"
    for path in (programs, others):
        path.mkdir()
    for name in NEEDED:
        (programs / name).symlink_to(shutil.which(name))
    (others / "file").write_text("of others")

    assert answer(programs, place, 1000) == (77, "", "skipped: bare root: only root can make one\n")
    status, printed, said = answer(programs, place, 0)
    assert (status, printed) == (77, "") and "needs debootstrap" in said, (status, printed, said)
    assert not place.exists()
    stand_in(programs / "debootstrap", "exit 1")
    stand_in(programs / "unshare", "exit 1")
    status, printed, said = answer(programs, place, 0)
    assert (status, said) == (77, "skipped: bare root: mounting is not allowed here\n"), (status, printed, said)
    stand_in(programs / "unshare", "exit 0")
    status, printed, said = answer(programs, others, 0)
    assert status == 1 and "is neither empty nor of an earlier run" in said, (status, printed, said)
    assert [path.name for path in others.iterdir()] == ["file"]
    (place / "base").mkdir(parents=True)
    (place / ".perfmap-bare-root").touch()
    assert answer(programs, place, 0) == (0, f"{place}/base\n", "")
    with (place / ".perfmap-bare-root").open() as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        running = start(programs, place, 0)
        assert running.stderr.readline() == f"== waiting for another run in {place}\n"
    assert running.communicate() == (f"{place}/base\n", "") and running.returncode == 0
print("6 runs of bare_root.sh")
