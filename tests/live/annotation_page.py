# SPDX-License-Identifier: MIT
"""Tests the page of `perfmap annotate --format html`, and the code in that of `perfmap stacks --code`, in headless
Chromium: annotation_page.py PERFMAP [FOLDER]

With FOLDER, saves pictures there.
"""
import base64
import json
import pathlib
import shutil
import signal
import struct
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "tests/support"))
from browser import browser_or_skip  # noqa: E402

signal.alarm(850)
perfmap = pathlib.Path(sys.argv[1]).resolve()
scratch = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
browser = browser_or_skip(scratch.name)
TALLY = ROOT / "tests/wild/tally"
HOSTILE = ROOT / "tests/golden/inputs/hostile-tally.c"
NODE = ROOT / "tests/wild/node"
ADDRESS = 0x7f5bf9fca4c0  # of sampled code in perf-683.data


def annotate(*words, cwd=TALLY):
    return subprocess.run([perfmap, "annotate", *words], cwd=cwd, capture_output=True, check=True).stdout


def page(name, *words, cwd=TALLY):
    path = pathlib.Path(scratch.name, name + ".html")
    annotate(*words, "-o", path, cwd=cwd)
    return path


def show(path, width, dark=False):
    browser.size(width, 900, dark)
    browser.open("about:blank")
    browser.open(f"file://{path}")
    if len(sys.argv) > 2:
        picture = browser.call("Page.captureScreenshot")["data"]
        name = f"{path.stem}-{width}{'-dark' if dark else ''}.png"
        pathlib.Path(sys.argv[2], name).write_bytes(base64.b64decode(picture))


def rows(table):
    """The texts of the cells of each row with five cells."""
    return browser.value(f"""[...document.querySelectorAll('[aria-label="{table}"] tbody tr')].map((row) =>
        [...row.cells].map((cell) => cell.textContent)).filter((cells) => cells.length === 5)""")


def check_same_samples(path, *words, cwd=TALLY):
    """The page has the rows of the JSON."""
    [version] = json.loads(annotate(*words, "--format", "json", cwd=cwd))["versions"]
    number = lambda text: int(text or 0)  # noqa: E731
    shown = [[int(at, 16), number(own), number(total)] for _, own, total, at, _ in rows("Instructions")]
    assert shown == [[one["offset"], one["self"], one["total"]] for one in version["instructions"]], shown[:5]
    shown = {int(line): [number(own), number(total)] for _, own, total, line, _ in rows("Source lines") if line != "–"}
    lines = {one["line"]: [one["self"], one["total"]] for one in version["lines"]}
    # Lines without samples are listed if they have a text, also those between lines of the code.
    sampled = {line: counts for line, counts in lines.items() if counts != [0, 0]}
    assert {line: counts for line, counts in shown.items() if counts != [0, 0]} == sampled, (shown, lines)


def check_links():
    """Each link leads to a row. One that was followed scrolls its row into sight."""
    broken = browser.value("[...document.links].map((a) => a.hash.slice(1)).filter((id) => !document.getElementById(id))")
    assert broken == [], broken
    browser.value('[...document.querySelectorAll(".hottest a")].at(-1).click()')
    assert browser.value("""(() => {
        const row = document.querySelector("tr:target");
        const {left, width, top, height} = row.getBoundingClientRect();
        return document.elementFromPoint(left + width / 2, top + height / 2)?.closest("tr") === row;
    })()"""), browser.value("location.href")


