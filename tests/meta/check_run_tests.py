# SPDX-License-Identifier: MIT
"""scripts/run_tests.py chooses the tests of a tier, counts them and what they skip, runs again what may be run again,
and uses the system's Python; scripts/soak.py lists what failed once; tests/support/own_tmp.sh leaves nothing. Checked on
small tests."""
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import time

SCRIPTS = pathlib.Path(__file__).resolve().parent.parent.parent / "scripts"
TIERS = """
good        first          # a comment
many        first
partly      first live
partly.here live
later       live
skipped-later live
crashed-later live
again       live
broken      live
never       first asan
hostile     asan
"""
FIRST = """
add_test(good "/bin/sh" "-c" "echo fine")
add_test(many "/bin/sh" "-c" "echo 'cases: 7 passed, 0 failed'")
add_test(partly "/bin/sh" "-c" "echo 'skipped: a title: only root can'; echo '  skipped in part: no dwz'")
add_test(partly.here "/bin/sh" "-c" "echo 'skipped: no node here'; exit 77")
set_tests_properties(partly.here PROPERTIES SKIP_RETURN_CODE 77)
"""
BAD_CASES = """add_test(many "/bin/sh" "-c" "echo 'cases: 5 passed, 2 failed'; echo 'try again: no'; exit 1")
"""
# The last line counts, after more output than ctest keeps by default.
LONG = """add_test(many "/bin/sh" "-c" "head -c 400000 /dev/zero | tr '\\\\0' x | fold; echo; echo 'cases: 7 passed, 0 failed'")
"""
NOT_RUN = """
add_test(many "/nowhere/program")
add_test(good "/bin/true")
set_tests_properties(good PROPERTIES DISABLED TRUE)
"""
# Passes when it runs the third time; and one that fails at once, though it might pass later.
LIVE = """
add_test(later "/bin/sh" "-c" "echo run >>later; test $(wc -l <later) -ge 3 || { echo 'try again: too few samples'; exit 1; }")
add_test(skipped-later "/bin/sh" "-c" "test -e once && exit 77; touch once; echo 'try again: no state'; exit 1")
set_tests_properties(skipped-later PROPERTIES SKIP_RETURN_CODE 77)
add_test(crashed-later "/bin/sh" "-c" "echo 'try again: no state'; echo 'Segmentation fault'; echo run >>crashed-later; exit 1")
add_test(again "/bin/sh" "-c" "echo run >>again; echo 'try again: no state'; exit 1")
add_test(broken "/bin/sh" "-c" "echo run >>broken; echo 'wrong name'; exit 1")
"""
# Each waits until the others have started.
TOGETHER = "".join(f"""
add_test(good.{name} "/bin/sh" "-c" "touch {name}; for i in $(seq 4000); do test -e a -a -e b -a -e c && exit 0; sleep 0.05; done; exit 1")
""" for name in "abc")
# Passes with any Python but the one that the test puts into PATH.
WITH_PYTHON = """
add_test(good python3 -c "pass")
add_test(good.shell "/bin/sh" "-c" "exec python3 -c pass")
"""


class Tree:
    """Both scripts, with a build of given tests."""

    def __init__(self, root):
        self.root, self.build = root, root / "build/release"
        self.build.mkdir(parents=True)
        (root / "scripts").mkdir()
        (root / "tests").mkdir()
        for name in ("run_tests.py", "sanitizer_report.py", "soak.py"):
            shutil.copy(SCRIPTS / name, root / "scripts")
        (root / "tests/tiers.txt").write_text(TIERS)

    def has(self, tests):
        (self.build / "CTestTestfile.cmake").write_text(tests)

    def run(self, *words, script="run_tests.py", **environment):
        """The exit status, and the lines that it prints."""
        ran = subprocess.run([sys.executable, "-B", self.root / "scripts" / script, *words], capture_output=True, text=True,
                             env={**os.environ, **environment}, cwd=self.root)
        self.errors = ran.stderr
        return ran.returncode, ran.stdout.splitlines()


