"""Revisions of a deployment: what its replicas were made of, since when, by whom, and how it went.

A revision is a template under a number. Each change of the template makes one, and so does a
restart; a template that comes back has a new number and its old digest. The newest is the current
one. Numbers grow by one and are never used again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from enum import StrEnum
from typing import NamedTuple

from penstock.control.declared.fields import Form, flat, nested, said
from penstock.control.errors import Code, NotFound, PenstockError
from penstock.control.state.rollout.template import Template

LONGEST_REASON = 500  # characters
MOST_KEPT = 100


class Origin(NamedTuple):
    """Who changed something, and why, in their words."""

    by: str = ""
    reason: str = ""


NOBODY = Origin()


class Made(NamedTuple):
    """What a revision is of."""

    template: Template
    digest: str
    generation: int  # of the deployment


class Cause(NamedTuple):
    """Why a revision fails."""

    text: str  # one sentence for people
    replica: str = ""  # that it fails by


class RevisionState(StrEnum):
    """How a revision went."""

    JUDGED = "judged"  # some run beside those of the last that served: its canary says for how long
    ROLLING_OUT = "rolling out"  # replicas of it take the others' place
    SERVED = "served"  # all replicas that were wanted ran it, and were ready
    FAILED = "failed"  # its replicas did not get ready; `cause` says why
    REPLACED = "replaced"  # the next one came before that


@dataclass(frozen=True, slots=True)
class Revision:
    """One template, as long as it was the deployment's."""

    number: int  # begins at 1
    template_digest: str
    template: Template = field(metadata=said(inner=True))
    at: datetime
    generation: int = 0  # of the deployment, when it came
    state: RevisionState = RevisionState.ROLLING_OUT
    by: str = ""  # a token's name, or the head's; empty: before revisions were kept
    reason: str = ""
    cause: str = ""  # why it failed
    failed_replica: str = ""  # that it failed by; its log may still be kept
    undoes: int = 0  # the revision that failed, whose place it takes by itself; 0: none

    @property
    def is_rolling_out(self) -> bool:
        """Whether its replicas take the place of all others."""
        return self.state is RevisionState.ROLLING_OUT

    @property
    def is_judged(self) -> bool:
        """Whether a canary decides what becomes of it."""
        return self.state is RevisionState.JUDGED

    @property
    def is_under_way(self) -> bool:
        """Whether it has neither served nor failed."""
        return self.is_judged or self.is_rolling_out


Revisions = tuple[Revision, ...]  # oldest first, never empty in a deployment

REVISIONS = Form(
    lambda revisions: [flat(each) | {"at": each.at.isoformat()} for each in revisions],
    lambda documents: tuple(nested(Revision, each) for each in documents),
)
"""How documents have them: each as flat as a spec is."""


def begun(
    past: Revisions, made: Made, now: datetime, origin: Origin, *, keep: int, undoes: int = 0
) -> Revisions:
    """The revisions with one more, which is current; of the others the last that differ are kept,
    so that `keep` remain in all, and the last that served in any case."""
    new = Revision(
        past[-1].number + 1 if past else 1,
        made.digest,
        made.template,
        now,
        generation=made.generation,
        by=origin.by,
        reason=origin.reason,
        undoes=undoes,
    )
    return (*map(_left, _kept(past, keep - 1)), new)


def _kept(past: Revisions, most: int) -> list[Revision]:
    """The last so many that differ, and the last that served. Of one template the one that served
    says more than any after it that did not."""
    found: dict[str, Revision] = {}
    for each in reversed(past):
        before = found.setdefault(each.template_digest, each)
        if each.state is RevisionState.SERVED and before.state is not RevisionState.SERVED:
            found[each.template_digest] = each
    differ = sorted(found.values(), key=lambda each: each.number)
    served = [each for each in differ if each.state is RevisionState.SERVED][-1:]
    last = differ[-most:] if most else []
    return last if not served or served[0] in last else [*served, *last]


def _left(revision: Revision) -> Revision:
    under_way = revision.is_under_way
    return replace(revision, state=RevisionState.REPLACED) if under_way else revision


def judged(revisions: Revisions) -> Revisions:
    """The revisions where the current one is to be judged before it takes the others' place."""
    return _with_current_in(revisions, RevisionState.JUDGED)


def let_on(revisions: Revisions) -> Revisions:
    """The revisions where the current one was judged good, and takes the others' place."""
    return _with_current_in(revisions, RevisionState.ROLLING_OUT)


def _with_current_in(revisions: Revisions, state: RevisionState) -> Revisions:
    *others, current = revisions
    return (*others, replace(current, state=state))


def served(revisions: Revisions) -> Revisions:
    """The revisions once all replicas that are wanted run the current one, and are ready. An
    earlier one of the same template is not needed any more."""
    *others, current = revisions
    kept = (each for each in others if each.template_digest != current.template_digest)
    return (*kept, replace(current, state=RevisionState.SERVED))


def failed(revisions: Revisions, cause: Cause) -> Revisions:
    """The revisions once it is known that the current one will not do."""
    *others, current = revisions
    now = replace(current, cause=cause.text, failed_replica=cause.replica)
    return (*others, replace(now, state=RevisionState.FAILED))


def tried_again(revisions: Revisions) -> Revisions:
    """The revisions where the current one is rolled out once more if it has failed."""
    *others, current = revisions
    if current.state is not RevisionState.FAILED:
        return revisions
    again = replace(current, cause="", failed_replica="")
    return (*others, replace(again, state=RevisionState.ROLLING_OUT))


def revision_of(revisions: Sequence[Revision], number: int) -> Revision:
    """The revision of this number; raises `unknown-revision`."""
    for each in revisions:
        if each.number == number:
            return each
    known = ", ".join(str(each.number) for each in revisions)
    raise NotFound(f"no revision {number} is kept: there are {known}", Code.UNKNOWN_REVISION)


def last_served(revisions: Revisions) -> Revision | None:
    """The newest before the current one that served; None: none did."""
    return next((r for r in reversed(revisions[:-1]) if r.state is RevisionState.SERVED), None)


def failure_of(revisions: Revisions, digest: str) -> Revision | None:
    """The newest revision of this template, where it has failed; None: it has not, or nothing is
    kept of it."""
    newest = next((r for r in reversed(revisions) if r.template_digest == digest), None)
    return newest if newest and newest.state is RevisionState.FAILED else None


def to_undo_to(revisions: Revisions) -> Revision:
    """The newest of another template that served; raises `nothing-to-undo`."""
    *others, current = revisions
    differ = [each for each in others if each.template_digest != current.template_digest]
    if found := last_served((*differ, current)):
        return found
    kept = ", ".join(str(each.number) for each in differ)
    advice = f"name the one to go back to, of {kept}" if kept else "there is nothing to go back to"
    raise PenstockError(f"no earlier revision served: {advice}", Code.NOTHING_TO_UNDO)
