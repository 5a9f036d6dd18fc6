# SPDX-License-Identifier: MIT
"""Text of outputs that are hard to compare by eye. run.py compares it with the section `decoded NAME`.

  NAME.pb    a pprof profile: all its contents, by the field numbers of profile.proto
  NAME.json  indented, one value per line
  NAME.html  the data of an HTML page of stacks, as JSON
"""
import json
import pathlib
import re
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
import pprof

VERSION = re.compile(r'("perfmap) \d+\.\d+\.\d+[^"]*"')


def without_version(text):
    """Hides the version, so that a release changes no golden case."""
    return VERSION.sub(r'\1 VERSION"', text)


def indented(value):
    """Like json.dumps() with indent, but lists of numbers are on one line."""
    def lines(value, indent):
        inner = indent + "  "
        if isinstance(value, dict) and value:
            items = [f"{inner}{json.dumps(key)}: {lines(one, inner)}" for key, one in value.items()]
            return "{\n" + ",\n".join(items) + f"\n{indent}}}"
        if isinstance(value, list) and any(isinstance(one, (dict, list, str)) for one in value):
            return "[\n" + ",\n".join(inner + lines(one, inner) for one in value) + f"\n{indent}]"
        return json.dumps(value, ensure_ascii=False)
    return lines(value, "") + "\n"


def page_data(text):
    """The JSON in the page's only script of type application/json."""
    found = re.findall(r'<script[^>]*type="application/json"[^>]*>(.*?)</script>', text, re.DOTALL)
    assert len(found) == 1, f"{len(found)} scripts of data"
    return found[0]


def text_of(name, data):
    suffix = name[name.rfind("."):]
    if suffix == ".pb":
        return pprof.text_of(data)
    text = data.decode()
    if suffix == ".html":
        text = page_data(text)
    else:
        assert suffix == ".json", f"no text for {name}"
    return without_version(indented(json.loads(text)))