def check_bounds():
    """Large code costs no more rows than the bound, and loses no sample. A long name exceeds the room of --code."""
    with open(NODE / "jit-683-samples.dump", "rb") as dump:
        header = dump.read(40)
    size = 300_000

    def annotated(name):
        body = struct.pack("<IIQQQQ", 683, 683, ADDRESS, ADDRESS, size, 1) + name + b"\0" + b"\x90" * size
        pathlib.Path(scratch.name, "large.dump").write_bytes(header + struct.pack("<IIQ", 0, 16 + len(body), 1) + body)
        return subprocess.run([perfmap, "stacks", NODE / "perf-683.data", "-j", "large.dump", "--code", "--format", "html"],
                              cwd=scratch.name, capture_output=True, check=True).stdout

    text = annotated(b"large")
    assert b'"is_complete":true' in text and text.count(b'"name":"large"') == 1 and len(text) < 600_000, len(text)
    words = (NODE / "perf-683.data", "large", "-j", "large.dump", "--asm", "--format")
    html = annotate(*words, "html", cwd=scratch.name)
    own = [one for one in json.loads(annotate(*words, "json", cwd=scratch.name))["versions"][0]["instructions"] if one["total"]]
    assert len(own) > 10 and all(b'id="v1-%x"><td class="n">' % one["offset"] in html for one in own), own
    assert html.count(b'id="v1-') == 200_000 + len(own)
    assert b"%d instructions without samples left out" % (size - 200_000 - len(own)) in html
    assert b'"is_complete":false' in annotated(b"x" * (5 << 20))


dump = ("multiply", "-j", "jit-683-samples.dump", "--symfs", ".")
pages = {
    "tally": page("tally", "perf.data", "digits", "--symfs", "."),
    "node": page("node", "perf-683.data", *dump, cwd=NODE),
    "versions": page("versions", "perf-683.data", " /tmp/corpus-work/src/node/workload.js:1:1", *dump[1:], cwd=NODE),
}
work = pathlib.Path(scratch.name, "hostile")
shutil.copytree(TALLY, work)
(work / "srv/tally").mkdir(parents=True, exist_ok=True)
shutil.copy(HOSTILE, work / "srv/tally/tally.c")
pages["hostile"] = page("hostile", "perf.data", "digits", "--symfs", ".", cwd=work)

check_bounds()
for path in pages.values():
    background = set()
    for width, dark in ((1280, False), (1280, True), (390, False), (390, True)):
        show(path, width, dark)
        wide = browser.value("document.documentElement.scrollWidth")
        assert wide <= width, (path, width, wide)
        background.add(browser.value("getComputedStyle(document.body).backgroundColor"))
        # Hot rows differ from others.
        heat = browser.value("""[...document.querySelectorAll(".code tbody tr")].map((row) =>
            [row.className.startsWith("h"), getComputedStyle(row).backgroundColor])""")
        assert {shown == "rgba(0, 0, 0, 0)" for is_hot, shown in heat if is_hot} == {False}, heat
        assert {shown for is_hot, shown in heat if not is_hot} == {"rgba(0, 0, 0, 0)"}, heat
        if width == 390:  # nor do the listings scroll sideways
            assert browser.value("""[...document.querySelectorAll(".listings .wide")].every((list) =>
                list.scrollWidth <= list.clientWidth)"""), path
    assert len(background) == 2, background
    assert browser.value("document.scripts.length + document.images.length") == 0
    show(path, 1280)
    check_links()

show(pages["tally"], 1280)
check_same_samples(pages["tally"], "perf.data", "digits", "--symfs", ".")
tops = browser.value('[...document.querySelectorAll(".listings .wide")].map((list) => list.getBoundingClientRect().top)')
assert tops[0] == tops[1], "source lines and instructions are not side by side"
show(pages["node"], 1280)
check_same_samples(pages["node"], "perf-683.data", *dump, cwd=NODE)
show(pages["versions"], 1280)
listed = browser.value('[...document.querySelectorAll(".list tbody a")].map((a) => document.querySelector(a.hash + " h2").textContent)')
assert [name[:4] for name in listed] == ["JS:*", "JS:^"], listed
show(pages["hostile"], 1280)
assert any("</script><script>alert(1)</script>" in cells[4] and "\\xe2\\x80\\xa8" in cells[4] for cells in rows("Source lines"))
assert browser.said == [], browser.said


def shown_code():
    """The sections of the panel: their names and the cells of their tables. None: it is hidden."""
    return browser.value("""document.getElementById("code").checkVisibility() ?
        [...document.querySelectorAll("#code section")].map((section) => [section.querySelector("h2").textContent,
            [...section.querySelectorAll("table")].map((table) => [...table.tBodies[0].rows].map((row) =>
                [...row.cells].map((cell) => cell.textContent)))]) : null""")


