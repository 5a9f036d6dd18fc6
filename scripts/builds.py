#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Builds the libraries and the program in each way that packagers use: builds.py [ROW...]

ROWS is the table of builds. Each is made in build/builds/ROW, with warnings as errors, and its properties
are checked: that the program works, and what the row promises. A row takes some minutes; its directory is
removed if all is well. Rows whose compiler is missing are skipped. PERFMAP_JOBS=N: N parallel jobs.
"""
import filecmp
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
BUILDS = ROOT / "build/builds"
JOBS = os.environ.get("PERFMAP_JOBS", str(os.cpu_count()))
PROGRAM = "apps/perfmap/perfmap"
STATIC = "apps/perfmap/perfmap-static"
SHARED = ("lib/libperfmap.so", "lib/profile/libperfmap-profile.so", "lib/cpython/libperfmap-cpython.so",
          "lib/writer/libperfmap-writer.so")
TARGETS = ("perfmap_program", "perfmap_cpython", "perfmap_writer", "perfmap_writer_static")
MAX_STATIC = 8_000_000  # stripped

FEDORA = ("-O2 -flto=auto -ffat-lto-objects -fexceptions -g -grecord-gcc-switches -pipe -Wall -Werror=format-security "
          "-Wp,-U_FORTIFY_SOURCE,-D_FORTIFY_SOURCE=3 -Wp,-D_GLIBCXX_ASSERTIONS -fstack-protector-strong -m64 "
          "-march=x86-64 -mtune=generic -fasynchronous-unwind-tables -fstack-clash-protection -fcf-protection "
          "-fno-omit-frame-pointer -mno-omit-leaf-frame-pointer")
FEDORA_LINK = "-Wl,-z,relro -Wl,--as-needed -Wl,-z,pack-relative-relocs -Wl,-z,now"
ARCH = ("-march=x86-64 -mtune=generic -O2 -pipe -fno-plt -fexceptions -Wp,-D_FORTIFY_SOURCE=3 -Wformat "
        "-Werror=format-security -fstack-clash-protection -fcf-protection -fno-omit-frame-pointer "
        "-mno-omit-leaf-frame-pointer -flto=auto -Wp,-D_GLIBCXX_ASSERTIONS")
ARCH_LINK = ("-Wl,-O1 -Wl,--sort-common -Wl,--as-needed -Wl,-z,relro -Wl,-z,now -Wl,-z,pack-relative-relocs "
             "-flto=auto")


class Failed(Exception):
    pass


def run(words, **how):
    done = subprocess.run([*map(str, words)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, **how)
    if done.returncode != 0:
        raise Failed(f"{' '.join(map(str, words))}: status {done.returncode}\n{done.stdout[-4000:]}")
    return done.stdout


def expect(holds, what):
    if not holds:
        raise Failed(what)


def compiler(name):
    return {"CC": name, "CXX": name.replace("gcc", "g++").replace("clang", "clang++")}


def flags(words, link):
    return {"CFLAGS": words, "CXXFLAGS": words, "LDFLAGS": link}


def debian_flags():
    if not shutil.which("dpkg-buildflags"):
        return None
    environment = {**os.environ, "DEB_BUILD_MAINT_OPTIONS": "hardening=+all"}
    got = {name: run(["dpkg-buildflags", "--get", name], cwd=ROOT, env=environment).strip()
           for name in ("CPPFLAGS", "CFLAGS", "CXXFLAGS", "LDFLAGS")}
    return {"CFLAGS": f"{got['CFLAGS']} {got['CPPFLAGS']}", "CXXFLAGS": f"{got['CXXFLAGS']} {got['CPPFLAGS']}",
            "LDFLAGS": got["LDFLAGS"]}


def compiles(build):
    """The command of each C++ source of ours."""
    return [entry["command"] for entry in json.loads((build / "compile_commands.json").read_text())
            if entry["file"].endswith((".cpp", ".cxx"))]


def check_all_have(word):
    def check(build):
        expect(all(word in command.split() for command in compiles(build)), f"not each source is compiled with {word}")
    return check


def readelf(option, file):
    return run(["readelf", option, "-W", file])


def check_hardened(build):
    for name in (PROGRAM, *SHARED):
        file = build / name
        expect(re.search(r"Type: +DYN", readelf("-h", file)), f"{name} is not position-independent")
        expect("GNU_RELRO" in readelf("-l", file), f"{name} has no RELRO")
        expect(re.search(r"BIND_NOW|\bNOW\b", readelf("-d", file)), f"{name} has no BIND_NOW")
        expect(not re.search(r"GNU_STACK.* RWE", readelf("-l", file)), f"{name} has an executable stack")
        if os.uname().machine == "x86_64":
            expect("IBT, SHSTK" in readelf("-n", file), f"{name} is not marked for CET")
    expect("PIE" in readelf("-d", build / PROGRAM), "the program is not marked as PIE")


def check_static(build):
    file = build / STATIC
    run(["strip", "-o", build / "stripped", file])
    size = (build / "stripped").stat().st_size
    expect(size < MAX_STATIC, f"the static program has {size} bytes, more than {MAX_STATIC}")
    expect("INTERP" not in readelf("-l", file), "the static program has an interpreter")
    check_works(build, STATIC)


def check_works(build, name=PROGRAM):
    expect(run([build / name, "version"]).startswith("perfmap "), "`perfmap version` prints something else")
    run([build / name, "info", ROOT / "tests/wild/node/jit-683-lines.dump"])


# Name: environment, CMake's arguments, more targets, more checks.
ROWS = {
    "gcc-12": (compiler("gcc-12"), [], [], []),
    "clang-14": (compiler("clang-14"), [], [], []),
    "clang-16": (compiler("clang-16"), [], [], []),
    "c++23": ({}, ["-DCMAKE_CXX_STANDARD=23"], [], [check_all_have("-std=gnu++23")]),
    "debian": (debian_flags(), ["-DCMAKE_BUILD_TYPE=None"], [], [check_all_have("-Wdate-time")]),
    "fedora": (flags(FEDORA, FEDORA_LINK), ["-DCMAKE_BUILD_TYPE=None"], [],
               [check_all_have("-Wp,-D_GLIBCXX_ASSERTIONS")]),
    "arch": (flags(ARCH, ARCH_LINK), ["-DCMAKE_BUILD_TYPE=None"], [], [check_all_have("-Wp,-D_GLIBCXX_ASSERTIONS")]),
    "static": ({}, ["--preset", "static"], ["perfmap_static_program"], [check_static]),
    "hardened": ({}, ["--preset", "hardened"], ["perfmap_static_program"], [check_hardened, check_static]),
    "lto": ({}, ["--preset", "lto"], [], []),
}


def configure(source, build, environment, arguments):
    preset = [] if "--preset" in arguments else ["-G", "Ninja", "-DCMAKE_BUILD_TYPE=Release", "-DBUILD_TESTING=OFF",
                                                  "-DPERFMAP_BENCH=OFF", "-DCMAKE_EXPORT_COMPILE_COMMANDS=ON"]
    run(["cmake", "-B", build, *preset, *arguments, "-DPERFMAP_UNITY=ON", "-DPERFMAP_WERROR=ON"],
        cwd=source, env={**os.environ, **environment})


def make(build, *targets):
    run(["cmake", "--build", build, "-j", JOBS, "--target", *targets])


def build_row(name):
    environment, arguments, targets, checks = ROWS[name]
    if environment is None or not shutil.which(environment.get("CC", "cc")):
        return "skipped: the compiler or dpkg-buildflags is missing"
    build = BUILDS / name
    shutil.rmtree(build, ignore_errors=True)
    configure(ROOT, build, environment, arguments)
    make(build, *TARGETS, *targets)
    for check in (check_works, *checks):
        check(build)
    shutil.rmtree(build)
    return "ok"


def copy_tree(to):
    """What a tarball of the tree has."""
    shutil.copytree(ROOT, to, symlinks=True,
                    ignore=lambda folder, names: {*names} & ({"build", ".git", ".cache"} if folder == str(ROOT)
                                                             else {"__pycache__"}))


def installed_files(prefix):
    return {str(path.relative_to(prefix)): path for path in prefix.rglob("*") if path.is_file() and not path.is_symlink()}


def reproducible():
    """Two builds in two directories whose paths have different lengths install the same bytes, and make the
    same packages."""
    place = BUILDS / "reproducible"
    shutil.rmtree(place, ignore_errors=True)
    os.environ["SOURCE_DATE_EPOCH"] = "1700000000"  # manual pages and packages have a date
    trees = [place / "one", place / "another/place/of/the/tree"]
    for tree in trees:
        copy_tree(tree)
        configure(tree, tree / "build/made", {}, ["--preset", "packages"])
        make(tree / "build/made", "all")
        run(["cpack", "-G", "DEB"], cwd=tree / "build/made")
        run(["cmake", "--install", tree / "build/made", "--prefix", tree / "prefix"])
    for kind in ("prefix", "build/made/packages"):
        first, second = (installed_files(tree / kind) for tree in trees)
        expect(first and first.keys() == second.keys(), f"{kind}: other files: {first.keys() ^ second.keys()}")
        different = [name for name in first if not filecmp.cmp(first[name], second[name], shallow=False)]
        expect(not different, f"{kind}: different bytes: {different}")
    expect(filecmp.cmp(*(tree / "build/made" / STATIC for tree in trees), shallow=False), "the static programs differ")
    shutil.rmtree(place)
    return "ok"


def container():
    """All steps of packaging/Dockerfile, in a minimal Debian."""
    done = subprocess.run([sys.executable, ROOT / "tests/install/container.py", ROOT, BUILDS / "container"],
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if done.returncode not in (0, 77):
        raise Failed(done.stdout[-4000:])
    return done.stdout.strip() if done.returncode == 77 else "ok"


def main():
    table = {**{name: (lambda name=name: build_row(name)) for name in ROWS},
             "reproducible": reproducible, "container": container}
    names = sys.argv[1:] or [*table]
    unknown = [name for name in names if name not in table]
    if unknown:
        sys.exit(f"no build '{unknown[0]}'; there are: {' '.join(table)}")
    BUILDS.mkdir(parents=True, exist_ok=True)
    failed = []
    for name in names:
        start = time.monotonic()
        try:
            result = table[name]()
        except Failed as failure:
            result = f"FAILED: {failure}"
            failed.append(name)
        print(f"{name:<13} {time.monotonic() - start:5.0f} s  {result}", flush=True)
    if failed:
        sys.exit(f"failed: {' '.join(failed)}")


main()
