# SPDX-License-Identifier: MIT
"""gdb unwinds through JIT code with the ELF file of a jitdump, but not without it:
gdb_backtrace.py PERFMAP JIT_PROCESS

Exit status 77: gdb is not installed, or cannot debug.
"""
import shutil
import subprocess
import sys
import tempfile

perfmap, program = sys.argv[1:3]
if not shutil.which("gdb"):
    print("skipped: no gdb here")
    sys.exit(77)

with tempfile.TemporaryDirectory() as work:
    dump, elf = work + "/jit.dump", work + "/jit.elf"
    script = [f"run {dump}", "echo BEFORE\\n", "backtrace 8",
              f"shell {perfmap} convert {dump} --to elf -o {elf}", f"add-symbol-file {elf}",
              "echo AFTER\\n", "backtrace", "kill"]
    command = ["gdb", "-nx", "-batch"]
    for line in script:
        command += ["-ex", line]
    text = subprocess.run(command + [program], capture_output=True, text=True, errors="replace",
                          stdin=subprocess.DEVNULL, timeout=120)
    text = text.stdout + text.stderr

if "SIGTRAP" not in text:
    print("skipped: gdb could not run the program:", text[-500:])
    sys.exit(77)
before, after = text.split("BEFORE")[1].split("AFTER")
assert "call_jit_code" not in before, before
frames = [line for line in after.splitlines() if line.startswith("#")]
assert "jit_code" in frames[0] and "/demo.js:12" in frames[0], text
assert "call_jit_code" in frames[1], text
assert "main" in frames[2], text
print("\n".join(frames[:3]))
