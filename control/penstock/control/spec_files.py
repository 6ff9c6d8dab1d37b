"""Files of documents: read with the line of each field, and written. The one place that knows YAML.

Scalars are read as JSON would have them: `yes`, `1:30` and dates are texts.
"""

from __future__ import annotations

import math
import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Final

import yaml

from penstock.control.errors import BadDocuments, Fault, InvalidInput

STDIN: Final = "-"
ENDINGS: Final = (".yaml", ".yml", ".json")
MOST_BYTES: Final = 32 << 20
DEEPEST: Final = 20
MOST_FIELDS: Final = 100_000  # of a document: anchors say them for nothing
SCHEMA: Final = "penstock.schema.json"
HEAD: Final = f"""\
# yaml-language-server: $schema={SCHEMA}
# `penstock schema > {SCHEMA}` has editors complete it.
"""

Place = tuple[str | int, ...]


@dataclass(frozen=True, slots=True)
class Document:
    """One document, and where it was found."""

    said: Mapping[str, Any]
    file: str
    lines: Mapping[Place, int]  # of its fields, by their paths; of () the first

    def where(self, path: Place) -> str:
        """The line of a field, or of what it would stand in: "file:3"."""
        while path and path not in self.lines:
            path = path[:-1]
        return f"{self.file}:{self.lines[path]}"


class _Loader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]
    """YAML of today, without what texts turned into before: yes, no, 1:30, 0777, dates."""

    yaml_implicit_resolvers: dict[str, list[Any]] = {}  # noqa: RUF012  # the library's own way
    yaml_constructors: dict[str | None, Any] = {  # noqa: RUF012  # what JSON has
        tag: made
        for tag, made in yaml.SafeLoader.yaml_constructors.items()
        if tag is None or tag.rpartition(":")[2] in ("null", "bool", "str", "seq", "map")
    }


class _Dumper(getattr(yaml, "CSafeDumper", yaml.SafeDumper)):  # type: ignore[misc]
    def ignore_aliases(self, data: object) -> bool:
        return True


def _as_it_is(dumper: yaml.SafeDumper, text: str) -> yaml.Node:
    """A text of several lines stays readable: that of a program."""
    style = "|" if "\n" in text else None
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


_Dumper.add_representer(str, _as_it_is)
_PLAIN = (
    ("null", r"~|null|Null|NULL|", "~nN\0"),
    ("bool", r"true|True|TRUE|false|False|FALSE", "tTfF"),
    ("int", r"[-+]?(?:0|[1-9][0-9]*)", "-+0123456789"),
    (
        "float",
        r"[-+]?(?:[0-9]+\.[0-9]*(?:[eE][-+]?[0-9]+)?|\.[0-9]+(?:[eE][-+]?[0-9]+)?"
        r"|[0-9]+[eE][-+]?[0-9]+)",
        "-+0123456789.",
    ),
    ("merge", r"<<", "<"),
)
for _tag, _pattern, _first in _PLAIN:
    _begins = ["" if each == "\0" else each for each in _first]
    _Loader.add_implicit_resolver(
        f"tag:yaml.org,2002:{_tag}", re.compile(f"^(?:{_pattern})$"), _begins
    )


def _number(_: yaml.Loader, node: yaml.ScalarNode) -> int | float:
    kind = int if node.tag.endswith("int") else float
    try:
        value: int | float = kind(node.value)
    except ValueError:
        value = math.nan
    if (kind is float and not math.isfinite(value)) or value != value:
        problem = f"{node.value[:20]} is no number that JSON can say"
        raise yaml.constructor.ConstructorError(None, None, problem, node.start_mark)
    return value


for _tag in ("int", "float"):
    _Loader.add_constructor(f"tag:yaml.org,2002:{_tag}", _number)


def read(sources: Sequence[str]) -> list[Document]:
    """The documents of files, of all files of directories, and of stdin where one is "-". Raises
    `InvalidInput`, which names file and line."""
    found = [each for name, text in _texts(sources) for each in parsed(text, name)]
    if not found:
        raise InvalidInput(f"no document in {', '.join(sources)}")
    return found


def stamp(sources: Sequence[str]) -> tuple[tuple[str, int, int], ...]:
    """Changes when a file does, or when there is another one; empty: none can be looked at."""
    try:
        files = [file for each in sources for file in _files(Path(each))]
        looked = [(str(file), file.stat()) for file in files]
    except OSError:
        return ()
    return tuple((name, each.st_mtime_ns, each.st_size) for name, each in looked)


