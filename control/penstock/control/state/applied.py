"""What documents said when they were last applied, so that what somebody else set since is told
from it. Pure.

A set is the documents that are applied together, under a name. Of each object it keeps the fields
that its document named, flat: `update.max_surge` is one of them. Three states make a change: what
the set applied last, what stands, and what the document says now.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

Fields = Mapping[str, Any]
"""Values as JSON has them, by name; those of a group under `group.name`."""


@dataclass(frozen=True, slots=True)
class Applied:
    """What a set said of one object."""

    set_name: str
    kind: str
    name: str
    uid: str  # of what it was applied to: a namesake made later is another one
    made: bool  # the set made it; False: it was there before
    fields: Mapping[str, Any]

    @property
    def key(self) -> str:
        """Under which it is kept."""
        return applied_key(self.set_name, self.kind, self.name)


@dataclass(frozen=True, slots=True)
class FieldChange:
    """One field that becomes another; None: it is not there."""

    field: str
    before: Any
    after: Any


@dataclass(frozen=True, slots=True)
class Overwritten(FieldChange):
    """One that somebody else has set since."""

    by: str  # who; empty: nobody knows


def applied_key(set_name: str, kind: str, name: str) -> str:
    """Names one set's record of one object."""
    return f"{set_name}/{kind}/{name}"


def flattened(document: Fields, groups: Collection[str]) -> dict[str, Any]:
    """The fields of a document, those of its groups one by one. A group that is none stays whole,
    for who reads it to refuse."""
    found: dict[str, Any] = {}
    for name, value in document.items():
        if name in groups and isinstance(value, Mapping):
            found |= {f"{name}.{inner}": each for inner, each in value.items()}
        else:
            found[name] = value
    return found


def unflattened(fields: Fields, groups: Collection[str]) -> dict[str, Any]:
    """The inverse of `flattened`."""
    found: dict[str, Any] = {}
    for name, value in fields.items():
        group, dot, inside = name.partition(".")
        if dot and group in groups:
            within = found.setdefault(group, {})
            if isinstance(within, dict):
                within[inside] = value
        else:
            found[name] = value
    return found


def merged(standing: Fields, last: Fields, said: Fields) -> dict[str, Any]:
    """What is to be: what is said, beside what stands. What the set said last and says no longer
    takes its default, unless somebody else has set it since."""
    kept = {
        name: value
        for name, value in standing.items()
        if name in said or name not in last or last[name] != value
    }
    return {**kept, **said}


def differences(before: Fields, after: Fields) -> Iterator[FieldChange]:
    """Each field that the two have otherwise."""
    for name in {**before, **after}:
        if before.get(name) != after.get(name):
            yield FieldChange(name, before.get(name), after.get(name))


def set_by_others(
    changes: Collection[FieldChange], intended: Fields, last: Fields, defaults: Fields, said: Fields
) -> tuple[FieldChange, ...]:
    """Of these changes, those to fields that somebody else has set: they stand neither at what the
    set applied last nor, where it applied nothing, at their default. `intended`: what stands, as it
    was asked for."""
    return tuple(
        each
        for each in changes
        if each.field in said
        and intended.get(each.field) != last.get(each.field, defaults.get(each.field))
        and intended.get(each.field) != each.after
    )
