# SPDX-License-Identifier: MIT
"""Every command has golden cases, a manual page, completions and a change log line. A test runs each script. The tree
contains nothing unrelated to the project."""
import ast
import pathlib
import re
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
problems = []


def project_files():
    """Files that runtimes or editors left next to the sources do not belong to the project."""
    listed = ""
    if shutil.which("git") and (ROOT / ".git").exists():
        listed = subprocess.run(["git", "-C", ROOT, "ls-files", "-z"], capture_output=True, text=True).stdout
    if listed:
        return sorted(ROOT / name for name in listed.split("\0") if name)
    print("no git here: all files are looked at")
    return [path for path in sorted(ROOT.rglob("*"))
            if path.suffix != ".log" and not {"__pycache__", ".cache"} & set(path.parts)
            and not re.match(r"build|\.git$", path.relative_to(ROOT).parts[0])]


FILES = project_files()


def text_of(path):
    """Inputs of tests have any bytes."""
    return path.read_text(errors="replace")


USAGE = text_of(ROOT / "tests/golden/usage.table")

for source in sorted((ROOT / "apps/perfmap").glob("cmd_*.cpp")):
    command = source.stem.removeprefix("cmd_").replace("_", "-")
    if not any((ROOT / "tests/golden" / command).glob("*.case")) and f"\n$ perfmap {command}" not in USAGE:
        problems.append(f"{command}: no golden case")
    if not (ROOT / f"docs/man/perfmap-{command}.1.scd").exists():
        problems.append(f"{command}: no manual page")
    for completion in ("completions/perfmap.bash", "completions/_perfmap",
                       "completions/perfmap.fish"):
        if not re.search(rf"\b{command}\b", (ROOT / completion).read_text()):
            problems.append(f"{command}: not in {completion}")
    if f"`{command}`" not in (ROOT / "CHANGELOG.md").read_text():
        problems.append(f"{command}: not in CHANGELOG.md")

# Two types of one name would be one type for the linker.
TYPE = re.compile(r"^(?:struct|class)(?: \[\[nodiscard\]\]| PERFMAP_API)? (\w+)(?: final)?(?: :[^;{]*)? \{", re.M)
types = {}
for header in (path for path in FILES if path.suffix == ".hpp" and path.relative_to(ROOT).parts[0] in ("lib", "apps")):
    for name in TYPE.findall(text_of(header)):
        if name in types:
            problems.append(f"{header.relative_to(ROOT)}: {name} is also a type of {types[name].relative_to(ROOT)}")
        types[name] = header

# The text of a test's input is fixed, completions come from the program, and the rest has no comments.
LICENSED = {".cpp", ".hpp", ".c", ".h", ".def", ".py", ".sh", ".cmake", ".rs", ".js", ".css", ".html", ".lisp", ".lua",
            ".toml", ".yml", ".yaml", ".in", ".scd", ".proto"}
INPUTS = ("tests/golden/inputs/", "tests/wild/", "tests/fuzz/corpus/", "tests/support/recorded/", "tests/support/pypylogs/",
          "completions/")
for path in FILES:
    name = str(path.relative_to(ROOT))
    is_input = name.startswith(INPUTS) and name.count("/") > 2 or name.startswith("completions/")
    if (path.suffix in LICENSED or path.name in ("CMakeLists.txt", "dev")) and not is_input:
        if "SPDX-License-Identifier: MIT" not in "".join(text_of(path).splitlines(True)[:3]):
            problems.append(f"{name}: none of its first three lines is SPDX-License-Identifier: MIT")

rules = set(re.findall(r'"((?:PM|JD|XF|PL|DI)\d+)"', (ROOT / "lib/include/perfmap/rules.def").read_text()))
page = set(re.findall(r"^## ((?:PM|JD|XF|PL|DI)\d+)$", (ROOT / "docs/diagnostics.md").read_text(), re.M))
if rules != page or not rules:
    problems.append(f"docs/diagnostics.md against rules.def: {sorted(rules ^ page)}")

doubts = re.findall(r'^ +\{"([a-z-]+)",', (ROOT / "lib/core/resolve/resolver.cpp").read_text(), re.M)
if not doubts:
    problems.append("lib/core/resolve/resolver.cpp: no kinds of doubt found")
for name in ("resolve-1", "stack-1", "stack-stats-1"):
    schema = (ROOT / f"docs/schema/perfmap.{name}.json").read_text()
    if ", ".join(f'"{doubt}"' for doubt in doubts) not in schema:
        problems.append(f"perfmap.{name}.json: does not list the kinds of doubt in their order")
for name in ("resolve", "stacks"):
    manual = (ROOT / f"docs/man/perfmap-{name}.1.scd").read_text()
    problems += [f"perfmap-{name}.1.scd: no {doubt}" for doubt in doubts if f"*{doubt}*" not in manual]

