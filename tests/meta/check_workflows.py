# SPDX-License-Identifier: MIT
"""check_workflows.py: runs each step of .github/workflows with bash, as a runner does, for each row of each matrix.

Not run is what compiles or needs the network: such commands are replaced by checks of their arguments, and the test
prints which steps have them. Other actions are not run, but listed in CONTRIBUTING.md with their reason. What a
release consists of is installed by action.yml. The forms of issues have what GitHub requires.
Exit status 77: no YAML parser for Python, or a program that the steps use is missing."""
import pathlib
import platform
import re
import shlex
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
for program in ("curl", "git"):
    if not shutil.which(program):
        print(f"skipped: no {program}")
        sys.exit(77)

WORKFLOWS = sorted((ROOT / ".github/workflows").glob("*.yml"))
VERSION = re.search(r"project\(perfmap VERSION ([\d.]+)", (ROOT / "CMakeLists.txt").read_text())[1]
# A program in place of another one: a shell script that notes its arguments, then does this.
STANDS_IN = """{ printf '%q ' "$(basename "$0")" "$@"; echo; } >>"$STANDS_IN_LOG"\n"""
BUILD = """case "$*" in "--build --preset packages") mkdir -p build/packages/apps/perfmap
  cp "$(type -P true)" build/packages/apps/perfmap/perfmap-static ;; esac\n"""
PACKAGES = "mkdir packages; echo >packages/perfmap.deb\n"
PUBLISH = """case "$1 $2" in "release create") shift 3; while [ $# != 0 ]; do case "$1" in
  --title | --notes-file) shift ;; --verify-tag) ;; *) test -s "$1" || exit 1 ;; esac; shift; done ;; *) exit 1 ;; esac\n"""
PROGRAMS = {"cmake": BUILD, "cpack": PACKAGES, "gh": PUBLISH, "apt-get": "", "sudo": 'exec "$@"\n'}


TIERS = r"(live|asan|tsan|all)( (live|asan|tsan|all))*|"


def check_dev(words):
    known = subprocess.run([ROOT / "dev", "help"], check=True, capture_output=True, text=True).stdout
    command, *rest = words
    assert re.search(rf"(?m)^  {command} ", known), f"./dev has no command {command}"
    allowed = {"test": TIERS, "setup": TIERS, "soak": r"first \d+", "fuzz": r"\d+|"}.get(command, "")
    assert re.fullmatch(allowed, " ".join(rest)), words


def check_cmake(words):
    presets = re.findall(r'\{"name": "(\w+)"', (ROOT / "CMakePresets.json").read_text())
    preset = words[words.index("--preset") + 1]
    assert preset in presets, f"CMakePresets.json has no preset {preset}"


def check_apt_get(words):
    assert words == ["update"] or words[:3] == ["install", "-y", "--no-install-recommends"], words


CHECKS = {"dev": check_dev, "cmake": check_cmake, "apt-get": check_apt_get, "cpack": lambda words: None, "gh": lambda words: None, "sudo": lambda words: None}


class Replaced:
    """A checkout whose long commands are replaced."""

    def __init__(self, folder, change_log):
        self.folder = folder
        self.workspace, self.bin, self.log = folder / "workspace", folder / "bin", folder / "log"
        for path in (self.workspace, self.bin, folder / "home"):
            path.mkdir(parents=True)
        self.log.touch()
        for path in (change_log, ROOT / "CMakeLists.txt", ROOT / "tests"):
            (self.workspace / path.name).symlink_to(path)
        self.stand_in(self.workspace / "dev", "")
        for name, body in PROGRAMS.items():
            self.stand_in(self.bin / name, body)

    def stand_in(self, path, body):
        path.write_text(f"#!/bin/bash\nset -e\n{STANDS_IN}{body}")
        path.chmod(0o755)

    def machine(self, uses, github):
        github = {"ref": "refs/heads/main", **github}
        return workflow.Machine(self.workspace, self.folder, uses, [self.bin], github,
                                {"HOME": str(self.folder / "home"), "STANDS_IN_LOG": str(self.log)})

    def calls(self):
        return [shlex.split(line) for line in self.log.read_text().splitlines()]


def check_shape(path, document):
    assert set(document) <= {"name", "on", "permissions", "concurrency", "env", "jobs"}, document.keys()
    assert document["permissions"] == {"contents": "read"}, f"{path.name}: a job that needs more says so itself"
    for name, job in document["jobs"].items():
        assert set(job) <= {"name", "needs", "runs-on", "timeout-minutes", "container", "strategy", "env", "steps",
                            "permissions"}, (name, job.keys())
        assert set([job["needs"]] if "needs" in job else []) <= set(document["jobs"])
        for step in job["steps"]:
            assert ("run" in step) != ("uses" in step), step
            assert "${{" not in step.get("run", ""), f"{path.name}: {step}: an expression in shell text"


