"""Whatever happens to gateways, their reports, and the head: a canary goes on by what was counted,
each once, and never leaves its end."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from types import MappingProxyType

from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.control.errors import PenstockError
from penstock.control.state.canary.canary import ENDED, Canary, CanaryState, Counted
from penstock.control.state.canary.counts import Counts, StepCounts
from penstock.control.state.canary.ending import aborted, moved_on, promotion_begun
from penstock.control.state.canary.guards import Finding, Verdict
from penstock.control.state.canary.judging import judged
from penstock.control.state.canary.ordering import paused, promoted, resumed
from penstock.control.state.canary.routes import canary_routes, weights_of
from penstock.control.state.canary.spec import CanarySpec, Step
from penstock.control.state.cluster import ClusterView, Gateway, GatewayReport, GatewayState
from penstock.control.store.documents import changes_between, view_of
from penstock.control.store.store import Contents, Stored
from tests.fakes.canary_values import arm, canary, finding
from tests.fakes.control_values import (
    DIGEST,
    NOON,
    deployment,
    in_service,
    node,
    replica,
    spec,
)

STEPS = (Step(100, 3, 2), Step(500, 3, 0), Step(1000, 3, 2))
MANY_BAD = 6


@dataclass
class Process:
    """A gateway's process: it counts a step from when it knows of its rule."""

    instance: str
    rule: tuple[str, int] = ("", 0)
    counts: Counts = field(default_factory=Counts)
    said: list[GatewayReport] = field(default_factory=list)


class History:
    """A view with one canary, the gateways around it, and the truth of what they counted."""

    def __init__(self) -> None:
        self.now = NOON
        self.truth: dict[tuple[str, int], list[Process]] = {}
        self.processes = {name: Process(f"{name}-0") for name in ("g0", "g1")}
        self.serial = 0
        started = replace(canary(), spec=replace(canary().spec, steps=STEPS))
        view = ClusterView().with_node(node())
        for name in ("mini", "next"):
            known = in_service(deployment(spec(name=name), uid=name))
            ready = replica(f"r-{name}", uid=name, digest=DIGEST, deployment=name)
            view = view.with_deployment(known).with_replica(ready)
        self.view = replace(view, canaries=view.canaries.with_new(started))

    @property
    def canary(self) -> Canary:
        return self.view.canaries.named["try"]

    # ---- what happens

    def counts(self, name: str, stable: int, candidate: int, bad: int) -> None:
        """Clients come."""
        process = self.processes[name]
        self._learns(process)
        if process.rule[1]:
            bad = min(bad, candidate)
            more = Counts(arm(stable), arm(candidate, bad))
            process.counts = process.counts.plus(more)

    def reports(self, name: str, late: int) -> None:
        """The newest report arrives, or once more an old one."""
        process = self.processes[name]
        self._learns(process)
        told = (StepCounts(*process.rule, process.counts),) if process.rule[1] else ()
        process.said.append(GatewayReport(self.now, 1, instance=process.instance, canaries=told))
        said = process.said[max(len(process.said) - 1 - late, 0)]
        known = Gateway(name, GatewayState.REMOTE, report=said, reporting=True)
        self.view = self.view.with_gateway(known)

    def falls_silent(self, name: str) -> None:
        if known := self.view.gateways.get(name):
            self.view = self.view.with_gateway(replace(known, reporting=False))

    def is_replaced(self, name: str) -> None:
        """Another process under the same name, or the last reports of the one before."""
        self.serial += 1
        said = self.processes[name].said[-1:]
        self.processes[name] = Process(f"{name}-{self.serial}", said=said)

    def restarts(self, name: str) -> None:
        """The head comes back from its store, and has heard of nobody."""
        documents = {
            change.key: Stored(change.document, 1)
            for change in changes_between(ClusterView(), self.view)
            if change.document is not None
        }
        restored = view_of(Contents(1, MappingProxyType(documents)), self.now)
        assert restored.unreadable == ()
        self.view = replace(self.view, canaries=restored.canaries, gateways={})

    def goes_well(self, seconds: int) -> None:
        for name in self.processes:
            self.counts(name, 4, 4, 0)
            self.reports(name, 0)
        self.passes(seconds)

    def passes(self, seconds: int) -> None:
        self.now += timedelta(seconds=seconds)

    def orders(self, order: Callable[[ClusterView, datetime], ClusterView]) -> None:
        """An operator asks for something that may be refused."""
        try:
            self.view = order(self.view, self.now)
        except PenstockError:
            return

    def _learns(self, process: Process) -> None:
        for rule in canary_routes(self.view) or ():
            if process.rule != (rule.uid, rule.step):
                process.rule, process.counts = (rule.uid, rule.step), Counts()
                self.truth.setdefault(process.rule, []).append(process)

    # ---- what the head makes of it

    def judges(self) -> None:
        before = self.canary
        known = self._true_counts(before.shared_step)
        self.view = judged(self.view, before, self.now, _found)
        after = self.canary
        assert before.state not in ENDED or after == before
        assert after.step in (before.step, before.step + 1)
        if after.step > before.step or (after.promoting and not before.promoting):
            step = before.now
            assert known.candidate.sessions >= step.min_sessions
            assert step.permille == 1000 or known.stable.sessions >= step.min_sessions
            assert before.weighted
            assert all(each.reporting for each in self.view.gateways.values())
        self.laws()

    def laws(self) -> None:
        canary, kept = self.canary, self.view.canaries.counted_of(self.canary).counts
        true = self._true_counts(self.view.canaries.counted_of(canary).step)
        assert kept.candidate.sessions <= true.candidate.sessions
        assert kept.stable.sessions <= true.stable.sessions
        given = [each.permille for each in weights_of(self.view, "mini")]
        steps = {0, *(each.permille for each in STEPS[max(canary.step - 2, 0) : canary.step])}
        assert set(given) <= steps
        assert not given or canary.is_active

    def _true_counts(self, step: int) -> Counts:
        total = Counts()
        for process in self.truth.get((self.canary.uid, step), ()):
            # What one counted before it forgot the step is its own past reports' highest.
            best = process.counts if process.rule[1] == step else Counts()
            for said in process.said:
                for told in said.canaries:
                    if said.instance == process.instance and told.step == step:
                        best = best.highest(told.counts)
            total = total.plus(best)
        return total


