# SPDX-License-Identifier: MIT
"""Runs the steps of GitHub workflows and composite actions on this machine.

It knows what this repository uses: expressions of a few operators and functions, `if`, `env`, `working-directory`,
matrices, files for outputs, PATH and environment, and composite actions. Anything else is an error.
"""
import dataclasses
import itertools
import os
import pathlib
import re
import subprocess
import tempfile

import yaml

TOKEN = re.compile(r"\s*(?:(?P<text>'(?:[^']|'')*')|(?P<number>\d+)|(?P<op>&&|\|\||==|!=|[!(),])|"
                   r"(?P<name>[A-Za-z_][\w-]*(?:\.(?:[\w-]+|\*))*))")
EXPRESSION = re.compile(r"\$\{\{(.*?)\}\}", re.S)
STATUS_FUNCTIONS = ("always", "failure", "success", "cancelled")


def load(path):
    """The document. YAML 1.1 reads the key `on` as true."""
    document = yaml.safe_load(pathlib.Path(path).read_text())
    return {("on" if key is True else key): value for key, value in document.items()}


class Evaluator:
    """One expression. `contexts`: {"inputs": {...}, "github": {...}, ...}; `functions`: {name: function}."""

    def __init__(self, text, contexts, functions):
        self.contexts, self.functions, self.tokens, at = contexts, functions, [], 0
        text = text.strip()
        while at < len(text):
            match = TOKEN.match(text, at)
            assert match, f"cannot read the expression {text!r} at {at}"
            self.tokens.append((match.lastgroup, match[match.lastgroup]))
            at = match.end()
        self.tokens.append(("end", ""))
        self.value = self.any_of()
        assert self.tokens == [("end", "")], f"cannot read the expression {text!r}"

    def take(self, *texts):
        if self.tokens[0][1] in texts and self.tokens[0][0] == "op":
            return self.tokens.pop(0)[1]
        return None

    def any_of(self):
        value = self.all_of()
        while self.take("||"):
            other = self.all_of()
            value = value or other
        return value

    def all_of(self):
        value = self.equal()
        while self.take("&&"):
            other = self.equal()
            value = value and other
        return value

    def equal(self):
        value = self.primary()
        while operator := self.take("==", "!="):
            same = as_text(value).lower() == as_text(self.primary()).lower()
            value = same if operator == "==" else not same
        return value

    def primary(self):
        if self.take("!"):
            return not self.primary()
        if self.take("("):
            value = self.any_of()
            assert self.take(")")
            return value
        kind, text = self.tokens.pop(0)
        if kind == "text":
            return text[1:-1].replace("''", "'")
        if kind == "number":
            return int(text)
        assert kind == "name", text
        if self.take("("):
            return self.functions[text](*self.arguments())
        if text in ("true", "false"):
            return text == "true"
        return self.look_up(text)

    def arguments(self):
        found = []
        while not self.take(")"):
            found.append(self.any_of())
            self.take(",")
        return found

    def look_up(self, name):
        """A missing member is empty, as at GitHub; a missing context is an error."""
        context, *members = name.split(".")
        value = self.contexts[context]
        for member in members:
            value = value.get(member, "") if isinstance(value, dict) else ""
        return value


def as_text(value):
    if isinstance(value, bool):
        return str(value).lower()
    return "" if value is None else str(value)


@dataclasses.dataclass
class Result:
    """Of a step, action or job."""
    name: str
    status: int = 0
    printed: str = ""
    outputs: dict = dataclasses.field(default_factory=dict)
    summary: str = ""
    steps: list = dataclasses.field(default_factory=list)
    skipped: bool = False

    def step(self, name):
        return next(step for step in self.steps if step.name == name)


