# SPDX-License-Identifier: MIT
"""Reads OpenTelemetry's profiles by tests/schema/otlp-profiles.proto, with the standard library only."""
import json
import pathlib
import re

from pprof import varint

SCHEMA = pathlib.Path(__file__).resolve().parents[1] / "schema/otlp-profiles.proto"
FIELD = re.compile(r"(repeated )?(\w+) (\w+) = (\d+);")


def camel(name):
    first, *rest = name.split("_")
    return first + "".join(word.capitalize() for word in rest)


def read_schema():
    messages, fields = {}, None
    for line in SCHEMA.read_text().splitlines():
        if line.startswith("message "):
            fields = messages[line.split()[1]] = {}
        elif found := FIELD.fullmatch(line.strip()):
            repeated, kind, name, number = found.groups()
            fields[int(number)] = (camel(name), kind, bool(repeated))
    return messages


MESSAGES = read_schema()
TYPES = {name: {field: (kind, repeated) for field, kind, repeated in fields.values()} for name, fields in MESSAGES.items()}


def signed(value, kind):
    return value - (1 << 64) if kind in ("int32", "int64") and value >> 63 else value


def packed(data, kind):
    at = 0
    while at < len(data):
        if kind == "fixed64":
            yield int.from_bytes(data[at:at + 8], "little")
            at += 8
        else:
            value, at = varint(data, at)
            yield signed(value, kind)


def decode(data, message="ProfilesData"):
    """The fields that are there, with JSON's names; numbers are numbers, and bytes hexadecimal digits."""
    found, at = {}, 0
    while at < len(data):
        tag, at = varint(data, at)
        name, kind, repeated = MESSAGES[message][tag >> 3]
        if tag & 7 == 0:
            value, at = varint(data, at)
            values = [signed(value, kind)]
        elif tag & 7 == 1:
            values, at = [int.from_bytes(data[at:at + 8], "little")], at + 8
        else:
            assert tag & 7 == 2, tag
            size, at = varint(data, at)
            body, at = data[at:at + size], at + size
            assert len(body) == size, "a field is longer than its message"
            values = [decode(body, kind)] if kind in MESSAGES else \
                [body.decode()] if kind == "string" else [body.hex()] if kind == "bytes" else list(packed(body, kind))
        if repeated:
            found.setdefault(name, []).extend(values)
        else:
            assert name not in found, name
            found[name], = values
    return found


def from_json(value, message="ProfilesData"):
    """The same of OTLP's JSON, whose numbers of 64 bits must be strings."""
    found = {}
    for name, member in value.items():
        kind, repeated = TYPES[message][name]
        values = member if repeated else [member]
        assert not repeated or values, name
        if kind in MESSAGES:
            values = [from_json(one, kind) for one in values]
        elif kind in ("int64", "uint64", "fixed64"):
            assert all(isinstance(one, str) for one in values), name
            values = [int(one) for one in values]
        else:
            assert all(isinstance(one, int if kind == "int32" else str) for one in values), name
        found[name] = values if repeated else values[0]
    return found


def value_of(any_value):
    (_, value), = any_value.items()
    return value


def resource_attributes(resource):
    return {one["key"]: value_of(one["value"]) for one in resource["resource"].get("attributes", [])}


class Profiles:
    """`samples`: a dict for each time or sum, in the order of the file."""

    def __init__(self, data):
        self.data = data
        self.tables = data["dictionary"]
        self.strings = self.tables["stringTable"]
        self.samples = [sample for resource in data.get("resourceProfiles", []) for scope in resource["scopeProfiles"]
                        for profile in scope["profiles"] for one in profile["samples"]
                        for sample in self.read(resource, profile, one)]

    def text(self, number):
        return self.strings[number or 0]

    def attributes(self, holder):
        found = {}
        for i in holder.get("attributeIndices", []):
            assert 0 < i < len(self.tables["attributeTable"])
            one = self.tables["attributeTable"][i]
            assert self.text(one["keyStrindex"]) not in found
            found[self.text(one["keyStrindex"])] = value_of(one["value"])
        return found

    def type_of(self, profile, field):
        return self.text(profile[field].get("typeStrindex")), self.text(profile[field].get("unitStrindex"))

    def frames(self, sample):
        """(name, file, line, frame type, address, mapping) of each, the leaf first."""
        for i in self.tables["stackTable"][sample.get("stackIndex", 0)].get("locationIndices", []):
            location = self.tables["locationTable"][i]
            mapping = self.tables["mappingTable"][location.get("mappingIndex", 0)]
            kind = self.attributes(location).get("profile.frame.type")
            for line in location.get("lines", [{}]):
                function = self.tables["functionTable"][line.get("functionIndex", 0)]
                yield (self.text(function.get("nameStrindex")), self.text(function.get("filenameStrindex")), line.get("line", 0),
                       kind, location.get("address", 0), self.text(mapping.get("filenameStrindex")))

    def read(self, resource, profile, sample):
        times, values = sample.get("timestampsUnixNano", []), sample.get("values", [])
        assert times or values
        assert not times or not values or len(times) == len(values)
        assert times == sorted(times)
        assert all(profile["timeUnixNano"] <= time < profile["timeUnixNano"] + profile["durationNano"] for time in times)
        counts = self.type_of(profile, "sampleType") == ("samples", "count")
        for i in range(max(len(times), len(values))):
            yield {"resource": resource_attributes(resource), "attributes": self.attributes(sample),
                   "type": self.type_of(profile, "sampleType"), "period_type": self.type_of(profile, "periodType"),
                   "time": times[i] if times else None, "value": values[i] if values else 1,
                   "period": profile["period"] if counts else None, "frames": list(self.frames(sample))}

    def check_tables(self):
        """Entry 0 of each table is the zero value; the others are distinct, and each is used."""
        used = {name: {0} for name in ("mappingTable", "locationTable", "functionTable", "linkTable", "attributeTable",
                                       "stackTable", "stringTable")}
        of_field = {"mappingIndex": "mappingTable", "locationIndices": "locationTable", "functionIndex": "functionTable",
                    "attributeIndices": "attributeTable", "stackIndex": "stackTable"}

        def look(value):
            for name, member in value.items():
                table = "stringTable" if name.endswith("Strindex") else of_field.get(name)
                if table:
                    used[table].update(member if isinstance(member, list) else [member])
                for one in member if isinstance(member, list) else [member]:
                    if isinstance(one, dict):
                        look(one)

        look(self.data)
        for name, numbers in used.items():
            table = self.tables[name]
            zero = {"traceId": "0" * 32, "spanId": "0" * 16} if name == "linkTable" else "" if name == "stringTable" else {}
            assert table[0] == zero, (name, table[0])
            assert numbers == set(range(len(table))), (name, numbers ^ set(range(len(table))))
            assert len({json.dumps(one, sort_keys=True) for one in table}) == len(table), name