def _found(_: CanarySpec, counted: Counted) -> tuple[Finding, ...]:
    bad = counted.counts.candidate.bad_sessions >= MANY_BAD
    return (finding(Verdict.WORSE if bad else Verdict.EQUAL),) if counted.step else ()


def _by(order: Callable[[Canary], Canary]) -> Callable[[ClusterView, datetime], ClusterView]:
    return lambda view, now: moved_on(view, order(view.canaries.named["try"]), now)


ORDERS = (
    _by(paused),
    _by(resumed),
    _by(resumed),
    lambda view, now: promotion_begun(view, promoted(view.canaries.named["try"]), now),
    lambda view, now: aborted(view, "try", "an operator", now),
)
GATEWAYS = st.sampled_from(["g0", "g1"])
FEW = st.integers(0, 4)
EVENTS = st.one_of(
    st.tuples(st.just("counts"), GATEWAYS, FEW, FEW, st.integers(0, 1)),
    st.tuples(st.just("reports"), GATEWAYS, st.sampled_from([0, 0, 0, 1, 3])),
    st.tuples(st.just("reports"), GATEWAYS, st.just(0)),
    st.tuples(st.just("goes_well"), st.integers(1, 4)),
    st.tuples(st.sampled_from(["goes_well", "passes"]), st.integers(1, 4)),
    st.tuples(st.sampled_from(["falls_silent", "is_replaced", "restarts"]), GATEWAYS),
    st.tuples(st.just("orders"), st.sampled_from([*ORDERS[:3]] * 8 + [*ORDERS])),
)


@settings(max_examples=60)
@given(st.lists(EVENTS, min_size=20, max_size=50))
def test_it_goes_on_by_what_was_counted_once_and_never_leaves_its_end(
    events: Sequence[tuple[object, ...]],
) -> None:
    history = History()
    for name, *said in events:
        getattr(history, str(name))(*said)
        history.judges()


def test_the_steps_are_gone_through_to_the_end_where_nothing_is_in_the_way() -> None:
    history = History()
    for _ in range(40):
        history.goes_well(1)
        history.judges()
        history.restarts("g0")
    assert (history.canary.state, len(history.canary.passed)) == (CanaryState.PROMOTED, 3)
