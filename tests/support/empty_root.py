# SPDX-License-Identifier: MIT
"""The environment of a process that sees nothing of the machine: empty_root.c."""
import os
import shutil

PASSED_ON = ("LD_LIBRARY_PATH", "ASAN_OPTIONS", "LSAN_OPTIONS", "TSAN_OPTIONS", "UBSAN_OPTIONS")


def environment(preload, nothing, inputs=()):
    """`preload`: the library; `nothing`: an empty folder; `inputs`: files and folders that can be read, too."""
    env = {name: os.environ[name] for name in PASSED_ON if name in os.environ}
    # ASan wants to be the first library. It finds no symbolizer in PATH.
    env["ASAN_OPTIONS"] = ":".join(filter(None, [env.get("ASAN_OPTIONS"), "verify_asan_link_order=0"]))
    if symbolizer := os.environ.get("ASAN_SYMBOLIZER_PATH") or shutil.which("llvm-symbolizer"):
        env["ASAN_SYMBOLIZER_PATH"] = symbolizer
    env |= {"PATH": "/nonexistent", "LANG": "C", "TZ": "UTC0"}
    if preload:
        env |= {"LD_PRELOAD": str(preload), "EMPTY_ROOT_FOLDER": str(nothing),
                "EMPTY_ROOT_INPUTS": ":".join(map(str, inputs))}
    return env
