# SPDX-License-Identifier: MIT
"""perfmap as a part of another project adds libraries, and nothing else: subproject.py SOURCE WORK

No test, benchmark, program, install rule, cached setting or compile option of perfmap reaches the host.
"""
import json
import pathlib
import shutil
import subprocess
import sys

source, work = map(pathlib.Path, sys.argv[1:])


def run(*words):
    done = subprocess.run([*map(str, words)], capture_output=True, text=True)
    assert done.returncode == 0, (words, done.stdout, done.stderr)
    return done.stdout


def check(name, *options):
    build = work / name
    shutil.rmtree(build, ignore_errors=True)
    run("cmake", "-S", source / "tests/install/host", "-B", build, "-G", "Ninja", f"-DPERFMAP_SOURCE={source}", *options)
    tests = [line.split()[-1] for line in run("ctest", "--test-dir", build, "-N").splitlines() if "Test #" in line]
    assert tests == ["host"], tests
    targets = run("ninja", "-C", build, "-t", "targets", "all")
    for unwanted in ("unit_tests:", "/bench:", "apps/perfmap/perfmap:", "manual_pages:"):
        assert unwanted not in targets, unwanted
    for library in ("libperfmap.a:", "libperfmap-profile.a:"):  # as other libraries of the host
        assert library in targets, library
    cached = (build / "CMakeCache.txt").read_text()
    assert "BUILD_SHARED_LIBS" not in cached
    for entry in json.loads((build / "compile_commands.json").read_text()):
        words = entry["command"].split()
        assert "-Werror" not in words, entry
        if "/examples/" in entry["file"]:
            assert not {"-Wconversion", "-fno-omit-frame-pointer"} & {*words}, entry
    return build


def check_built(build):
    built = run("cmake", "--build", build, "--target", "runtime")  # the others take minutes
    assert "warning:" not in built, built
    run("ctest", "--test-dir", build)
    run("cmake", "--install", build, "--prefix", build / "prefix")
    installed = [str(path.relative_to(build / "prefix")) for path in (build / "prefix").rglob("*") if path.is_file()]
    assert installed == ["bin/runtime"], installed


check("add_subdirectory")
# A distribution's flags, with a level of _FORTIFY_SOURCE. install.consumers builds without them.
check_built(check("FetchContent", "-DFETCH=ON", "-DCMAKE_BUILD_TYPE=Release", "-DCMAKE_CXX_FLAGS=-Wp,-D_FORTIFY_SOURCE=3 -O2",
                  "-DCMAKE_C_FLAGS=-Wp,-D_FORTIFY_SOURCE=3 -O2"))
print("a host has the libraries, and nothing else of perfmap")