def check_counts(tree):
    tree.has(FIRST)
    assert tree.run("run", "first")[0] == 0
    status, lines = tree.run("summary", "first")
    assert status == 0, lines
    assert lines[-4:] == ["skipped: partly: a title: only root can (first)", "skipped: partly: no dwz (first)",
                          "unstable: 0", "9 passed, 0 failed, 2 skipped"], lines
    assert tree.run("run", "live")[0] == 0
    status, lines = tree.run("summary", "first", "live")
    assert (status, lines[-1]) == (0, "10 passed, 0 failed, 5 skipped"), lines
    assert "skipped: partly: no dwz (first, live)" in lines and "skipped: partly.here: no node here (live)" in lines, lines

    # Only the live tier runs a test again.
    for tests in (BAD_CASES, BAD_CASES.replace("exit 1", "exit 0")):
        tree.has(tests)
        assert tree.run("run", "first")[0] == 1
        status, lines = tree.run("summary", "first")
        assert (status, lines[-1]) == (1, "5 passed, 2 failed, 0 skipped"), lines
    for tests, counts in ((LONG, "7 passed, 0 failed"), (LONG.replace("7 passed, 0", "5 passed, 2"), "5 passed, 2 failed")):
        tree.has(tests)
        tree.run("run", "first")
        assert tree.run("summary", "first")[1][-1] == f"{counts}, 0 skipped"
    status, lines = tree.run("summary", "asan")
    assert (status, lines[0], lines[-1]) == (1, "asan: the tests did not run", "0 passed, 1 failed, 0 skipped"), lines
    tree.has(NOT_RUN)
    assert tree.run("run", "first")[0] == 1
    assert tree.run("summary", "first")[1][-1] == "0 passed, 2 failed, 0 skipped"
    assert tree.run("run", "tsan")[0] == 1 and "build/tsan has no tests: run ./dev test tsan\n" in tree.errors, tree.errors
    assert tree.run("run", "live")[0] == 1  # no test of this tier
    tree.has(FIRST)
    assert tree.run("run", "first", "-R", "^later")[0] == 1
    assert tree.run("run", "first", "-R", "^many")[0] == 0
    assert tree.run("summary", "first")[1][-1] == "7 passed, 0 failed, 0 skipped"
    tree.has('add_test(good "/bin/sh" "-c" "test -z $UPDATE_GOLDEN")')
    assert tree.run("run", "first", UPDATE_GOLDEN="1")[0] == 0


def check_again(tree):
    tree.has(LIVE.splitlines()[1])
    assert tree.run("run", "live")[0] == 0
    status, lines = tree.run("summary", "live")
    assert status == 0 and lines[-2:] == ["unstable: 1 later", "1 passed, 0 failed, 0 skipped"], lines
    assert lines.count("unstable: later failed before it passed:") == 2 and "try again: too few samples" in lines, lines

    tree.has(LIVE)
    assert tree.run("run", "live")[0] == 1
    status, lines = tree.run("summary", "live")
    assert (status, lines[-2:]) == (1, ["unstable: 0", "1 passed, 4 failed, 0 skipped"]), lines
    assert len((tree.build / "again").read_text().split()) == 3
    assert len((tree.build / "crashed-later").read_text().split()) == 1
    assert len((tree.build / "broken").read_text().split()) == 1


def check_tiers(tree):
    tree.has(FIRST + LIVE)
    status, lines = tree.run("tiers")
    assert status == 1 and "never: " not in "".join(lines), lines
    assert "tests/tiers.txt: no test is named never or never.*" in lines and "partly.here: live" in lines, lines
    tree.has(FIRST + LIVE + 'add_test(never "/bin/true")\nadd_test(neverland "/bin/true")\n')
    status, lines = tree.run("tiers")
    assert status == 1 and "neverland: no row in tests/tiers.txt" in lines, lines
    tree.has(FIRST + LIVE + 'add_test(never "/bin/true")\n')
    assert tree.run("tiers")[0] == 0
    shutil.copytree(tree.build, tree.root / "build/asan")
    status, lines = tree.run("tiers", tree.root / "build/asan")
    assert status == 1 and lines[-1] == "tests/tiers.txt: no test is named hostile or hostile.*", lines


def check_programs(tree):
    (tree.build / "build.ninja").write_text("rule touch\n  command = touch $out\n" + "".join(
        f"build {file}: touch\n" for file in ("tool", "folder/other", "unused")))
    build = tree.build.resolve()
    tree.has(f'add_test([=[good]=] "{build}/tool" "{build}/scratch")\nadd_test(many "/bin/sh" "{build}/folder/other")\n'
             f'add_test(later "{build}/unused")\n')
    assert tree.run("programs", "first") == (0, ["folder/other tool"])


def check_reports(tree):
    """A report of a sanitizer makes the run fail, even if its test passed. Options of the caller stay."""
    build = tree.root / "build/asan"
    build.mkdir(exist_ok=True)
    (build / "CTestTestfile.cmake").write_text('add_test(hostile "/bin/sh" "report.sh")\nadd_test(never "/bin/sh" "-c" "exit 1")')
    script = build / "report.sh"
    script.write_text("""path=$(echo "$ASAN_OPTIONS" | sed 's/^verbosity=0:.*log_path="\\([^"]*\\)".*/\\1/')
for i in 1 2; do printf 'ERROR: a bug\\n    #0 (/nowhere+0x10)\\n' >"$path.$i"; done""")
    status, lines = tree.run("run", "asan", "-R", "hostile", ASAN_OPTIONS="verbosity=0")
    assert status == 1 and f"{build.resolve()}/sanitizer/report.2:" in lines and lines[-1] == "    #0 (/nowhere+0x10)", lines
    folder = build.resolve() / "sanitizer"
    assert tree.run("summary", "asan") == (1, ["", f"failed: 2 reports of a sanitizer: {folder}", "unstable: 0",
                                              "1 passed, 1 failed, 0 skipped"])
    script.write_text("true")
    assert tree.run("run", "asan", "-R", "hostile")[0] == 0
    assert tree.run("run", "asan", "-R", "never")[0] == 1
    assert tree.run("summary", "asan")[1][1] == "failed: never (asan)"


