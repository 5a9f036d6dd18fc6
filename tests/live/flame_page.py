# SPDX-License-Identifier: MIT
"""Tests the flame graph page in headless Chromium: flame_page.py WRITE_STACKS

Uses mouse and keyboard. The numbers that the page shows are those of the text that it was made of,
its address contains its state, and it logs nothing to the console.
"""
import collections
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import time
import urllib.parse
import xml.dom.minidom

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "tests/support"))
from browser import browser_or_skip
from trying import require
from waiting import HANG

signal.alarm(850)
scratch = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
page = pathlib.Path(scratch.name) / "page.html"
browser = browser_or_skip(scratch.name)


def write_page(text, *options):
    page.write_bytes(subprocess.run([sys.argv[1], "html", *options], input=text, capture_output=True, check=True).stdout)


def show(address=""):
    browser.open("about:blank")
    browser.open(f"file://{page}#{address}")


def text_of(id):
    return browser.value(f'document.getElementById("{id}").textContent')


def texts(selector):
    return browser.value(f"[...document.querySelectorAll({selector!r})].map((one) => one.textContent)")


def click(selector):
    return browser.value(f"document.querySelector({selector!r}).click()")


def click_text(selector, text):
    """Clicks the first element whose text begins with `text`."""
    browser.value(f"[...document.querySelectorAll({selector!r})].find((one) => one.textContent.startsWith({text!r})).click()")


def frame_of(selector):
    return browser.value(f"(({{left, top, width, height, right, bottom}}) => [left, top, width, height, right, bottom])"
                         f"(document.querySelector({selector!r}).getBoundingClientRect())")


def name_of():
    """The whole name of the function of which details are shown."""
    return browser.value('document.getElementById("name").title')


def type_text(text):
    for letter in text:
        browser.key(letter, letter)


def is_at(*parts):
    """Whether the address has these parts. It follows the keys of a search with a delay."""
    end = time.monotonic() + HANG
    while sorted(browser.value("location.hash").lstrip("#").split("&")) != sorted(parts or ("",)):
        if time.monotonic() > end:
            return False
        time.sleep(0.05)
    return True


def share(part, whole):
    return f"{100 * part / whole:.2f} %" if part != whole else "100 %"


def wait_for(condition, seconds=HANG):
    """Until a JavaScript expression is true, such as that a worker has finished."""
    end = time.monotonic() + seconds
    while not browser.value(condition):
        require(time.monotonic() < end, (condition, text_of("matched")))
        time.sleep(0.02)


def matched():
    """What the page writes about a search, when it has finished."""
    wait_for('document.getElementById("matched").textContent !== "searching…"')
    return text_of("matched")


class Profile:
    """The samples of perf's text, the root first, and what views of them should show."""

    def __init__(self, text):
        self.text = text
        self.samples = []
        for block in filter(str.strip, text.split("\n\n")):
            header, *frames = block.strip("\n").split("\n")
            comm, pid, tid, when, event = re.match(r"(.*?) +(\d+)/(\d+) +([\d.]+): +\d+ +(.*): ", header).groups()
            parsed = [re.match(r"\t *\w+ (.*?)(?:\+0x\w+)? \(([^()]*)\)$", frame).groups() for frame in frames]
            self.samples.append({"thread": f"{comm} (tid {tid})", "time": float(when), "event": event,
                                 "names": [name for name, _ in parsed][::-1], "modules": [module for _, module in parsed][::-1]})
        self.start = min((sample["time"] for sample in self.samples), default=0)

    def having(self, matches, samples=None):
        return sum(any(matches(text) for text in sample["names"] + sample["modules"])
                   for sample in (self.samples if samples is None else samples))

    def table(self, samples=None):
        """(self, total) of each function name."""
        selfs, totals = collections.Counter(), collections.Counter()
        for sample in self.samples if samples is None else samples:
            if sample["names"]:
                selfs[sample["names"][-1]] += 1
            totals.update(set(sample["names"]))
        return {name: (selfs[name], total) for name, total in totals.items()}


def shown_table():
    rows = browser.value('[...document.querySelectorAll("#table tbody tr")].map((row) => [row.cells[2].textContent, '
                         '...[0, 1].map((i) => Number(row.cells[i].firstChild.textContent.replaceAll(",", "")))])')
    found = {}
    for name, own, total in rows:  # functions of one name in several modules
        found[name] = tuple(map(sum, zip(found.get(name, (0, 0)), (own, total))))
    return found


node = Profile((ROOT / "tests/wild/stacks/node-jitdump.txt").read_text())
write_page(node.text.encode())
whole = len(node.samples)
browser.size(1280, 800)

# The beginning: all samples, the program in the title, nothing wider than the window.
show()
assert [text_of(id) for id in ("name", "total", "self", "share", "of-parent", "matched", "kind")] == \
    ["all", str(whole), "0", "100 %", "100 %", "", ""]
assert browser.value('document.querySelector("#facts dd").textContent') == str(whole)
assert browser.value("document.title") == f"node – 1.99 s – {whole} samples", browser.value("document.title")
assert browser.value('document.querySelector("#flame canvas").width') >= 1000
assert browser.value("document.documentElement.scrollWidth <= innerWidth")
assert len(page.read_bytes()) < 250_000

# Search: a sample counts once even if several frames match. The address contains the text.
browser.key("/", "/")
type_text("sieve")
assert text_of("matched") == f"{node.having(lambda text: 'sieve' in text)} samples, " + \
    share(node.having(lambda text: "sieve" in text), whole)
