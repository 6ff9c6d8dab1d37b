"""What applying documents would change, as a plan and as the view that comes of it. Pure.

All documents are read, changed and then checked beside each other; where one is refused nothing of
the plan is for use. What each kind of object is, its `Kind` knows.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from types import MappingProxyType
from typing import NamedTuple, Protocol

from penstock.control.errors import Fault, InvalidInput, PenstockError
from penstock.control.state.applied import (
    Applied,
    FieldChange,
    Fields,
    Overwritten,
    applied_key,
    differences,
    merged,
    set_by_others,
)
from penstock.control.state.cluster import ClusterView


@dataclass(frozen=True, slots=True)
class Said:
    """One document."""

    index: int  # among those of its request
    kind: str
    name: str  # of the object
    fields: Fields  # that it names, flat, as its author wrote them


class Standing(NamedTuple):
    """An object as it is."""

    uid: str  # tells it from namesakes made before or later
    fields: Fields  # all of them, flat


class Refusals(InvalidInput):
    """Several fields of a document cannot be used."""

    def __init__(self, found: Sequence[tuple[tuple[str | int, ...], str]]) -> None:
        self.found = tuple(found)
        super().__init__("; ".join(text for _, text in found))


class Kind(Protocol):
    """One kind of object. What changes the view raises `PenstockError`, `Refusals` for fields."""

    @property
    def defaults(self) -> Fields:
        """What fields are that nobody has said; those that have to be said are not among them."""
        return {}

    @abstractmethod
    def standing(self, view: ClusterView, name: str) -> Standing | None:
        """The object as it is; None: there is none."""

    def intended(self, view: ClusterView, name: str) -> Fields:
        """Its fields as they were asked for last, whoever asked."""
        found = self.standing(view, name)
        return found.fields if found else {}

    def set_by(self, view: ClusterView, name: str, field_name: str) -> str:
        """Who had that field become what was asked for last; empty: nobody knows."""
        return ""

    def beside(self, standing: Fields, said: Fields) -> Fields:
        """Of the fields that stand, those that may stay where these are said."""
        return standing

    @abstractmethod
    def put(self, view: ClusterView, name: str, fields: Fields) -> ClusterView:
        """The view with it as these fields say, whatever else there is; the same view where it
        says nothing new."""

    def check(self, view: ClusterView, name: str) -> None:
        """Raises where it does not fit what else there is."""
        return

    def only_by_force(self, old: ClusterView, new: ClusterView, name: str) -> str:
        """Why a change of it should not be made unasked; empty: it may be."""
        return ""

    def delete(self, view: ClusterView, name: str) -> ClusterView | None:
        """The view without it; None: a set of documents never takes it away."""
        return None


Kinds = Mapping[str, Kind]
"""By their names, in the order in which they can be made."""


class Action(StrEnum):
    """What becomes of an object."""

    CREATE = "create"
    CHANGE = "change"
    DELETE = "delete"
    SAME = "same"


@dataclass(frozen=True, slots=True)
class Step:
    """What becomes of one object."""

    document: int  # -1: of none, its set says it no longer
    kind: str
    name: str
    action: Action
    fields: tuple[FieldChange, ...] = ()
    overwrites: tuple[Overwritten, ...] = ()  # of these: what somebody else has set since
    refused: str = ""  # why it is made by force alone


class Options(NamedTuple):
    """How documents are applied."""

    set_name: str
    prune: bool = False  # what the set made and says no longer is deleted


@dataclass(frozen=True, slots=True)
class Plan:
    """What comes of it."""

    view: ClusterView
    steps: tuple[Step, ...] = ()
    faults: tuple[Fault, ...] = ()  # the documents cannot be applied; steps may lack some


@dataclass(slots=True)
class _Work:
    """A plan in the making."""

    view: ClusterView
    steps: list[Step] = field(default_factory=list)
    faults: list[Fault] = field(default_factory=list)
    records: dict[str, Applied] = field(default_factory=dict)

    def refuse(self, said: Said, error: PenstockError) -> None:
        """A document was refused."""
        if isinstance(error, Refusals):
            self.faults += [Fault(said.index, path, text) for path, text in error.found]
        else:
            self.faults.append(Fault(said.index, _path_in(str(error), said.fields), str(error)))


def planned(view: ClusterView, documents: Sequence[Said], kinds: Kinds, options: Options) -> Plan:
    """What applying the documents would come to."""
    work = _Work(view, records=dict(view.applied))
    if options.prune:
        _prune(work, {(each.kind, each.name) for each in documents}, kinds, options.set_name)
    ranks = {name: rank for rank, name in enumerate(kinds)}
    for said in sorted(documents, key=lambda each: ranks[each.kind]):
        try:
            _put(work, said, kinds[said.kind], options)
        except PenstockError as error:
            work.refuse(said, error)
    _check(work, {(each.kind, each.name): each for each in documents}, kinds)
    if work.records != view.applied:
        work.view = replace(work.view, applied=MappingProxyType(work.records))
    steps = sorted(work.steps, key=lambda step: (step.document < 0, step.document))
    return Plan(work.view, tuple(steps), tuple(work.faults))


def refusals(plan: Plan) -> list[Fault]:
    """Why a plan is carried out by force alone."""
    found = []
    for step in plan.steps:
        if step.refused:
            found.append(Fault(step.document, (), step.refused))
        for each in step.overwrites:
            text = (
                f"{each.by or 'somebody else'} has set it to {each.before!r}, here it is"
                f" {each.after!r}: take that over here, or force this"
            )
            found.append(Fault(step.document, tuple(each.field.split(".", 1)), text))
    return found


def _put(work: _Work, said: Said, kind: Kind, options: Options) -> None:
    old = work.view
    standing = kind.standing(old, said.name)
    record = work.records.get(applied_key(options.set_name, said.kind, said.name))
    if record and (standing is None or record.uid != standing.uid):
        record = None  # of a namesake that is no more
    before = standing.fields if standing else {}
    last = record.fields if record else {}
    kept = kind.beside(before, said.fields) if standing else before
    new = kind.put(old, said.name, merged(kept, last, said.fields))
    there = standing if standing and new is old else kind.standing(new, said.name)
    assert there is not None
    changes = tuple(differences(before, there.fields))
    step = _step(kind, said, standing, changes, last, old)
    refused = kind.only_by_force(old, new, said.name) if changes and standing else ""
    work.view = new
    work.steps.append(replace(step, refused=refused, overwrites=() if refused else step.overwrites))
    made = record.made if record else standing is None
    fields = {name: there.fields.get(name) for name in said.fields}
    mine = Applied(options.set_name, said.kind, said.name, there.uid, made, fields)
    work.records[mine.key] = mine


def _check(work: _Work, documents: Mapping[tuple[str, str], Said], kinds: Kinds) -> None:
    """Looks at what has changed beside all else. What names others comes first: where it is wrong,
    those may be refused for its sake."""
    for name in reversed(list(kinds)):
        if work.faults:
            return
        for step in work.steps:
            if step.kind == name and step.action in (Action.CREATE, Action.CHANGE):
                try:
                    kinds[name].check(work.view, step.name)
                except PenstockError as error:
                    work.refuse(documents[name, step.name], error)


def _step(
    kind: Kind,
    said: Said,
    standing: Standing | None,
    changes: tuple[FieldChange, ...],
    last: Fields,
    view: ClusterView,
) -> Step:
    if standing is None:
        told = tuple(each for each in changes if each.field in said.fields)
        return Step(said.index, said.kind, said.name, Action.CREATE, told)
    action = Action.CHANGE if changes else Action.SAME
    intended = kind.intended(view, said.name) if changes else {}
    others = set_by_others(changes, intended, last, kind.defaults, said.fields)
    theirs = tuple(
        Overwritten(each.field, each.before, each.after, kind.set_by(view, said.name, each.field))
        for each in others
    )
    return Step(said.index, said.kind, said.name, action, changes, theirs)


def _prune(work: _Work, said: set[tuple[str, str]], kinds: Kinds, set_name: str) -> None:
    """Deletes what the set made and says no longer, what was made last first."""
    order = list(kinds)
    gone = [
        each
        for each in work.records.values()
        if each.set_name == set_name and (each.kind, each.name) not in said and each.kind in order
    ]
    for record in sorted(gone, key=lambda each: order.index(each.kind), reverse=True):
        kind = kinds[record.kind]
        standing = kind.standing(work.view, record.name)
        if record.made and standing and standing.uid == record.uid:
            without = kind.delete(work.view, record.name)
            if without is not None:
                work.view = without
                work.steps.append(Step(-1, record.kind, record.name, Action.DELETE))
        del work.records[record.key]


def _path_in(text: str, said: Fields) -> tuple[str | int, ...]:
    """The field that a refusal begins with, where the document names it."""
    word = text.partition(" ")[0].rstrip(":")
    group, _, inside = word.partition(".")
    if word in said or any(each.partition(".")[0] == word for each in said):
        return (group, inside) if inside else (word,)
    return ()