class Run:
    """All workflows."""

    def __init__(self, folder, perfmap):
        self.folder, self.perfmap = folder, perfmap
        self.executed, self.replaced, self.used = set(), set(), set()
        self.artifacts = {}
        self.change_log = ROOT / "CHANGELOG.md"

    def uses(self):
        def upload(inputs, machine):
            pattern = inputs["path"]
            self.artifacts.setdefault(inputs["name"], sorted(machine.workspace.glob(f"{pattern}/*")))

        def download(inputs, machine):
            (machine.workspace / inputs["path"]).mkdir()
            for name, files in self.artifacts.items():
                if pathlib.PurePath(name).match(inputs["pattern"]):
                    for path in files:
                        shutil.copy(path, machine.workspace / inputs["path"])

        def own_action(inputs, machine):
            done = machine.run_action(ROOT, {**inputs, "perfmap": str(self.perfmap)})
            assert done.status == 0 and done.outputs["lint-status"] == "0" and done.outputs["sarif"], done.printed
            return done

        return {"actions/checkout@v6": None, "actions/upload-artifact@v6": upload,
                "actions/download-artifact@v7": download, "github/codeql-action/upload-sarif@v4": None, "./": own_action}

    def job(self, path, document, name, row, github, expected=0):
        checkout = Replaced(pathlib.Path(tempfile.mkdtemp(dir=self.folder)), self.change_log)
        machine = checkout.machine(self.uses(), github)
        done = machine.run_job(document, name, row)
        assert (done.status != 0) == (expected != 0), (path.name, name, row, done.printed)
        self.used |= machine.used
        for call in checkout.calls():
            CHECKS[call[0]](call[1:])
        steps = {step.get("name") or step.get("uses"): step for step in document["jobs"][name]["steps"]}
        for step in (one for one in done.steps if not one.skipped):
            text = steps[step.name].get("run")
            if text is not None:
                words = set(re.findall(r"[\w.-]+", text))
                (self.replaced if words & set(CHECKS) else self.executed).add(f"{path.stem}: {step.name}")
        return checkout, done

    def workflow(self, path, events):
        document = workflow.load(path)
        check_shape(path, document)
        for github in events:
            for name, job in document["jobs"].items():
                for row in workflow.matrix_of(job):
                    yield self.job(path, document, name, row, github)

    def release(self, path):
        """The release is what action.yml installs."""
        tag = {"ref_name": f"v{VERSION}", "ref": f"refs/tags/v{VERSION}"}
        document = workflow.load(path)
        check_shape(path, document)
        rows = workflow.matrix_of(document["jobs"]["build"])
        # Not before the change log has a date, and not with another tag.
        heading = f"## {VERSION}"
        for suffix, expected in (", unreleased", 1), (", 2000-01-01", 0):
            self.change_log = self.folder / "CHANGELOG.md"
            self.change_log.write_text(re.sub(rf"(?m)^{heading}.*$", heading + suffix, (ROOT / "CHANGELOG.md").read_text()))
            self.job(path, document, "build", rows[0], tag, expected)
        self.job(path, document, "build", rows[0], {**tag, "ref_name": "v99.0"}, expected=1)
        for row in rows:
            self.job(path, document, "build", row, tag)
        checkout, _ = self.job(path, document, "publish", {}, tag)
        published = [call for call in checkout.calls() if call[0] == "gh"]
        assert len(published) == 1 and published[0][3] == f"v{VERSION}", published
        name = f"perfmap-{VERSION}-linux-{platform.machine()}"
        files = {"perfmap.deb", "SHA256SUMS", name}
        assert {pathlib.Path(word).name for word in published[0] if word.startswith("dist/")} == files, published
        notes = (checkout.workspace / "notes.md").read_text()
        assert "The first release." in notes or VERSION != "0.1.0", notes
        assert not re.search(r"(?m)^## ", notes)
        releases = self.folder / "releases"
        releases.mkdir()
        shutil.move(checkout.workspace / "dist", releases / f"v{VERSION}")
        machine = checkout.machine(self.uses(), {})
        done = machine.run_action(ROOT, {"version": VERSION, "download-url": releases.as_uri()})
        assert done.status == 0, done.printed


