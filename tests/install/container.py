# SPDX-License-Identifier: MIT
"""The steps of packaging/Dockerfile make a root directory in which perfmap works:
container.py SOURCE WORK [STATIC-PROGRAM]

With STATIC-PROGRAM, the steps that install packages and compile are not run: it stands for what they make.
Without, all steps are run in a minimal Debian (scripts/bare_root.sh), which takes some minutes.
"""
import json
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys

source, work = (pathlib.Path(word).resolve() for word in sys.argv[1:3])
given = pathlib.Path(sys.argv[3]).resolve() if len(sys.argv) > 3 else None
MOUNTS = 'mount -t proc proc "$0/proc"; mount --rbind /dev "$0/dev"; exec chroot "$0" /bin/sh -ec "$1"'
WORDS = {"FROM", "RUN", "COPY", "WORKDIR", "ENTRYPOINT"}


def run(*words, **how):
    done = subprocess.run([*map(str, words)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, **how)
    assert done.returncode == 0, f"{words}: status {done.returncode}\n{done.stdout[-4000:]}"
    return done.stdout


def steps_of(dockerfile):
    lines = [line for line in dockerfile.read_text().splitlines() if line and not line.startswith("#")]
    for step in re.sub(r"\\\n\s*", "", "\n".join(lines)).splitlines():
        word, rest = step.split(maxsplit=1)
        assert word in WORDS, f"this test does not know {word}"
        yield word, rest


def below(root, path, folder="/"):
    return root / os.path.normpath(os.path.join(folder, path)).lstrip("/")


class Stage:
    """A root directory, and what the next steps need to know."""

    def __init__(self, root, image):
        self.root, self.folder, self.entry = root, "/", None
        if image == "scratch" or given:
            root.mkdir(parents=True)
        else:
            assert image == "debian:12", image
            done = subprocess.run([source / "scripts/bare_root.sh", "--base"], capture_output=True, text=True)
            if done.returncode == 77:
                print(f"skipped: {done.stderr.strip().splitlines()[-1]}")
                sys.exit(77)
            assert done.returncode == 0, done
            run("cp", "-a", done.stdout.splitlines()[-1], root)

    def execute(self, command):
        if given:
            return
        run("unshare", "--mount", "--propagation", "private", "/bin/sh", "-ec", MOUNTS, self.root,
            f"cd {self.folder}; {command}", env={"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL": "C"})

    def copy(self, words, stages):
        origin = source
        if words[0].startswith("--from="):
            origin = stages[words.pop(0).removeprefix("--from=")].root
        start, end = words
        target = below(self.root, end, self.folder)
        target.parent.mkdir(parents=True, exist_ok=True)
        if origin is not source:
            shutil.copytree(below(origin, start), target, symlinks=True, dirs_exist_ok=True)
            return
        assert start == "." and not (given and target.exists())
        ignored = {line.strip("/") for line in (source / ".dockerignore").read_text().split()}
        assert {"build", ".git"} <= ignored, ignored
        left = shutil.ignore_patterns(*ignored)
        shutil.copytree(source, target, symlinks=True,
                        ignore=lambda folder, names: left(folder, names) if folder == str(source) else {"__pycache__"})


def build(dockerfile):
    stages, stage = {}, None
    for word, rest in steps_of(dockerfile):
        if word == "FROM":
            image, _, name = rest.partition(" AS ")
            if stage is not None and given:  # what the steps of the first stage make
                made = below(stage.root, re.search(r"--from=\w+ (\S+)", dockerfile.read_text())[1])
                (made / "tmp").mkdir(parents=True)
                (made / "tmp").chmod(0o1777)
                shutil.copy2(given, made / "perfmap")
            stage = stages[name or "last"] = Stage(work / (name or "last"), image)
        elif word == "RUN":
            stage.execute(rest)
        elif word == "COPY":
            stage.copy(shlex.split(rest), stages)
        elif word == "WORKDIR":
            stage.folder = rest
            below(stage.root, rest).mkdir(parents=True, exist_ok=True)
        else:
            stage.entry = json.loads(rest)
    return stage


def check_packages(dockerfile):
    """Those that `./dev` installs to build."""
    listed = re.search(r'^build_packages="(.*)"$', (source / "dev").read_text(), re.M)[1].split()
    first = next(rest for word, rest in steps_of(dockerfile) if word == "RUN")
    installed = first.split("--no-install-recommends", 1)[1].split()
    assert sorted(installed) == sorted([*listed, "python3"]), {*installed} ^ {*listed, "python3"}


shutil.rmtree(work, ignore_errors=True)
work.mkdir(parents=True)
dockerfile = source / "packaging/Dockerfile"
check_packages(dockerfile)
stage = build(dockerfile)
files = sorted(path.name for path in stage.root.rglob("*"))
assert files == ["perfmap", "tmp"] and (stage.root / "tmp").stat().st_mode & 0o7777 == 0o1777, files
if given:
    run("strip", stage.root / "perfmap")
size = (stage.root / "perfmap").stat().st_size
assert size < 8_000_000, size
shutil.copy(source / "tests/wild/node/jit-683-lines.dump", stage.root / "code.dump")
enter = ["chroot", stage.root] if os.geteuid() == 0 else ["unshare", "--user", "--map-root-user", "chroot", stage.root]
if subprocess.run([*enter, *stage.entry, "version"], capture_output=True).returncode == 125:
    print("skipped in part: only root, or a user with a user namespace, can change the root directory")
else:
    assert run(*enter, *stage.entry, "version").startswith("perfmap ")
    assert "jitdump" in run(*enter, *stage.entry, "info", "/code.dump")
shutil.rmtree(work)
print(f"the image has one file of {size} bytes, which works")
