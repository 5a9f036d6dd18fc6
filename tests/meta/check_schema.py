"""Real output of to-json fits docs/schema/perfmap.map-1.json, by the part of JSON Schema that the
schema uses; and the check itself refuses what does not fit."""
import json
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
SCHEMA = json.loads((ROOT / "docs/schema/perfmap.map-1.json").read_text())
TYPES = {"object": dict, "array": list, "string": str, "integer": int, "null": type(None)}


def check(value, schema, path="$"):
    if "$ref" in schema:
        schema = SCHEMA["$defs"][schema["$ref"].rsplit("/", 1)[1]]
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
            check(item, schema.get("items", {}), f"{path}[{i}]")
    if isinstance(value, dict):
        missing = set(schema.get("required", [])) - set(value)
        unknown = set(value) - set(schema.get("properties", value))
        if missing or unknown:
            raise ValueError(f"{path}: missing {missing}, unknown {unknown}")
        for key, item in value.items():
            check(item, schema.get("properties", {}).get(key, {}), f"{path}.{key}")


def refuses(value):
    try:
        check(value, SCHEMA)
    except ValueError:
        return True
    return False


count = 0
maps = [*sorted((ROOT / "tests/wild").glob("*/*.map")), ROOT / "tests/fuzz/corpus/map/odd"]
for path in maps:
    out = subprocess.run([sys.argv[1], "-q", "to-json", path], check=True, capture_output=True)
    document = json.loads(out.stdout)
    check(document, SCHEMA)
    count += len(document["entries"])
    assert document["entries"] and refuses({**document, "schema": "other"})
    assert refuses({**document, "entries": [{**document["entries"][0], "start": 4096}]})
print(f"{count} entries of {len(maps)} maps fit the schema")
