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

PERFMAP = pathlib.Path(sys.argv[1]).resolve()
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


def run_commands(commands, directory, env):
    """(status, output) of each; one shell runs them, so $! and cd work as they do for a reader."""
    script = "".join(f"{command}\nprintf '\\n{MARK} %d\\n' $?\n" for command in commands)
    script += "for job in $(jobs -p); do kill $job 2>/dev/null; done\n"
    done = subprocess.run(["bash", "-c", script], cwd=directory, env=env, stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=120)
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
    return " ".join(line.split())


def missing_lines(shown, printed):
    """The lines of the page that are not printed, or not in that order."""
    lines = iter([shape(line) for line in printed.splitlines()])
    return [line for line in shown.splitlines()
            if line.strip() and not line.startswith("...") and shape(line) not in lines]


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
    """(commands run, complaints, blocks as they should be), or the reason why nothing was run."""
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
    complaints, fresh = [], []
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
                complaints.append(f"{page.name}: {line}\n  not printed: " + "\n  not printed: ".join(lost) +
                                  f"\n  printed:\n{printed}")
            is_other = failed or lost or (printed and not shown)
            new += f"{kind} {line}\n{printed if is_other else refreshed(shown, printed)}"
        fresh.append(new)
    return len(commands), complaints, fresh


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
    if page.name not in ("README.md", "ci.md", "containers.md") and headings != SECTIONS:
        complaints.append(f"{page.name}: the sections are {headings}")
    if text.count("\n") > MAX_LINES:
        complaints.append(f"{page.name}: more than {MAX_LINES} lines")
    if page.name != "README.md" and f"({page.name})" not in (page.parent / "README.md").read_text():
        complaints.append(f"{page.name}: README.md of the guides does not name it")
    return complaints


def workflow_steps():
    """name: script, of the steps of the workflow that run a script."""
    steps = {}
    for step in re.split(r"(?m)^      - ", WORKFLOW.read_text())[1:]:
        name = re.match(r"name: (.*)\n", step)
        script = re.search(r"(?m)^        run: \|\n((?:          .*\n|\n)+)", step)
        if name and script:
            steps[name[1]] = re.sub(r"(?m)^ {10}", "", script[1])
    return steps


def ci_guide(scratch):
    """The workflow passes with equal code, and fails with a slower function."""
    steps = workflow_steps()
    bin_directory = scratch / "ci-bin"
    bin_directory.mkdir()
    prepare_programs([], bin_directory)
    directory = scratch / "ci"
    directory.mkdir()

    def status_of(name):
        env = {**environment(bin_directory), "GITHUB_STEP_SUMMARY": str(directory / "summary.md")}
        done = subprocess.run(["bash", "-e", "-o", "pipefail", "-c", steps[name]], cwd=directory, env=env,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=120)
        return done.returncode, done.stdout

    def step(name, expected):
        status, printed = status_of(name)
        assert status == expected, (name, status, printed)
        return printed

    benchmark = dict(FILE.findall((ROOT / "docs/guides/ci.md").read_text()))["bench.cpp"]
    (directory / "bench.cpp").write_text(benchmark)

    def record(rounds):
        subprocess.run(["g++", "-O2", "-g", f"-DROUNDS={rounds}", "-o", "bench", "bench.cpp"],
                       cwd=directory, check=True)
        shutil.rmtree(directory / "profiles", ignore_errors=True)
        step("Record the benchmark", 0)

    def is_equal():
        record(20)
        return status_of("Compare with the base branch")[0] == 0

    record(20)
    (directory / "profiles").rename(directory / "base")
    # One comparison of twenty may differ by chance.
    assert any(is_equal() for _ in range(3))
    record(60)
    printed = step("Compare with the base branch", 1)
    comment = (directory / "comment.md").read_text()
    assert "render" in comment and "parse" not in comment.split("render")[0].split("FUNCTION")[-1], comment
    assert "::error" in printed and "render" in printed, printed
    return ["Record the benchmark", "Compare with the base branch"], sorted(
        set(steps) - {"Record the benchmark", "Compare with the base branch"})


def main():
    with tempfile.TemporaryDirectory() as scratch:
        probe = subprocess.run([*PERF_RECORD, "-o", f"{scratch}/probe", "true"],
                               capture_output=True) if shutil.which("perf") else None
        if probe is None or probe.returncode != 0:
            print("perf cannot record here")
            sys.exit(77)
    pages = [pathlib.Path(page) for page in sys.argv[2:]] or sorted((ROOT / "docs/guides").glob("*.md"))
    problems, run, not_run = [], 0, 0
    for page in pages:
        text = page.read_text()
        problems += check_form(page, text)
        problems += [] if os.environ.get("UPDATE_GUIDES") else check_numbers(page, text)
        for _, reason, body in NOT_RUN.findall(text):
            commands = len(body.strip().splitlines())
            not_run += commands
            print(f"{page.name}: {commands} lines not run: {reason}")
        with tempfile.TemporaryDirectory() as scratch:
            result = run_page(page, text, pathlib.Path(scratch).resolve())
        if isinstance(result, str):
            print(f"{page.name}: not run: {result}", flush=True)
            continue
        count, complaints, fresh = result
        run += count
        if os.environ.get("UPDATE_GUIDES"):
            page.write_text(with_blocks(text, fresh))
        problems += complaints
        print(f"{page.name}: {count} commands run", flush=True)
    if not sys.argv[2:] and shutil.which("g++"):
        with tempfile.TemporaryDirectory() as scratch:
            done, left = ci_guide(pathlib.Path(scratch).resolve())
        print(f"{WORKFLOW.name}: run: {', '.join(done)}; not run: {', '.join(left)}")
    print("\n".join(problems))
    print(f"{run} commands run, {not_run} lines not run, {len(problems)} problems")
    sys.exit(bool(problems) or run == 0)


main()
