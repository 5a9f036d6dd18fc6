# SPDX-License-Identifier: MIT
"""One-line changes of C++ code that tests should notice. Used by mutants.py.

The code must be formatted by clang-format: binary operators have a space on both sides, but the
brackets of templates and the `&&` of references do not.
"""
import re
from typing import NamedTuple

NOT_CODE = re.compile(
    r"//[^\n]*|/\*.*?\*/|^[ \t]*\#(?:[^\n\\]|\\.)*"  # comments and preprocessor lines
    r'|R"(?P<d>[^()\s]*)\(.*?\)(?P=d)"|"(?:[^"\\\n]|\\.)*"', re.S | re.M)
NUMBER = re.compile(r"(?<![\w.'])(0x[0-9a-fA-F']+|\d[\d']*)([uUlLzZ]*)(?![\w.'])")
LETTER = re.compile(r"(?<![\w'])'([A-Za-z0-9])'")
OPERATORS = {"<": "<=", "<=": "<", ">": ">=", ">=": ">", "==": "!=", "!=": "==", "&&": "||",
             "||": "&&", "+": "-", "-": "+", "+=": "-=", "-=": "+=", "&": "|", "|": "&", "|=": "&="}
OPERATOR = re.compile(r" (" + "|".join(map(re.escape, sorted(OPERATORS, key=len, reverse=True)))
                      + r")(?= )")
WORDS = {"true": "false", "false": "true", "min": "max", "max": "min",
         "lower_bound": "upper_bound", "upper_bound": "lower_bound"}
WORD = re.compile(r"(?<!\w)(?:true|false|(?<=std::)(?:min|max|lower_bound|upper_bound))(?!\w)")
CONDITION = re.compile(r"\b(if|while) \(")
# An assignment to an existing variable, a call, an increment, or the end of a loop.
STATEMENT = re.compile(
    r"\s*(?:[\w.:\[\]*]+(?:->[\w.\[\]]+)* (?:[-+|&^]|<<|>>)?= [^;]*"
    r"|(?!return\b|throw\b|delete\b)[\w.:]+(?:->[\w.]+)*(?:<[\w:, ]+>)?\([^;]*\)"
    r"|(?:\+\+|--)[\w.>\[\]-]+|break|continue|return);\s*$")
RETURN = re.compile(r"\breturn ([^;]+);")
UNTOUCHED = re.compile(r"^\s*(?:static_assert|namespace|using|template|friend)\b")
NO_NUMBER = re.compile(r"\.reserve\(|\barray<|\balignas\(|\bget<")
PLAIN = {"{}", "0", "false", "true", "std::nullopt", "nullptr"}


class Mutant(NamedTuple):
    path: str
    line: int  # starting with 1
    before: str  # the complete line
    after: str

    def change(self):
        return f"{self.path}\n- {self.before.strip()}\n+ {self.after.strip()}\n"


def blank(match):
    """Replaces everything that is not code by spaces. Strings keep their quotes, so that they
    remain operands."""
    text = match[0]
    if text[0] == '"':
        return '"' + " " * (len(text) - 2) + '"'
    return re.sub(r"[^\n]", " ", text)


def closing(text, opening):
    """The position of the bracket that closes the one at `opening` on this line, or -1."""
    depth = 0
    for at in range(opening, len(text)):
        depth += (text[at] in "([{") - (text[at] in ")]}")
        if depth == 0:
            return at
    return -1


def numbers(code):
    for match in NUMBER.finditer(code):
        digits = match[1].replace("'", "")
        value = int(digits, 0 if digits.startswith("0x") else 10)
        for other in (value + 1, value - 1):
            if other >= 0:
                shown = hex(other) if digits.startswith("0x") else str(other)
                yield match.start(), match.end(), shown + match[2]


def conditions(code):
    """(begin, end, text around the condition, the condition)."""
    for match in CONDITION.finditer(code):
        begin = match.end()
        end = closing(code, begin - 1)
        if end < 0:
            continue
        begin = max(begin, code.rfind("; ", begin, end) + 2)
        condition = code[begin:end]
        if re.search(r"[^=!<>]=(?!=)", condition):  # a declaration
            continue
        if "&&" in condition or "||" in condition or not re.search("[!=]=", condition):
            yield begin, end, f"!({condition})", condition
        if match[1] == "if":
            yield begin, end, f"false && ({condition})", condition


def edits(code):
    """(begin, end, replacement) of changes within a line."""
    if UNTOUCHED.match(code):
        return
    for match in OPERATOR.finditer(code):
        yield match.start(1), match.end(1), OPERATORS[match[1]]
    for match in WORD.finditer(code):
        yield match.start(), match.end(), WORDS[match[0]]
    for match in LETTER.finditer(code):
        other = chr(ord(match[1]) + (-1 if match[1] in "zZ9" else 1))
        yield match.start(1), match.end(1), other
    if not NO_NUMBER.search(code):
        yield from numbers(code)
    for match in RETURN.finditer(code):
        if match[1] not in PLAIN and not NUMBER.fullmatch(match[1]):
            yield match.start(1), match.end(1), "{}"
    for match in re.finditer(r"(?<=[( ])!(?=[\w(])", code):
        yield match.start(), match.end(), ""


def mutants(path, text):
    """All changes of this file, in the order of its lines."""
    code = NOT_CODE.sub(blank, text).split("\n")
    lines = text.split("\n")
    ends_statement = True
    for number, (line, bare) in enumerate(zip(lines, code), 1):
        for begin, end, new in edits(bare):
            yield Mutant(path, number, line, line[:begin] + new + line[end:])
        for begin, end, new, condition in conditions(bare):
            kept = new.replace(condition, line[begin:end], 1)
            yield Mutant(path, number, line, line[:begin] + kept + line[end:])
        whole = bare.count("(") == bare.count(")") and bare.count("{") == bare.count("}")
        if ends_statement and whole and STATEMENT.match(bare) and not UNTOUCHED.match(bare):
            indent = line[:len(line) - len(line.lstrip())]
            yield Mutant(path, number, line, indent + ";")
        if bare.strip():
            ends_statement = bare.rstrip()[-1] in ";{}:"
