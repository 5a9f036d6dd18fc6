# SPDX-License-Identifier: MIT
"""Runs the unit and property tests in parallel, and counts them: run.py UNIT_TESTS [INPUTS]

The program runs for a batch of cases at a time: batches are small, so that no process is left with all slow cases.
The time limit of a batch is shorter than ctest's, after which nothing would be printed.
One case alone: UNIT_TESTS "title of the case".

Cases see nothing of the machine (support/empty_root.c): only an empty folder, which is TMPDIR, their own
processes, the program's folder, the folder tests, and the folder INPUTS. HOST_CASES has the exceptions.
"""
import concurrent.futures
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile

TESTS = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(TESTS / "support"))
import empty_root

# title: (programs of the machine that the case runs, what it needs of the machine)
HOST_CASES = {
    "GNU tar and perfmap read each other's archives": (["sh", "tar"], "another implementation of the format"),
    "patch(1) with the diff turns the first text into the second": (["sh", "patch"], "the reader of the format"),
    "a shell reads any quoted word back unchanged": (["sh"], "the reader of the format"),
    "a JVM is signaled only if its trigger file is ours": (["sh"], "a process with another command line"),
    "the help of perf tells which options it has": (["sh"], "a perf that is a script"),
    "rules of real files equal those of libdw": ([], "large files of real compilers, as many as there are"),
    "a snapshot of our own process contains its modules and its vdso": ([], "the file of the C library in use"),
    "a file that shows the kernel's state is read if it was typed, not if it was found":
        ([], "files of /proc and /sys"),
    "the test finds itself in the real /proc": ([], "a list of all processes, and ignores the others"),
    "a map that a process writes is reported if it is not in /tmp or a container's /tmp":
        ([], "a list of all processes, and ignores the others"),
}

BATCH = 24
SECONDS = 300
CATCH_2, CATCH_3 = ["--list-test-names-only"], ["--list-tests", "--verbosity", "quiet"]
PASSED = re.compile(r"All tests passed \(.* in (\d+) test cases?\)")
COUNTS = re.compile(r"^test cases: +(\d+) ", re.M)
FAILED = re.compile(r"^test cases:.* (\d+) failed", re.M)
SKIPPED = re.compile(r"^skipped(?: in part)?: .*\n", re.M)


def titles(program):
    """Catch2 2 ends with the number of cases as its status, 3 does not know the option."""
    for options in (CATCH_2, CATCH_3):
        listed = subprocess.run([program, *options], capture_output=True, text=True)
        if listed.returncode < 0:
            sys.exit(f"{program} ended with signal {-listed.returncode} while it listed its cases")
        if listed.stdout.strip() and "Unrecognised token" not in listed.stdout + listed.stderr:
            return [line for line in listed.stdout.splitlines() if line]
    sys.exit(f"{program} lists no test cases")


running = set()  # processes of batches


class Runner:
    def __init__(self, program, inputs, work):
        self.program, self.work = program, work
        self.preload = pathlib.Path(program).with_name("empty_root.so")
        if not self.preload.is_file():
            sys.exit(f"there is no {self.preload}: build the target unit_tests")
        self.inputs = [TESTS, self.preload.parent, *inputs]
        self.nothing = pathlib.Path(work, "nothing")
        self.nothing.mkdir()

    def environment(self, folder):
        return empty_root.environment(self.preload, self.nothing, self.inputs) | {"TMPDIR": str(folder)}

    def run_batch(self, batch):
        """(number of passed cases, of failed ones, output)"""
        folder = pathlib.Path(tempfile.mkdtemp(dir=self.work))
        folder.chmod(0o755)  # children of other users look into it
        on_host = batch[0] in HOST_CASES
        environment = {**os.environ, "TMPDIR": str(folder)} if on_host else self.environment(folder)
        return run_batch(self.program, batch, folder, environment)


def end(process):
    """Kills it with its process group."""
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
    process.wait()


def run_batch(program, batch, folder, environment):
    with (tempfile.NamedTemporaryFile("w", suffix=".titles", dir=folder) as file,
          tempfile.TemporaryFile() as printed):  # a file: a child of a case may keep a pipe open
        # Without the escapes, a title with one of these characters is a pattern.
        file.write("".join('"' + re.sub(r'([\\",\[\]])', r"\\\1", title) + '"\n' for title in batch))
        file.flush()
        # In a session of its own, whose processes are those that its cases see.
        ran = subprocess.Popen([program, "--input-file", file.name], stdin=subprocess.DEVNULL, stdout=printed,
                               stderr=subprocess.STDOUT, cwd=folder, env=environment, start_new_session=True)
        running.add(ran)
        try:
            ran.wait(SECONDS)
        except subprocess.TimeoutExpired:
            ran.terminate()  # Catch2 prints the case that is running
        try:
            ran.wait(10)
        except subprocess.TimeoutExpired:
            pass
        end(ran)  # also processes that cases left
        running.remove(ran)
        printed.seek(0)
        output = printed.read().decode(errors="replace")
    # Without a summary the program ended early, with whatever status.
    found = PASSED.search(output) or COUNTS.search(output)
    ran_cases = int(found[1]) if found else 0
    failed = int(found[1]) if (found := FAILED.search(output)) else 0
    if ran_cases != len(batch) or ran.returncode < 0:
        how = f"signal {-ran.returncode}" if ran.returncode < 0 else f"status {ran.returncode}"
        output += f"\n{program} ended with {how} after {ran_cases} of {len(batch)} cases. One of these failed:\n"
        output += "".join(f"  {title}\n" for title in batch)
        failed = max(failed, len(batch) - ran_cases, 1)
    if ran.returncode or "cannot be preloaded" in output:
        failed = max(failed, 1)
    return len(batch) - failed, failed, output if failed else "".join(SKIPPED.findall(output))


def main():
    program = os.path.abspath(sys.argv[1])
    jobs = len(os.sched_getaffinity(0))
    os.umask(0o022)
    signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))
    cases = titles(program)
    if unknown := HOST_CASES.keys() - {*cases}:
        sys.exit(f"HOST_CASES has titles of no case: {sorted(unknown)}")
    hosted = []
    for title, (tools, why) in HOST_CASES.items():
        missing = [tool for tool in tools if not shutil.which(tool)]
        if missing:
            print(f"skipped: {title}: it needs {why}, and there is no {' and no '.join(missing)}")
        else:
            hosted.append(title)
    cases = [title for title in cases if title not in HOST_CASES]
    passed = failed = 0
    # Cases of one file are next to each other, and so are slow ones: each batch gets cases of all files.
    count = (len(cases) + BATCH - 1) // BATCH
    batches = [[title] for title in hosted] + [cases[start::count] for start in range(count)]
    # In /tmp: the path of a socket has at most 107 bytes.
    with tempfile.TemporaryDirectory(prefix="unit-", dir="/tmp", ignore_cleanup_errors=True) as work, \
            concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        os.chmod(work, 0o755)
        runner = Runner(program, sys.argv[2:], os.path.realpath(work))
        try:
            for good, bad, output in pool.map(runner.run_batch, batches):
                passed, failed = passed + good, failed + bad
                print(output, end="", flush=True)
        except BaseException:  # Ctrl-C, or SIGTERM
            pool.shutdown(wait=False, cancel_futures=True)
            for process in [*running]:
                end(process)
            raise
    print(f"cases: {passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