assert is_at("search=sieve")
for word in ("v8::internal::", "SIEVE", "no such function"):
    found = node.having(lambda text: word.lower() in text.lower())
    show(f"search={word.replace(' ', '+')}")
    assert text_of("matched") == f"{found} samples, {share(found, whole)}", word

# Regular expressions, and the way from match to match with Enter.
show("group=all")
click("#regex")
browser.key("/", "/")
type_text(r"^JS:\*(sieve|fib) ")
found = node.having(lambda text: re.search(r"^JS:\*(sieve|fib) ", text))
assert matched() == f"{found} samples, {share(found, whole)}"
assert browser.value('document.getElementById("regex").getAttribute("aria-pressed")') == "true"
seen = []
for _ in range(3):
    browser.key("Enter", "\r")
    seen.append((name_of(), text_of("matched")))
assert all(re.match(r"JS:\*(sieve|fib) ", name) for name, _ in seen), seen
assert [matched.split(" of ")[0] for _, matched in seen] == ["1", "2", "3"] and len({m.split(" of ")[1].split(" ")[0] for _, m in seen}) == 1, seen
browser.key("Enter", "\r", shift=True)
assert text_of("matched").startswith("2 of ") and name_of() == seen[1][0]
browser.value("document.activeElement.blur()")
browser.key("n", "n")
assert text_of("matched").startswith("3 of ") and text_of("matched").endswith(f"{found} samples, {share(found, whole)}")

# Escape: in the search field, it clears the search and then leaves the field; outside, it leaves the
# zoom, then clears the search.
show("group=all&zoom=2&search=node&only=native")
browser.key("/", "/")
browser.key("Escape")
assert is_at("group=all", "zoom=2", "only=native") and browser.value("document.activeElement.id") == "search"
browser.key("Escape")
assert browser.value("document.activeElement.id") == ""
browser.key("Escape")
assert is_at("group=all", "only=native")
browser.key("Escape")
assert is_at("group=all")
show("regex=yes&search=%28")
assert matched() == "invalid regular expression"
assert "group" in browser.value('document.getElementById("matched").title')
for expression, word in ((r"v8\:\:internal", "v8::internal"), (r"node\-", "node-"), (r"}", "}"), (r"\p{Lu}8", "")):
    show(f"regex=yes&search={urllib.parse.quote(expression)}")
    found = node.having(lambda text: word in text) if word else node.having(lambda text: re.search("[a-zA-Z]8", text))
    assert matched() == f"{found} samples, {share(found, whole)}", (expression, matched())

# An expression that would take for ever is stopped, also one of the address, and the page stays usable.
for expression in (r"(\w+\s?)+\(\)$", "(.*)*y%", "(?:.*.*.*.*.*.*.*)*x$%"):
    began = time.monotonic()
    show(f"group=all&regex=yes&search={urllib.parse.quote(expression)}")
    assert text_of("total") == str(whole) and time.monotonic() - began < 3
    assert matched() == "the expression takes too long", (expression, matched())
browser.reload()
assert matched() == "the expression takes too long"
browser.key("t", "t")
assert not browser.value('document.getElementById("table").hidden')
browser.value('(() => { const search = document.getElementById("search"); search.value = "^node::Start$"; search.dispatchEvent(new Event("input")); })()')
wait_for('document.getElementById("matched").textContent.endsWith("%")')
assert set(shown_table()) == {"node::Start"}, shown_table()

# A browser without workers runs expressions that cannot take long.
without_workers = browser.call("Page.addScriptToEvaluateOnNewDocument", source="delete globalThis.Worker")["identifier"]
show("regex=yes&search=%5EJS:.sieve%7C%5EJS:.fib")
found = node.having(lambda text: re.search("^JS:.(sieve|fib)", text))
assert matched() == f"{found} samples, {share(found, whole)}"
show("regex=yes&search=(a%2B)%2B")
assert matched() == "no workers: only expressions without ( * + ? {"
browser.call("Page.removeScriptToEvaluateOnNewDocument", identifier=without_workers)

# Mouse: hovering shows details, a click zooms in; Escape shows all, and the history goes back.
show("group=all")
top = frame_of("#flame")[1]
browser.mouse(100, top + 21 * 1.5)
name, total = name_of(), int(text_of("total"))
roots = collections.Counter(sample["names"][0] for sample in node.samples)
assert (name, total) == roots.most_common(1)[0], (name, total, roots)
assert text_of("share") == share(total, whole) and text_of("kind") == "native"
assert browser.value('!document.getElementById("tip").hidden')
browser.mouse(100, top + 21 * 1.5, click=True)
zoomed = browser.value("location.hash")
assert "zoom=" in zoomed and texts("#path button") == ["all", name]
browser.mouse(100, frame_of("#flame")[1] + 21 * 4.5, click=True)
assert len(texts("#path button")) == 5 and texts("#path button")[1] == name
browser.key("Escape")
assert is_at("group=all") and texts("#path button") == ["all"]
browser.value("history.go(-2)")
wait_for(f"location.hash === {zoomed!r}")
click("#path button")
assert is_at("group=all")

