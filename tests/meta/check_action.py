# SPDX-License-Identifier: MIT
"""check_action.py PERFMAP: runs action.yml, each step with bash as a runner does, in new directories. Releases are
downloaded from files. What the steps print and write is checked with names of files that try to be commands.
Exit status 77: no YAML parser for Python, or a program that the steps use is missing."""
import hashlib
import json
import os
import pathlib
import platform
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "tests/support"))
try:
    import workflow
except ImportError:
    print("skipped: no YAML parser for Python (package python3-yaml)")
    sys.exit(77)
for program in ("curl",):
    if not shutil.which(program):
        print(f"skipped: no {program}")
        sys.exit(77)

PERFMAP = pathlib.Path(sys.argv[1]).resolve()
CLEAN, MALFORMED = "100000 10 first\n", "100000 10 first\nzz 10 second\n"
RECORDINGS = ROOT / "tests/golden/inputs"
# GitHub's upload has its own checks; these are those of the action.
UPLOAD = "github/codeql-action/upload-sarif@v4"
ANNOTATION = re.compile(r"::(error|warning|notice) (file=[^:]*,)?(line=\d+,)?(col=\d+,)?title=")
runs = 0
executed = set()


class Job:
    """A job in a directory of its own, with these files."""

    def __init__(self, folder, files=(), github=None):
        self.folder = pathlib.Path(folder)
        self.workspace = self.folder / "workspace"
        self.workspace.mkdir()
        for name, text in dict(files).items():
            path = self.workspace / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(text) if isinstance(text, bytes) else path.write_text(text)
        self.uploads = []
        github = {"action_repository": "owner/perfmap", "action_ref": "main", **(github or {})}
        self.machine = workflow.Machine(self.workspace, self.folder,
                                        {UPLOAD: lambda inputs, machine: self.uploads.append(inputs)}, github=github)

    def run(self, expected, **inputs):
        global runs
        runs += 1
        given = {"perfmap": str(PERFMAP), **{key.replace("_", "-"): value for key, value in inputs.items()}}
        done = self.machine.run_action(ROOT, given)
        assert (done.status != 0) == (expected != 0), (expected, done.printed, done.summary)
        executed.update(step.name for step in done.steps if not step.skipped)
        # All commands for the runner are annotations of perfmap.
        commands = re.findall(r"(?m)^\s*(?:::|##\[).*$", done.printed)
        strange = [line for line in commands if not ANNOTATION.match(line)]
        assert not strange, strange
        return done


def in_new_folder(case):
    with tempfile.TemporaryDirectory() as folder:
        case(pathlib.Path(folder))


def release_in(folder, version, content):
    """(URL, SHA-256) of a release with this program."""
    name = f"perfmap-{version}-linux-{platform.machine()}"
    (folder / f"v{version}").mkdir(parents=True)
    (folder / f"v{version}" / name).write_bytes(content)
    digest = hashlib.sha256(content).hexdigest()
    (folder / f"v{version}/SHA256SUMS").write_text(f"{'0' * 64}  other\n{digest}  {name}\n")
    return folder.as_uri(), digest


