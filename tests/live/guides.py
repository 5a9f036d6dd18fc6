# SPDX-License-Identifier: MIT
"""Runs the commands of docs/guides: guides.py PERFMAP [PAGE...]

A page is a Markdown file. A line `NAME`: before a code block says that the block is the file NAME.
The commands of the console blocks, `$ COMMAND`, run in order in one shell, in a directory that the
pages show as /srv, and must succeed. Each line that the page shows must be printed, in that order,
with any numbers, except those that begin with `...`; lines that are printed but not shown are ignored. `<!-- needs: PROGRAM -->` names
a program without which a page cannot be run, or root; `A|B as C` is one of two, which the page calls C. Commands in an `sh` block are not run: the comment before it gives the reason, as in
`<!-- not run: needs a cluster -->`. The steps of a workflow in examples/ci are in ci_guide().
With UPDATE_GUIDES=1, all blocks of a page show what this run printed, so that their numbers fit. Exit status 77: perf
cannot record.
"""
import concurrent.futures
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "scripts"))
from console_blocks import console_blocks, with_blocks

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
from perf_record import PERF_RECORD
from trying import require, results_of, try_again
from waiting import HANG, children_of, proc_file, processor_time, until
try:
    import workflow
except ImportError:  # no YAML parser
    workflow = None

PERFMAP = pathlib.Path(sys.argv[1]).resolve()  # --wait SECONDS PID...: for a shell of run_commands()
FILE = re.compile(r"(?s)`([\w./-]+)`:\n+```\w*\n(.*?)```")
NEEDS = re.compile(r"<!-- needs: (.*?) -->")
NOT_RUN = re.compile(r"(?s)(<!-- not run: (.*?) -->\n+)?```sh\n(.*?)```")
RECORDED = re.compile(r"(?m)^perfmap: recorded (\d+) samples? in .*: (\S+)$")
REPORTED = re.compile(r"(?m)^\$ perfmap report (\S+).*\n(\d+) samples? of ")
SECTIONS = ["Record", "Report", "Page", "What has a name", "A living process", "In production",
            "If names are missing"]
MAX_LINES = 130
MARK = "@@perfmap-guide@@"
WORKFLOW = ROOT / "examples/ci/profile.yml"


def find_program(name):
    """A program in PATH, or one of pyenv's, because Debian has no newer Python."""
    if name == "root":
        return "root" if os.geteuid() == 0 else None
    if name == "unshare" and subprocess.run(["unshare", "--mount", "true"], capture_output=True).returncode != 0:
        return None  # in a chroot, even root cannot
    pyenv = sorted(pathlib.Path.home().glob(f".pyenv/versions/*/bin/{name}"))
    found = shutil.which(name)
    if found and "/.pyenv/shims/" not in found:
        return found
    return str(pyenv[-1]) if pyenv else None


def prepare_programs(needs, bin_directory):
    """Links the programs into a directory. Returns the name of a missing one."""
    (bin_directory / "perfmap").symlink_to(PERFMAP)
    for need in needs:
        need, _, as_name = need.partition(" as ")
        names = need.split("|")
        found = next((path for path in map(find_program, names) if path), None)
        if found is None:
            return " or ".join(names)
        if as_name:
            (bin_directory / as_name).symlink_to(found)
    return None


def environment(bin_directory):
    kept = {key: value for key, value in os.environ.items() if not key.startswith(("PYENV_", "DEBUGINFOD"))}
    return {**kept, "PATH": f"{bin_directory}:{os.environ['PATH']}", "LC_ALL": "C.UTF-8"}


def wait_for_jobs(seconds, pids):
    """Until the jobs of a shell have run for most of the seconds: on a busy machine they start late."""
    def used(pid):
        return processor_time(pid) + sum(map(used, children_of(pid)))

    until(lambda: all(used(pid) > 0.7 * seconds or not proc_file(pid, "cmdline") for pid in pids))


def run_commands(commands, directory, env):
    """(status, output) of each; one shell runs them, so $! and cd work as they do for a reader."""
    script = f'sleep() {{ command sleep $1; "{sys.executable}" "{pathlib.Path(__file__).resolve()}" --wait $1 $(jobs -p); }}\n'
    script += "".join(f"{command}\nprintf '\\n{MARK} %d\\n' $?\n" for command in commands)
    script += "for job in $(jobs -p); do kill $job 2>/dev/null; done\n"
    done = subprocess.run(["bash", "-c", script], cwd=directory, env=env, stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=3 * HANG)
    parts = re.split(rf"\n{MARK} (\d+)\n", done.stdout)
    return [(int(status), text.replace(str(directory), "/srv"))
            for text, status in zip(parts[::2], parts[1::2])]


