# SPDX-License-Identifier: MIT
"""Reads and writes the files of golden cases: NAME.case, and usage.table.

A case has a head of lines, and sections:

    # A comment. Empty lines are ignored, too.
    $ perfmap diff old.map new.map        the command, quoted as for a shell
    input old.map = inputs/two-names.map  a file for the command; paths are relative to tests/golden
    with ../wild/tally                    all files of a folder
    link a.map = old.map                  a symbolic link
    stdin = inputs/tiny.data              standard input, if it has no section
    env TERM=dumb                         an environment variable; the command has few others
    output new.map = inputs/other.map     an expected output file, if it has no section
    leaves out.elf                        an expected output file with any contents
    timed                                 seconds at the ends of lines of stderr are compared as "0.000 s"
    exit 1                                the exit status, if it is not 0
    === input new.map
    1000 10 name
    === stdout
    ...

The sections are `stdin`, `stdout`, `stderr`, `input FILE`, `output FILE` and `decoded FILE`, which is the
text that decoded.py makes of a file. A missing section is empty. A section has the bytes of the lines up to
the next `===`. For other bytes, such as NUL or an end without a newline, its title ends in `escaped`, as in
`=== stdout escaped`. It then has the escapes \\\\ \\n \\r \\t \\e \\xNN, and a backslash at the end of a line
joins it with the next line.

Words in $'...' quotes have the same escapes.

The table has messages about wrong usage. Each row is a command, which must print the message to stderr,
nothing else, and exit with status 2. A message ends at an empty line, and has escapes as above; a "$" at
the start of its lines is \\x24. Other lines are empty or comments.

    $ perfmap diff
    perfmap: error: ...
"""
import re

SECTION = "==="
LETTERS = {b"\\": b"\\", b"n": b"\n", b"r": b"\r", b"t": b"\t", b"e": b"\x1b", b"\n": b""}
SHORT = {data[0]: f"\\{letter.decode()}" for letter, data in LETTERS.items() if data}
ESCAPE = re.compile(rb"\\(?:x([0-9a-fA-F]{2})|(.|\Z))", re.DOTALL)
WORD = re.compile(r"""(?:\$'(?:\\.|[^'\\])*'|'[^']*'|"(?:\\.|[^"\\])*"|\\.|[^\s'"\\])+""", re.DOTALL)
PART = re.compile(r"""\$'((?:\\.|[^'\\])*)'|'([^']*)'|"((?:\\.|[^"\\])*)"|\\(.)|([^'"\\])""", re.DOTALL)
PLAIN = re.compile(r"[\w@%+=:,./-]+", re.ASCII)


class CaseError(Exception):
    """A file is not a valid case."""


def text_of(data):
    return data.decode(errors="surrogateescape")


def bytes_of(text):
    return text.encode(errors="surrogateescape")


def unescaped(data):
    def byte(found):
        if found[1]:
            return bytes([int(found[1], 16)])
        if found[2] not in LETTERS:
            raise CaseError(f"unknown escape \\{text_of(found[2])}")
        return LETTERS[found[2]]
    return ESCAPE.sub(byte, data)


def escaped(data):
    """DATA as lines without invisible characters, and without spaces at their ends, which editors remove."""
    lines = []
    for line in data.split(b"\n"):
        text = "".join(c if c == "\t" or c.isprintable() and c != "\\" else "".join(map(escape_of, bytes_of(c)))
                       for c in text_of(line))
        if text.endswith((" ", "\t")):
            text = text[:-1] + escape_of(ord(text[-1]))
        lines.append(f"\\x3d{text[1:]}" if text.startswith(SECTION) else text)
    if lines[-1]:
        lines[-1] += "\\\n"
    return bytes_of("\n".join(lines))


def escape_of(byte):
    return SHORT.get(byte) or f"\\x{byte:02x}"


def is_plain(data):
    """Whether no byte needs an escape, except for backslashes."""
    data = data.replace(b"\\", b"/")
    return escaped(data) == data


def words(line):
    """The words of LINE, quoted as for a shell."""
    line = line.strip()
    if WORD.sub("", line).strip():
        raise CaseError(f"a quote is not closed: {line}")
    found = []
    for word in WORD.findall(line):
        text = ""
        for ansi, single, double, character, plain in PART.findall(word):
            text += text_of(unescaped(bytes_of(ansi))) if ansi else ""
            text += single + re.sub(r'\\([$`"\\])', r"\1", double) + character + plain
        found.append(text)
    return found


def quoted(word):
    """WORD, quoted so that words() reads it."""
    if PLAIN.fullmatch(word):
        return word
    if all(c.isprintable() for c in word) and "'" not in word:
        return f"'{word}'"
    text = text_of(escaped(bytes_of(word))).removesuffix("\\\n")
    return "$'" + text.replace("\n", "\\n").replace("'", "\\x27") + "'"


def lines_of(data):
    return re.findall(rb"[^\n]*\n|[^\n]+\Z", data)


class Section:
    """A title and lines. `body` has the bytes of the lines in the file."""

    def __init__(self, title, body=b"", is_escaped=False):
        self.title, self.body, self.is_escaped = tuple(title), body, is_escaped

    @classmethod
    def of(cls, title, data):
        return cls(title, data) if is_plain(data) else cls(title, escaped(data), is_escaped=True)

    @property
    def data(self):
        return unescaped(self.body) if self.is_escaped else self.body

    def print(self):
        title = " ".join([SECTION, *map(quoted, self.title), *(["escaped"] if self.is_escaped else [])])
        return bytes_of(title + "\n") + self.body


