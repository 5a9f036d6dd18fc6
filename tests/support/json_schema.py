# SPDX-License-Identifier: MIT
"""The part of JSON Schema that docs/schema uses. A keyword that is not known here is an error."""
import functools
import json
import pathlib
import re

FOLDER = pathlib.Path(__file__).resolve().parent.parent.parent / "docs/schema"
TYPES = {"object": dict, "array": list, "string": str, "integer": int, "boolean": bool,
         "number": (int, float), "null": type(None)}
NOTES = {"$schema", "$defs", "title", "description", "contentEncoding"}
CHECKED = {"type", "minItems", "required", "additionalProperties", "minimum", "const", "anyOf", "$ref", "pattern",
           "properties", "items", "enum"}


@functools.cache
def load(name):
    """docs/schema/NAME.json"""
    return json.loads((FOLDER / f"{name}.json").read_text())


def fits(value, schema, whole, path):
    try:
        check(value, schema, whole, path)
    except ValueError:
        return False
    return True


def is_of(value, kind):
    return isinstance(value, TYPES[kind]) and not (isinstance(value, bool) and kind != "boolean")


def check(value, schema, whole, path="$"):
    """Raises ValueError if the value does not conform to the schema, which is a part of `whole`."""
    if unknown := set(schema) - NOTES - CHECKED:
        raise KeyError(f"json_schema.py does not know {unknown}")
    if "anyOf" in schema:
        if not any(fits(value, one, whole, path) for one in schema["anyOf"]):
            raise ValueError(f"{path}: fits none of {schema['anyOf']}")
    if "$ref" in schema:
        file, _, definition = schema["$ref"].partition("#/$defs/")
        other = load(file.removesuffix(".json")) if file else whole
        check(value, other["$defs"][definition], other, path)
    kinds = schema.get("type", [])
    kinds = [kinds] if isinstance(kinds, str) else kinds
    if kinds and not any(is_of(value, kind) for kind in kinds):
        raise ValueError(f"{path}: {value!r} is no {kinds}")
    if "const" in schema and value != schema["const"] or value not in schema.get("enum", [value]):
        raise ValueError(f"{path}: {value!r}")
    if isinstance(value, int) and value < schema.get("minimum", value):
        raise ValueError(f"{path}: {value} is too small")
    if isinstance(value, str) and not re.search(schema.get("pattern", ""), value):
        raise ValueError(f"{path}: {value!r} does not match")
    if isinstance(value, list):
        if len(value) < schema.get("minItems", 0):
            raise ValueError(f"{path}: {len(value)} items")
        for i, item in enumerate(value):
            check(item, schema.get("items", {}), whole, f"{path}[{i}]")
    if isinstance(value, dict):
        properties, others = schema.get("properties", {}), schema.get("additionalProperties", True)
        missing = set(schema.get("required", [])) - set(value)
        unknown = set(value) - set(properties) if others is False else set()
        if missing or unknown:
            raise ValueError(f"{path}: missing {missing}, unknown {unknown}")
        for key, item in value.items():
            check(item, properties.get(key, others if isinstance(others, dict) else {}), whole, f"{path}.{key}")
