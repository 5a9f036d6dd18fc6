#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Groups sources that can be compiled as one file: unity_groups.py [--size N] [-I DIR]... SOURCE...

Prints a line for each source, in the given order: "SOURCE GROUP". CMake calls it; see cmake/unity.cmake.

In one compilation, the names in a file's anonymous namespaces, its static functions and its constants,
types, aliases and macros are visible in the files after it. A file is not put after another one if a name
that the other one declares for itself occurs in it, or in a header that only it includes, unless the name
is qualified or that of a member. Thus each name means in a group what it means in its own file.
Neighbours come first because they include the same headers.
"""
import argparse
import functools
import pathlib
import re

TOKEN = re.compile(
    r"//[^\n]*|/\*.*?\*/"
    r'|(?:u8|[uUL])?R"(?P<mark>[^(\s]{0,16})\(.*?\)(?P=mark)"'
    r'|(?:u8|[uUL])?"(?:\\.|[^"\\\n])*"'
    r"|(?:u8|[uUL])?'(?:\\.|[^'\\\n])+'"
    r"|^[ \t]*\#(?P<directive>(?:\\\n|[^\n])*)"
    r"|(?P<name>[A-Za-z_]\w*)"
    r"|\d(?:[\w.]|'\w|(?<=[eEpP])[+-])*"
    r"|(?P<sign>->|::|\[\[|[^\s\w])", re.S | re.M)
INCLUDE = re.compile(r'\s*include\s*"([^"]+)"')
DEFINE = re.compile(r"\s*define\s+(\w+)")
OPENING = {"(": ")", "[": "]", "{": "}", "[[": "]"}
TYPE_KEYS = {"struct", "class", "union", "enum"}
SKIPPED = {"static", "inline", "constexpr", "constinit", "consteval", "const", "extern", "thread_local",
           "volatile", "unsigned", "signed", "typename", "mutable", "explicit", "virtual", "register"}
WITH_ARGUMENTS = {"static_assert", "alignas", "decltype", "noexcept", "__attribute__", "requires", "explicit"}


def tokens_of(text):
    """(tokens without comments, literals and directives; included files; macros)."""
    tokens, includes, macros = [], [], set()
    for match in TOKEN.finditer(text):
        kind = match.lastgroup
        if kind in ("name", "sign"):
            tokens.append(match[0])
        elif kind == "directive":
            included, defined = INCLUDE.match(match[kind]), DEFINE.match(match[kind])
            if included:
                includes.append(included[1])
            if defined:
                macros.add(defined[1])
                tokens += [*re.findall(r"[A-Za-z_]\w*", match[kind])[1:], ";"]
        elif match[0][0] != "/":
            tokens.append('""')  # a literal
    return tokens, includes, macros


def is_name(token):
    return token[0].isalpha() or token[0] == "_"


def after_brackets(tokens, at):
    """The position after the bracket that closes the one at `at`."""
    depth = 0
    while at < len(tokens):
        if tokens[at] in OPENING:
            depth += 2 if tokens[at] == "[[" else 1
        elif tokens[at] in ")]}":
            depth -= 1
            if depth == 0:
                return at + 1
        at += 1
    return at


def after_angles(tokens, at):
    depth = 0
    while at < len(tokens):
        token = tokens[at]
        if token in OPENING:
            at = after_brackets(tokens, at)
            continue
        depth += (token == "<") - (token == ">")
        at += 1
        if depth == 0:
            return at
    return at


class Declarations:
    """The names that a file declares at namespace scope for itself alone."""

    def __init__(self, tokens):
        self.tokens = tokens
        self.names = set()
        self.aliases = {}  # name: the words of its declaration, and whether that is in an anonymous namespace
        self.directives = set()  # of `using namespace`
        self.scope(0, False)

    def scope(self, at, unnamed):
        while at < len(self.tokens):
            token = self.tokens[at]
            if token == "}":
                return at + 1
            if token == ";":
                at += 1
            elif token == "namespace" or self.tokens[at:at + 2] == ["inline", "namespace"]:
                at = self.namespace(at + (token == "inline") + 1, unnamed)
            elif token == "extern" and self.tokens[at + 1:at + 3] == ['""', "{"]:
                at = self.scope(at + 3, unnamed)
            elif token == "using":
                at = self.using(at + 1, unnamed)
            else:
                at = self.declaration(at, unnamed)
        return at

    def namespace(self, at, unnamed):
        begin = at
        while self.tokens[at] not in ("{", "=", ";"):
            at += 1
        if self.tokens[at] == "{":
            return self.scope(at + 1, unnamed or at == begin)
        self.names.add(self.tokens[begin])
        return self.tokens.index(";", at)

    def using(self, at, unnamed):
        end = self.tokens.index(";", at)
        words = self.tokens[at:end]
        if words[0] in ("namespace", "enum"):
            if not words[-1].endswith("_literals"):
                self.directives.add(words[-1])
        else:
            self.aliases[words[0] if "=" in words else words[-1]] = words, unnamed
        return end

    def declaration(self, at, unnamed):
        """Up to the `;`, or the end of a function's body."""
        tokens, own, kind, name, constant = self.tokens, unnamed, None, None, False
        while at < len(tokens) and tokens[at] == "template":
            at = after_angles(tokens, at + 1)
        while at < len(tokens):
            token = tokens[at]
            if token == ";":
                self.found(name, own or constant)
                return at + 1
            if token in TYPE_KEYS and kind is None:
                kind = token
                while tokens[at + 1] in TYPE_KEYS:
                    kind = "enum class"
                    at += 1
                at += 1
            elif token in WITH_ARGUMENTS:
                at += 1
                if at < len(tokens) and tokens[at] == "(":
                    at = after_brackets(tokens, at)
            elif token == "operator":
                return self.end_of_function(at)
            elif token == "[[":
                at = after_brackets(tokens, at)
            elif token in SKIPPED:
                own = own or token == "static"
                if token in ("constexpr", "const"):
                    constant = constant or not {"inline", "extern"} & {*tokens[at - 1:at + 2]}
                at += 1
            elif token == "::":
                name = None  # a member's definition, or a qualified type before the name
                at += 1 if tokens[at + 1] == "operator" else 2
            elif token == "<":
                at = after_angles(tokens, at)
            elif token == "{" and kind:  # the body of a type
                self.found(name, True)
                if kind == "enum":
                    self.enumerators(at)
                at, kind, name = after_brackets(tokens, at), "", None
            elif token == ":" and kind:  # a base, or an enumeration's type
                while tokens[at] not in ("{", ";"):
                    at = after_angles(tokens, at) if tokens[at] == "<" else at + 1
            elif token == "(":
                if tokens[at + 1] in "*&" and tokens[at + 3] == ")":
                    name = tokens[at + 2]  # a pointer to functions or arrays
                self.found(name, own)
                return self.end_of_function(at)
            elif token in ("=", "{", "["):
                self.found(name, own or constant)
                name = None
                at = after_brackets(tokens, at) if token != "=" else self.after_value(at)
            else:
                if is_name(token):
                    name = token
                at += 1
        return at

    def after_value(self, at):
        while self.tokens[at] not in (";", ","):
            at = after_brackets(self.tokens, at) if self.tokens[at] in OPENING else at + 1
        return at

    def end_of_function(self, at):
        """After the parameters: the body, or `;`. Initializers of members may have braces."""
        tokens = self.tokens
        while at < len(tokens) and tokens[at] != ";":
            if tokens[at] == "{":
                at = after_brackets(tokens, at)
                if at >= len(tokens) or tokens[at] not in (",", "{"):
                    return at
            else:
                at = after_brackets(tokens, at) if tokens[at] in OPENING else at + 1
        return at + 1

    def enumerators(self, at):
        end = after_brackets(self.tokens, at) - 1
        at += 1
        while at < end:
            self.names.add(self.tokens[at])
            while at < end and self.tokens[at] != ",":
                at = after_brackets(self.tokens, at) if self.tokens[at] in OPENING else at + 1
            at += 1

    def found(self, name, own):
        if name and own and is_name(name):
            self.names.add(name)