def shape(line):
    """The line without what differs from run to run."""
    line = re.sub(r"/\S+/[0-9a-f]{32}/", "/DIR/", line)  # of record, for what a runtime reads
    line = re.sub(r" \(and \d+ without samples\)", "", line)
    line = re.sub(r"0x[0-9a-f]+|\b[0-9a-f]{8,}\b", "N", line)
    line = re.sub(r"\d[\d.,]*", "N", line)
    line = re.sub(r"\bprocess(es)?\b", "process", line)
    line = re.sub(r"\bsamples?\b", "sample", line)
    line = re.sub(r"\[(\w+)(, \w+)+\]$", r"[\1]", line)  # the tiers that had samples
    # One stack of hundreds may be cut, which doctor gives as a hint.
    line = line.replace("no name is missing; the findings above are only hints", "no problem found")
    return " ".join(line.split())


def missing_lines(shown, printed):
    """The lines of the page that are not printed, or not in that order."""
    lines = iter([shape(line) for line in printed.splitlines()])
    return [line for line in shown.splitlines()
            if line.strip() and not line.startswith("...") and shape(line) not in lines]


def is_row(line):
    """Whether the line of a page is one of a function, line or instruction with samples: which have some is chance."""
    return re.match(r"\s*\d[\d.,]*%?\s+\d[\d.,]*%?\s", line) is not None


def refreshed(shown, printed):
    """The lines that the page shows, as they were printed."""
    rest = printed.splitlines(keepends=True)
    fresh = []
    for line in shown.splitlines(keepends=True):
        at = next((i for i, new in enumerate(rest) if line.strip() and shape(new) == shape(line)), None)
        if at is not None:
            line, rest = rest[at], rest[at + 1:]
        fresh.append(line)
    return "".join(fresh)


def run_page(page, text, scratch):
    """(commands run, complaints, those that chance may explain, blocks as they should be), or the reason why nothing was run."""
    directory, bin_directory = scratch / "srv", scratch / "bin"
    directory.mkdir()
    bin_directory.mkdir()
    missing = prepare_programs(NEEDS.findall(text), bin_directory)
    if missing:
        return f"no {missing}"
    for name, content in FILE.findall(text):
        (directory / name).write_text(content)
    blocks = list(console_blocks(text))
    commands = [line for _, _, lines in blocks for kind, line, _ in lines if kind == "$"]
    results = iter(run_commands(commands, directory, environment(bin_directory)))
    complaints, by_chance, fresh = [], [], []
    for _, _, lines in blocks:
        new = ""
        for kind, line, shown in lines:
            status, printed = next(results, (-1, "")) if kind == "$" else (0, "")
            lost = missing_lines(shown, printed)
            # The answer of doctor may be that names are missing, of libraries that are stripped.
            failed = status > ("perfmap doctor" in line) or status < 0
            if failed:
                complaints.append(f"{page.name}: status {status}: {line}\n{printed}")
            elif lost:
                (by_chance if all(map(is_row, lost)) else complaints).append(f"{page.name}: {line}\n  not printed: " + "\n  not printed: ".join(lost) +
                                  f"\n  printed:\n{printed}")
            is_other = failed or lost or (printed and not shown)
            new += f"{kind} {line}\n{printed if is_other else refreshed(shown, printed)}"
        fresh.append(new)
    return len(commands), complaints, by_chance, fresh


def check_numbers(page, text):
    """Reports have the samples of the recording above them."""
    recorded = {}
    for block in console_blocks(text):
        recorded.update((name, samples) for samples, name in RECORDED.findall(block[1]))
        for name, samples in REPORTED.findall(block[1]):
            if samples != recorded.get(name):
                yield f"{page.name}: {name} has {recorded.get(name)} samples, but its report {samples}"


def check_form(page, text):
    """What is not run has a reason, and the sections are those of all guides."""
    complaints = [f"{page.name}: no reason why this is not run:\n{body}"
                  for comment, _, body in NOT_RUN.findall(text) if not comment]
    headings = re.findall(r"(?m)^## (.*)$", text)
    if page.name not in ("README.md", "ci.md", "containers.md", "github.md") and headings != SECTIONS:
        complaints.append(f"{page.name}: the sections are {headings}")
    if text.count("\n") > MAX_LINES:
        complaints.append(f"{page.name}: more than {MAX_LINES} lines")
    if page.name != "README.md" and f"({page.name})" not in (page.parent / "README.md").read_text():
        complaints.append(f"{page.name}: README.md of the guides does not name it")
    return complaints


