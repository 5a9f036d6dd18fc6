"""Tests the flame graph page in headless Chromium: flame_page.py WRITE_STACKS

Uses mouse and keyboard. The page logs nothing to the console, its numbers match the data, and its
address contains its state.
"""
import collections
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "tests/support"))
from browser import Browser

program = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
if program is None:
    print("skipped: there is no Chromium")
    sys.exit(77)
signal.alarm(240)
scratch = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
page = pathlib.Path(scratch.name) / "page.html"
try:
    browser = Browser(program, f"{scratch.name}/browser")
except (EOFError, BrokenPipeError):
    print(f"skipped: {program} does not run here")
    sys.exit(77)


def write_page(text):
    page.write_bytes(subprocess.run([sys.argv[1], "html"], input=text, capture_output=True, check=True).stdout)


def show(address=""):
    browser.open("about:blank")
    browser.open(f"file://{page}#{address}")


def text_of(id):
    return browser.value(f'document.getElementById("{id}").textContent')


def is_at(*parts):
    return sorted(browser.value("location.hash").lstrip("#").split("&")) == sorted(parts or ("",))


def share(part, whole):
    return f"{100 * part / whole:.2f} %" if part != whole else "100 %"


text = (ROOT / "tests/wild/stacks/node-jitdump.txt").read_text()
write_page(text.encode())
blocks = [block for block in text.split("\n\n") if block.strip()]
whole = len(blocks)
having = lambda word: sum(word.lower() in block.lower() for block in blocks)
browser.size(1280, 800)

show()
assert [text_of(id) for id in ("name", "total", "self", "share", "of-parent", "matched", "kind")] == \
    ["all", str(whole), "0", "100 %", "100 %", "", ""]
assert browser.value('document.querySelector("#facts dd").textContent') == str(whole)
assert browser.value('document.getElementById("boxes").width') >= 1000
assert browser.value('document.documentElement.scrollWidth <= innerWidth')

# A typed search: a sample counts once even if several frames match. The address contains it.
browser.key("/", "/")
for letter in "sieve":
    browser.key(letter, letter)
assert text_of("matched") == f"{having('sieve')} samples, {share(having('sieve'), whole)}"
assert is_at("search=sieve")
for word in ("v8::internal::", "SIEVE", "no such function"):
    found = having(word)
    show(f"search={word.replace(' ', '+')}")
    assert text_of("matched") == f"{found} samples, {share(found, whole)}", word

# Mouse: hovering shows details, a click zooms in; Escape, the button and the history zoom out.
show("group=all")
top = browser.value('document.getElementById("graph").getBoundingClientRect().top')
browser.mouse(100, top + 21 * 1.5)
name, total = text_of("name"), int(text_of("total"))
roots = collections.Counter(re.match(r"\t *\w+ (.*?)(?:\+0x\w+)? \(", b.split("\n")[-1])[1] for b in blocks)
assert (name, total) == roots.most_common(1)[0], (name, total, roots)
assert text_of("share") == share(total, whole) and text_of("kind") == "native"
assert browser.value('!document.getElementById("tip").hidden')
browser.mouse(100, top + 21 * 1.5, click=True)
zoomed = browser.value("location.hash")
assert "zoom=" in zoomed and not browser.value('document.getElementById("out").disabled')
browser.key("Escape")
assert is_at("group=all") and browser.value('document.getElementById("out").disabled')
browser.value("history.back()")
assert browser.value("location.hash") == zoomed
browser.value('document.getElementById("out").click()')
assert is_at("group=all")

# Keyboard: arrow keys select boxes, Enter zooms in, Home zooms out.
browser.value('document.getElementById("boxes").focus()')
for key in ("ArrowDown", "ArrowDown"):
    browser.key(key)
assert text_of("name") == name
browser.key("ArrowRight")
assert int(text_of("total")) <= total and text_of("name") != "all"
browser.key("Enter")
assert browser.value("location.hash") not in ("", zoomed) and "zoom=" in browser.value("location.hash")
browser.key("Home")
assert is_at("group=all")

# Inverted order: the children of the root are leaf functions.
show("order=inverted&group=all&zoom=1")
leaves = [re.match(r"\t *\w+ (.*?)(?:\+0x\w+)? \(", block.split("\n")[1])[1] for block in blocks if "\n" in block]
assert int(text_of("total")) == leaves.count(text_of("name"))

# Filter by kind; shapes, dark mode and window sizes; invalid addresses.
show()
browser.value('document.querySelector(\'#kinds button[value="kernel"]\').click()')
assert text_of("matched").split()[0] == str(having("([kernel.")) and is_at("only=kernel")
for width, height, dark in ((390, 844, False), (1280, 800, True)):
    browser.size(width, height, dark)
    show("shape=flame&group=processes&search=a")
    assert text_of("total") == str(whole)
    assert browser.value("document.documentElement.scrollWidth <= innerWidth"), width
    assert browser.value('[".search", "#out", "#group", "#details dl"].every((one) => '
                         'document.querySelector(one).getBoundingClientRect().right <= innerWidth)'), width
browser.value('document.querySelector(\'input[value="icicle"]\').click()')
assert is_at("group=processes", "search=a")
show("shape=cube&only=nothing&zoom=-1&search=%00%3Cb%3E")
assert text_of("total") == str(whole)
show("zoom=99999999")
assert text_of("name") == "all"

# Names with markup are shown as text.
evil = "</script><script>console.error(1)</script><img src=x onerror=console.error(2)>"
write_page(f"a{evil}  1/1    1.000000000:  1 cpu-clock: \n\t 10 {evil}+0x1 (/bin/x)\n\n".encode())
show("zoom=3")
assert text_of("name") == evil and browser.value('document.querySelectorAll("img").length') == 0

# The source of a function, with the range of sampled lines.
for before, after in (('"files":[0', '"files":[1'), ('"first_lines":[0', '"first_lines":[12'), ('"last_lines":[0', '"last_lines":[40')):
    assert before in page.read_text()
    page.write_text(page.read_text().replace(before, after))
show("zoom=3")
assert text_of("place") == "/bin/x · /bin/x:12–40"

# A page without samples works.
write_page(b"")
show()
assert (text_of("name"), text_of("total")) == ("all", "0")

# 300 000 boxes, most of them too narrow to be seen.
write_page("".join(
    f"x  1/1    {i}.000000000:  1 cpu-clock: \n" + "".join(f"\t {d} f{i * 7919 % (d * d + 1)}+0x1 (/x)\n" for d in range(50, 0, -1)) + "\n"
    for i in range(1, 6001)).encode())
show("search=f1")
assert text_of("total") == "6,000" and text_of("matched")
assert browser.said == [], browser.said
browser.close()
print(f"{program} shows {whole} samples")
