#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Generates files from the program: completions, sections of the manual pages, docs/diagnostics.md,
and the tables of runtimes in README.md and docs/runtimes.md.  generate.py PERFMAP MAN_OPTIONS [--check]

With --check nothing is written: the names of files that would change are printed, and the exit
status is 1 if there are any.
"""
import json
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
GUIDES = {  # of docs/guides
    ".NET": "dotnet.md", "CPython": "python.md", "Erlang/OTP": "erlang.md", "JVM (OpenJDK)": "java.md",
    "Node.js (V8)": "node.md", "PHP": "php.md", "PostgreSQL (LLVM)": "postgresql.md", "PyPy": "pypy.md",
    "Ruby (YJIT)": "ruby.md"}


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


def runtimes(perfmap):
    """Those that can name their code, as `perfmap doctor --runtimes` describes them."""
    listed = json.loads(run(perfmap, "doctor", "--runtimes", "--format", "json"))["runtimes"]
    assert GUIDES.keys() <= {one["name"] for one in listed}, "GUIDES has a runtime that the program does not know"
    return [{**one, "tested": one["tested"] or "not tested"} for one in listed if one["start"] is not None]


def with_table(page, heads, rows):
    """The page with another table between its two comments."""
    lines = [heads, ["---"] * len(heads), *rows]
    table = "".join(f"| {' | '.join(cells)} |\n" for cells in lines)
    text, count = re.subn(r"(?s)(<!-- runtimes -->\n).*?(<!-- end of runtimes -->)",
                          lambda found: f"{found[1]}{table}{found[2]}", (ROOT / page).read_text())
    assert count == 1, f"{page} has no place for the table of runtimes"
    return text


def readme(perfmap):
    """README.md with the runtimes that have a guide."""
    rows = [[one["name"], one["since"], one["tested"], f"[{GUIDES[one['name']]}](docs/guides/{GUIDES[one['name']]})"]
            for one in runtimes(perfmap) if one["name"] in GUIDES]
    return with_table("README.md", ["runtime", "names since", "tested with", "guide"], rows)


def runtimes_page(perfmap):
    """docs/runtimes.md with all."""
    rows = [[f"[{one['name']}](guides/{GUIDES[one['name']]})" if one["name"] in GUIDES else one["name"],
             f"`{one['start']}`", one["names"], one["since"], one["tested"]] for one in runtimes(perfmap)]
    return with_table("docs/runtimes.md", ["runtime", "start it with", "names", "since", "tested with"], rows)


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
    yield "docs/runtimes.md", runtimes_page(perfmap)
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