TABLES = {"mappingIndex": "mappingTable", "locationIndices": "locationTable", "functionIndex": "functionTable",
          "attributeIndices": "attributeTable", "stackIndex": "stackTable", "linkIndex": "linkTable"}
IDENTITY = {"mappingTable": ("memoryStart", "memoryLimit", "fileOffset", "filenameStrindex", "attributeIndices"),
            "locationTable": ("mappingIndex", "address", "lines", "attributeIndices"),
            "functionTable": ("nameStrindex", "systemNameStrindex", "filenameStrindex", "startLine"),
            "stackTable": ("locationIndices",), "attributeTable": ("keyStrindex", "value", "unitStrindex"),
            "linkTable": ("traceId", "spanId")}
UNSET = (None, 0, "", [], {}, "0" * 32, "0" * 16)


def check_indexes(value, tables):
    for name, member in value.items():
        members = member if isinstance(member, list) else [member]
        table = "stringTable" if name.endswith("Strindex") else TABLES.get(name)
        if table:
            assert all(0 <= one < len(tables[table]) for one in members), (name, member, len(tables[table]))
        if name == "attributeIndices":
            keys = [tables["attributeTable"][one].get("keyStrindex", 0) for one in members]
            assert 0 not in members and len(set(keys)) == len(keys), (members, keys)
        if name == "locationIndices":
            assert 0 not in members, "a stack has the location that stands for none"
        for one in members:
            if isinstance(one, dict):
                check_indexes(one, tables)


def check_samples(profile):
    """Each sample has a stack, thread and link of its own; all of a profile have one shape."""
    seen, shapes = set(), set()
    begin = profile["timeUnixNano"] if "timeUnixNano" in profile else None
    for sample in profile.get("samples", []):
        identity = (sample.get("stackIndex", 0), tuple(sorted(sample.get("attributeIndices", []))), sample.get("linkIndex", 0))
        assert identity not in seen, identity
        seen.add(identity)
        values, times = sample.get("values", []), sample.get("timestampsUnixNano", [])
        assert values or times, sample
        assert not (values and times) or len(values) == len(times), sample
        assert times or len(values) == 1, sample
        shapes.add((bool(values), bool(times)))
        for time in times:
            assert begin <= time < begin + profile["durationNano"], (time, begin, profile["durationNano"])
    assert len(shapes) <= 1, shapes


def check_rules(data, is_of_pprof=False):
    """Rules for profiles, from the comments of profiles.proto. In a profile of pprof, addresses may be outside their
    mapping."""
    tables = data["dictionary"]
    assert tables["stringTable"][0] == "" and len(set(tables["stringTable"])) == len(tables["stringTable"])
    for name, members in IDENTITY.items():
        # A member that has its zero value is as one that is absent.
        entries = [json.dumps([one.get(member) if one.get(member) not in UNSET else None for member in members], sort_keys=True)
                   for one in tables[name]]
        assert set(json.loads(entries[0])) == {None}, (name, tables[name][0])
        assert len(set(entries)) == len(entries), (name, [one for one in entries if entries.count(one) > 1][:2])
    check_indexes(data, tables)
    for mapping in tables["mappingTable"][1:]:
        start, limit = mapping.get("memoryStart", 0), mapping.get("memoryLimit", 0)
        assert start < limit or start == limit == 0, mapping
    for function in tables["functionTable"][1:]:
        assert function.get("nameStrindex") or function.get("systemNameStrindex") or function.get("filenameStrindex"), function
    for attribute in tables["attributeTable"][1:]:
        assert attribute.get("keyStrindex") and attribute.get("value"), attribute
    for location in tables["locationTable"][1:]:
        mapping = tables["mappingTable"][location.get("mappingIndex", 0)]
        start, limit = mapping.get("memoryStart", 0), mapping.get("memoryLimit", 0)
        # Functions that are known by their names alone may have no address.
        inside = start <= location.get("address", 0) < limit or not limit or (location.get("lines") and not location.get("address"))
        assert inside or is_of_pprof, (location, mapping)
        assert location.get("address") or location.get("lines"), location
        for line in location.get("lines", []):
            assert line.get("functionIndex"), location
    for resource in data.get("resourceProfiles", []):
        for scope in resource["scopeProfiles"]:
            for profile in scope["profiles"]:
                assert profile["sampleType"].get("typeStrindex"), profile
                check_samples(profile)