def check_forms():
    """What GitHub requires of a form; a form with an error is not shown."""
    forms = sorted((ROOT / ".github/ISSUE_TEMPLATE").glob("[0-9]*.yml"))
    assert len(forms) == 3
    required = {"markdown": {"value"}, "textarea": {"label"}, "input": {"label"}, "dropdown": {"label", "options"},
                "checkboxes": {"label", "options"}}
    optional = {"description", "placeholder", "value", "render"}
    for path in forms:
        form = workflow.load(path)
        assert {"name", "description", "body"} <= set(form) <= {"name", "description", "title", "labels", "assignees", "body"}
        ids = [item["id"] for item in form["body"] if item["type"] != "markdown"]
        labels = [item["attributes"]["label"] for item in form["body"] if item["type"] != "markdown"]
        assert ids and len(set(ids)) == len(ids) and len(set(labels)) == len(labels), (path.name, ids)
        assert all(re.fullmatch(r"[\w-]+", one) for one in ids)
        for item in form["body"]:
            assert set(item) <= {"type", "id", "attributes", "validations"}, item
            attributes = set(item["attributes"])
            assert required[item["type"]] <= attributes <= required[item["type"]] | optional, (path.name, item)
            assert set(item.get("validations", {})) <= {"required"}, item
        assert any(item.get("validations", {}).get("required") for item in form["body"])
    config = workflow.load(ROOT / ".github/ISSUE_TEMPLATE/config.yml")
    assert set(config) <= {"blank_issues_enabled", "contact_links"}
    print(f"{len(forms)} forms of issues")


def check_listed(used):
    """CONTRIBUTING.md lists the actions of others."""
    text = (ROOT / "CONTRIBUTING.md").read_text()
    listed = set(re.findall(r"(?m)^\| `([\w./-]+@[\w.]+)` \|", text))
    named = set()
    for path in (*WORKFLOWS, ROOT / "action.yml"):
        named |= set(re.findall(r"(?m)^\s+(?:- )?uses: (\S+)$", path.read_text())) - {"./"}
    assert listed == named, f"CONTRIBUTING.md against workflows and action.yml: {listed ^ named}"
    assert all(re.search(r"@v\d+$", name) for name in named), named
    assert used - {"./"} <= named
    print(f"{len(named)} actions of others are listed, and not run: {', '.join(sorted(named))}")


def check_the_runner(folder):
    """What the runner answers is what GitHub documents, and it refuses what it does not know."""
    machine = workflow.Machine(folder, folder, {}, github={"event_name": "push"})
    contexts = machine.contexts(inputs={"a": "x", "empty": ""}, matrix={"tests": "asan"})
    for text, value in (("${{ inputs.a }}-${{ matrix.tests }}", "x-asan"), ("${{ inputs.empty || 'other' }}", "other"),
                        ("${{ github.event_name == 'PUSH' && 1 || 2 }}", 1), ("${{ inputs.none }}", ""),
                        ("${{ !(inputs.a != 'x') }}", True), ("${{ format('{0}/{1}', inputs.a, 'it''s') }}", "x/it's")):
        assert machine.evaluate(text, contexts) == value, text
    assert machine.should_run("inputs.a == 'x'", contexts, False) and not machine.should_run("inputs.a == 'x'", contexts, True)
    assert machine.should_run("always()", contexts, True) and not machine.should_run("failure()", contexts, False)
    done = machine.run_steps("job", [{"name": "one", "run": "exit 3"}, {"name": "two", "run": "echo no"},
                                     {"name": "three", "if": "failure()", "run": "echo yes"}], contexts, "default")
    assert (done.status, done.printed) == (3, "yes\n")
    for refused in (lambda: machine.run_steps("job", [{"uses": "someone/unlisted@v1"}], contexts, "default"),
                    lambda: machine.evaluate("${{ secrets.a > 1 }}", contexts), lambda: check_dev(["unknown"]),
                    lambda: check_dev(["test", "everything"]), lambda: check_cmake(["--preset", "unknown"])):
        try:
            refused()
        except AssertionError:
            continue
        raise SystemExit("the runner takes what it should refuse")


def main():
    perfmap = pathlib.Path(sys.argv[1]).resolve()
    check_forms()
    with tempfile.TemporaryDirectory() as folder:
        check_the_runner(pathlib.Path(tempfile.mkdtemp(dir=folder)))
        run = Run(pathlib.Path(folder), perfmap)
        events = {"build": ["push", "pull_request"], "fuzz": ["pull_request", "schedule"], "nightly": ["schedule"]}
        for path in WORKFLOWS:
            if path.stem == "release":
                run.release(path)
                continue
            count = sum(1 for _ in run.workflow(path, [{"event_name": event} for event in events[path.stem]]))
            print(f"{path.name}: {count} jobs")
    check_listed(run.used)
    print("run:", *sorted(run.executed), sep="\n  ")
    print("run with stand-ins for what compiles or needs the network:", *sorted(run.replaced), sep="\n  ")
    steps = {f"{path.stem}: {step['name']}" for path in WORKFLOWS for job in workflow.load(path)["jobs"].values()
             for step in job["steps"] if "run" in step}
    assert steps == run.executed | run.replaced, steps ^ (run.executed | run.replaced)


main()