# A click does not move the boxes under the pointer, although the zoomed chart is not as high.
browser.size(1280, 560)
for shape in ("icicle", "flame"):
    show(f"group=all&shape={shape}")
    browser.value(f'document.getElementById("flame").scrollTop += {"" if shape == "icicle" else "-"}100')
    _, top, _, height, _, _ = frame_of("#flame")
    for x, y in ((30, top + height / 2), (30, top + height / 2), (30, top + height / 3)):
        browser.mouse(x, y)
        under = (name_of(), text_of("total"))
        assert under[0] != "all", (shape, y)
        browser.mouse(x, y, click=True)
        wait_for('location.hash.includes("zoom=")')
        browser.mouse(x + 1, y)
        assert (name_of(), text_of("total")) == under, shape
    browser.key("Escape")
    wait_for('!location.hash.includes("zoom=")')
    browser.mouse(31, top + height / 3)
    assert name_of() == under[0], (shape, name_of(), under)
    # The distance to the root stays when the window changes, and when another function is chosen.
    show(f"group=all&shape={shape}")
    browser.size(1280, 900)
    time.sleep(0.2)
    _, top, _, height, _, bottom = frame_of("#flame")
    browser.mouse(300, top + 5 if shape == "icicle" else bottom - 5)
    assert name_of() == "all", (shape, name_of())
    browser.size(1280, 560)
browser.size(390, 844)
show("view=sandwich")
time.sleep(0.2)
left, _, _, _, _, bottom = frame_of("#callers")
browser.mouse(left + 30, bottom - 8)
assert name_of() == text_of("chosen")
browser.size(1280, 800)
show("group=all")
top = frame_of("#flame")[1]

# Keyboard: arrow keys select boxes, Enter zooms in, Home zooms out.
browser.value('document.querySelector("#flame canvas").focus()')
for key in ("ArrowDown", "ArrowDown"):
    browser.key(key)
assert name_of() == name
browser.key("ArrowRight")
assert int(text_of("total")) <= total and name_of() != "all"
browser.key("Enter")
assert browser.value("location.hash") not in ("", zoomed) and "zoom=" in browser.value("location.hash")
browser.key("Home")
assert is_at("group=all")

# Inverted order: the children of the root are leaf functions, and their samples are their own.
show("order=inverted&group=all&zoom=1")
leaves = [sample["names"][-1] for sample in node.samples if sample["names"]]
assert int(text_of("total")) == int(text_of("self")) == leaves.count(name_of())

# The table has the numbers of all functions; the search filters it, a head sorts it.
show()
browser.key("t", "t")
assert is_at("view=table")
expected = node.table()
assert shown_table() == expected, (shown_table(), expected)
assert [own for own, _ in shown_table().values()] == sorted((own for own, _ in expected.values()), reverse=True)
click('th[data-column="total"] button')
assert browser.value('document.querySelector("th[data-column=total]").ariaSort') == "descending" and is_at("view=table", "sort=total.down")
assert list(shown_table().values())[0][1] == max(total for _, total in expected.values())
click('th[data-column="name"] button')
names = [name.lower() for name in texts("#table tbody .name")]
assert names == sorted(names) and is_at("view=table", "sort=name.up")
show("view=table&search=js:")
assert set(shown_table()) == {name for name in expected if "js:" in name.lower()}
browser.key("n", "n")
assert texts("#table tr.selected .name") == texts("#table tbody .name")[:1] == [name_of()]
assert text_of("self") == str(expected[name_of()][0])

# The sandwich of a function: a click on its name opens it.
browser.value('[...document.querySelectorAll("#table .name")].find((one) => one.textContent.includes("*sieve")).click()')
assert text_of("chosen").startswith("JS:*sieve ")
chosen = text_of("chosen")
assert (int(text_of("self")), int(text_of("total"))) == expected[chosen]
callers = collections.Counter(sample["names"][sample["names"].index(chosen) - 1] for sample in node.samples if chosen in sample["names"])
left, _, _, _, _, bottom = frame_of("#callers")
browser.mouse(left + 30, bottom - 21 * 1.5)
assert (name_of(), int(text_of("total"))) == callers.most_common(1)[0]
show("view=sandwich")
assert expected[text_of("chosen")][0] == max(own for own, _ in expected.values())

# Its search goes from box to box; a zoomed box fills the chart, and Escape shows all again.
show("view=table&search=InterpreterEntryTrampoline")
click("#table .name")
browser.value('(() => { const search = document.getElementById("search"); search.value = "sieve"; search.dispatchEvent(new Event("input")); })()')
browser.key("n", "n")
assert "sieve" in name_of() and text_of("matched").startswith("1 of "), (name_of(), text_of("matched"))
found, of_found = name_of(), int(text_of("total"))
assert of_found < expected[text_of("chosen")][1]
browser.value('document.querySelector("#callees canvas").focus()')
browser.key("Enter", "\r")
assert (name_of(), int(text_of("total"))) == (found, of_found)


def boxes_at_the_right():
    _, top, _, height, right, _ = frame_of("#callees")
    found = set()
    for row in range(int(height / 21)):
        browser.mouse(right - 30, top + 21 * row + 8)
        found.add((name_of(), int(text_of("total"))))
    return found


assert (found, of_found) in boxes_at_the_right()
browser.value('document.activeElement.blur()')
browser.key("Escape")
assert (found, of_found) not in boxes_at_the_right()

# The zoom of a chart of the sandwich is in the address and in the history.
show(f"view=table&search={urllib.parse.quote(chosen)}")
click("#table .name")
without_zoom = browser.value("location.hash")
browser.value('document.querySelector("#callers canvas").focus()')
for key in ("ArrowUp", "ArrowUp", "Enter"):
    browser.key(key, "\r" if key == "Enter" else "")
