# SPDX-License-Identifier: MIT
"""scripts/sanitizer_report.py: a frame in a report gets its function and line; other text stays."""
import pathlib
import subprocess
import sys
import tempfile

SCRIPT = pathlib.Path(__file__).resolve().parent.parent.parent / "scripts/sanitizer_report.py"

with tempfile.TemporaryDirectory() as scratch:
    tool = pathlib.Path(scratch) / "a folder/tool"
    tool.parent.mkdir()
    source = tool.with_suffix(".c")
    source.write_text("int inner(void) { return 1; }\nint main(void) {\n  return inner();\n}\n")
    subprocess.run(["cc", "-g", "-o", tool, source], check=True)
    symbols = subprocess.run(["nm", tool], stdout=subprocess.PIPE, text=True, check=True).stdout
    inner, main = (next(line.split()[0] for line in symbols.splitlines() if line.endswith(f" T {name}"))
                   for name in ("inner", "main"))
    report = f"""ERROR: a report
    #0 ({tool}+0x{inner})
    #1 ({tool}+0x{main}) again
    #2 ({tool}+0x{main})
    #3 ({tool}+0x7fffffff)
    #4 (/nowhere+0x10)
    #5 (/nowhere+0x20)
"""
    ran = subprocess.run([sys.executable, "-B", SCRIPT], input=report, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                         text=True, check=True)
    expected = report.splitlines()
    expected[1] = f"    #0 inner at {source}:1:17"
    expected[3] = f"    #2 main at {source}:2:16"
    assert ran.stdout.splitlines() == expected, ran.stdout
print("a report has functions and lines")