def in_page(expression):
    return browser.value(f'(() => {{ const data = JSON.parse(document.getElementById("data").textContent); return {expression}; }})()')


def check_panel(path, function, *words, cwd):
    """The sandwich of the function has its samples at each instruction and line, as in the JSON of annotate."""
    key = in_page("data.names").index(function)
    browser.open("about:blank")
    browser.open(f"file://{path}#view=sandwich&of={key}")
    [[name, tables]] = shown_code()
    assert name == function, name
    [version] = json.loads(annotate(*words, "--format", "json", cwd=cwd))["versions"]
    sampled = lambda rows: [row for row in rows if len(row) == 5 and row[2]]  # noqa: E731
    counts = [[int(at, 16), int(own or 0), int(total)] for _, own, total, at, _ in sampled(tables[-1])]
    assert counts == [[one["offset"], one["self"], one["total"]] for one in version["instructions"] if one["total"]], counts
    counts = [[int(line), int(own or 0), int(total)] for _, own, total, line, _ in sampled(tables[0])]
    assert counts == [[one["line"], one["self"], one["total"]] for one in version["lines"] if one["total"]], counts


stacks = pathlib.Path(scratch.name, "stacks.html")
subprocess.run([perfmap, "stacks", "perf.data", "--symfs", ".", "--code", "-o", stacks], cwd=work, check=True, capture_output=True)
show(stacks, 1280)
assert shown_code() is None, "code without a selected function"
check_panel(stacks, "digits", "perf.data", "digits", "--symfs", ".", cwd=work)
assert any("</script><script>alert(1)</script>" in cells[-1] for [_, tables] in shown_code() for cells in tables[0])
browser.key("c", "c")
assert shown_code() is None and "code=no" in browser.value("location.hash")
browser.key("c", "c")
assert shown_code() and "code=no" not in browser.value("location.hash")
for width in (1280, 390):
    browser.size(width, 900)
    assert browser.value("document.documentElement.scrollWidth") <= width
    assert browser.value('(({scrollWidth, clientWidth}) => scrollWidth <= clientWidth)(document.getElementById("code"))'), width
# In the flame graph, the zoomed box is the selected function; the root is none.
browser.open("about:blank")
browser.size(1280, 900)
browser.open(f"file://{stacks}")
seen = set()
for _ in range(20):
    browser.value('document.querySelector("#flame canvas").focus()')
    browser.key("ArrowDown")
    browser.key("Enter", "\r")
    name = browser.value('document.getElementById("name").textContent')
    panel = shown_code()
    assert panel is None or [section[0] for section in panel] == [name], (name, panel)
    seen.add(panel is not None)
assert seen == {False, True}, seen
browser.key("Escape")
assert shown_code() is None

merged = pathlib.Path(scratch.name, "merged.html")
subprocess.run([perfmap, "stacks", "perf-683.data", "-j", "jit-683-samples.dump", "--code", "-o", merged], cwd=NODE, check=True,
               capture_output=True)
show(merged, 1280)
[multiply] = [name for name in in_page("data.names") if "*multiply" in name]
check_panel(merged, multiply, "perf-683.data", *dump[:3], cwd=NODE)
address = browser.value("location.hash")
browser.open("about:blank")
browser.open(f"file://{merged}{address}&tiers=merged")
assert [section[0] for section in shown_code()] == [multiply], shown_code()
# A page without --code has no button for it.
plain = pathlib.Path(scratch.name, "plain.html")
subprocess.run([perfmap, "stacks", "perf.data", "--symfs", ".", "-o", plain], cwd=TALLY, check=True, capture_output=True)
show(plain, 1280)
assert not browser.value('document.getElementById("show-code").checkVisibility()')
assert browser.said == [], browser.said
browser.close()
print(f"{len(pages)} pages have the samples of the JSON, in light and dark, and do not scroll sideways")