caller, of_caller = name_of(), text_of("total")
assert "callers=" in browser.value("location.hash") and texts("#path button") == [chosen, caller], texts("#path button")
show(browser.value("location.hash").lstrip("#"))
assert texts("#path span") == ["Callers:"] and texts("#path button") == [chosen, caller]
click("#path button")
assert browser.value("location.hash") == without_zoom
browser.value("history.back()")
wait_for(f'location.hash !== {without_zoom!r} && document.querySelectorAll("#path button").length === 2')
assert texts("#path button") == [chosen, caller]

# The keys for views put the focus on the view. If the focused element goes, the view gets the focus.
def focused():
    return browser.value('document.activeElement.closest("#flame, #callers, #callees, tbody, tr.selected")?.id || document.activeElement.textContent')


show("group=all")
for key, element in (("f", "flame"), ("s", "callees"), ("t", max(expected, key=lambda name: expected[name][0]))):
    browser.key(key, key)
    assert focused() == element, (key, focused())
browser.key("ArrowDown")
second = focused()
assert second == texts("#table .name")[1] == name_of()
browser.key("Enter", "\r")
assert text_of("chosen") == second and focused() == "callees"
browser.value("history.back()")
wait_for('!document.getElementById("table").hidden')
assert focused() == second, focused()
show("group=all&step=focus.2")
browser.value('document.querySelector("#steps button").focus()')
browser.key("Enter", "\r")
assert texts("#steps button") == [] and focused() == "flame"

# The menu of a function, by keyboard and mouse: changes of the stacks, each with a button that
# undoes it.
def change(function, item, count=1, of="#menu"):
    show("group=all&view=table")
    browser.value(f'[...document.querySelectorAll("#table .name")].find((one) => one.textContent === {function!r}).focus()')
    assert name_of() == function
    browser.key("m", "m")
    items = texts(f"{of} button")
    at = [i for i, text in enumerate(items) if text == item][count - 1]
    for _ in range(at):
        browser.key("ArrowDown")
    assert browser.value("document.activeElement.textContent") == item
    browser.key("Enter", "\r")


workload = max((name for name in expected if name.startswith("JS:* ")), key=lambda name: expected[name][1])
inside = [sample for sample in node.samples if workload in sample["names"]]
change(workload, "Show only samples in it")
focused = [{**sample, "names": sample["names"][sample["names"].index(workload):]} for sample in inside]
assert shown_table() == node.table(focused)
assert len(texts("#steps button")) == 1 and texts("#steps button")[0].startswith(f"Only {workload[:40]}")
click("#steps button")
assert shown_table() == expected and texts("#steps button") == []
change(workload, "Hide samples in it")
assert shown_table() == node.table([sample for sample in node.samples if sample not in inside])
change(workload, "Merge it into its callers")
assert shown_table() == node.table([{**sample, "names": [n for n in sample["names"] if n != workload]} for sample in node.samples])


def collapsed(sample, name):
    if name not in sample["names"]:
        return sample
    first, last = sample["names"].index(name), len(sample["names"]) - 1 - sample["names"][::-1].index(name)
    return {**sample, "names": sample["names"][:first] + sample["names"][last:]}


recursive = "Builtin:InterpreterEntryTrampoline"
change(recursive, "Collapse its recursion")
after = [collapsed(sample, recursive) for sample in node.samples]
assert after != node.samples and shown_table() == node.table(after)

# The same of a module.
module = "/usr/bin/node"
change("node::Start", "Hide samples in it", 2)
assert shown_table() == node.table([sample for sample in node.samples if module not in sample["modules"]])
change("node::Start", "Merge it into its callers", 2)
assert shown_table() == node.table([
    {**sample, "names": [n for n, m in zip(sample["names"], sample["modules"]) if m != module]} for sample in node.samples])
change("node::Start", "Show only samples in it", 2)
assert shown_table() == node.table([
    {**sample, "names": sample["names"][sample["modules"].index(module):]} for sample in node.samples if module in sample["modules"]])
change("node::Start", "Collapse it into one box")
assert "node::Start" not in shown_table() and shown_table()["[node]"][1] == sum(module in sample["modules"] for sample in node.samples)
two_steps = browser.value("location.hash")
assert two_steps.count("step=collapse.") == 1

# A right click opens the menu of a box; Escape closes it.
show("group=all")
browser.mouse(100, top + 21 * 1.5, click=True, button="right")
assert not browser.value('document.getElementById("menu").hidden') and browser.value('document.querySelector("#menu p").title') == name
browser.key("Escape")
assert browser.value('document.getElementById("menu").hidden') and is_at("group=all")

# The time strip: a drag selects a range of times, in which samples are counted.
def samples_between(start, end):
    return [sample for sample in node.samples if start <= sample["time"] - node.start < end]