def check_environment(tree, programs):
    if os.path.exists("/usr/bin/python3"):
        programs.mkdir()
        (programs / "python3").write_text("#!/bin/sh\nexit 1\n")
        (programs / "python3").chmod(0o755)
        tree.has(WITH_PYTHON)
        assert tree.run("run", "first", PATH=f"{programs}:{os.environ['PATH']}")[0] == 0
    tree.has(TOGETHER)
    assert tree.run("run", "first", "-j", "2")[0] == 0


def check_soak(tree):
    (tree.build / "later").unlink(missing_ok=True)
    tree.has(LIVE.splitlines()[1] + '\nadd_test(partly "/bin/sh" "-c" "echo run >>partly; test $(wc -l <partly) != 2")\n')
    status, lines = tree.run("live", "1", script="soak.py")
    assert status == 0 and "later: unstable in 1 of 1 runs: 1" in lines, lines
    status, lines = tree.run("live", "2", script="soak.py")
    assert status == 1 and "partly: failed in 1 of 3 runs: 2" in lines and "later: unstable in 1 of 3 runs: 1" in lines, lines
    assert lines[-1].startswith("2 tests, 6 runs of tests: "), lines
    assert (tree.root / "build/soak/live-2-partly-1.log").exists()
    assert len(tree.run("live", "0", script="soak.py")[1]) == 3
    assert tree.run("live", "1", "-R", "nothing", script="soak.py")[0] == 1
    assert tree.run("all", "1", script="soak.py")[0] == 1
    table = tree.root / "build/soak/live.tsv"
    table.write_text(table.read_text()[:-7] + "\nx\t9\tlat")  # two incomplete lines
    status, lines = tree.run("live", "0", script="soak.py")
    assert status == 1 and lines[-1].startswith("2 tests, 5 runs of tests: "), lines
    table.write_text(table.read_text().replace("unknown\t", "before\t"))  # failures of another commit
    assert tree.run("live", "0", script="soak.py") == (0, lines)
    table = tree.root / "build/soak/first.tsv"
    table.write_text("".join(f"x\t{number}\tslow\tpassed\t{seconds}\n" for number, seconds in enumerate((0.2, 0.2, 0.2, 2.5), 1)))
    status, lines = tree.run("first", "0", script="soak.py")
    assert (status, lines[0]) == (0, "slow: took 2.5 s once, 0.2 s in the median"), lines


def in_folder(folder):
    """The ids of processes whose working directory it is."""
    for process in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            if os.readlink(process / "cwd") == str(folder.resolve()):
                yield process.name
        except OSError:
            pass  # it has ended, or belongs to another user


def process_name(pid):
    try:
        return pathlib.Path(f"/proc/{pid}/comm").read_text()
    except OSError:
        return ""


def check_signals(tree):
    """Busy loops end with soak.py, and with SIGTERM ctest, too."""
    started, stop = tree.build / "started", tree.build / "stop"
    tree.has('add_test(good "/bin/sh" "-c" "touch started; until test -e stop; do sleep 0.05; done")')
    for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGKILL):
        with subprocess.Popen([sys.executable, "-B", tree.root / "scripts/soak.py", "first", "1"], cwd=tree.root,
                              stdout=subprocess.DEVNULL) as soak:
            while not started.exists():
                time.sleep(0.02)
            assert len([*in_folder(tree.root)]) > 3
            soak.send_signal(number)
        if number == signal.SIGTERM:
            assert soak.returncode == 128 + number
            while any("ctest" in process_name(pid) for pid in in_folder(tree.build)):
                time.sleep(0.02)
        stop.touch()
        while [*in_folder(tree.root), *in_folder(tree.build)]:
            time.sleep(0.02)
        started.unlink()
        stop.unlink()


def check_own_tmp(folder):
    """The folder of a test's /tmp is removed after any end of the test."""
    for number in (0, signal.SIGTERM, signal.SIGKILL):
        script = "echo tmp-*; exec " + ("sleep 1000" if number else "true")
        with subprocess.Popen([SCRIPTS.parent / "tests/support/own_tmp.sh", "sh", "-c", script], cwd=folder,
                              stdout=subprocess.PIPE) as test:
            assert test.stdout.readline().startswith(b"tmp-")  # its name, or the pattern if mounting is not allowed
            if number:
                test.send_signal(number)
        assert test.returncode == -number
        while [*folder.iterdir()]:
            time.sleep(0.02)


with tempfile.TemporaryDirectory(dir=os.getcwd()) as scratch:
    check_own_tmp(pathlib.Path(scratch))
with tempfile.TemporaryDirectory() as scratch:
    own = Tree(pathlib.Path(scratch))
    check_counts(own)
    check_again(own)
    check_tiers(own)
    check_programs(own)
    check_reports(own)
    check_environment(own, own.root / "bin")
    check_soak(own)
    check_signals(own)
print("tests are chosen, counted and run again")
