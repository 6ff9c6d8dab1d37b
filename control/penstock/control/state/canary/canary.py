"""A canary: what it is, the states that it goes through, and all that there are. Pure values."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from enum import StrEnum
from types import MappingProxyType
from typing import Final

from penstock.control.declared.fields import Form, flat, nested, said, setting
from penstock.control.errors import Code, NotFound, PenstockError
from penstock.control.state.canary.counts import Counts, Reading, summed
from penstock.control.state.canary.spec import CanarySpec, Step, Target

MOST_CANARIES: Final = 100


class CanaryState(StrEnum):
    """A canary in one word."""

    WAITING = "waiting"  # for a new revision of its target, which will be the candidate
    RUNNING = "running"  # a share goes to the candidate, and is judged
    HELD = "held"  # likewise, and something is missing for the next step: `why`
    PAUSED = "paused"  # an operator keeps it at its step; a guard still rolls it back
    PROMOTED = "promoted"  # everybody has the candidate, for good
    ROLLED_BACK = "rolled_back"  # by itself; nobody has the candidate
    ABORTED = "aborted"  # by an operator; nobody has the candidate


ENDED: Final = frozenset({CanaryState.PROMOTED, CanaryState.ROLLED_BACK, CanaryState.ABORTED})
ACTIVE: Final = frozenset({CanaryState.RUNNING, CanaryState.HELD, CanaryState.PAUSED})

_GOES_ON: Final = ENDED | ACTIVE
NEXT_STATES: Final[Mapping[CanaryState, frozenset[CanaryState]]] = MappingProxyType(
    {
        CanaryState.WAITING: frozenset({CanaryState.RUNNING}),
        CanaryState.RUNNING: _GOES_ON,
        CanaryState.HELD: _GOES_ON,
        CanaryState.PAUSED: _GOES_ON - {CanaryState.HELD},
        CanaryState.PROMOTED: frozenset({CanaryState.RUNNING}),  # of the next revision, see `uid`
        CanaryState.ROLLED_BACK: frozenset({CanaryState.RUNNING}),
        CanaryState.ABORTED: frozenset({CanaryState.RUNNING}),
    }
)
"""Only a canary of revisions runs again once it has ended, under another uid."""


@dataclass(frozen=True, slots=True)
class Edge:
    """Above which bin a session is slow, for one time guard: fixed once for a step, so that what is
    counted beyond it can be judged at any moment."""

    guard: str  # "ttft_p50", "total_p90", ...
    bin: int


@dataclass(frozen=True, slots=True)
class PassedStep:
    """A step that was judged good enough, with the figures."""

    step: int
    permille: int
    at: datetime
    figures: tuple[tuple[str, str], ...]  # by guard, as people read them


def _timed(kind: type) -> Form:
    """How documents have values with a time in them."""
    return Form(
        lambda values: [flat(each) | {"at": each.at.isoformat()} for each in values],
        lambda documents: tuple(nested(kind, each) for each in documents),
    )


@dataclass(frozen=True, slots=True)
class Canary:
    """A spec with its run."""

    spec: CanarySpec = field(metadata=said(inner=True))
    uid: str  # hex; of this run: another one counts anew
    created_at: datetime
    by: str = ""  # a token's name
    reason: str = ""  # in their words
    state: CanaryState = CanaryState.RUNNING
    why: str = ""  # a sentence: what is missing, or why it ended
    step: int = 1  # of spec.steps, from 1
    weighted: bool = False  # the step's share is in the routes: its replicas were ready
    routed_at: datetime | None = None  # when every gateway had the share; None: not yet
    promoting: bool = False  # all steps are passed: the candidate takes the target's place
    stable: str = ""  # the other arm: deployment, "name@version", or "revision N"
    candidate: str = setting("", "", name="candidate_arm")  # likewise, where the spec says less
    revision: int = 0  # of the target: the candidate, or what the promotion made; 0: none
    judged_digest: str = ""  # of a candidate's template, when it ended
    candidate_digest: str = ""  # of the revision's template; empty: not of a revision
    passed: tuple[PassedStep, ...] = setting("", (), form=_timed(PassedStep))
    ended_at: datetime | None = None
    evidence: str = ""  # id of what is kept of it with the template that it judged; empty: nothing

    @property
    def is_active(self) -> bool:
        """Whether its arms are told apart."""
        return self.state in ACTIVE

    @property
    def target(self) -> Target:
        """Whose clients are shared."""
        return self.spec.target

    @property
    def now(self) -> Step:
        """The step that it is at."""
        return self.spec.steps[self.step - 1]

    @property
    def shared_step(self) -> int:
        """The step whose share is in the routes, and whose counts are judged: the one before, while
        the replicas for the next are not ready. 0: none."""
        if not self.is_active:
            return 0
        return self.step if self.weighted else self.step - 1

    @property
    def permille(self) -> int:
        """The share that routes are to give the candidate."""
        return self.spec.steps[self.shared_step - 1].permille if self.shared_step else 0


def ended(canary: Canary, state: CanaryState, why: str, now: datetime) -> Canary:
    """The canary once nobody is judged by it any more."""
    return replace(canary, state=state, why=why, promoting=False, ended_at=now)


@dataclass(frozen=True, slots=True)
class Counted:
    """What was counted of one run's step: it is stored, so that a head that is killed goes on."""

    uid: str  # of the run
    step: int
    readings: tuple[Reading, ...] = setting("", (), form=_timed(Reading))  # of gateways' processes
    edges: tuple[Edge, ...] = ()

    @property
    def counts(self) -> Counts:
        """Of all gateways together."""
        return summed(self.readings)


