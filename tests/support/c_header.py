# SPDX-License-Identifier: MIT
"""Reads the structs and functions that perfmap.h and perfmap_profile.h declare, so that tests can
compare bindings and tables with them. The headers are plain C in one style; what this does not
understand is an error."""
import pathlib
import re

INTEGERS = {"int": "i4", "int32_t": "i4", "uint32_t": "u4", "int64_t": "i8", "uint64_t": "u8",
            "size_t": "u8", "perfmap_status": "i4", "perfmap_state_start": "i4", "void": "v"}


CORE, PROFILE = ["perfmap_writer.h", "perfmap.h"], ["perfmap_profile.h"]


def text_of(include, names):
    text = "".join(pathlib.Path(include, name).read_text() for name in names)
    return re.sub(r"/\*.*?\*/", " ", text, flags=re.S)


def structs(text):
    """{struct: [(member, declaration)]} in the order of the header."""
    found = {}
    for name, body in re.findall(r"typedef struct (\w+) \{(.*?)\} \1;", text, re.S):
        members = []
        for declaration in filter(None, (part.strip() for part in body.split(";"))):
            declaration = " ".join(declaration.split())
            match = re.search(r"\(\*(\w+)\)\(|(\w+)(?:\[\d+\])?$", declaration)
            members.append((match[1] or match[2], declaration))
        found[name] = members
    assert found, "no struct found"
    return found


def kind(declaration):
    """'p' for a pointer, else 'i4', 'u8' and so on; 'v' for void."""
    if "*" in declaration:
        return "p"
    words = [word for word in re.findall(r"\w+", declaration) if word not in ("const", "unsigned")]
    if words[0] in INTEGERS:
        return INTEGERS[words[0]]
    return "p"  # a typedef of a pointer to a function


def functions(text):
    """{function: (kind of its result, [kinds of its parameters])}"""
    found = {}
    for result, name, rest in re.findall(r"PERFMAP_C_API ([^;(]*?)\b(perfmap_\w+)\((.*?)\);", text, re.S):
        depth, parameters, one = 0, [], ""
        for char in rest:
            depth += (char == "(") - (char == ")")
            if char == "," and depth == 0:
                parameters.append(one)
                one = ""
            else:
                one += char
        parameters.append(one)
        kinds = [kind(" ".join(parameter.split())) for parameter in parameters]
        found[name] = (kind(result), [] if kinds == ["v"] else kinds)
    assert found, "no function found"
    return found


def enumerators(text):
    """{enum: {enumerator without the part that all of them begin with: number}}"""
    found = {}
    for name, body in re.findall(r"typedef enum (\w+) \{(.*?)\} \1;", text, re.S):
        members = re.findall(r"(PERFMAP_\w+)\s*=\s*(\d+)", body)
        prefix = re.match(r"(?:\w+_)?", _common_prefix([member for member, _ in members]))[0]
        found[name] = {member[len(prefix):]: int(number) for member, number in members}
    assert found, "no enum found"
    return found


def _common_prefix(names):
    if len(names) == 1:
        return names[0].rpartition("_")[0] + "_"
    return names[0][:next(i for i, chars in enumerate(zip(*names)) if len(set(chars)) > 1)]
