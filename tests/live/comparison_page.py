# SPDX-License-Identifier: MIT
"""Tests the page of `perfmap stacks --baseline` in headless Chromium: comparison_page.py PERFMAP [FOLDER]

The page shows the samples of the folded output of both recordings. With FOLDER, saves pictures there.
"""
import base64
import json
import pathlib
import signal
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "tests/support"))
from browser import browser_or_skip  # noqa: E402

signal.alarm(850)
scratch = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
page = pathlib.Path(scratch.name) / "page.html"
browser = browser_or_skip(scratch.name)
INPUTS = ROOT / "tests/golden/inputs"


def stacks(new, old, *options):
    return subprocess.run([sys.argv[1], "stacks", new, "--baseline", old, *options], capture_output=True, check=True)


def show(address=""):
    browser.open("about:blank")
    browser.open(f"file://{page}#{address}")


def text_of(id):
    return browser.value(f'document.getElementById("{id}").textContent')


def is_hidden(id):
    return browser.value(f'!document.getElementById("{id}").checkVisibility()')


def matched():
    """What the page writes about a search, when it has finished."""
    while (text := text_of("matched")) == "searching…":
        time.sleep(0.02)
    return text


def press(key):
    browser.key(key, key)


def rows():
    """The numbers of each function in the table, in its order: change, old, new."""
    return browser.value("""[...document.querySelectorAll("#table tbody tr")].map((row) =>
        [row.querySelector(".name").title, ...[...row.querySelectorAll("td.number")].map((cell) => cell.textContent)])""")


def colours():
    """How many pixels of the chart are clearly red, and clearly blue."""
    return browser.value("""(() => {
        const canvas = document.querySelector("#flame canvas");
        const bytes = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data;
        const sums = [0, 0];
        for (let i = 0; i < bytes.length; i += 4) {
          if (bytes[i] - bytes[i + 2] > 60) ++sums[0];
          if (bytes[i + 2] - bytes[i] > 60) ++sums[1];
        }
        return sums;
    })()""")


def save(name):
    if len(sys.argv) > 2:
        picture = browser.call("Page.captureScreenshot")["data"]
        pathlib.Path(sys.argv[2], name + ".png").write_bytes(base64.b64decode(picture))


old_selfs, new_selfs = {}, {}
for line in stacks(INPUTS / "new.pb", INPUTS / "old.pb", "--format", "jsonl").stdout.decode().splitlines():
    one = json.loads(line)
    leaf = one["frames"][0]["name"]
    old_selfs[leaf] = old_selfs.get(leaf, 0) + one["old_samples"]
    new_selfs[leaf] = new_selfs.get(leaf, 0) + one["new_samples"]
totals = sum(old_selfs.values()), sum(new_selfs.values())
stacks(INPUTS / "new.pb", INPUTS / "old.pb", "-o", page)

browser.size(1280, 900)  # large enough that the options are not folded
# The difference comes first; both colours are there, and none in the views of one recording.
for order in ("", "order=inverted"):
    show(order)
    assert min(colours()) > 500, (order, colours())
    assert text_of("old").replace(",", "") == str(totals[0]) and text_of("new").replace(",", "") == str(totals[1])
# Shares are compared, so the root does not change; the page has the change of the total, too.
total = f"total +{100 * (totals[1] / totals[0] - 1):.2f} %"
assert text_of("change") == total and f"shares; {total}" in text_of("facts"), (total, text_of("change"), text_of("facts"))
assert is_hidden("time") and is_hidden("event") and not is_hidden("changes") and is_hidden("kinds")
assert "▲ grew" in text_of("changes") and "▼ shrank" in text_of("changes")
# What a search finds are the widths of boxes. In the difference, they are the larger sides, so each function that
# appeared or vanished has a box.
scale = totals[1] / totals[0]
larger = sum(max(old_selfs[name] * scale, new_selfs[name]) for name in old_selfs)
show("search=main")
assert matched().startswith(f"{larger:,.0f} samples"), matched()
press("d")
assert "compare=old" in browser.value("location.hash") and is_hidden("changes") and not is_hidden("kinds")
assert matched().startswith(f"{totals[0]:,} samples"), matched()
press("d")
assert "compare=new" in browser.value("location.hash") and matched().startswith(f"{totals[1]:,} samples")
press("d")
assert "compare" not in browser.value("location.hash") and not is_hidden("changes")

