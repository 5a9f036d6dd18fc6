# SPDX-License-Identifier: MIT
"""Builds the Rust crates offline and runs their tests: rust.py SOURCE TARGET LIBRARY...

Exit status 77: no cargo or no rustc is installed.
"""
import os
import re
import shutil
import subprocess
import sys

source, target = sys.argv[1:3]
libraries = ":".join(os.path.dirname(os.path.abspath(path)) for path in sys.argv[3:])
for tool in ("cargo", "rustc"):
    if shutil.which(tool) is None:
        print(f"skipped: no {tool} here")
        sys.exit(77)
print(subprocess.run(["rustc", "--version"], capture_output=True, text=True).stdout.strip())
environment = {**os.environ, "PERFMAP_LIBRARY_PATH": libraries, "LD_LIBRARY_PATH": libraries,
               "CARGO_TARGET_DIR": target}
total = 0
for features in ([], ["--features", "profile"]):
    run = subprocess.run(["cargo", "test", "--offline", "--locked", "--quiet", "--workspace", *features], cwd=source,
                         env=environment, text=True, capture_output=True, timeout=600)
    assert run.returncode == 0, (features, run.stdout[-4000:], run.stderr[-4000:])
    total += sum(int(passed) for passed in re.findall(r"test result: ok\. (\d+) passed", run.stdout))
assert total > 20, total
print(f"{total} tests of the crates pass, without and with the feature profile")