class Case:
    """The contents of a case. Unchanged parts are printed as they were read. Paths are relative to ROOT."""
    FILES = ("input", "output", "decoded")
    STREAMS = ("stdin", "stdout", "stderr")

    def __init__(self, name, data, root):
        self.name, self.root, self.head, self.sections = name, root, [], []
        try:
            for line in lines_of(data):
                if not line.endswith(b"\n"):
                    raise CaseError("the last line has no newline")
                if line.startswith(SECTION.encode()):
                    self.sections.append(self.section(words(text_of(line))[1:]))
                elif self.sections:
                    self.sections[-1].body += line
                else:
                    self.head.append(line)
            self.read_head()
            for section in self.sections:
                section.data
        except CaseError as error:
            raise CaseError(f"{name}: {error}") from None

    def section(self, title):
        is_escaped = title[-1:] == ["escaped"] and len(title) > (2 if title[0] in self.FILES else 1)
        title = title[:-1] if is_escaped else title
        if not title or title[0] not in self.FILES + self.STREAMS or len(title) != 1 + (title[0] in self.FILES):
            raise CaseError(f"'{SECTION} {' '.join(title)}' is not a section: {', '.join(self.STREAMS)}, "
                            f"or {', '.join(self.FILES)} with a file")
        if any(section.title == tuple(title) for section in self.sections):
            raise CaseError(f"duplicate section {' '.join(title)}")
        return Section(title, is_escaped=is_escaped)

    def read_head(self):
        self.command, self.folders, self.environment = None, [], {}
        self.inputs, self.outputs, self.links, self.left = {}, {}, {}, set()  # file names, paths
        self.stdin_path, self.exit, self.timed = None, 0, False
        for line in self.head:
            line = text_of(line).strip()
            match words(line) if not line.startswith("#") else []:
                case []:
                    pass
                case ["$", "perfmap", *arguments] if self.command is None:
                    self.command = arguments
                case ["with", path]:
                    self.folders.append(path)
                case ["input", name, "=", path]:
                    self.inputs[name] = path
                case ["output", name, "=", path]:
                    self.outputs[name] = path
                case ["link", name, "=", target]:
                    self.links[name] = target
                case ["stdin", "=", path]:
                    self.stdin_path = path
                case ["leaves", name]:
                    self.left.add(name)
                case ["env", setting] if "=" in setting:
                    name, value = setting.split("=", 1)
                    self.environment[name] = value
                case ["timed"]:
                    self.timed = True
                case ["exit", status] if status.isdecimal():
                    self.exit = int(status)
                case _:
                    raise CaseError(f"unknown line: {line}")
        if self.command is None:
            raise CaseError("no line '$ perfmap ...'")

    def named(self, kind):
        """The data of sections by file name."""
        return {section.title[1]: section.data for section in self.sections if section.title[0] == kind}

    def stream(self, name):
        return next((section.data for section in self.sections if section.title == (name,)), b"")

    def set(self, title, data):
        """Replaces a section, adds it at the end, or removes it if DATA is None."""
        old = next((section for section in self.sections if section.title == title), None)
        if data is None:
            self.sections = [section for section in self.sections if section is not old]
        elif old is None:
            self.sections.append(Section.of(title, data))
        elif old.data != data:
            self.sections[self.sections.index(old)] = Section.of(title, data)

    def set_line(self, first_words, line):
        """Replaces the line of the head that begins with these words, or adds one; removes it if LINE is None."""
        new = [] if line is None else [bytes_of(line + "\n")]
        for i, old in enumerate(self.head):
            if not old.startswith(b"#") and words(text_of(old))[:len(first_words)] == first_words:
                self.head[i:i + 1] = new
                break
        else:
            self.head += new
        self.read_head()

    def print(self):
        return b"".join([*self.head, *(section.print() for section in self.sections)])


def cases_in(folder):
    """The cases of a command. Another file in its folder is an error, because no test would read it."""
    paths = sorted(folder.iterdir())
    if not paths:
        raise CaseError(f"no case in {folder}")
    for path in paths:
        if path.suffix != ".case" or not path.is_file():
            raise CaseError(f"not a case, which is COMMAND/NAME.case: {path}")
    return [Case(f"{folder.name}/{path.stem}", path.read_bytes(), folder.parent) for path in paths]


def cases_below(root):
    """All cases of the folders in ROOT."""
    folders = sorted(path for path in root.iterdir() if path.is_dir() and path.name not in ("inputs", "__pycache__"))
    if stray := [*root.glob("*.case")]:
        raise CaseError(f"not a case, which is COMMAND/NAME.case: {stray[0]}")
    return [case for folder in folders for case in cases_in(folder)]


class Table:
    """The rows of usage.table, which are cases, and the comments and empty lines before each."""

    def __init__(self, name, data, root):
        self.rows, self.tail, row = [], [], None  # rows: (lines before, case)
        for number, line in enumerate(lines_of(data), 1):
            if row is not None and line.strip():
                if line.startswith(b"$"):
                    raise CaseError(f"{name}:{number}: no empty line before the row")
                row.sections[0].body += line
            elif line.strip() and not line.startswith((b"$", b"#")):
                raise CaseError(f"{name}:{number}: not a row, a comment or an empty line: {text_of(line).strip()}")
            elif line.startswith(b"$"):
                row = Case(f"{name}:{number}", line, root)
                row.exit = 2
                row.sections = [Section(("stderr",), is_escaped=True)]
                self.rows.append((self.tail, row))
                self.tail = []
            else:
                row = None
                self.tail.append(line)

    @staticmethod
    def set_message(row, data):
        if row.stream("stderr") != data:
            body = re.sub(rb"^\n", rb"\\n\\\n", escaped(data), flags=re.M)
            row.sections[0].body = re.sub(rb"^\$", rb"\\x24", body, flags=re.M)

    def print(self):
        return b"".join(line for before, row in self.rows
                        for line in [*before, *row.head, row.sections[0].body]) + b"".join(self.tail)