# The table has both values, and the largest change first.
show("view=table")
shown = {name: (change, old.split()[0], new.split()[0]) for name, change, old, new in rows()}
by_change = []
for name, (change, old, new) in shown.items():
    assert (int(old.replace(",", "")), int(new.replace(",", ""))) == (old_selfs.get(name, 0), new_selfs.get(name, 0)), name
    expected = 100 * (new_selfs.get(name, 0) / totals[1] - old_selfs.get(name, 0) / totals[0])
    assert abs(float(change.lstrip("▲▼ ").replace("−", "-").rstrip(" %")) - expected) < 0.006, (name, change, expected)
    by_change.append(abs(expected))
assert len(shown) > 3 and by_change == sorted(by_change, reverse=True), shown
save("table")
# A function changed here if it did in the report.
for options in (["--normalize", "none"], ["--normalize", "parse"], []):
    report = subprocess.run([sys.argv[1], "report", INPUTS / "new.pb", "--baseline", INPUTS / "old.pb", "--format", "json", *options],
                            capture_output=True, check=True)
    marks = {one["name"]: "▲" if one["change"] in ("grew", "appeared") else "▼" for one in json.loads(report.stdout)["functions"]}
    stacks(INPUTS / "new.pb", INPUTS / "old.pb", "-o", page, *options)
    show("view=table")
    changed = {name: change[0] for name, change, *_ in rows() if change[0] in "▲▼"}
    assert changed == marks and 0 < len(marks) < len(shown), (options, changed, marks)
press("s")
assert "view=sandwich" in browser.value("location.hash") and text_of("change")
save("sandwich")

# The tooltip of the third leaf below all, process, thread and main: render and parse are wider.
show()
left, top, width = browser.value("""(({left, top, width}) => [left, top, width])
    (document.querySelector("#flame canvas").getBoundingClientRect())""")
wider = max(old_selfs["render"] * scale, new_selfs["render"]) + max(old_selfs["parse"] * scale, new_selfs["parse"])
browser.mouse(left + width * (wider + new_selfs["cache"] / 2) / larger, top + 4 * 21 + 10)
assert text_of("name") == "cache"
tip = browser.value('document.getElementById("tip").lastChild.textContent')
assert tip.startswith("old 0, ") and "▲ +" in tip, tip

for dark in (False, True):
    for width in (1280, 390):
        browser.size(width, 800, dark=dark)
        show()
        assert min(colours()) > 200, (dark, width, colours())
        assert browser.value("document.documentElement.scrollWidth <= innerWidth"), width
        assert browser.value("[...document.querySelectorAll('.one')].every((part) => !part.checkVisibility())")
        save(f"difference-{width}-{'dark' if dark else 'light'}")

show("view=table")
save("table-390")

# Names of a hostile recording stay text. pprof holds them unchanged.
hostile = pathlib.Path(scratch.name) / "hostile.pb"
name = b"</script><script>document.title='broken'</script>\xe2\x80\xa8\xff"
original = (INPUTS / "old.pb").read_bytes()
text = b"\x32\x05parse"
assert original.count(text) == 1
hostile.write_bytes(original.replace(text, b"\x32" + bytes([len(name)]) + name))
stacks(hostile, INPUTS / "old.pb", "-o", page)
show("view=table")
assert browser.value("document.title") != "broken"
assert any(row[0].startswith("</script><script>") for row in rows()), rows()
assert browser.said == [], browser.said
browser.close()
print(f"the page shows a change from {totals[0]} to {totals[1]} samples")
