"""The flame graph page in headless Chromium: it loads without a word on the console, its numbers are those of the
data, and its address searches, zooms, turns and filters. flame_page.py WRITE_STACKS"""
import html
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
browser = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
if browser is None:
    print("skipped: there is no Chromium")
    sys.exit(77)

scratch = tempfile.TemporaryDirectory()
page = pathlib.Path(scratch.name) / "page.html"


def look(address, size="1280,800"):
    """The page's document after its script ran."""
    run = subprocess.run(
        [browser, "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--enable-logging=stderr",
         f"--user-data-dir={scratch.name}/browser", f"--window-size={size}", "--virtual-time-budget=3000",
         "--dump-dom", f"file://{page}#{address}"], capture_output=True, text=True, timeout=120)
    if not run.stdout.strip():
        print(f"skipped: {browser} does not run here")
        sys.exit(77)
    said = [line for line in run.stderr.splitlines() if "CONSOLE" in line]
    assert not said, said
    return run.stdout


def text_of(document, id):
    return html.unescape(re.sub("<[^>]*>", "", re.search(rf'<(\w+)[^>]* id="{id}"[^>]*>(.*?)</\1>', document, re.S)[2]))


def numbers(document):
    return {id: text_of(document, id) for id in ("name", "total", "self", "share", "of-parent", "matched", "kind")}


def share(part, whole):
    return f"{100 * part / whole:.2f} %" if part != whole else "100 %"


text = (ROOT / "tests/wild/stacks/node-jitdump.txt").read_text()
page.write_bytes(subprocess.run([sys.argv[1], "html"], input=text.encode(), capture_output=True, check=True).stdout)
blocks = [block for block in text.split("\n\n") if block.strip()]
whole = len(blocks)
having = lambda *words: sum(any(word.lower() in block.lower() for word in words) for block in blocks)

plain = look("")
assert numbers(plain) == {"name": "all", "total": str(whole), "self": "0", "share": "100 %", "of-parent": "100 %",
                          "matched": "", "kind": ""}
assert re.search(r'<dt>Samples</dt><dd>%d</dd>' % whole, plain)
assert "<canvas" in plain and re.search(r'<canvas [^>]*width="\d{3,}"', plain)

# A search counts samples once, however often they have the name.
for word in ("sieve", "v8::internal::", "SIEVE", "no such function"):
    found = having(f" {word}") if "::" in word else having(word)
    assert text_of(look(f"search={word.replace(' ', '+')}"), "matched") == f"{found} samples, {share(found, whole)}", word

# Zoomed into each thread, and into a function: of what is above it, and of all.
zoomed = numbers(look("zoom=1"))
assert zoomed["name"].startswith("node (pid ") and zoomed["total"] == str(whole)
main = numbers(look("zoom=3&group=all"))
assert int(main["total"]) <= whole and main["share"] == share(int(main["total"]), whole) and main["kind"]
assert 'id="out" type="button" disabled' in plain and 'id="out" type="button" disabled' not in look("zoom=3")
assert numbers(look("zoom=99999999"))["name"] == "all"

# Leaf first: what stands below the root are leaves.
leaf = numbers(look("order=inverted&group=all&zoom=1"))
leaves = [re.match(r"\t *\w+ (.*?)(?:\+0x\w+)? \(", block.split("\n")[1])[1] for block in blocks if "\n" in block]
assert int(leaf["total"]) == leaves.count(leaf["name"]), leaf

# Kinds pick out; every shape and size draws.
kernel = look("only=kernel")
assert re.search(r'<button[^>]*value="kernel"[^>]*aria-pressed="true"', kernel)
assert text_of(kernel, "matched").split()[0] == str(having("([kernel."))
for address, size in (("shape=flame&group=processes", "390,844"), ("order=inverted&search=a", "800,600")):
    assert numbers(look(address, size))["total"] == str(whole)
assert numbers(look("shape=cube&only=nothing&zoom=-1&search=%00%3Cb%3E"))["total"] == str(whole)

# Names that would be code are text.
evil = "</script><script>console.error(1)</script><img src=x onerror=console.error(2)>"
page.write_bytes(subprocess.run(
    [sys.argv[1], "html"], check=True, capture_output=True,
    input=f"a{evil}  1/1    1.000000000:  1 cpu-clock: \n\t 10 {evil}+0x1 (/bin/x)\n\n".encode()).stdout)
hostile = look("zoom=3")
assert text_of(hostile, "name") == evil and "<img" not in hostile
print(f"{browser} shows {whole} samples")