for folder, pattern in (("unit", "*_test.cpp"), ("property", "*_property.cpp")):
    listed = (ROOT / "tests" / folder / "CMakeLists.txt").read_text().split()
    for path in sorted((ROOT / "tests" / folder).rglob(pattern)):
        name = str(path.relative_to(ROOT / "tests" / folder))
        if name not in [word.rstrip(")") for word in listed]:
            problems.append(f"tests/{folder}/{name} is not compiled")
        # Several are compiled as one; see tests/CMakeLists.txt.
        if not re.search(rf"^namespace perfmap(::test)?::\w*{path.stem} {{$", text_of(path), re.M):
            problems.append(f"tests/{folder}/{name} has no namespace of its own, perfmap::{path.stem}")

# An accepted mutant whose line has changed would be reported again.
for entry in re.split(r"\n\s*\n", (ROOT / "scripts/mutants-accepted.txt").read_text()):
    path, original, *_ = [line for line in entry.splitlines() if not line.startswith("#")] or [None, None]
    if path is None:
        continue
    lines = (ROOT / path).read_text().splitlines() if (ROOT / path).is_file() else ()
    if original[2:] not in (line.strip() for line in lines):
        problems.append(f"scripts/mutants-accepted.txt: {path} has no line '{original[2:]}'")

# The test that runs each script, or another file that uses it and is run by a test.
SCRIPTS = {
    "action.sh": "tests/meta/check_action.py",
    "bare_root.sh": "tests/meta/check_bare_root.py",
    "builds.py": "tests/meta/check_builds.py",
    "check_layers.py": "tests/meta/CMakeLists.txt",
    "console_blocks.py": "tests/meta/check_pages.py",
    "generate.py": "tests/meta/CMakeLists.txt",
    "house.py": "tests/meta/CMakeLists.txt",
    "mutants-accepted.txt": "tests/meta/check_house.py",
    "mutants.py": "tests/meta/check_mutants.py",
    "mutations.py": "tests/meta/check_mutations.py",
    "run_tests.py": "tests/meta/check_run_tests.py",
    "sanitizer_report.py": "tests/meta/check_sanitizer_report.py",
    "soak.py": "tests/meta/check_run_tests.py",
    "tour.py": "tests/meta/CMakeLists.txt",
    "unit_cases.py": "tests/meta/check_mutants.py",
    "unity_groups.py": "tests/meta/check_unity_groups.py",
}


def code_of(path):
    """Without the docstring, which may only mention a script."""
    text = text_of(path)
    if path.suffix != ".py":
        return text
    tree = ast.parse(text)
    return "\n".join(ast.unparse(node) for node in tree.body[ast.get_docstring(tree) is not None:] if
                     not (isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") == "SCRIPTS"))


scripts = {path.name for path in FILES if path.parent == ROOT / "scripts"}
problems += [f"scripts/{name}: check_house.py does not know which test runs it" for name in sorted(scripts - SCRIPTS.keys())]
problems += [f"scripts/{name}: no such file" for name in sorted(SCRIPTS.keys() - scripts)]
for name, test in SCRIPTS.items():
    stem = name.split(".")[0]
    if not (ROOT / test).is_file() or not re.search(
            rf"(?<![\w-]){re.escape(name)}(?![\w-])|\b(import|from) {re.escape(stem)}\b", code_of(ROOT / test)):
        problems.append(f"scripts/{name}: {test} does not run it")
    elif not test.endswith("CMakeLists.txt") and test.rsplit("/", 1)[1] not in text_of(
            (ROOT / test).parent / "CMakeLists.txt"):
        problems.append(f"{test}: is not a test of {(ROOT / test).parent.name}/CMakeLists.txt")

# A variable of the caller's environment must not change what dev does, except for PERFMAP_*.
script = text_of(ROOT / "dev")
for name in sorted(set(re.findall(r"\$\{?([a-z]\w*)", script)) - set(re.findall(r"\bfor (\w+) in", script))):
    if not re.search(rf"^ *(local )?{name}=(\$?\(.*\)|\".*\"|\S*)( \|\| .*| #.*)?$", script, re.M):
        problems.append(f"dev: does not initialise {name}")

# Notes about the making of the text, or about one machine, do not help readers.
FOREIGN = re.compile(r"\b(TODO|FIXME|XXX)\b|/work/|\bworktree\b|\bissue #?\d")
TEXT = {".cpp", ".hpp", ".h", ".c", ".py", ".sh", ".md", ".scd", ".txt", ".cmake", ".json", ".map"}
for path in FILES:
    name = str(path.relative_to(ROOT))
    if name.startswith(("build", ".git/", ".cache")) or path == pathlib.Path(__file__).resolve():
        continue
    if path.suffix == ".log":
        problems.append(f"{name}: a log lies in the tree")
    if path.suffix not in TEXT or "/wild/" in name or not path.is_file():
        continue
    for number, line in enumerate(text_of(path).splitlines(), 1):
        if found := FOREIGN.search(line):
            problems.append(f"{name}:{number}: says {found[0]}")

print("\n".join(problems) or "no problems")
sys.exit(1 if problems else 0)