show("group=all")
left, strip_top, width, height, right, _ = frame_of("#slots")
browser.drag((left + width / 2, strip_top + 10), (right - 1, strip_top + 12))
start, end = map(float, browser.value("[document.getElementById('from').value, document.getElementById('to').value]"))
assert 0.8 < start < 1.1 and end > 1.98
# A slot has samples of 100 microseconds.
assert len(samples_between(start + 1e-4, end)) <= int(text_of("total")) <= len(samples_between(start - 1e-4, end)) < whole
assert "range=" in browser.value("location.hash") and text_of("clock").endswith(f"{node.start + end:.6f}")
browser.mouse(left + width / 4, strip_top + 10, click=True, button="right")
assert "range=" in browser.value("location.hash")
show("view=table&range=0.5-1.25")
assert shown_table() == node.table(samples_between(0.5, 1.25))
browser.key("Escape")
assert is_at("view=table") and shown_table() == expected
browser.value('(() => { const to = document.getElementById("to"); to.value = "0.3"; to.dispatchEvent(new Event("change")); })()')
assert shown_table() == node.table(samples_between(0, 0.3)) and is_at("view=table", "range=0-0.3")
click("#whole")
show("strip=heat&group=all")
left, strip_top, width, height, right, _ = frame_of("#slots")
browser.drag((left + 62, strip_top + 99), (left + 64, strip_top + 51))  # the first half of the first column of 0.1 s
start, end = map(float, browser.value("[document.getElementById('from').value, document.getElementById('to').value]"))
assert (start, end) == (0, 0.052), (start, end)
assert int(text_of("total")) == len(samples_between(0, 0.052))
browser.mouse(left + 62, strip_top + 50, click=True)
assert is_at("strip=heat", "group=all")

# The strip shows what is under the pointer, and the range while it is dragged.
show("group=all")
left, strip_top, width, height, right, _ = frame_of("#slots")
first = min(node.samples, key=lambda sample: sample["time"])
browser.mouse(left + 130.4, strip_top + 8)
tip = texts("#tip *")
assert tip[0] in ("0.000 s", "0.001 s") and first["thread"] in tip[1] and " · at most " in tip[1], tip
assert f"{sum(first['thread'] == sample['thread'] and sample['time'] - node.start < 1.99 / 1100 for sample in node.samples)} sample" in tip[1], tip
for kind, x in (("mousePressed", left + 400), ("mouseMoved", left + 700)):
    browser.call("Input.dispatchMouseEvent", type=kind, x=x, y=strip_top + 8, button="left", buttons=1, clickCount=1)
live = texts("#tip *")
assert re.fullmatch(r"0\.\d{3} s to 1\.\d{3} s", live[0]) and live[1].endswith(" ms"), live
assert abs(float(browser.value("document.getElementById('from').value")) - float(live[0].split()[0])) < 0.001 and is_at("group=all")
browser.call("Input.dispatchMouseEvent", type="mouseReleased", x=left + 700, y=strip_top + 8, button="left", clickCount=1)
assert "range=" in browser.value("location.hash")

# A click on a thread's name selects it, a second one all threads.
show()
by_thread = collections.Counter(sample["thread"] for sample in node.samples).most_common()
browser.mouse(left + 20, strip_top + 8)
assert texts("#tip *") == [by_thread[0][0], "Click to select this thread"]
browser.mouse(left + 20, strip_top + 8, click=True)
assert text_of("total") == str(by_thread[0][1]) and "thread=" in browser.value("location.hash")
left, strip_top, width, height, right, _ = frame_of("#slots")
browser.mouse(left + 20, strip_top + 8, click=True)
assert text_of("total") == str(whole) and is_at()

# The strip counts only samples that the steps leave.
def picture_of(canvas):
    return browser.value(f"document.querySelector({canvas!r}).toDataURL()")


pictures = set()
for step in ("", "step=focus.0", "step=hide.0"):
    show(f"group=all&{step}")
    pictures.add(picture_of("#slots"))
assert len(pictures) == 3

# Times that are not a range are refused with the reason.
for field, value, why in (("from", "50", "The recording ends at 1.98"), ("to", "-1", "is not before")):
    show("group=all")
    browser.value(f'(() => {{ const field = document.getElementById("{field}"); field.value = "{value}"; field.dispatchEvent(new Event("change")); }})()')
    assert why in text_of("note") and is_at("group=all"), text_of("note")

# Threads and kinds of code.
threads = collections.Counter(sample["thread"] for sample in node.samples)
assert texts("#thread option") == ["All threads", *(f"{name} – {share(number, whole)}" for name, number in threads.most_common())]
show("view=table")
browser.value('(() => { const thread = document.getElementById("thread"); thread.selectedIndex = 2; thread.dispatchEvent(new Event("change")); })()')
assert shown_table() == node.table([sample for sample in node.samples if sample["thread"] == threads.most_common()[1][0]])
show()
click('#kinds button[value="kernel"]')
assert text_of("matched").split()[0] == str(node.having(lambda text: text.startswith("[kernel."))) and is_at("only=kernel")

# Shapes, dark mode and window sizes.
for width, height, dark in ((390, 844, False), (1280, 800, True)):
    browser.size(width, height, dark)
    for view in ("flame", "table", "sandwich"):
        show(f"shape=flame&group=processes&search=a&view={view}")
        assert view == "sandwich" or int(text_of("total")) > 0
        assert browser.value("document.documentElement.scrollWidth <= innerWidth"), (width, view)
        for selector in (".search", "#details dl", "#details", "main", ".strip"):
            assert frame_of(selector)[4] <= width, (width, selector)
        assert frame_of("main")[3] >= 300, (width, view)

# In a small window, the chart has most of the room, and all else can be reached.
for width, height in ((1400, 500), (1366, 650), (1280, 720), (844, 390), (390, 844)):
    browser.size(width, height)
    show("zoom=4&step=focus.2&thread=2")
    assert frame_of("main")[3] >= 0.52 * height, (width, height, frame_of("main"))
    for selector in ("#fold", "#search", "#ask", "#details dl", "#actions", "#bar"):
        _, top, _, _, right, bottom = frame_of(selector)
        assert 0 <= top and bottom <= height and right <= width, (width, height, selector)
    assert text_of("fold").startswith("Options (") and frame_of("#options")[3] == 0
    click("#fold")
    assert frame_of("#options")[3] > 100 and browser.value('document.getElementById("fold").ariaExpanded') == "true"
    assert frame_of("#details")[5] <= height and frame_of("main")[3] >= 0.45 * height - 1
    browser.value('scrollTo(0, 10000)')
    assert frame_of("#flame")[5] <= frame_of("#bar")[1] + 1, (width, height)
