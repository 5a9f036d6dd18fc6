# SPDX-License-Identifier: MIT
"""The commands in the console blocks of a page, and the output that the page shows."""
import re

BLOCK = re.compile(r"(?s)```console\n(.*?)```")


def console_blocks(text):
    """(place of the block, its text, [(kind, line, output shown)]) of each; kind is $ for a
    command and # for a comment."""
    for block in BLOCK.finditer(text):
        parts = re.split(r"(?m)^([$#]) (.*)\n", block[1])[1:]
        yield block.start(), block[1], list(zip(parts[::3], parts[1::3], parts[2::3]))


def with_blocks(text, blocks):
    """The page with other texts in its console blocks."""
    fresh = iter(blocks)
    return BLOCK.sub(lambda _: f"```console\n{next(fresh)}```", text)