@dataclass(frozen=True, slots=True)
class Canaries:
    """Part of the cluster view. Mappings are read-only."""

    named: Mapping[str, Canary] = field(default_factory=dict)
    counted: Mapping[str, Counted] = field(default_factory=dict)  # by uid of the run
    # Those that are active, by the deployment of their target and as far as routes follow from
    # them: the same objects until that changes, whatever is counted.
    shared: Mapping[str, tuple[Canary, ...]] = field(default_factory=dict, compare=False)

    def canary(self, name: str) -> Canary:
        """The canary of this name; raises `unknown-canary`."""
        if found := self.named.get(name):
            return found
        raise NotFound(
            f"no canary {name!r}: GET /admin/v1/canaries lists them", Code.UNKNOWN_CANARY
        )

    def judging(self, deployment: str, revision: int) -> Canary | None:
        """The canary that judges this revision of a deployment now."""
        found = self.of_revision(deployment, revision)
        return found if found and found.is_active else None

    def of_revision(self, deployment: str, revision: int) -> Canary | None:
        """The same, or the one that has judged it last."""
        of_it = (
            each
            for each in self.named.values()
            if each.target == Target(deployment)
            and each.candidate_digest
            and each.revision == revision
        )
        return max(of_it, key=lambda each: (each.is_active, each.created_at), default=None)

    def goes_on(self, canary: Canary) -> bool:
        """Whether this run of it is active here."""
        known = self.named.get(canary.spec.name)
        return known is not None and known.uid == canary.uid and known.is_active

    def with_new(self, canary: Canary) -> Canaries:
        """With one more; raises `canary-exists` and `conflict`. One that has ended makes room for
        its namesake."""
        known = self.named.get(canary.spec.name)
        if known and known.state not in ENDED:
            raise PenstockError(
                f"canary {canary.spec.name!r} is {known.state}: abort it first", Code.CANARY_EXISTS
            )
        if not known and len(self.named) >= MOST_CANARIES:
            raise PenstockError(
                f"there are {MOST_CANARIES} canaries: delete those that nobody needs", Code.CONFLICT
            )
        return self.having(canary)

    def having(self, canary: Canary) -> Canaries:
        """With this one in the place of its namesake; of runs that are over no counts are kept, but
        the last of each name."""
        return self._naming({**self.named, canary.spec.name: canary})

    def having_counted(self, counted: Counted) -> Canaries:
        """With these counts of a run."""
        return replace(self, counted=MappingProxyType({**self.counted, counted.uid: counted}))

    def counted_of(self, canary: Canary) -> Counted:
        """What was counted of the step that is shared, or of the last one where it has ended."""
        found, step = self.counted.get(canary.uid), canary.shared_step
        if found and (found.step == step or not canary.is_active):
            return found
        return Counted(canary.uid, step)

    def without(self, name: str) -> Canaries:
        """With one less; raises `unknown-canary`."""
        self.canary(name)
        return self._naming({each: it for each, it in self.named.items() if each != name})

    def _naming(self, named: Mapping[str, Canary]) -> Canaries:
        return Canaries(
            MappingProxyType(named), _kept(named, self.counted), _shared(named, self.shared)
        )


def _kept(named: Mapping[str, Canary], counted: Mapping[str, Counted]) -> Mapping[str, Counted]:
    uids = {canary.uid for canary in named.values()}
    return MappingProxyType({uid: each for uid, each in counted.items() if uid in uids})


def canaries_of(canaries: Iterable[Canary], counted: Iterable[Counted]) -> Canaries:
    """All that are stored."""
    named = {canary.spec.name: canary for canary in canaries}
    kept = _kept(named, {each.uid: each for each in counted})
    return Canaries(named, kept, _shared(named, {}))


def _shared(
    named: Mapping[str, Canary], before: Mapping[str, tuple[Canary, ...]]
) -> Mapping[str, tuple[Canary, ...]]:
    found: dict[str, tuple[Canary, ...]] = {}
    for _, canary in sorted(named.items()):
        if canary.is_active:
            # What says where it stands, and no more: no route follows from the rest.
            routed = replace(
                canary, state=CanaryState.RUNNING, why="", routed_at=None, passed=(), ended_at=None
            )
            name = canary.target.deployment
            found[name] = (*found.get(name, ()), routed)
    if found == before:
        return before
    return {n: before[n] if before.get(n) == each else each for n, each in found.items()}
