"""The head's metrics of canaries: at most a hundred, by name."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from prometheus_client.core import Metric

from penstock.control.metrics import head_table as table
from penstock.control.metrics.declared import DeclaredMetric
from penstock.control.state.canary.canary import CanaryState
from penstock.control.state.canary.counts import ArmCounts
from penstock.control.state.cluster import ClusterView


def canaries(view: ClusterView) -> Iterator[Metric]:
    """Where each stands, and what was counted of its arms in this step."""
    named = view.canaries.named
    yield table.CANARY_STEP.by({name: each.step for name, each in named.items()})
    yield table.CANARY_PERMILLE.by({name: each.permille for name, each in named.items()})
    yield table.CANARY_STATE.each(
        ((name, state), each.state is state)
        for name, each in named.items()
        for state in CanaryState
    )
    yield _by_arm(view, table.CANARY_SESSIONS, lambda it: it.sessions)
    yield _by_arm(view, table.CANARY_BAD_SESSIONS, lambda it: it.bad_sessions)


def _by_arm(
    view: ClusterView, metric: DeclaredMetric, number: Callable[[ArmCounts], int]
) -> Metric:
    counted = {
        canary: view.canaries.counted_of(each).counts
        for canary, each in view.canaries.named.items()
    }
    return metric.each(
        ((canary, arm), number(counts))
        for canary, both in counted.items()
        for arm, counts in (("stable", both.stable), ("candidate", both.candidate))
    )