class Machine:
    """What steps run on. `uses`: {"actions/checkout@v6": function(inputs, machine) or None to do nothing}; an action that is
    not listed is an error. `path`: folders before the PATH."""

    def __init__(self, workspace, scratch, uses, path=(), github=None, env=None):
        self.workspace, self.scratch, self.uses = pathlib.Path(workspace), pathlib.Path(scratch), uses
        self.temp = self.scratch / "runner-temp"
        self.temp.mkdir(exist_ok=True)
        self.github = {"server_url": "https://github.invalid", "repository": "owner/project", "event_name": "push",
                       "ref_name": "main", "workspace": str(self.workspace), "token": "none", **(github or {})}
        self.path = [str(folder) for folder in path]
        self.env = env or {}
        self.used = set()

    def contexts(self, **more):
        return {"github": self.github, "runner": {"temp": str(self.temp), "os": "Linux", "arch": "X64"},
                "env": self.env, "vars": {}, "secrets": {}, **more}

    def evaluate(self, text, contexts, failed=False):
        """The value of a text with expressions in it; of a single expression, its own."""
        def files_of(*patterns):
            return "hash" if any(list(self.workspace.glob(pattern)) for pattern in patterns) else ""
        functions = {"always": lambda: True, "success": lambda: not failed, "failure": lambda: failed,
                     "cancelled": lambda: False, "hashFiles": files_of,
                     "format": lambda form, *values: form.format(*map(as_text, values)),
                     "startsWith": lambda text, start: as_text(text).startswith(start)}
        if not isinstance(text, str):
            return text
        whole = EXPRESSION.fullmatch(text.strip())
        if whole and "${{" not in whole[1]:
            return Evaluator(whole[1], contexts, functions).value
        return EXPRESSION.sub(lambda found: as_text(Evaluator(found[1], contexts, functions).value), text)

    def should_run(self, condition, contexts, failed):
        if condition is None:
            return not failed
        text = str(condition).strip()
        text = text[3:-2] if text.startswith("${{") else text
        value = self.evaluate("${{" + text + "}}", contexts, failed)
        has_status = any(f"{name}()" in text for name in STATUS_FUNCTIONS)
        return bool(value) and (has_status or not failed)

    def run_steps(self, name, steps, contexts, default_shell, action_path=None):
        result = Result(name)
        contexts = {**contexts, "steps": {}}
        for number, step in enumerate(steps):
            # A job's expressions see `env`.
            contexts["env"] = self.env
            title = step.get("name") or step.get("uses") or f"step {number}"
            if not self.should_run(step.get("if"), contexts, result.status != 0):
                result.steps.append(Result(title, skipped=True))
                continue
            env = {key: as_text(self.evaluate(value, contexts)) for key, value in step.get("env", {}).items()}
            if "uses" in step:
                done = self.run_uses(title, step, contexts, env)
            else:
                done = self.run_step(title, step, contexts, env, default_shell, action_path)
            result.steps.append(done)
            result.printed += done.printed
            result.summary += done.summary
            if "id" in step:
                contexts["steps"][step["id"]] = {"outputs": done.outputs}
            if done.status and not step.get("continue-on-error"):
                result.status = result.status or done.status
        result.contexts = contexts
        return result

    def run_uses(self, title, step, contexts, env):
        name = step["uses"]
        inputs = {key: as_text(self.evaluate(value, contexts)) for key, value in step.get("with", {}).items()}
        assert name in self.uses, f"{name} is not listed"
        self.used.add(name)
        done = (self.uses[name](inputs, self) if self.uses[name] else None) or Result(title)
        done.name = title
        return done

    def run_step(self, title, step, contexts, env, default_shell, action_path):
        unknown = set(step) - {"name", "id", "if", "run", "env", "shell", "working-directory", "continue-on-error",
                               "timeout-minutes"}
        assert not unknown, f"{title}: {unknown}"
        folder = pathlib.Path(tempfile.mkdtemp(dir=self.scratch))
        files = {name: folder / name for name in ("GITHUB_OUTPUT", "GITHUB_ENV", "GITHUB_PATH", "GITHUB_STEP_SUMMARY")}
        for path in files.values():
            path.touch()
        script = folder / "script"
        script.write_text(as_text(self.evaluate(step["run"], contexts)))
        shell = step.get("shell", default_shell)
        options = ["--noprofile", "--norc", "-eo", "pipefail"] if shell == "bash" else ["-e"]
        assert shell in ("bash", "default"), shell
        done = subprocess.run(["bash", *options, script], cwd=self.workspace / step.get("working-directory", ""),
                              env={**self.environment(action_path), **{key: str(path) for key, path in files.items()}, **env},
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                              errors="replace", timeout=300)
        self.env = {**self.env, **read_pairs(files["GITHUB_ENV"])}
        self.path = files["GITHUB_PATH"].read_text().split("\n")[:-1][::-1] + self.path
        return Result(title, done.returncode, done.stdout, read_pairs(files["GITHUB_OUTPUT"]),
                      files["GITHUB_STEP_SUMMARY"].read_text(errors="replace"))

    def environment(self, action_path):
        kept = {key: value for key, value in os.environ.items()
                if not key.startswith(("GITHUB_", "RUNNER_", "PERFMAP_", "CTEST_", "CMAKE_"))}
        github = {f"GITHUB_{key.upper()}": as_text(value) for key, value in self.github.items()
                  if isinstance(value, str) and key not in ("token", "action_repository", "action_ref")}
        return {**kept, **github, "CI": "true", "GITHUB_ACTIONS": "true", "RUNNER_TEMP": str(self.temp),
                **({"GITHUB_ACTION_PATH": str(action_path)} if action_path else {}),
                **self.env, "PATH": ":".join([*self.path, os.environ["PATH"]])}

    def run_action(self, folder, inputs):
        """A composite action."""
        action = load(pathlib.Path(folder) / "action.yml")
        assert action["runs"]["using"] == "composite"
        assert set(inputs) <= set(action["inputs"]), set(inputs) - set(action["inputs"])
        given = {key: as_text(value.get("default", "")) for key, value in action["inputs"].items()} | inputs
        for step in action["runs"]["steps"]:
            assert "uses" in step or "shell" in step, f"{step}: a run step of an action needs a shell"
        done = self.run_steps(action["name"], action["runs"]["steps"], self.contexts(inputs=given), None, folder)
        done.outputs = {key: as_text(self.evaluate(value["value"], done.contexts))
                        for key, value in action["outputs"].items()}
        return done

    def run_job(self, workflow, name, matrix=None):
        job = workflow["jobs"][name]
        contexts = self.contexts(matrix=matrix or {}, needs={}, job={"status": "success"}, strategy={})
        env = {**workflow.get("env", {}), **job.get("env", {})}
        self.env = {**self.env, **{key: as_text(self.evaluate(value, contexts)) for key, value in env.items()}}
        return self.run_steps(name, job["steps"], contexts, "default")


def read_pairs(path):
    """NAME=VALUE, or NAME<<END, lines, END."""
    found, lines = {}, iter(path.read_text().splitlines())
    for line in lines:
        if match := re.fullmatch(r"(\w[\w-]*)<<(\S+)", line):
            found[match[1]] = "\n".join(itertools.takewhile(lambda one: one != match[2], lines))
        else:
            name, _, value = line.partition("=")
            assert re.fullmatch(r"[\w-]+", name), line
            found[name] = value
    return found


def matrix_of(job):
    """The combinations of a job's matrix; one empty one without a matrix."""
    matrix = dict(job.get("strategy", {}).get("matrix", {}))
    included = matrix.pop("include", [])
    assert not (matrix and included), "a matrix has lists or include here, not both"
    if included:
        return included
    return [dict(zip(matrix, values)) for values in itertools.product(*matrix.values())]