def the_program_comes_from_a_release(folder):
    program = f'#!/bin/sh\nexec "{PERFMAP}" "$@"\n'.encode()
    url, digest = release_in(folder / "releases", "0.1.0", program)
    job = Job(folder, {"perf-1.map": CLEAN}, {"action_ref": "v0.1.0"})
    done = job.run(0, perfmap="", download_url=url, files="perf-1.map")
    assert done.outputs["lint-status"] == "0" and done.outputs["perfmap"].endswith("/perfmap/perfmap")
    assert job.machine.path[0] == str(pathlib.Path(done.outputs["perfmap"]).parent)
    done = job.run(0, perfmap="", download_url=url, version="0.1.0", sha256=digest)
    assert done.outputs["lint-status"] == ""
    done = job.run(1, perfmap="", download_url=url, version="0.1.0", sha256="0" * 64)
    assert "the checksum of perfmap-0.1.0-linux-" in done.printed
    (folder / f"releases/v0.1.0/perfmap-0.1.0-linux-{platform.machine()}").write_bytes(program + b"\n")
    assert "the checksum of" in job.run(1, perfmap="", download_url=url).printed
    assert "cannot download" in job.run(1, perfmap="", download_url=url, version="9.9").printed
    for version in ("0.1.0/../../x", "main", "0.1 0", "0.1\n::error::x"):
        printed = job.run(1, perfmap="", download_url=url, version=version).printed
        assert "is not a version" in printed or "which release?" in printed, printed
    # Without the input version, it is what the action is used by.
    job.machine.github["action_ref"] = "813a7054" * 5
    printed = job.run(1, perfmap="", download_url=url).printed
    assert f"which release? '{'813a7054' * 5}' is a branch or a commit" in printed, printed
    # By default, from the action's own repository.
    (folder / "owner").mkdir()
    (folder / "releases").rename(folder / "owner/perfmap")
    (folder / "owner/perfmap/releases").mkdir()
    url, _ = release_in(folder / "owner/perfmap/releases/download", "0.2.0", program)
    job.machine.github["server_url"] = folder.as_uri()
    job.run(0, perfmap="", version="v0.2.0")


def the_program_is_there(folder):
    job = Job(folder)
    done = job.run(0)
    assert done.outputs["perfmap"] == str(PERFMAP) and not done.summary
    assert "there is no program 'nothing'" in job.run(1, perfmap="nothing").printed


