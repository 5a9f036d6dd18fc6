# SPDX-License-Identifier: MIT
"""All C and C++ is formatted by clang-format-16 and .clang-format. Skipped without that program."""
import pathlib
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
FORMAT = shutil.which("clang-format-16")
if FORMAT is None:
    print("skipped: no clang-format-16")
    sys.exit(77)
files = [path for place in ("apps", "examples", "lib", "tests") for path in sorted((ROOT / place).rglob("*"))
         if path.suffix in (".cpp", ".hpp", ".h", ".c") and path.is_file()]
result = subprocess.run([FORMAT, "--dry-run", "-Werror", *map(str, files)], capture_output=True, text=True)
wrong = [line for line in result.stderr.splitlines() if ": error:" in line]
print("\n".join(wrong) or f"{len(files)} files are formatted")
if wrong:
    print("./dev format fixes this")
sys.exit(1 if result.returncode != 0 else 0)
