# SPDX-License-Identifier: MIT
"""libperfmap-cpython.so must export the six functions that its header declares and nothing else:
check_exports.py HEADER LIBRARY"""
import re
import subprocess
import sys

NAMES = {"PyUnstable_PerfMapState_Init", "PyUnstable_WritePerfMapEntry",
         "PyUnstable_PerfMapState_Fini", "PyUnstable_CopyPerfMapFile",
         "PyUnstable_PerfTrampoline_CompileCode",
         "PyUnstable_PerfTrampoline_SetPersistAfterFork"}
declared = set(re.findall(r"^PERFMAP_C_API [^;(]*?\b(\w+)\(", open(sys.argv[1]).read(), re.M))
symbols = subprocess.run(["nm", "-D", "--defined-only", sys.argv[2]], check=True, text=True,
                         capture_output=True).stdout
exported = {name.split("@")[0] for kind, name in re.findall(r" (\w) (\S+)$", symbols, re.M)
            if kind != "A"}
problems = [f"{what}: {sorted(found ^ NAMES)}"
            for what, found in [("header", declared), ("library", exported)] if found != NAMES]
print("\n".join(problems) or "six names")
sys.exit(1 if problems else 0)
