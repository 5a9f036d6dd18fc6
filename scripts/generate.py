#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Generates files from the program: completions, sections of the manual pages,
docs/diagnostics.md, and the table of runtimes in README.md.  generate.py PERFMAP MAN_OPTIONS [--check]

With --check nothing is written: the names of files that would change are printed, and the exit
status is 1 if there are any.
"""
import json
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent


def run(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def diagnostics(perfmap):
    page = ["# Diagnostics\n\nThe findings of `perfmap lint` in perf maps (PM), in jitdumps (JD), in both "
            "together (XF) and in .NET's lists of\nimages (DI), and those of `perfmap pypylog` in PyPy logs (PL). "
            "`perfmap lint --explain ID` prints one section. `lint`\nends with status 1 if it has a warning or "
            "an error, unless `--fail-level` sets another level.\n\n`scripts/generate.py` generates this page from the program.\n"]
    for line in run(perfmap, "lint", "--rules").splitlines():
        rule = line.split()[0]
        title, text = (" ".join(part.split()) for part in run(perfmap, "lint", "--explain", rule).split("\n\n", 1))
        page.append(f"\n## {rule}\n\n**{title[len(rule) + 1:]}**\n\n{text}\n")
    return "".join(page)


def readme(perfmap):
    """README.md with the table of runtimes."""
    rows = ["| runtime | start it with | names | since | tested with |", "| --- | --- | --- | --- | --- |"]
    for one in json.loads(run(perfmap, "doctor", "--runtimes", "--format", "json"))["runtimes"]:
        if one["start"] is None:
            continue  # it cannot name its code
        start = f"`{one['start']}`"
        rows.append(f"| {one['name']} | {start} | {one['names']} | {one['since']} | "
                    f"{one['tested'] or 'not tested'} |")
    table = "\n".join(rows)
    return re.sub(r"(?s)(<!-- runtimes -->\n).*?(<!-- end of runtimes -->)",
                  lambda found: f"{found[1]}{table}\n{found[2]}", (ROOT / "README.md").read_text())


def manual_page(path, man_options):
    """The page with the sections that the program knows replaced by its output."""
    name = path.name.split(".")[0]
    command = name.removeprefix("perfmap-") if name != "perfmap" else name
    page = path.read_text()
    for section in re.split(r"(?m)^(?=# )", run(man_options, command))[1:]:
        title = section.split("\n", 1)[0]
        page, count = re.subn(rf"(?ms)^{title}\n.*?(?=^# |\Z)", lambda _: section, page, count=1)
        if count == 0:
            sys.exit(f"{path}: no section '{title}'")
    return page


def generated(perfmap, man_options):
    yield "completions/perfmap.bash", run(perfmap, "completions", "bash")
    yield "completions/_perfmap", run(perfmap, "completions", "zsh")
    yield "completions/perfmap.fish", run(perfmap, "completions", "fish")
    yield "docs/diagnostics.md", diagnostics(perfmap)
    yield "README.md", readme(perfmap)
    for path in sorted((ROOT / "docs/man").glob("perfmap*.1.scd")):
        yield str(path.relative_to(ROOT)), manual_page(path, man_options)


def main():
    perfmap, man_options = sys.argv[1:3]
    check = "--check" in sys.argv
    stale = []
    for name, text in generated(perfmap, man_options):
        path = ROOT / name
        if path.exists() and path.read_text() == text:
            continue
        stale.append(name)
        if not check:
            path.write_text(text)
    for name in stale:
        print(f"{name} is not what the program makes of it; run scripts/generate.py" if check
              else f"wrote {name}")
    return 1 if check and stale else 0


sys.exit(main())
