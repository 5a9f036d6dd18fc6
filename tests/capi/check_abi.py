# SPDX-License-Identifier: MIT
"""Compares the C interface with its dumps in tests/capi/abi, and checks that this notices breaks:
check_abi.py CC LIB LIBRARY...   (LIB: the folder lib; LIBRARY: the built libraries)

abidw needs debug information, which a release build does not have. So this compiles the declarations of
the headers as functions without content, and links them with the version script. capi.exports compares
headers, version scripts and libraries; the compiler compares each declaration with its definition. A
library must also export the same names with the same versions as what is compared here.

A dump changes only with a declared change: UPDATE_ABI=1 rewrites the dumps. docs/stability.md says which
changes are allowed. Exit status 77: no abidw, or the machine is not x86-64, for which the dumps are.
"""
import os
import pathlib
import platform
import re
import shutil
import subprocess
import sys
import tempfile

DUMPS = pathlib.Path(__file__).resolve().parent / "abi"
# Each library: the headers with its functions.
HEADERS = {"perfmap-writer": ["perfmap_writer.h"], "perfmap": ["perfmap_writer.h", "perfmap.h"],
           "perfmap-profile": ["perfmap_profile.h"], "perfmap-cpython": ["perfmap/cpython.h"]}
DECLARATION = re.compile(r"PERFMAP_C_API ([^;]*?\));", re.S)
CONSTANTS = "perfmap_constants_of_headers"  # not a function of the library
INCOMPATIBLE = 8  # a bit of abidiff's exit status


def compile_interface(compiler, lib, name, built, output, change=lambda kind, text: text):
    """A library with the interface of the library `name`, which is at `built`. `change` may edit headers and the version
    script. Returns the directory of headers."""
    include = output.parent / f"{output.stem}-include"
    shutil.copytree(lib / "include", include)
    for header in include.rglob("*.h"):
        header.write_text(change("header", header.read_text()))
    script = output.with_suffix(".map")
    text = (lib / f"{name}.map").read_text().replace("  global:\n", f"  global:\n    {CONSTANTS};\n", 1)
    script.write_text(change("script", text))
    functions = [declaration for header in HEADERS[name]
                 for declaration in DECLARATION.findall(without_comments((include / header).read_text()))]
    assert functions, name
    source = output.with_suffix(".c")
    macros, constants = constants_of("".join((include / header).read_text() for header in HEADERS[name]))
    (include / "macros.h").write_text(macros)  # a type of another file would be private
    source.write_text("".join(f"#include <{header}>\n" for header in [*HEADERS[name], "macros.h"]) + constants +
                      "".join(f"{function} {{ __builtin_trap(); }}\n" for function in functions))
    dynamic = subprocess.run(["readelf", "-dW", built], check=True, capture_output=True, text=True).stdout
    soname = re.search(r"\(SONAME\).*\[(.*)\]", dynamic)[1]
    subprocess.run([compiler, "-g", "-w", "-shared", "-fPIC", "-nostdlib", "-fvisibility=hidden", "-I", include,
                    f"-Wl,--version-script={script}", f"-Wl,-soname,{soname}", source, "-o", output], check=True)
    return include


def constants_of(headers):
    """The macros as an enum, and a function whose parameters are this and all enums of the headers. abidw prints only types
    that functions have, but an enum is passed as a number."""
    macros = re.findall(r"(?m)^#define (PERFMAP_\w+) (?:\d+|U?INT\d+_MAX)\b", headers)
    assert len(macros) == len(re.findall(r"(?m)^#define (?!PERFMAP_C_API)\w+ ", headers)), macros
    names = re.findall(r"typedef enum (\w+) \{", headers) + ["enum perfmap_macros"] * bool(macros)
    listed = "".join(f"  value_of_{macro} = {macro},\n" for macro in macros)
    parameters = ", ".join(f"{name}* _{i}" for i, name in enumerate(names)) or "void"
    return (f"enum perfmap_macros {{\n{listed}}};\n" if macros else "",
            f"PERFMAP_C_API void {CONSTANTS}({parameters}) {{}}\n")


def without_comments(text):
    return re.sub(r"/\*.*?\*/", " ", text, flags=re.S)


def dump(library, include, output):
    subprocess.run(["abidw", "--headers-dir", include, "--drop-private-types", "--drop-undefined-syms", "--no-show-locs",
                    "--no-corpus-path", "--no-comp-dir-path", "--type-id-style", "hash", "--out-file", output, library],
                   check=True)