def ci_guide(scratch):
    """The workflow passes with equal code, and fails with a slower function. (steps that ran, that did not run)"""
    benchmark = dict(FILE.findall((ROOT / "docs/guides/ci.md").read_text()))["bench.cpp"]
    bin_directory, directory, comments = scratch / "ci-bin", scratch / "ci", scratch / "comments"
    for folder in (bin_directory, directory):
        folder.mkdir()
    prepare_programs([], bin_directory)
    # The comment goes to a file.
    (bin_directory / "gh").write_text(f'#!/bin/bash\nfor file; do :; done\ncat "$file" >>{comments}\n')
    (bin_directory / "gh").chmod(0o755)
    version = re.search(r"project\(perfmap VERSION ([\d.]+)", (ROOT / "CMakeLists.txt").read_text())[1]
    uses = {"actions/checkout@v6": None, "actions/upload-artifact@v6": None, f"OWNER/perfmap@v{version}":
            lambda inputs, machine: machine.run_action(ROOT, {"perfmap": "perfmap", **inputs})}
    document = workflow.load(WORKFLOW)
    not_run = {"Install perf", "Get the recording of the base branch"}  # here the directory base/ of an earlier run
    for step in document["jobs"]["profile"]["steps"]:
        if step.get("name") in not_run:
            step["run"] = "true"
    pull_request = {"event_name": "pull_request", "repository": "a/b",
                    "event": {"number": 7, "pull_request": {"head": {"repo": {"full_name": "a/b"}}}}}

    def run(rounds):
        """The job with so many rounds in a function."""
        (directory / "bench.cpp").write_text(benchmark)
        (directory / "Makefile").write_text(f"bench: bench.cpp\n\tg++ -O2 -g -DROUNDS={rounds} -o bench bench.cpp\n")
        for made in ("bench", "profiles"):
            subprocess.run(["rm", "-rf", directory / made], check=True)
        comments.write_text("")
        machine = workflow.Machine(directory, scratch, uses, [bin_directory], pull_request)
        return machine.run_job(document, "profile")

    first = run(20)
    assert first.status == 0 and "there is no recording of the baseline yet" in first.printed, first.printed
    assert first.step("Write the comment").skipped

    def equals_the_last():
        """Compared with the run before, as the machine may be busier than at the first one."""
        subprocess.run(["rm", "-rf", directory / "base"], check=True)
        (directory / "profiles").rename(directory / "base")
        return run(20).status == 0

    # One comparison of twenty may differ by chance, and three of three one time in 8000.
    require(any(equals_the_last() for _ in range(3)), "equal programs differ")
    slower = run(60)
    comment = comments.read_text()
    assert slower.step("Compare with the base branch").status == 1, slower.printed
    assert "render" in comment and "parse" not in comment.split("render")[0].split("FUNCTION")[-1], comment
    assert "::error" in slower.printed and "render" in slower.printed and comment.strip() in slower.summary
    return [step.name for step in slower.steps if not step.skipped and step.name not in not_run | {*uses}], [*not_run]


def in_scratch(work, *words):
    with tempfile.TemporaryDirectory() as scratch:
        return work(*words, pathlib.Path(scratch).resolve())


def main():
    if sys.argv[1] == "--wait":
        return wait_for_jobs(float(sys.argv[2]), [int(pid) for pid in sys.argv[3:]])
    with tempfile.TemporaryDirectory() as scratch:
        probe = subprocess.run([*PERF_RECORD, "-o", f"{scratch}/probe", "true"],
                               capture_output=True) if shutil.which("perf") else None
        if probe is None or probe.returncode != 0:
            print("perf cannot record here")
            sys.exit(77)
    pages = [pathlib.Path(page) for page in sys.argv[2:]] or sorted((ROOT / "docs/guides").glob("*.md"))
    problems, by_chance, run, not_run = [], [], 0, 0
    has_steps = not sys.argv[2:] and shutil.which("g++") and workflow is not None
    # They wait half of their time.
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        steps = [pool.submit(in_scratch, ci_guide)] if has_steps else []
        results = results_of([pool.submit(in_scratch, run_page, page, page.read_text()) for page in pages])
    for page, result in zip(pages, results):
        text = page.read_text()
        problems += check_form(page, text)
        problems += [] if os.environ.get("UPDATE_GUIDES") else check_numbers(page, text)
        for _, reason, body in NOT_RUN.findall(text):
            commands = len(body.strip().splitlines())
            not_run += commands
            print(f"{page.name}: {commands} lines not run: {reason}")
        if isinstance(result, str):
            print(f"skipped in part: {page.name}: {result}", flush=True)
            continue
        count, complaints, more, fresh = result
        by_chance += more
        run += count
        if os.environ.get("UPDATE_GUIDES"):
            page.write_text(with_blocks(text, fresh))
        problems += complaints
        print(f"{page.name}: {count} commands run", flush=True)
    print("\n".join(problems + by_chance))
    print(f"{run} commands run, {not_run} lines not run, {len(problems) + len(by_chance)} problems")
    if problems:
        sys.exit(1)
    for done, left in results_of(steps):
        print(f"{WORKFLOW.name}: run: {', '.join(done)}; not run: {', '.join(left)}")
    if workflow is None:
        print(f"skipped in part: no YAML parser for Python, for the steps of {WORKFLOW.name}")
    if by_chance:
        try_again(by_chance[0].split("\n  printed:")[0])
    sys.exit(run == 0)


main()