browser.size(1280, 800)
show("shape=flame&group=processes&search=a")
click('input[value="icicle"]')
assert is_at("group=processes", "search=a")

# Help, the link, and the chart as a file.
browser.key("?", "?")
assert browser.value('document.getElementById("help").open') and "Search" in " ".join(texts("#keys td"))
browser.key("Escape")
assert not browser.value('document.getElementById("help").open')
browser.call("Browser.grantPermissions", permissions=["clipboardReadWrite", "clipboardSanitizedWrite"])
click("#link")
wait_for('document.getElementById("note").textContent !== ""')
assert text_of("note") == "Copied the link"
assert browser.value("navigator.clipboard.readText()") == browser.value("location.href")


def saved():
    browser.download_to(scratch.name)
    click("#save")
    files = []
    while not (files := [*pathlib.Path(scratch.name).glob("*.svg")]) or "</svg>" not in files[0].read_text():
        time.sleep(0.05)
    text = files[0].read_text()
    files[0].unlink()
    return xml.dom.minidom.parseString(text)


browser.size(1280, 800)
show("group=all")
picture = saved()
titles = [title.firstChild.data for title in picture.getElementsByTagName("title")]


def words_of(picture):
    return [text.firstChild.data for text in picture.getElementsByTagName("text")]


show("search=sieve&range=0-1.5&order=inverted")
of_search = saved()
assert [box.hasAttribute("fill-opacity") for box in of_search.getElementsByTagName("rect")].count(True) > 5
assert words_of(of_search)[1].startswith("times 0.000 s to 1.500 s · inverted: callees first · search: sieve ("), words_of(of_search)[:3]
show("view=sandwich")
halves = words_of(saved())
assert [text for text in halves if " of " in text and text.startswith("Calle")] == [f"{half} of {text_of('chosen')}" for half in ("Callers", "Callees")], halves
show("group=all")
assert all(re.fullmatch("#[0-9a-f]{6}", box.getAttribute("fill")) for box in picture.getElementsByTagName("rect"))
assert titles[0] == f"all: {whole} samples, 100 %" and f"{name}: {total} samples, {share(total, whole)}" in titles

click('input[value="table"]')
browser.value(f'[...document.querySelectorAll("#table .name")].find((one) => one.textContent === {workload!r}).focus()')
browser.key("m", "m")
click_text("#menu button", "Show only samples")  # the picture shows it, although the chart is not in sight
titles = [title.firstChild.data for title in saved().getElementsByTagName("title")]
assert titles[0].startswith(f"all: {len(inside)} samples") and titles[1].startswith(f"{workload}: {len(inside)} samples"), titles[:2]

# Addresses that do not belong to the page change nothing.
for address in ("shape=cube&only=nothing&zoom=-1&search=%00%3Cb%3E", "zoom=99999999", "view=__proto__&sort=constructor.up",
                "step=focus.-1&step=focus.999999999&step=__proto__.1&step=constructor.1&step=focus", "of=99999999&view=sandwich",
                "range=9-1", "range=0x1-0x5", "range=NaN-Infinity", "process=1e9&thread=-1&event=7", "tiers=merged&tiers=apart", "%%%&=&#"):
    show(address)
    assert browser.value("document.title").startswith("node – "), address
    if "view=" not in address:
        assert (name_of(), text_of("total")) == ("all", str(whole)), address

# Tiers of a function, apart and merged; several events and processes.
two = """app  1/1    1.000000000:  1 cpu-clock:\x20
\t 10 JS:~run a.js:1:1+0x1 (/tmp/perf-1.map)

app  1/1    1.500000000:  1 cpu-clock:\x20
\t 20 JS:*run a.js:1:1+0x1 (/tmp/perf-1.map)

other  2/2    2.000000000:  1 page-faults:\x20
\t 30 main+0x1 (/bin/other)

"""
write_page(two.encode())
show("view=table")
assert shown_table() == {"JS:~run a.js:1:1": (1, 1), "JS:*run a.js:1:1": (1, 1), "main": (1, 1)}
click('input[name="tiers"][value="merged"]')
assert shown_table() == {"run a.js:1:1": (2, 2), "main": (1, 1)}, shown_table()
show("view=table")
keys = {name: int(key) for name, key in browser.value('[...document.querySelectorAll("#table tbody tr")].map((row) => [row.cells[2].textContent, row.dataset.key])')}
show("view=table&tiers=merged")
keys |= {name: int(key) for name, key in browser.value('[...document.querySelectorAll("#table tbody tr")].map((row) => [row.cells[2].textContent, row.dataset.key])')}

