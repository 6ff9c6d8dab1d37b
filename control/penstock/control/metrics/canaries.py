"""The head's metrics of canaries: at most a hundred, by name."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from prometheus_client.core import GaugeMetricFamily, Metric

from penstock.control.metrics.families import by_label, labelled
from penstock.control.state.canary.canary import CanaryState
from penstock.control.state.canary.counts import ArmCounts
from penstock.control.state.cluster import ClusterView


def canaries(view: ClusterView) -> Iterator[Metric]:
    """Where each stands, and what was counted of its arms in this step."""
    named = view.canaries.named
    yield by_label(
        "penstock_head_canary_step",
        "The step that the canary is at, from 1.",
        "canary",
        {name: each.step for name, each in named.items()},
    )
    yield by_label(
        "penstock_head_canary_permille",
        "What the candidate has of the sessions, in thousandths.",
        "canary",
        {name: each.permille for name, each in named.items()},
    )
    yield labelled(
        GaugeMetricFamily,
        "penstock_head_canary_state",
        "1: the canary is in this state.",
        ("canary", "state"),
        (
            ((name, state), each.state is state)
            for name, each in named.items()
            for state in CanaryState
        ),
    )
    yield _by_arm(
        view, "penstock_head_canary_sessions", "Sessions of this step.", lambda it: it.sessions
    )
    yield _by_arm(
        view,
        "penstock_head_canary_bad_sessions",
        "Of these, those of which any request broke.",
        lambda it: it.bad_sessions,
    )


def _by_arm(view: ClusterView, name: str, help: str, number: Callable[[ArmCounts], int]) -> Metric:
    counted = {
        canary: view.canaries.counted_of(each).counts
        for canary, each in view.canaries.named.items()
    }
    values = (
        ((canary, arm), number(counts))
        for canary, both in counted.items()
        for arm, counts in (("stable", both.stable), ("candidate", both.candidate))
    )
    return labelled(GaugeMetricFamily, name, help, ("canary", "arm"), values)
