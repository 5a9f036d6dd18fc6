# SPDX-License-Identifier: MIT
"""Reads pprof profiles by the field numbers of profile.proto, with the standard library only."""
import gzip


def varint(data, at):
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 127) << shift
        if byte < 128:
            return value, at
        shift += 7


def fields(data):
    """(number, value) of each field; a value is an int or bytes."""
    at = 0
    while at < len(data):
        tag, at = varint(data, at)
        if tag & 7 == 0:
            value, at = varint(data, at)
        else:
            assert tag & 7 == 2, f"wire type {tag & 7}"
            size, at = varint(data, at)
            value, at = data[at:at + size], at + size
            assert len(value) == size, "a field is longer than its message"
        yield tag >> 3, value


def packed(data):
    at, values = 0, []
    while at < len(data):
        value, at = varint(data, at)
        values.append(value)
    return values


def message(data, **names):
    """The fields in a dict by name: NAME=3 for a single field number 3, NAME=[3] for a repeated
    one."""
    found = {name: [] if isinstance(number, list) else 0 for name, number in names.items()}
    for number, value in fields(data):
        for name, wanted in names.items():
            if wanted == number:
                found[name] = value
            elif wanted == [number]:
                found[name].append(value)
        assert number in [n[0] if isinstance(n, list) else n for n in names.values()], f"field {number}"
    return found


class Profile:
    def __init__(self, compressed):
        whole = message(gzip.decompress(compressed), types=[1], samples=[2], mappings=[3], locations=[4],
                        functions=[5], strings=[6], time=9, duration=10, period_type=11, period=12, default=14)
        self.strings = [text.decode() for text in whole["strings"]]
        assert self.strings[0] == ""
        text = self.strings.__getitem__
        types = [message(one, type=1, unit=2) for one in whole["types"]]
        self.types = [(text(one["type"]), text(one["unit"])) for one in types]
        self.mappings, self.functions, self.locations = {}, {}, {}
        bounds = {}
        for one in whole["mappings"]:
            mapping = message(one, id=1, start=2, limit=3, offset=4, file=5, build_id=6, f=7, n=8, l=9, i=10)
            self.mappings[mapping["id"]] = text(mapping["file"])
            bounds[mapping["id"]] = range(mapping["start"], mapping["limit"])
        for one in whole["functions"]:
            function = message(one, id=1, name=2, system_name=3, file=4)
            self.functions[function["id"]] = text(function["name"])
            text(function["system_name"]), text(function["file"])
        for one in whole["locations"]:
            location = message(one, id=1, mapping=2, address=3, lines=[4])
            assert location["mapping"] == 0 or location["address"] in bounds[location["mapping"]], location
            lines = [message(line, function=1, line=2, column=3) for line in location["lines"]]
            # A reader may name a location without lines later; until then it is known by its file.
            file = self.mappings.get(location["mapping"], "").rsplit("/", 1)[-1]
            self.locations[location["id"]] = [self.functions[line["function"]] for line in lines] or [
                f"[{file or 'unknown'}]"]
        for table in (self.mappings, self.functions, self.locations):
            assert 0 not in table and list(table) == sorted(table)
        self.samples = []
        for one in whole["samples"]:
            sample = message(one, locations=[1], values=[2], labels=[3])
            labels = [message(label, key=1, str=2, num=3) for label in sample["labels"]]
            values = packed(b"".join(sample["values"]))
            assert len(values) == len(self.types)
            names = [name for number in packed(b"".join(sample["locations"])) for name in self.locations[number]]
            self.samples.append({
                "names": names, "values": values,
                "labels": {text(label["key"]): text(label["str"]) or label["num"] for label in labels}})


def text_of(compressed):
    """The contents of a profile, in order and with ids, similar to `pprof -raw`."""
    whole = message(gzip.decompress(compressed), types=[1], samples=[2], mappings=[3], locations=[4],
                    functions=[5], strings=[6], time=9, duration=10, period_type=11, period=12, default=14)
    text = [one.decode() for one in whole["strings"]].__getitem__
    kind = lambda one: "/".join(map(text, message(one, type=1, unit=2).values()))
    signed = lambda value: value - (1 << 64) if value >> 63 else value
    lines = ["types " + " ".join(map(kind, whole["types"])) + f", default {text(whole['default'])}",
             f"period {signed(whole['period'])} {kind(whole['period_type']) if whole['period_type'] else ''}".rstrip(),
             f"time {signed(whole['time'])}, duration {signed(whole['duration'])}"]
    for one in whole["mappings"]:
        m = message(one, id=1, start=2, limit=3, offset=4, file=5, build_id=6, functions=7, files=8, lines=9, inlined=10)
        has = "".join(name[0] for name in ("functions", "files", "lines", "inlined") if m[name])
        lines.append(f"mapping {m['id']}: {m['start']:#x}-{m['limit']:#x} offset {m['offset']:#x} "
                     f"{text(m['file'])} build-id {text(m['build_id']) or '-'} has {has or 'nothing'}")
    for one in whole["functions"]:
        f = message(one, id=1, name=2, system_name=3, file=4)
        lines.append(f"function {f['id']}: {text(f['name'])} | {text(f['system_name'])} | {text(f['file'])}")
    for one in whole["locations"]:
        place = message(one, id=1, mapping=2, address=3, lines=[4])
        at = [message(line, function=1, line=2, column=3) for line in place["lines"]]
        lines.append(f"location {place['id']}: {place['address']:#x} mapping {place['mapping']}" +
                     "".join(f", function {line['function']} at {line['line']}:{line['column']}" for line in at))
    for one in whole["samples"]:
        sample = message(one, locations=[1], values=[2], labels=[3])
        labels = [message(label, key=1, str=2, num=3) for label in sample["labels"]]
        lines.append("sample " + " ".join(map(str, packed(b"".join(sample["values"])))) + ": locations " +
                     " ".join(map(str, packed(b"".join(sample["locations"])))) + "; " +
                     " ".join(f"{text(label['key'])}={text(label['str']) or label['num']}" for label in labels))
    return "\n".join(lines) + "\n"