# Steps, the sandwich and the search of a function mean the same function with tiers apart and merged.
apart, merged_name = "JS:*run a.js:1:1", "run a.js:1:1"
for tiers, function, samples in (("apart", apart, 1), ("merged", apart, 2), ("apart", merged_name, 2), ("merged", merged_name, 2)):
    shown = apart if (tiers, function) == ("apart", apart) else merged_name
    show(f"tiers={tiers}&step=focus.{keys[function]}")
    assert text_of("total") == str(samples) and texts("#steps button") == [f"Only {shown} ×"], (tiers, function)
    show(f"tiers={tiers}&step=hide.{keys[function]}")
    assert text_of("total") == str(3 - samples), (tiers, function)
    show(f"tiers={tiers}&view=sandwich&of={keys[function]}")
    assert [text_of(id) for id in ("chosen", "total", "self", "of-parent")] == [shown, str(samples), str(samples), "–"], (tiers, function)
    show(f"tiers={tiers}&search={urllib.parse.quote(function)}")
    assert matched().startswith(f"{samples} sample"), (tiers, function)
show("view=table&tiers=merged")
assert texts("#process option") == ["All processes", "app (pid 1) – 66.67 %", "other (pid 2) – 33.33 %"]
assert texts("#event option") == ["All events", "cpu-clock – 66.67 %", "page-faults – 33.33 %"]
browser.value('(() => { const event = document.getElementById("event"); event.value = "1"; event.dispatchEvent(new Event("change")); })()')
assert shown_table() == {"main": (1, 1)} and is_at("view=table", "tiers=merged", "event=1")

# The choices of thread and process replace each other, and a zoomed box without samples is left.
show("group=all&zoom=1")
assert name_of() != "all"
browser.value('(() => { const process = document.getElementById("process"); process.selectedIndex = 2; process.dispatchEvent(new Event("change")); })()')
assert (name_of(), text_of("total")) == ("all", "1") and "process=" in browser.value("location.hash")
write_page(two.replace("other  2/2", "app  1/2").encode())
show()
browser.value('(() => { const thread = document.getElementById("thread"); thread.selectedIndex = 2; thread.dispatchEvent(new Event("change")); })()')
assert text_of("total") == "1" and "thread=" in browser.value("location.hash")

# A lying clock: samples that are thirty years apart.
write_page(two.replace("2.000000000", "999999999.000000000").encode())
for strip in ("threads", "heat"):
    show(f"strip={strip}")
    assert text_of("total") == "3"
    left, strip_top, width, height, right, _ = frame_of("#slots")
    browser.drag((left + width / 3, strip_top + 9), (right - 1, strip_top + 1))
    assert text_of("total") == "1", strip

# Names, modules and threads with markup are shown as text in every view, and in the file.
evil = "</script><script>console.error(1)</script><img src=x onerror=console.error(2)>\"'&amp;"
write_page(f"a{evil}  1/1    1.000000000:  1 cpu-clock: \n\t 10 {evil}+0x1 (/bin/{evil.replace('(', '').replace(')', '')})\n\n".encode())
show("zoom=3")
assert name_of() == evil and evil in texts("#path button")[-1] + evil
for address in ("view=table", "view=sandwich", "step=focus.0&step=merge.1", f"search={evil.replace('&', '%26')}", "strip=heat"):
    show(address)
    assert browser.value('document.querySelectorAll("img").length') == 0 and len(browser.value("document.scripts.length") * "x") == 2, address
show("zoom=3")
browser.mouse(300, frame_of("#flame")[1] + 21 * 3.5, click=True, button="right")
assert browser.value('document.querySelector("#menu p").title') == evil and browser.value('document.querySelectorAll("img").length') == 0
assert any(evil in title.firstChild.data for title in saved().getElementsByTagName("title"))

# Long names are shortened in the middle, and all of a name is in titles and the tooltip.
long = "std::vector<" * 30
write_page("".join(f"x  1/1    {i}.000000000:  1 cpu-clock: \n\t 10 {long}::f{i % 3}+0x1 (/x)\n\t 20 main+0x1 (/x)\n\n" for i in range(1, 10)).encode())
show("zoom=4")
last = browser.value('document.querySelector("#name").textContent')[-1]
for selector in ("#name", "#path button:last-child"):
    shown = browser.value(f"document.querySelector({selector!r}).textContent")
    assert "…" in shown and shown.endswith(f"::f{last}") and browser.value(f"document.querySelector({selector!r}).title") == f"{long}::f{last}", shown
browser.mouse(300, frame_of("#flame")[1] + 21 * 4.5)
assert texts("#tip b") == [f"{long}::f{last}"]
for view, selector in (("view=table&sort=name.down", "#table .name"), ("view=sandwich", "#chosen")):
    show(view)
    end, right, room = browser.value(f"""(() => {{
        const end = document.querySelector("{selector} .end");
        return [end.textContent, end.getBoundingClientRect().right, document.querySelector("{selector}").parentElement.getBoundingClientRect().right];
    }})()""")
    assert re.search("::f[0-2]$", end) and right <= room, (view, end, right, room)
    assert browser.value(f'document.querySelector("{selector}").title').startswith(long)
show("step=focus.2")
assert "…" in texts("#steps button")[0] and re.search(r"::f\d ×$", texts("#steps button")[0]), texts("#steps button")
assert long in browser.value('document.querySelector("#steps button").title')
assert any("…" in word and re.search("::f[0-2]$", word) for word in words_of(saved())), words_of(saved())

