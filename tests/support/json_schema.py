"""The part of JSON Schema that our schemas use."""
import re

TYPES = {"object": dict, "array": list, "string": str, "integer": int, "boolean": bool,
         "number": (int, float), "null": type(None)}


def fits(value, schema, whole, path):
    try:
        check(value, schema, whole, path)
    except ValueError:
        return False
    return True


def check(value, schema, whole, path="$"):
    if "anyOf" in schema:
        if not any(fits(value, one, whole, path) for one in schema["anyOf"]):
            raise ValueError(f"{path}: fits none of {schema['anyOf']}")
        return
    if "$ref" in schema:
        schema = whole["$defs"][schema["$ref"].rsplit("/", 1)[1]]
    kinds = schema.get("type", [])
    kinds = [kinds] if isinstance(kinds, str) else kinds
    if kinds and not any(isinstance(value, TYPES[k]) for k in kinds):
        raise ValueError(f"{path}: {value!r} is no {kinds}")
    if "const" in schema and value != schema["const"] or value not in schema.get("enum", [value]):
        raise ValueError(f"{path}: {value!r}")
    if isinstance(value, int) and value < schema.get("minimum", value):
        raise ValueError(f"{path}: {value} is too small")
    if isinstance(value, str) and not re.search(schema.get("pattern", ""), value):
        raise ValueError(f"{path}: {value!r} does not match")
    if isinstance(value, list):
        for i, item in enumerate(value):
            check(item, schema.get("items", {}), whole, f"{path}[{i}]")
    if isinstance(value, dict):
        missing = set(schema.get("required", [])) - set(value)
        unknown = set(value) - set(schema.get("properties", value))
        if missing or unknown:
            raise ValueError(f"{path}: missing {missing}, unknown {unknown}")
        for key, item in value.items():
            check(item, schema.get("properties", {}).get(key, {}), whole, f"{path}.{key}")