def compare(old, new):
    """(status of abidiff, its report)"""
    done = subprocess.run(["abidiff", "--no-show-locs", old, new], capture_output=True, text=True)
    assert not done.returncode & 3, done.stderr + done.stdout
    return done.returncode, done.stdout


def exported(library):
    """The functions of C with their versions."""
    listed = subprocess.run(["nm", "-D", "--defined-only", library], check=True, text=True, capture_output=True).stdout
    return {name for name in re.findall(r" T ((?:perfmap|PyUnstable)_\w+@@[\w.]+)$", listed, re.M)
            if not name.startswith(CONSTANTS)}


def without_function(kind, text):
    pattern = r"    perfmap_version;\n" if kind == "script" else r"PERFMAP_C_API const char\* perfmap_version\(void\);"
    return re.sub(pattern, "", text)


def in_header(before, after):
    return lambda kind, text: text.replace(before, after) if kind == "header" else text


# What would break a program: each must be noticed as incompatible, or at least as a change.
BREAKS = {
    "a function is removed": (without_function, INCOMPATIBLE),
    "a version of symbols is renamed":
        (lambda kind, text: text.replace("PERFMAP_0.1", "PERFMAP_0.2") if kind == "script" else text, INCOMPATIBLE),
    "a parameter is narrower":
        (in_header("perfmap_state_write_entry(const void* code, size_t size",
                        "perfmap_state_write_entry(const void* code, unsigned size"), 0),
    "a member is inserted":
        (in_header("  int32_t sys_errno;  /* an errno", "  int64_t inserted;\n  int32_t sys_errno;  /* an errno"), 0),
    "a number of an enum changes": (in_header("PERFMAP_LAYOUT_POINTER = 3,", "PERFMAP_LAYOUT_POINTER = 13,"), 0),
    "a macro changes": (in_header("PERFMAP_UNWIND_ROOM 96", "PERFMAP_UNWIND_ROOM 64"), 0),
    "a function is added":
        (lambda kind, text: text.replace("    perfmap_version;\n", "    perfmap_version;\n    perfmap_added;\n")
         if kind == "script" else text.replace("PERFMAP_C_API const char* perfmap_version(void);",
                                               "PERFMAP_C_API const char* perfmap_version(void);"
                                               "PERFMAP_C_API void perfmap_added(void);"), 0),
}


def check_breaks(compiler, lib, built, work):
    """Whether a comparison with the dump of libperfmap-writer notices each break."""
    # `bit` of the status must be set; 0: any.
    for number, (what, (change, bit)) in enumerate(BREAKS.items()):
        library = work / f"break{number}.so"
        include = compile_interface(compiler, lib, "perfmap-writer", built, library, change)
        dump(library, include, work / f"break{number}.abi")
        status, report = compare(DUMPS / "perfmap-writer.abi", work / f"break{number}.abi")
        assert status and status & bit == bit, f"not noticed: {what}: status {status}\n{report}"
        print(f"noticed: {what}")


def main():
    compiler, lib, libraries = sys.argv[1], pathlib.Path(sys.argv[2]), sys.argv[3:]
    if not shutil.which("abidw") or platform.machine() != "x86_64":
        print("skipped: no abidw (package abigail-tools), or not x86-64")
        sys.exit(77)
    built = {pathlib.Path(path).name.removeprefix("lib").partition(".so")[0]: path for path in libraries}
    assert sorted(built) == sorted(HEADERS), built
    failed = False
    with tempfile.TemporaryDirectory() as folder:
        work = pathlib.Path(folder)
        for name in HEADERS:
            library, new = work / f"{name}.so", work / f"{name}.abi"
            include = compile_interface(compiler, lib, name, built[name], library)
            names = exported(library)
            assert names and names == exported(built[name]), names ^ exported(built[name])
            dump(library, include, new)
            if os.environ.get("UPDATE_ABI"):
                shutil.copy(new, DUMPS / new.name)
            status, report = compare(DUMPS / new.name, new)
            print(f"lib{name}: {len(names)} functions, {'as dumped' if status == 0 else 'changed'}")
            if status:
                failed = True
                print(report, "an incompatible change: see docs/stability.md" if status & INCOMPATIBLE else
                      "a change: see docs/stability.md; if it is allowed, UPDATE_ABI=1 rewrites the dump", sep="\n")
        if not failed:
            check_breaks(compiler, lib, built["perfmap-writer"], work)
    sys.exit(failed)


main()