# A name with many accents stays in its row. A recursion can be collapsed only if there is one.
write_page(("x  1/1    1.000000000:  1 cpu-clock: \n" + "".join(f"\t 10 {name}+0x1 (/x)\n" for name in ("e" + "\u0301" * 200, "main")) + "\n").encode())
show("group=all")
top = frame_of("#flame")[1]
row = f"""(() => {{
    const canvas = document.querySelector("#flame canvas"), bytes = canvas.getContext("2d").getImageData(0, 21 + 1, 60, 18).data;
    return String([...bytes]);
}})()"""
with_accents = browser.value(row)
write_page("x  1/1    1.000000000:  1 cpu-clock: \n\t 10 e+0x1 (/x)\n\t 10 main+0x1 (/x)\n\n".encode())
show("group=all")
assert browser.value(row) == with_accents
browser.mouse(300, top + 21 * 1.5, click=True, button="right")
assert "Collapse its recursion" not in texts("#menu button") and "Collapse it into one box" in texts("#menu button")
assert [browser.value(f'document.querySelectorAll("#menu [role=group]")[{i}].ariaLabel') for i in (0, 1)] == ["main", "Module [x]"]
write_page("x  1/1    1.000000000:  1 cpu-clock: \n\t 10 main+0x1 (/x)\n\t 10 main+0x1 (/x)\n\n".encode())
show("group=all")
browser.mouse(300, top + 21 * 1.5, click=True, button="right")
assert "Collapse its recursion" in texts("#menu button")

# All of many threads can be reached.
write_page("".join(f"x  1/{i % 100 + 1}    1.{i:09}:  1 cpu-clock: \n\t 10 main+0x1 (/x)\n\n" for i in range(300)).encode())
show()
left, strip_top, _, height, _, _ = frame_of("#slots")
assert height < 130
browser.mouse(left + 20, strip_top + 15 * 6 + 8)
assert texts("#tip b") == ["94 other threads"]
browser.mouse(left + 20, strip_top + 15 * 6 + 8, click=True)
assert frame_of("#slots")[3] > 100 * 15
browser.value('document.querySelector(".strip").scrollTop = 100 * 15')
_, strip_top, _, height, _, bottom = frame_of("#slots")
browser.mouse(left + 20, frame_of(".strip")[5] - 15 * 2 - 8, click=True)
assert text_of("total") == "3" and "thread=" in browser.value("location.hash")

# The source of a function, with the range of sampled lines.
write_page("x  1/1    1.000000000:  1 cpu-clock: \n\t 10 main+0x1 (/x)\n\n".encode())
for before, after in (('"files":[0', '"files":[1'), ('"first_lines":[0', '"first_lines":[12'), ('"last_lines":[0', '"last_lines":[40')):
    assert before in page.read_text()
    page.write_text(page.read_text().replace(before, after))
show("zoom=3")
assert text_of("place").endswith(":12–40")

# A profile with a unit of its own, such as ticks of a log, has no times.
page.write_text(page.read_text().replace('"has_times":true', '"has_times":false,"unit":"ticks"'))
show()
assert (browser.value("document.title"), text_of("unit")) == ("perf.data – 1 tick", "Ticks")
assert texts("#kinds button")[0].startswith("phase") and "Event" not in texts("#facts dt")
for control in ("group", "event", "process", "thread"):
    assert browser.value(f'document.getElementById("{control}").hidden'), control
assert browser.value('document.getElementById("time").hidden') and "Duration" not in texts("#facts dt")

# Neither has a recording whose samples have no times.
write_page(node.text.encode(), "no-times")
show("range=0-1&strip=heat")
assert browser.value("document.title") == f"node – {whole} samples" and text_of("total") == str(whole)
assert browser.value('document.getElementById("time").hidden') and "Duration" not in texts("#facts dt")

# A page or a selection without samples works, and no chart is black.
def is_black(canvas):
    """Whether all of a visible canvas is black, as a canvas that nothing was drawn to."""
    return browser.value(f"""(() => {{
        const canvas = document.querySelector({canvas!r});
        if (canvas.clientWidth === 0) return false;
        const bytes = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data;
        return bytes.every((byte, i) => byte === (i % 4 === 3 ? 255 : 0));
    }})()""")


for address in ("", "&range=100-200"):
    write_page(node.text.encode() if address else b"")
    for view, message in (("flame", "no-samples"), ("table", "no-rows"), ("sandwich", "chosen")):
        show(f"view={view}{address}")
        assert text_of("total") == "0"
        of_range = " in the selection: times 100.000 s to 200.000 s" if address else ""
        assert text_of(message) == f"There are no samples{of_range}.", (view, text_of(message))
        assert not any(is_black(f"#{chart} canvas") for chart in ("flame", "callers", "callees")), (view, address)

# 50 000 distinct stacks, most boxes too narrow to be seen. Each action takes less than a few seconds.
write_page("".join(
    f"x  1/1    {i // 1000}.{i % 1000:03}000000:  1 cpu-clock: \n" +
    "".join(f"\t {d:x} f{i % 50000 * 7919 % (d * d + 1) if d < 20 else i % 50000}+0x1 (/x)\n" for d in range(20, 0, -1)) + "\n"
    for i in range(1, 50001)).encode())
show("group=all")
assert browser.value('document.querySelector("#flame .room").clientHeight') > 21 * 3  # a row says what is left out
began = time.monotonic()
for address in ("search=f1&group=all", "view=table", "view=sandwich", "order=inverted", "range=1-2&step=collapse.5"):
    show(address)
    assert int(text_of("total").replace(",", "")) > 0, address
print(f"five views of 50 000 distinct stacks: {time.monotonic() - began:.1f} s")
require(time.monotonic() - began < 60, "five views of 50 000 distinct stacks are slow")
assert browser.said == [], browser.said
browser.close()
print(f"the page shows {whole} samples")
