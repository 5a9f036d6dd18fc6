# SPDX-License-Identifier: MIT
"""scripts/run_tests.py counts tests and skipped ones, hides runtimes, uses the system's Python, and runs three tests
at a time for two processors. Checked on small tests."""
import os
import pathlib
import subprocess
import sys
import tempfile

RUN_TESTS = pathlib.Path(__file__).resolve().parent.parent.parent / "scripts/run_tests.py"
TESTS = """
add_test(good "/bin/sh" "-c" "echo fine")
add_test(partly "/bin/sh" "-c" "echo 'skipped: a title: only root can'; echo '  skipped in part: no dwz'")
add_test(not-here "/bin/sh" "-c" "echo 'skipped: no node here'; exit 77")
set_tests_properties(not-here PROPERTIES SKIP_RETURN_CODE 77)
add_test(sees-node "/bin/sh" "-c" "command -v node && command -v sed")
"""

# Each waits until the others have started.
TOGETHER = "".join(f"""
add_test({name} "/bin/sh" "-c" "touch {name}; for i in $(seq 4000); do test -e a -a -e b -a -e c && exit 0; sleep 0.05; done; exit 1")
""" for name in "abc")


# Passes with any Python but the one that the test puts into PATH.
WITH_PYTHON = """
add_test(python python3 -c "pass")
add_test(python-of-a-test "/bin/sh" "-c" "exec python3 -c pass")
"""


def said(*arguments, **environment):
    run = subprocess.run([sys.executable, RUN_TESTS, *arguments], capture_output=True, text=True,
                         env={**os.environ, **environment})
    return run.returncode, run.stdout


with tempfile.TemporaryDirectory() as scratch:
    build = pathlib.Path(scratch, "build")
    programs = pathlib.Path(scratch, "bin")
    build.mkdir(), programs.mkdir()
    (build / "CTestTestfile.cmake").write_text(TESTS)
    (programs / "node").write_text("#!/bin/sh\n")
    (programs / "node").chmod(0o755)
    path = f"{programs}:{os.environ['PATH']}"

    assert said("run", build, PATH=path, PERFMAP_LIVE="on")[0] == 0
    status, text = said("summary", build, PERFMAP_LIVE="on")
    assert status == 0, text
    assert text.splitlines()[-4:] == [
        f"skipped: partly: a title: only root can ({build})",
        f"skipped: partly: no dwz ({build})",
        f"skipped: not-here: no node here ({build})",
        "3 passed, 0 failed, 3 skipped"], text

    assert said("run", build, PATH=path, PERFMAP_LIVE="off")[0] != 0
    status, text = said("summary", build, build, PERFMAP_LIVE="off")
    assert status == 1, text
    assert text.splitlines()[-2:] == ["PERFMAP_LIVE=off: real runtimes and the browser were left out",
                                      "4 passed, 2 failed, 6 skipped"], text

    if os.path.exists("/usr/bin/python3"):
        (programs / "python3").write_text("#!/bin/sh\nexit 1\n")
        (programs / "python3").chmod(0o755)
        (build / "CTestTestfile.cmake").write_text(WITH_PYTHON)
        for live in ("on", "off"):
            assert said("run", build, PATH=path, PERFMAP_LIVE=live)[0] == 0, live

    (build / "CTestTestfile.cmake").write_text(TOGETHER)
    assert said("run", build, "-j", "2")[0] == 0
    (build / "tests.xml").unlink()
    status, text = said("summary", build)
    assert (status, text.splitlines()[-1]) == (1, "0 passed, 1 failed, 0 skipped"), text
print("tests, and what they skip, are counted")