def parsed(text: str, name: str) -> Iterator[Document]:
    """The documents of one text; those that are empty are left out. Raises `InvalidInput`."""
    try:
        _check_depth(text, name)
        loader = _Loader(text)
        while loader.check_node():
            node = loader.get_node()
            lines: dict[Place, int] = {}
            _walk(node, (), lines, name)
            said = loader.construct_document(node)
            if said is None:
                continue
            if not isinstance(said, dict) or not all(isinstance(key, str) for key in said):
                raise InvalidInput(f"{name}:{lines[()]}: a document is fields with values")
            yield Document(said, name, lines)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        problem = getattr(error, "problem", None) or str(error)
        raise InvalidInput(f"{name}:{mark.line + 1 if mark else 1}: {problem}") from None


def placed(error: BadDocuments, documents: Sequence[Document]) -> InvalidInput:
    """The error with file and line in the place of a document's number."""
    lines = [_told(fault, documents) for fault in error.faults]
    return InvalidInput(lines[0] if len(lines) == 1 else "\n  ".join(["nothing is done:", *lines]))


def written(documents: Iterable[Mapping[str, Any]]) -> str:
    """A file of these documents."""
    parts = (
        yaml.dump(dict(each), Dumper=_Dumper, sort_keys=False, width=100, allow_unicode=True)
        for each in documents
    )
    return HEAD + "---\n".join(parts)


def _told(fault: Fault, documents: Sequence[Document]) -> str:
    if not 0 <= fault.document < len(documents):
        return fault.text
    place = ".".join(map(str, fault.path))
    where = documents[fault.document].where(fault.path)
    return f"{where}: {place}: {fault.text}" if place else f"{where}: {fault.text}"


def _texts(sources: Sequence[str]) -> Iterator[tuple[str, str]]:
    for source in sources:
        if source == STDIN:
            yield _text(sys.stdin.buffer, "stdin")
            continue
        try:
            for path in _files(Path(source)):
                with path.open("rb") as file:
                    yield _text(file, str(path))
        except OSError as error:
            raise InvalidInput(f"cannot read {source}: {error.strerror}") from None


def _text(file: IO[bytes], name: str) -> tuple[str, str]:
    data = file.read(MOST_BYTES + 1)
    if len(data) > MOST_BYTES:
        raise InvalidInput(f"{name} is longer than {MOST_BYTES} bytes")
    try:
        return name, data.decode()
    except UnicodeDecodeError as error:
        raise InvalidInput(f"{name} is no text in UTF-8: {error.reason}") from None


def _files(path: Path) -> list[Path]:
    if not path.is_dir():
        return [path]
    return sorted(each for each in path.iterdir() if each.suffix in ENDINGS and each.is_file())


def _check_depth(text: str, name: str) -> None:
    """Before anything is made of it: what makes it calls itself for each step down. Raises
    `InvalidInput`."""
    depth = 0
    for event in yaml.parse(text, Loader=_Loader):
        depth += isinstance(event, yaml.CollectionStartEvent)
        depth -= isinstance(event, yaml.CollectionEndEvent)
        if depth > DEEPEST:
            raise _too_deep(name, event.start_mark)


def _too_deep(name: str, mark: yaml.Mark) -> InvalidInput:
    return InvalidInput(f"{name}:{mark.line + 1}: nothing that Penstock takes is as deep as this")


def _walk(node: yaml.Node, path: Place, lines: dict[Place, int], name: str) -> None:
    """Notes the line of each field. Raises `InvalidInput` for one that is said twice."""
    line = node.start_mark.line + 1
    lines.setdefault(path, line)
    if len(path) > DEEPEST:
        raise _too_deep(name, node.start_mark)
    if len(lines) > MOST_FIELDS:
        raise InvalidInput(f"{name}:{line}: a document has {MOST_FIELDS:,} fields at most")
    if isinstance(node, yaml.SequenceNode):
        for index, each in enumerate(node.value):
            _walk(each, (*path, index), lines, name)
    if isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            inside = (*path, str(key.value))
            line = key.start_mark.line + 1
            if inside in lines:
                raise InvalidInput(f"{name}:{line}: {key.value} is said twice")
            lines[inside] = line
            _walk(value, inside, lines, name)
