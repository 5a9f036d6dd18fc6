# SPDX-License-Identifier: MIT
"""Checks the output of `perfmap pypylog` for real logs and logs with events. The JSON conforms to
its schema and contains every category and loop that a log names. In every thread and format, the
times of loops and outside add up exactly to the total, and so do those of categories and the rest.
The HTML page contains names only as escaped text."""
import base64
import hashlib
import html.parser
import json
import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path[:0] = [str(ROOT / "tests/support"), str(ROOT / "tests/golden")]
from case_file import cases_below
from json_schema import check, fits

SCHEMA = json.loads((ROOT / "docs/schema/perfmap.pypylog-1.json").read_text())


def text(*arguments):
    run = subprocess.run([sys.argv[1], "-q", "pypylog", *arguments], capture_output=True, check=True)
    return run.stdout.decode()


def adds_up(document):
    total = document["total_ticks"]
    assert total == sum(thread["ticks"] for thread in document["threads"])
    assert total == sum(one["ticks"] for one in document["categories"]) + document["rest_ticks"]
    in_loops = [loop["ticks"] for loop in document["loops"]]
    if document["has_events"]:
        assert total == sum(ticks or 0 for ticks in in_loops) + document["outside_ticks"]
    else:
        assert document["outside_ticks"] is None and in_loops == [None] * len(in_loops)


def folded_adds_up(path, options, document):
    lines = text(path, "--format", "folded", *options).splitlines()
    by_loop = {}
    for line in lines:
        stack, ticks = line.rsplit(" ", 1)
        root = stack.split(";")[1]
        by_loop[root] = by_loop.get(root, 0) + int(ticks)
    assert sum(by_loop.values()) == document["total_ticks"], path
    if document["has_events"]:
        assert by_loop.get("[outside]", 0) == document["outside_ticks"]


def names_all(path, document):
    """Whatever a plain search finds in the log is in the output."""
    log = path.read_bytes().decode(errors="replace")
    named = {one["name"] for one in document["categories"]}
    assert named == set(re.findall(r"^(?:\x1b\[[0-9;]*m|\d+# )*\[[0-9a-f]+\] \{?([\w-]+)\}?\r?$", log, re.M)), path
    loops = [loop["name"] for loop in document["loops"]]
    for line in re.findall(r"^(?:\x1b\[0m)?(.*) has address 0x", log, re.M):
        assert line in loops, line


class Page(html.parser.HTMLParser):
    def __init__(self):
        super().__init__()
        self.tags, self.ids, self.links, self.policy, self.style, self.stack = set(), set(), set(), "", "", []

    def handle_starttag(self, tag, attributes):
        self.tags.add(tag)
        self.stack.append(tag)
        found = dict(attributes)
        self.ids.add(found.get("id"))
        if "href" in found:
            self.links.add(found["href"])
        if found.get("http-equiv") == "Content-Security-Policy":
            self.policy = found["content"]
        assert not [name for name in found if name.startswith("on") or name in ("style", "src")]

    def handle_data(self, data):
        if self.stack and self.stack[-1] == "style":
            self.style += data

    def handle_endtag(self, tag):
        while self.stack and self.stack.pop() != tag:
            pass


def page_is_safe(path):
    page = Page()
    page.feed(text(path, "--format", "html"))
    known = {"html", "head", "meta", "style", "title", "body", "h1", "h2", "h3", "p", "dl", "dt", "dd", "div", "table",
             "tr", "th", "td", "meter", "section", "a"}
    assert page.tags <= known, page.tags - known
    assert all(link.startswith("#") and link[1:] in page.ids for link in page.links)
    digest = base64.b64encode(hashlib.sha256(page.style.encode()).digest()).decode()
    assert page.policy.startswith(f"default-src 'none'; style-src 'sha256-{digest}'"), page.policy


real = [*sorted((ROOT / "tests/wild/pypy").glob("*.*")), ROOT / "tests/wild/pypy/profile/pypylog"]
planted = sorted((ROOT / "tests/golden/inputs").glob("*.pypylog"))
scratch = tempfile.TemporaryDirectory()
for case in cases_below(ROOT / "tests/golden"):
    for name, data in case.named("input").items():
        if name.endswith(".pypylog"):
            planted.append(pathlib.Path(scratch.name, f"{case.name.replace('/', '-')}-{name}"))
            planted[-1].write_bytes(data)
assert len(real) > 5 and len(planted) > 5
for path in [*real, *planted]:
    for options in ([], ["--inner-bridges", "count"], ["--ticks", "hex"], ["--from", "150", "--to-time", "400"]):
        document = json.loads(text(path, "--format", "json", *options))
        check(document, SCHEMA, SCHEMA)
        adds_up(document)
        folded_adds_up(path, options, document)
    document = json.loads(text(path, "--format", "json"))
    if path in real:
        names_all(path, document)
    for by in ("function", "file"):
        grouped = json.loads(text(path, "--format", "json", "--by", by))
        check(grouped, SCHEMA, SCHEMA)
        assert sum(row["ticks"] or 0 for row in grouped["by"]["rows"]) == \
            sum(loop["ticks"] or 0 for loop in document["loops"])
    short = json.loads(text(path, "--format", "json", "--top", "1"))
    check(short, SCHEMA, SCHEMA)
    assert len(short["loops"]) + short["left_out"]["rows"] == len(document["loops"])
    page_is_safe(path)
    assert not fits({**document, "more": 1}, SCHEMA, SCHEMA, "$")
    assert not fits({**document, "total_ticks": None}, SCHEMA, SCHEMA, "$")
print(f"the times of {len(real)} real logs and {len(planted)} others add up, and fit the schema")
