# SPDX-License-Identifier: MIT
"""check_pages.py PERFMAP: links of all pages lead to files and sections that exist. README.md has at most 90 lines, its
commands and options exist, and its report has the columns of a real one and adds up."""
import pathlib
import re
import shlex
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "scripts"))
from console_blocks import console_blocks

PERFMAP = pathlib.Path(sys.argv[1]).resolve()
PAGES = [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").rglob("*.md")), *sorted((ROOT / "bindings").rglob("*.md")),
         *sorted((ROOT / ".github").rglob("*.md")), *sorted((ROOT / "tests").glob("*.md")), ROOT / "tests/wild/README.md"]
FENCED = re.compile(r"(?ms)^ *```.*?^ *```$")
LINK = re.compile(r"\]\(([^()\s]+)\)")
ROW = re.compile(r" *(\d+) +([\d.]+)% +(\d+) +([\d.]+)%  \S")
MAX_README = 90
problems = []


def printed(*words):
    return subprocess.run([PERFMAP, *words], capture_output=True, text=True, check=True).stdout


def anchors(page):
    """The names that GitHub gives to the headings."""
    headings = re.findall(r"(?m)^#+ (.*)$", FENCED.sub("", page.read_text()))
    return {re.sub(r"[^\w\- ]", "", re.sub(r"\]\([^)]*\)", "]", heading).lower()).replace(" ", "-") for heading in headings}


def check_links(page):
    count = 0
    text = re.sub(r"`[^`\n]*`", "", FENCED.sub("", page.read_text()))
    for link in LINK.findall(text):
        if re.match(r"[a-z]+:", link):
            continue  # a link to the network
        count += 1
        path, _, anchor = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        if not target.exists():
            problems.append(f"{page.relative_to(ROOT)}: no file {link}")
        elif anchor and anchor not in anchors(target):
            problems.append(f"{page.relative_to(ROOT)}: no section {link}")
    return count


def check_command(line):
    """The command and its options are in the help of the program."""
    words = shlex.split(line, comments=True)[1:]
    words = words[:words.index("--")] if "--" in words else words
    if not re.search(rf"(?m)^  {re.escape(words[0])} ", printed("help")):
        problems.append(f"README.md: no command: {line}")
        return
    known = printed(words[0], "--help")
    problems.extend(f"README.md: no option {word}: {line}" for word in words[1:]
                    if word.startswith("-") and not re.search(rf"(?<![\w-]){re.escape(word)}(?![\w-])", known))


def check_report(recorded, report):
    """Its samples are those of the recording, its columns those of the program, and its shares add up."""
    samples = int(re.search(r"recorded (\d+) samples", recorded)[1])
    first, heads, *rows = report.splitlines()
    real = printed("report", ROOT / "tests/wild/node/perf-603.data", "--map-dir", ROOT / "tests/wild/node", "--top", "3",
                   "-q").splitlines()
    shapes = [re.sub(r"\d[\d.]*", "N", re.sub(r" of [^,]+,", " of EVENT,", line)) for line in (first, real[0])]
    if heads.split() != real[1].split() or shapes[0] != shapes[1] or int(first.split()[0]) != samples:
        problems.append(f"README.md: the report begins with\n{first}\n{heads}\nin place of\n{real[0]}\n{real[1]}")
    numbers = [ROW.match(row).groups() for row in rows[:-1]]
    for self_count, self_share, total, share in numbers:
        if (f"{100 * int(self_count) / samples:.2f}", f"{100 * int(total) / samples:.2f}") != (self_share, share):
            problems.append(f"README.md: {self_count} and {total} of {samples} samples are not {self_share} % and {share} %")
        if int(total) < int(self_count):
            problems.append(f"README.md: TOTAL {total} is less than SELF {self_count}")
    if not numbers or not re.fullmatch(r"\.\.\. \d+ more functions", rows[-1]):
        problems.append(f"README.md: the report ends with {rows[-1]}")


def check_readme():
    text = (ROOT / "README.md").read_text()
    lines = text.count("\n")
    if lines > MAX_README:
        problems.append(f"README.md has {lines} lines, more than {MAX_README}: move some to a page")
    (_, _, console), = console_blocks(text)
    commands = [line for _, line, _ in console] + re.findall(r"`(perfmap [a-z-]+(?: [^`]*)?)`", text)
    for line in commands:
        check_command(line)
    (_, _, recorded), (_, _, report), (_, _, page) = console
    check_report(recorded, report)
    if page:
        problems.append("README.md: stacks -o prints nothing")
    return len(commands)


links = sum(map(check_links, PAGES))
commands = check_readme()
print("\n".join(problems) or f"{links} links of {len(PAGES)} pages, {commands} commands of README.md")
sys.exit(1 if problems else 0)
