# SPDX-License-Identifier: MIT
"""Builds the wheel and the sdist of the Python package offline, installs them into fresh virtual
environments, and runs the package's tests there: python_package.py SOURCE TESTS VERSION PROGRAM LIBRARY..."""
import os
import pathlib
import subprocess
import sys
import tarfile
import tempfile
import zipfile

source, tests = (pathlib.Path(path).resolve() for path in sys.argv[1:3])
version = sys.argv[3]
program = os.path.abspath(sys.argv[4])
libraries = ":".join(os.path.dirname(os.path.abspath(path)) for path in sys.argv[5:])


def run(*command, **environment):
    clean = {name: value for name, value in os.environ.items()
             if name not in ("PYTHONPATH", "PERFMAP_LIBRARY_PATH", "LD_LIBRARY_PATH")}
    made = subprocess.run([str(word) for word in command], text=True, capture_output=True, timeout=600,
                          env={**clean, **environment})
    assert made.returncode == 0, (command, made.stdout[-3000:], made.stderr[-3000:])
    return made.stdout.strip()


def build(project, hook, target, settings=None):
    """Calls a hook of the backend, as a frontend does it: from the project's folder."""
    target.mkdir()
    code = ("import os, sys; os.chdir(sys.argv[1]); sys.path.insert(0, 'backend'); import perfmap_build; "
            f"assert perfmap_build.get_requires_for_{hook}() == []; "
            f"print(perfmap_build.{hook}(sys.argv[2], {settings!r}))")
    return target / run(sys.executable, "-B", "-c", code, project, target)


def environment_with(wheel, place):
    """The Python of a fresh virtual environment that has the wheel and nothing else."""
    run(sys.executable, "-m", "venv", "--without-pip", place)
    python = place / "bin/python"
    folder = run(python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))")
    with zipfile.ZipFile(wheel) as archive:
        assert archive.testzip() is None
        archive.extractall(folder)
    return python


with tempfile.TemporaryDirectory() as scratch:
    work = pathlib.Path(scratch)
    wheel = build(source, "build_wheel", work / "wheel")
    assert wheel.name == f"perfmap-{version}-py3-none-any.whl", wheel
    with zipfile.ZipFile(wheel) as archive:
        listed = {line.split(",")[0] for line in archive.read(f"perfmap-{version}.dist-info/RECORD").decode().split()}
        assert listed == set(archive.namelist()), listed ^ set(archive.namelist())
        assert "perfmap/py.typed" in listed

    sdist = build(source, "build_sdist", work / "sdist")
    with tarfile.open(sdist) as archive:
        archive.extractall(work / "unpacked")
    again = build(work / f"unpacked/perfmap-{version}", "build_wheel", work / "again")
    assert again.read_bytes() == wheel.read_bytes(), "the sdist makes another wheel"
    print(f"{wheel.name}, {sdist.name}: {len(listed)} files, the same from both")

    python = environment_with(wheel, work / "plain")
    said = run(python, "-c", "import importlib.metadata, perfmap; "
               "print(importlib.metadata.version('perfmap'), perfmap.library_version(), perfmap.__file__)",
               LD_LIBRARY_PATH=libraries)
    assert said.startswith(f"{version} {version} {work}/plain/"), said
    run(python, "-B", "-m", "unittest", "discover", "-s", tests, LD_LIBRARY_PATH=libraries,
        PERFMAP_PROGRAM=program)
    print("the tests of the package pass in a virtual environment")
    message = run(python, "-c", "import perfmap\ntry: perfmap.library_version()\n"
                  "except ImportError as error: print(error)")
    assert message.startswith("no libperfmap.so.0 and no libperfmap-writer.so.0 in PERFMAP_LIBRARY_PATH"), message

    # A wheel with the libraries inside needs no path.
    bundle = build(source, "build_wheel", work / "bundle", {"libraries": libraries})
    assert f"perfmap-{version}-py3-none-linux_" in bundle.name, bundle
    python = environment_with(bundle, work / "bundled")
    said = run(python, "-c", "import os, perfmap, perfmap.profile; list(perfmap.resolve(os.getpid(), [1]))\n"
               "print({line.split()[-1] for line in open('/proc/self/maps') if 'libperfmap' in line})")
    assert said.count(str(work)) == said.count("libperfmap") == 2, said
    print(f"{bundle.name} finds its own libraries")