class File:
    def __init__(self, path):
        tokens, self.includes, macros = tokens_of(path.read_text())
        declared = Declarations(tokens)
        self.own = declared.names | declared.aliases.keys() | macros
        self.aliases = declared.aliases
        self.directives = declared.directives
        self.used = {token for before, token in zip([""] + tokens, tokens)
                     if is_name(token) and before not in (".", "->", "::")}


class Sources:
    def __init__(self, folders):
        self.folders = folders
        self.files = {}

    def file(self, path):
        if path not in self.files:
            self.files[path] = File(path)
        return self.files[path]

    @functools.cache
    def headers(self, path):
        """All headers of the project that the file includes."""
        found, todo = set(), [path]
        while todo:
            current = todo.pop()
            for name in self.file(current).includes:
                header = self.find(current.parent, name)
                if header and header not in found:
                    found.add(header)
                    todo.append(header)
        return found

    @functools.cache
    def find(self, parent, name):
        return next((folder / name for folder in (parent, *self.folders) if (folder / name).is_file()), None)

    @functools.cache
    def wrong_headers(self, path):
        """Headers that may mean something else after this file."""
        own = self.file(path).own
        return {header for header in self.files if header not in self.headers(path) and own & self.file(header).used}

    def may_follow(self, later, earlier):
        """Whether no name that `earlier` declares for itself occurs in the other file or its headers."""
        first, second = self.file(earlier), self.file(later)
        # The same alias may be declared again.
        same = {name for name, declared in first.aliases.items() if second.aliases.get(name) == declared}
        return (first.directives <= second.directives and not (first.own - same) & second.used
                and not self.wrong_headers(earlier) & self.headers(later))


def groups(sources, paths, size):
    """Greedily, in order: the first group that has room and no conflict."""
    for path in paths:
        sources.headers(path)
    found = []
    for path in paths:
        for group in found:
            if len(group) < size and all(sources.may_follow(path, other) for other in group):
                group.append(path)
                break
        else:
            found.append([path])
    return found


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--size", type=int, default=8)
    parser.add_argument("-I", dest="folders", action="append", default=[], type=pathlib.Path)
    parser.add_argument("sources", nargs="+", type=pathlib.Path)
    arguments = parser.parse_args()
    sources = Sources(arguments.folders)
    for number, group in enumerate(groups(sources, arguments.sources, arguments.size)):
        for path in group:
            print(path, number)


if __name__ == "__main__":
    main()
