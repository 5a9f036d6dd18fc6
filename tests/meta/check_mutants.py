# SPDX-License-Identifier: MIT
"""Runs scripts/mutants.py on a library of one function: it finds, lists, accepts and remembers
mutants, and changes only build/mutants."""
import pathlib
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
SOURCE = """#include "index/clamp.hpp"

int clamp(int value) {
  if (value < 0) return 0;
  if (value >= 100) return 100;
  return value;
}
"""
CMAKE = """cmake_minimum_required(VERSION 3.22)
project(tiny VERSION 1.2.3 LANGUAGES CXX)
enable_testing()
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
include_directories(lib/core)
add_library(objects OBJECT lib/core/index/clamp.cpp)
set_target_properties(objects PROPERTIES POSITION_INDEPENDENT_CODE ON)
add_subdirectory(lib)
add_subdirectory(apps/perfmap)
add_subdirectory(tests)
"""
LIBRARY = """add_library(perfmap SHARED $<TARGET_OBJECTS:objects>)
set_target_properties(perfmap PROPERTIES VERSION 1.2.3 SOVERSION 1)
"""
TESTS = """add_executable(unit_tests unit/index/clamp_test.cpp $<TARGET_OBJECTS:objects>)
add_library(others OBJECT ../lib/core/index/clamp.cpp) # not in unit_tests
add_executable(program program.cpp)
target_link_libraries(program PRIVATE perfmap)
add_test(NAME capi.top COMMAND program)
file(WRITE ${CMAKE_CURRENT_BINARY_DIR}/golden/settings.json [[{"preload": "", "docs_uri": ""}]])
"""
APPS = """add_executable(perfmap_program main.cpp $<TARGET_OBJECTS:objects>)
set_target_properties(perfmap_program PROPERTIES OUTPUT_NAME perfmap)
"""
MAIN = """#include "index/clamp.hpp"
#include <cstdio>
int main() { std::printf("%d\\n", clamp(99)); }
"""
GOLDEN = """#!/bin/sh
for program; do :; done
[ "$($program)" = 99 ] || { echo "FAILED: clamp/large: perfmap"; exit 1; }
"""
UNIT = """#include "index/clamp.hpp"
int main() { return clamp(-5) == 0 && clamp(7) == 7 ? 0 : 1; }
"""
PROGRAM = """#include "index/clamp.hpp"
int main() { return clamp(200) == 100 ? 0 : 1; }
"""


def write(root, name, text):
    path = root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def mutants(root, *arguments):
    run = subprocess.run([sys.executable, "-B", root / "scripts/mutants.py", "--count", "0", *arguments],
                         capture_output=True, text=True, cwd=root)
    return run.returncode, run.stdout + run.stderr


def check(root):
    for name in ("mutants.py", "mutations.py", "unit_cases.py"):
        write(root, f"scripts/{name}", (ROOT / "scripts" / name).read_text())
    for name, text in (("CMakeLists.txt", CMAKE), ("lib/CMakeLists.txt", LIBRARY),
                       ("tests/CMakeLists.txt", TESTS), ("lib/core/index/clamp.cpp", SOURCE),
                       ("lib/core/index/clamp.hpp", "int clamp(int value);\n"),
                       ("tests/unit/index/clamp_test.cpp", UNIT), ("tests/program.cpp", PROGRAM),
                       ("apps/perfmap/CMakeLists.txt", APPS), ("apps/perfmap/main.cpp", MAIN),
                       ("tests/golden/run.py", GOLDEN)):
        write(root, name, text)
    (root / "tests/golden/run.py").chmod(0o755)
    build = root / "build/release"
    subprocess.run(["cmake", "-G", "Ninja", "-S", root, "-B", build], check=True, capture_output=True)
    subprocess.run(["ninja", "-C", build], check=True, capture_output=True)
    program = (build / "tests/unit_tests").read_bytes()

    status, text = mutants(root, "lib/core")
    assert status == 1, text
    # These mutants do not change behaviour.
    survivors = {"- if (value < 0) return 0;\n+ if (value <= 0) return 0;",
                 "- if (value < 0) return 0;\n+ if (value < 1) return 0;",
                 "- if (value >= 100) return 100;\n+ if (value > 100) return 100;",
                 "- if (value >= 100) return 100;\n+ if (value >= 101) return 100;"}
    for change in survivors:
        assert f"survived\nlib/core/index/clamp.cpp\n{change}" in text, text
    assert " 4 survived" in text, text
    assert "found     lib/core/index/clamp.cpp:6" in text, text
    # Only the golden case asks the program for 99, and only the C interface the library for 200; no unit test does.
    assert "golden: clamp/large" in text and "capi.top" in text, text
    assert (root / "lib/core/index/clamp.cpp").read_text() == SOURCE
    assert (build / "tests/unit_tests").read_bytes() == program

    status, text = mutants(root, "--at", "5", "lib")
    assert (status, text.count("survived  lib")) == (1, 2), text
    reasons = "\n".join(f"lib/core/index/clamp.cpp\n{change}\nNobody asks.\n" for change in survivors)
    write(root, "scripts/mutants-accepted.txt", reasons)
    status, again = mutants(root, "--at", "5", "lib")
    assert status == 0 and "(before)" in again and "s) " not in again.replace("(before) ", ""), again
    write(root, "scripts/mutants-accepted.txt", reasons.replace("Nobody asks.", ""))
    status, text = mutants(root, "--at", "5", "lib")
    assert status == 2 and "and a reason" in text, text
    write(root, "scripts/mutants-accepted.txt", "")

    write(root, "tests/unit/index/clamp_test.cpp", "int main() { return 1; }\n")
    subprocess.run(["ninja", "-C", build], check=True, capture_output=True)
    status, text = mutants(root, "--fresh", "lib")
    assert status == 2 and "tests fail without any change" in text, text


if not shutil.which("ninja"):
    sys.exit("no ninja")
with tempfile.TemporaryDirectory() as scratch:
    check(pathlib.Path(scratch).resolve())
print("mutants are found, listed, accepted and remembered")