def findings_fail_a_job(folder):
    job = Job(folder, {"out/a/perf-1.map": CLEAN, "out/b/perf-2.map": MALFORMED, "out/app.js": "x"})
    done = job.run(1, files="out/**/*.map", sarif="lint.sarif")
    assert done.outputs["lint-status"] == "1"
    assert "::error file=out/b/perf-2.map,line=2,col=1,title=PM002::" in done.printed, done.printed
    assert "out/b/perf-2.map:2:1: error: " in done.summary and "1 error" in done.summary, done.summary
    sarif = json.loads((job.workspace / done.outputs["sarif"]).read_text())
    assert sarif["runs"][0]["results"][0]["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] == "out/b/perf-2.map"
    assert not job.uploads
    done = job.run(1, files="out/**/*.map", sarif="lint.sarif", upload_sarif="true")
    assert job.uploads == [{"sarif_file": "lint.sarif", "category": "perfmap"}]
    job.run(1, files="out/**/*.map", sarif="new/folder/lint.sarif", upload_sarif="true", category="perfmap-arm")
    assert job.uploads[1:] == [{"sarif_file": "new/folder/lint.sarif", "category": "perfmap-arm"}]
    for place, why in (("out/app.js/lint.sarif", "cannot make the folder of"), ("out", "cannot write")):
        printed = job.run(1, files="out/**/*.map", sarif=place).printed
        assert f"::error title=perfmap::{why} {place}" in printed, printed
    job.run(0, files="out/**/*.map", fail_level="never")
    job.run(0, files="\nout/a/*.map\n\n")
    assert "::error title=perfmap::no file to check: there is no out/missing.map" in job.run(1, files="out/missing.map").printed
    job.run(1, files="out/a/*.map\nout/missing/*.map")
    done = job.run(0, files="out/a/*.map\nout/missing.map", if_no_files_found="warn")
    assert "::warning title=perfmap::no file to check: there is no out/missing.map" in done.printed
    job.run(0, files="out/missing.map", if_no_files_found="ignore")
    assert "is not one of error, warn, ignore" in job.run(1, files="out/missing.map", if_no_files_found="foo").printed
    # The report has what can be read.
    (job.workspace / "out/broken.map").symlink_to("nothing")
    done = job.run(1, files="out/broken.map\nout/a/*.map", sarif="lint.sarif")
    assert done.outputs["lint-status"] == "2" and done.outputs["sarif"] == "lint.sarif"


def no_file_is_an_error_unless_it_is_allowed(folder):
    job = Job(folder)
    assert "::error title=perfmap::no file to check" in job.run(1, files="*.map").printed
    assert "::warning title=perfmap::no file to check" in job.run(0, files="*.map", if_no_files_found="warn").printed
    done = job.run(0, files="*.map", if_no_files_found="ignore")
    assert done.outputs["lint-status"] == "" and not done.summary


def only_regular_files_are_read(folder):
    job = Job(folder, {"perf-1.map": CLEAN})
    os.mkfifo(job.workspace / "perf-2.map")
    (job.workspace / "perf-3.map").symlink_to("perf-2.map")
    done = job.run(0, files="*.map")
    assert done.outputs["lint-status"] == "0" and "perf-2.map" not in done.summary, done.summary
    for name in ("perf-2.map", "perf-3.map", "/dev/null"):
        assert f"there is no {name}" in job.run(1, files=name).printed
    assert "there is no recording" in job.run(1, baseline="perf-1.map", recordings="perf-2.map").printed


def missing_tools_are_named(folder):
    """Of the lists of the script, which the page repeats."""
    tools = set(re.findall(r"(?m)^ +need (.*)$", (ROOT / "scripts/action.sh").read_text()))
    tools = {tool for line in tools for tool in line.split()}
    described = re.search(r"(?ms)^The runner needs .*?\n\n", (ROOT / "docs/guides/github.md").read_text())[0]
    assert tools <= set(re.findall(r"`([\w-]+)`", described)), (tools, described)
    done = subprocess.run([shutil.which("bash"), ROOT / "scripts/action.sh", "install"], capture_output=True, text=True,
                          env={"PATH": str(folder), "PROGRAM": "", "VERSION": "0.1.0"})
    assert done.returncode == 2 and "::error title=perfmap::this machine has no curl" in done.stdout, done


def names_are_only_names(folder):
    names = ["a b.map", "line\nbreak.map", "\n::error::command.map", "$(touch broken).map", "`touch broken`.map",
             "-o.map", "--fix.map", "'quote.map", '"quote.map', "```.map", "*.map", "::add-mask::x.map", "\x1b[31m.map",
             "<img src=x>.map", "42"]
    job = Job(folder, {**{name: MALFORMED for name in names}, "-": MALFORMED})
    done = job.run(1, files="*", sarif="x.sarif")
    assert not (job.workspace / "broken").exists()
    assert done.printed.count("title=PM002::") == len(names) + 1, done.printed
    # Each line is indented, thus code.
    assert all(line.startswith(("    ", "### ")) or not line for line in done.summary.split("\n")), done.summary
    assert "\x1b" not in done.summary and "\x1b" not in done.printed
    assert len(json.loads((job.workspace / "x.sarif").read_text())["runs"][0]["results"]) == len(names) + 1
    # The inputs, too.
    for value in ("$(touch broken)", "`touch broken`", "; touch broken", "'; touch broken; '", '"; touch broken; "', "~", "{a,b}"):
        for name in ("files", "recordings", "perfmap", "version"):
            job.run(1, **{"baseline": "*", name: value, **({"perfmap": ""} if name == "version" else {})})
        job.run(1, files="*", fail_level=value)
        assert not (job.workspace / "broken").exists(), value
    done = job.run(1, files="*", sarif="x\nstatus=0")
    assert "a path with a line break cannot be an output" in done.printed


def limits_of_github(folder):
    # 30,000 findings, more than the summary has room for and than SARIF may have.
    job = Job(folder, {f"{number}.map": "".join(f"zz{line} 1 n\n" for line in range(20)) for number in range(1500)})
    done = job.run(1, files="*.map", sarif="x.sarif")
    assert len(done.summary) < 65536 and "lines is left out" in done.summary
    run = json.loads((job.workspace / "x.sarif").read_text())["runs"][0]
    assert len(run["results"]) == 25000
    assert run["invocations"][0]["toolExecutionNotifications"][0]["message"]["text"] == "5000 findings are not in this report"
    printed = subprocess.run([PERFMAP, "lint", "--format", "sarif", *sorted(job.workspace.glob("*.map"))],
                             capture_output=True, text=True).stderr
    assert "GitHub refuses more: 5000 are left out" in printed, printed


def recordings_are_compared(folder):
    old, new = (RECORDINGS / "old.pb").read_bytes(), (RECORDINGS / "new.pb").read_bytes()
    job = Job(folder, {"base/a b.pb": old, "new/1.pb": new, "same/1.pb": old})
    done = job.run(1, recordings="new/*", baseline="base/*")
    assert done.outputs["report-status"] == "1" and "::error" in done.printed and "cache [app]" in done.summary
    assert pathlib.Path(done.outputs["report"]).read_text() == done.summary
    assert job.run(0, recordings="same/*", baseline="base/*").outputs["report-status"] == "0"
    done = job.run(0, recordings="new/*", baseline="base/*", fail_above="90%")
    assert done.outputs["report-status"] == "0"
    done = job.run(0, recordings="new/*", baseline="none/*\nold.tar.zst")
    assert "::notice title=perfmap::nothing is compared" in done.printed and done.outputs["report-status"] == ""
    assert "nothing to compare" in job.run(1, recordings="none/*", baseline="base/*").printed
    done = job.run(1, recordings="new/*", baseline="base/*", report_options="--normalize\nnone\n")
    assert done.outputs["report-status"] == "1" and "+22.50%" in done.summary, done.summary
    assert job.run(1, recordings="new/*", baseline="base/*", report_options="--unknown").outputs["report-status"] == "2"
    # Both results count, whichever is first.
    (job.workspace / "perf-1.map").write_text(MALFORMED)
    done = job.run(1, files="*.map", recordings="same/*", baseline="base/*")
    assert (done.outputs["lint-status"], done.outputs["report-status"]) == ("1", "0")


def uses_in(document):
    """The steps, and entries of hooks, in a YAML document."""
    if isinstance(document, dict):
        if "uses" in document or "repo" in document:
            yield document
        document = list(document.values())
    for part in document if isinstance(document, list) else ():
        yield from uses_in(part)


def check_examples(inputs):
    """Examples in the documentation use what there is, in this version."""
    version = re.search(r"project\(perfmap VERSION ([\d.]+)", (ROOT / "CMakeLists.txt").read_text())[1]
    hooks = {hook["id"] for hook in workflow.yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text())}
    blocks = [(ROOT / "examples/ci/profile.yml").read_text()]
    blocks += re.findall(r"(?s)```yaml\n(.*?)```", (ROOT / "docs/guides/github.md").read_text())
    count = 0
    for use in (use for block in blocks for use in uses_in(workflow.yaml.safe_load(block))):
        if use.get("uses", "").startswith("OWNER/"):
            assert use["uses"] == f"OWNER/perfmap@v{version}" and set(use.get("with", {})) <= set(inputs), use
            count += 1
        elif "repo" in use:
            assert use["rev"] == f"v{version}" and {hook["id"] for hook in use["hooks"]} == hooks, use
            count += 1
    assert count == 6, count


def main():
    for case in (the_program_comes_from_a_release, the_program_is_there, findings_fail_a_job,
                 no_file_is_an_error_unless_it_is_allowed, only_regular_files_are_read, missing_tools_are_named,
                 names_are_only_names, limits_of_github, recordings_are_compared):
        in_new_folder(case)
        print(case.__name__.replace("_", " "))
    action = workflow.load(ROOT / "action.yml")
    rows = re.findall(r"(?m)^\| (`[^|]*`) \|", (ROOT / "docs/guides/github.md").read_text())
    described = sorted(name for row in rows for name in re.findall(r"`([\w-]+)`", row))
    assert described == sorted([*action["inputs"], *action["outputs"]]), described
    check_examples(action["inputs"])
    steps = action["runs"]["steps"]
    assert executed == {step["name"] for step in steps}, {step["name"] for step in steps} ^ executed
    for step in steps:
        assert "${{" not in step.get("run", ""), f"{step['name']}: an expression in shell text"
    print(f"{runs} runs of the action; {len(steps)} steps, of which '{UPLOAD}' was not run")


main()
