# SPDX-License-Identifier: MIT
"""check_hooks.py PERFMAP: pre-commit runs the hooks of .pre-commit-hooks.yaml in a new repository, without network.
Exit status 77: pre-commit or git is not installed."""
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
MANIFEST = ROOT / ".pre-commit-hooks.yaml"
CLEAN = "100000 10 first\n100010 10 second\n"
UNTIDY = "100010 10 second\n100000 10 first\n100000 10 first\n"
MALFORMED = "100000 10 first\nzz 10 second\n"


class Repository:
    def __init__(self, path, environment):
        self.path, self.environment = path, environment
        path.mkdir()
        self.git("init", "-q")

    def run(self, *command):
        done = subprocess.run(command, cwd=self.path, env=self.environment, stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        return done.returncode, done.stdout

    def git(self, *arguments):
        status, printed = self.run("git", *arguments)
        assert status == 0, printed
        return printed.strip()

    def write(self, files):
        for name, text in files.items():
            path = self.path / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        self.git("add", "--all")

    def commit(self):
        self.git("commit", "-q", "-m", "a commit")


def environment_in(work):
    (work / "bin").mkdir()
    (work / "bin/perfmap").symlink_to(pathlib.Path(sys.argv[1]).resolve())
    (work / "gitconfig").write_text("[user]\nname = Test\nemail = test@localhost\n[protocol \"file\"]\nallow = always\n")
    return {**os.environ, "PATH": f"{work}/bin:{os.environ['PATH']}", "PRE_COMMIT_HOME": str(work / "cache"),
            "GIT_CONFIG_GLOBAL": str(work / "gitconfig"), "GIT_CONFIG_SYSTEM": "/dev/null", "PRE_COMMIT_COLOR": "never"}


def main():
    if not shutil.which("pre-commit") or not shutil.which("git"):
        print("skipped: no pre-commit or no git")
        sys.exit(77)
    with tempfile.TemporaryDirectory() as folder:
        work = pathlib.Path(folder)
        environment = environment_in(work)
        hooks = Repository(work / "hooks", environment)
        shutil.copy(MANIFEST, hooks.path)
        assert hooks.run("pre-commit", "validate-manifest", MANIFEST.name) == (0, "")
        hooks.write({})
        hooks.commit()
        user = Repository(work / "user", environment)
        user.write({".pre-commit-config.yaml":
                    f"repos:\n- repo: {hooks.path}\n  rev: {hooks.git('rev-parse', 'HEAD')}\n"
                    "  hooks:\n  - id: perfmap-lint\n  - id: perfmap-fix\n"})

        def run(hook, files):
            """(status, what is printed) for a commit with these files alone."""
            shutil.rmtree(user.path / "data", ignore_errors=True)
            user.write({f"data/{name}": text for name, text in files.items()})
            return user.run("pre-commit", "run", hook, "--all-files", "--verbose")

        status, printed = run("perfmap-lint", {"perf-1.map": CLEAN, "app.js.map": "{}", "linker.map": "zz"})
        assert status == 0 and "Passed" in printed, printed
        status, printed = run("perfmap-lint", {"other.map": MALFORMED})
        assert status == 0 and "(no files to check)Skipped" in printed, printed
        status, printed = run("perfmap-lint", {"perf-1.map": CLEAN, "perf-2.map": MALFORMED})
        assert status == 1 and "data/perf-2.map:2:1: error: " in printed and "perf-1.map" not in printed, printed
        status, printed = run("perfmap-lint", {"a folder; true/perf-2.map": MALFORMED})
        assert status == 1 and "data/a folder; true/perf-2.map:2:1: error: " in printed, printed
        status, printed = run("perfmap-lint", {"../-o../perf-2.map": MALFORMED})
        assert status == 1 and "-o../perf-2.map:2:1: error: " in printed, printed
        shutil.rmtree(user.path / "-o..")
        # A changed file fails, as with all hooks that change files; the next run passes.
        status, printed = run("perfmap-fix", {"perf-1.map": UNTIDY})
        assert status == 1 and "files were modified by this hook" in printed, printed
        assert (user.path / "data/perf-1.map").read_text() == CLEAN
        status, printed = run("perfmap-fix", {"perf-1.map": CLEAN})
        assert status == 0, printed
    print("two hooks, seven runs of pre-commit")


main()
