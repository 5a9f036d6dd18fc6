# SPDX-License-Identifier: MIT
"""perfmap-sys declares every function, struct and number of the headers, as they do:
rust_declarations.py CRATE INCLUDE. Offsets and sizes are compared by the crate's own test."""
import pathlib
import re
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
import c_header

crate, include = (pathlib.Path(path) for path in sys.argv[1:3])
KINDS = {"c_int": "i4", "i32": "i4", "perfmap_status": "i4", "u32": "u4", "u64": "u8", "usize": "u8",
         "perfmap_evaluator": "p", "perfmap_trampoline_entry": "p", "perfmap_create_process": "p",
         "perfmap_take_frame": "p",
         "perfmap_take_stack": "p",
         "perfmap_take_record": "p",
         "perfmap_open_module": "p"}


def kind(type_):
    type_ = type_.strip()
    if type_.startswith("["):
        return "["
    return "p" if type_.startswith(("*", "Option<")) else KINDS[type_]


def without_functions(text):
    """Types of functions have commas inside."""
    return re.sub(r'Option<\s*unsafe extern "C" fn\([^()]*\) -> [\w* ]+,?\s*>', "*function", text)


def functions(text):
    block = re.search(r'^extern "C" \{(.*?)^\}', text, re.S | re.M)[1]
    block = without_functions(block)
    return {name: (kind(result) if result else "v",
                   [kind(one.split(":", 1)[1]) for one in given.split(",") if one.strip()])
            for name, given, result in re.findall(r"pub fn (\w+)\((.*?)\)(?: -> ([^;]*?))?;", block, re.S)}


def structs(text):
    """{struct: [(member, kind)]}"""
    text = without_functions(text)
    return {name: [(member, kind(type_)) for member, type_ in re.findall(r"pub (?:r#)?(\w+): (.*?),\n", members)]
            for name, members in re.findall(r"pub struct (perfmap_\w+) \{(.*?\n)    \}", text, re.S)}


for headers, source in ((c_header.CORE, "src/lib.rs"), (c_header.PROFILE, "src/profile.rs")):
    text = c_header.text_of(include, headers)
    rust = (crate / source).read_text()
    expected, declared = c_header.functions(text), functions(rust)
    for name in sorted(set(expected) | set(declared)):
        assert expected.get(name) == declared.get(name), (name, expected.get(name), declared.get(name))
    members = {struct: [(name, "[" if declaration.endswith("]") else c_header.kind(declaration))
                        for name, declaration in rows] for struct, rows in c_header.structs(text).items()}
    assert structs(rust) == members, (structs(rust), members)
    numbers = dict(re.findall(r"\b(PERFMAP_\w+)\s*=\s*(\d+)", text))
    numbers.update(re.findall(r"#define (PERFMAP_\w+) (\d+)\b", text))
    here = dict(re.findall(r"pub const (PERFMAP_\w+): \w+ = (\d+);", rust))
    assert numbers == here, set(numbers.items()) ^ set(here.items())
    print(f"{source}: {len(declared)} functions, {len(members)} structs and {len(here)} numbers are those of {', '.join(headers)}")
