# SPDX-License-Identifier: MIT
"""check_limits.py PERFMAP: docs/limits.md has a row for each output format of the program, and for everything that
tests/limits/formats.py measures, and the shapes with a maximum; the tests that it names exist."""
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "tests" / "limits"))
import formats
import shapes


def rows(text):
    """The cells of each row; every table has the same columns."""
    for line in text.splitlines():
        if line.startswith("| ") and not line.startswith("| ---"):
            yield [cell.strip() for cell in line.strip("|").split("|")]


def quoted(cell):
    return re.findall(r"`([^`]+)`", cell)


def outputs_in(cell):
    """("stacks", "--format", "html") for each one of "`stacks --format html`, `pprof`; `convert --to elf`"."""
    command = option = None
    for text in quoted(cell):
        words = text.split()
        if len(words) == 3:
            command, option = words[:2]
        yield command, option, words[-1]


def outputs_of(perfmap):
    """The same of the program. Its help has the values in the place of the option's value, or, if there are many,
    at the end of its text."""
    page = subprocess.run([perfmap, "--help"], capture_output=True, text=True, check=True).stdout
    commands = re.findall(r"^  ([a-z][a-z-]+) {2,}\S", page, re.M)
    assert len(commands) > 15, page
    for command in commands:
        page = subprocess.run([perfmap, command, "--help"], capture_output=True, text=True, check=True).stdout
        for option, value, text in re.findall(r"^ +(--format|--to) (\S+)((?:.*\n)(?: {20,}\S.*\n)*)", page, re.M):
            several = re.search(r"; one of (.*)", " ".join(text.split()))
            names = several[1].replace(",", "").split() if several else value.split("|")
            for name in names:
                yield command, option, name


def known_tests():
    for file in (ROOT / "tests").rglob("CMakeLists.txt"):
        text = file.read_text()
        yield from re.findall(r"(?:add_test\(NAME |own_tmp_test\()([\w.-]+)", text)
        for name in re.findall(r"^\s*perfmap_limit\((\w+)", text, re.M):
            yield from ("limits." + name, "live.limits-time-" + name)


def main():
    text = (ROOT / "docs" / "limits.md").read_text()
    tests, titles, seen, documented, problems = set(known_tests()), formats.titles() | shapes.titles(), set(), set(), []
    for row in rows(text):
        if len(row) != 6:
            problems.append(f"a row of {len(row)} cells: {row}")
            continue
        subject, measured, _, _, bound, test = row
        documented.update(outputs_in(subject))
        seen.update(quoted(measured))
        if subject not in ("reader", "output"):
            problems += [f"{subject}: no test {name}" for name in quoted(test) if name not in tests]
            problems += [f"{subject}: no {what}" for what, cell in (("test", quoted(test)), ("bound", bound)) if not cell]
    problems += [f"nothing measures {title}" for title in sorted(seen - titles)]
    in_text = set(quoted(" ".join(text.split())))
    problems += [f"{title} has no row" for title in sorted(titles - seen - in_text)]
    program = set(outputs_of(sys.argv[1]))
    assert len(program) > 30, program
    problems += [f"{' '.join(output)} has no row" for output in sorted(program - documented)]
    problems += [f"the program has no {' '.join(output)}" for output in sorted(documented - program, key=str)
                 if None not in output]
    if "docs/limits.md" not in (ROOT / "docs" / "design.md").read_text():
        problems.append("docs/design.md does not mention docs/limits.md")
    for problem in problems:
        print(f"docs/limits.md: {problem}", file=sys.stderr)
    sys.exit(1 if problems else 0)


if __name__ == "__main__":
    main()
