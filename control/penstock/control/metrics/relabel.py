"""Prometheus texts of several processes made one: each sample gets labels that say whose it is.

Pure. A page has each family once, with the samples of all; a text that is not as the format says is
refused whole, since one bad line would cost the page.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field

_NAME = r"[a-zA-Z_:][a-zA-Z0-9_:]*"
_LABEL = r'([a-zA-Z_][a-zA-Z0-9_]*)\s*=\s*("(?:[^"\\\n]|\\.)*")\s*'
_LABELS = re.compile(_LABEL)
_SAMPLE = re.compile(
    rf"({_NAME})\s*(?:\{{\s*((?:{_LABEL}(?:,\s*|(?=\}})))*)\}})?\s*(?<=[\s}}])(\S+)(\s+-?\d+)?\s*"
)
_ABOUT = re.compile(rf"#\s+(HELP|TYPE)\s+({_NAME})(?:\s+(.*))?")
# What a family of this type calls its samples, beside its own name.
_SUFFIXES = {"histogram": ("_bucket", "_sum", "_count"), "summary": ("_sum", "_count")}
UNTYPED = "untyped"


@dataclass(slots=True)
class Family:
    """One family, with its samples as lines."""

    kind: str = UNTYPED
    help: str = ""
    lines: list[str] = field(default_factory=list)


def merged(parts: Iterable[Mapping[str, Family]], taken: Collection[str] = ()) -> dict[str, Family]:
    """The families of all texts by name.

    Families that are `taken` are left out, and samples of a family that an earlier text has with
    another type.
    """
    found: dict[str, Family] = {}
    for part in parts:
        for name, family in part.items():
            known = found.setdefault(name, Family(family.kind, family.help))
            if known.kind == family.kind and name not in taken:
                known.lines += family.lines
    return {name: family for name, family in found.items() if family.lines}


def rendered(families: Mapping[str, Family]) -> str:
    """The families as Prometheus text."""
    lines: list[str] = []
    for name, family in families.items():
        lines += [f"# HELP {name} {family.help}".rstrip(), f"# TYPE {name} {family.kind}"]
        lines += family.lines
    return "".join(f"{line}\n" for line in lines)


def parsed(text: str, labels: Mapping[str, str]) -> dict[str, Family]:
    """The families of one text, each sample with these labels too. Raises ValueError."""
    found: dict[str, Family] = {}
    current = ""
    for number, raw in enumerate(text.split("\n"), start=1):
        line = raw.strip()
        if about := _ABOUT.fullmatch(line):
            what, current, said = about.groups(default="")
            family = found.setdefault(current, Family())
            if what == "HELP":
                family.help = said
            else:
                family.kind = said
        elif line and not line.startswith("#"):
            name, sample = _sample(line, labels, number)
            current = current if _belongs(name, current, found) else name
            found.setdefault(current, Family()).lines.append(sample)
    return found


def _belongs(name: str, family: str, found: Mapping[str, Family]) -> bool:
    if name == family:
        return True
    suffixes = _SUFFIXES.get(found[family].kind, ()) if family in found else ()
    return any(name == family + suffix for suffix in suffixes)


def _sample(line: str, labels: Mapping[str, str], number: int) -> tuple[str, str]:
    """The sample's name, and its line with the labels."""
    match = _SAMPLE.fullmatch(line)
    if match is None or not _is_number(match[5]):
        raise ValueError(f"line {number} is no sample: {line[:200]!r}")
    own = (
        f"{'exported_' if name in labels else ''}{name}={value}"
        for name, value in _LABELS.findall(match[2] or "")
    )
    added = (f'{name}="{_escaped(value)}"' for name, value in labels.items())
    return match[1], f"{match[1]}{{{','.join([*added, *own])}}} {match[5]}{match[6] or ''}"


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return "_" not in text


def _escaped(value: str) -> str:
    return value.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")
