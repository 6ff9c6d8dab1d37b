"""The head's metrics: what it knows of the cluster, and what its own work takes."""

from __future__ import annotations

from collections import Counter as Counts
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Histogram,
    ProcessCollector,
    disable_created_metrics,
    generate_latest,
)
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

from penstock.control.managers.routing.traffic import Totals
from penstock.control.metrics.canaries import canaries
from penstock.control.metrics.families import by_deployment, by_kind, gauge, labelled
from penstock.control.state.cluster import ClusterView, GatewayState
from penstock.control.state.events import Event, Reason
from penstock.control.state.fleet.replica import NodeState, ReplicaState
from penstock.control.state.problems import Problem, ProblemKind
from penstock.control.state.rollout.deployment import Deployment
from penstock.control.state.routing.program_reports import asks_program, programs_at

# Seconds: a plan of a small cluster takes less than the first, one that waits for a disk more.
RECONCILE_BUCKETS = (0.001, 0.005, 0.02, 0.1, 0.5, 2, 10)
ROLLOUTS = {
    Reason.REVISION_SERVED: "served",
    Reason.REVISION_FAILED: "failed",
    Reason.ROLLED_BACK: "rolled_back",
}
WRITE_BUCKETS = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.5, 2, 10)


@dataclass(frozen=True, slots=True)
class HeadFacts:
    """What is read when Prometheus asks, in its thread: each gives values that never change."""

    view: Callable[[], ClusterView]
    snapshot_version: Callable[[], int]
    totals: Callable[[], Mapping[str, Totals]]
    refused_peers: Callable[[], int]
    problems: Callable[[], Sequence[Problem]] = tuple


class HeadMetrics:
    """Observes the managers' work; `page` may be called from any thread."""

    def __init__(self, facts: HeadFacts) -> None:
        # When a counter began is worth no series.
        disable_created_metrics()  # type: ignore[no-untyped-call]
        self._registry = CollectorRegistry()
        self._actions = Counter(
            "penstock_head_reconcile_actions_total",
            "Actions that the head decided on or asked agents for.",
            ["action"],
            registry=self._registry,
        )
        self._reconciling = Histogram(
            "penstock_head_reconcile_seconds",
            "From looking at the cluster to having asked for what it lacks.",
            buckets=RECONCILE_BUCKETS,
            registry=self._registry,
        )
        self._writing = Histogram(
            "penstock_head_store_write_seconds",
            "Transactions of the store, failed ones included.",
            buckets=WRITE_BUCKETS,
            registry=self._registry,
        )
        self._failed_writes = Counter(
            "penstock_head_store_write_failures_total",
            "Transactions of the store that failed.",
            registry=self._registry,
        )
        self._rollouts, self._wrong_wakes = _rollouts(self._registry), _wakes(self._registry)
        self._lost_events = Counter(
            "penstock_head_events_lost_total",
            "Events that could not be stored.",
            registry=self._registry,
        )
        ProcessCollector(registry=self._registry)
        self._registry.register(_Cluster(facts))

    def reconciled(self, actions: Iterable[object], seconds: float) -> None:
        """The reconcile loop went round once."""
        self._reconciling.observe(seconds)
        for action in actions:
            self._actions.labels(type(action).__name__.lower()).inc()

    def written(self, seconds: float, *, failed: bool) -> None:
        """The store was written, or failed to be."""
        self._writing.observe(seconds)
        if failed:
            self._failed_writes.inc()

    def happened(self, events: Sequence[Event]) -> None:
        """Of these, those that a rollout or a wake came to."""
        for event in events:
            if event.reason in ROLLOUTS:
                self._rollouts.labels(ROLLOUTS[Reason(event.reason)]).inc()
            if event.reason == Reason.REPLICA_WOKE_WRONG:
                self._wrong_wakes.labels("slow" if "did not wake" in event.text else "wrong").inc()

    def events_lost(self, count: int) -> None:
        """So many events were not stored."""
        self._lost_events.inc(count)

    def page(self) -> bytes:
        """All of it as Prometheus text."""
        return generate_latest(self._registry)


class _Cluster:
    """What follows from the view: whatever left it, leaves the page."""

    def __init__(self, facts: HeadFacts) -> None:
        self._facts = facts

    def collect(self) -> Iterator[Metric]:
        """Every family, from one view."""
        view, totals = self._facts.view(), self._facts.totals()
        yield gauge(
            "penstock_head_snapshot_version",
            "Of the routes that gateways are told.",
            self._facts.snapshot_version(),
        )
        yield gauge(
            "penstock_head_holds_still",
            "1: another head is in command, see the status.",
            bool(view.held),
        )
        yield gauge(
            "penstock_head_refused_peers",
            "Node agents and gateways that ask to be let in, and are not: see the status.",
            self._facts.refused_peers(),
        )
        yield by_kind(
            "penstock_head_problems",
            "What `penstock status` tells of first, by kind.",
            "kind",
            ProblemKind,
            (problem.kind for problem in self._facts.problems()),
        )
        yield from _counted(view)
        yield from _deployments(view)
        yield from _traffic(view, totals)
        yield from canaries(view)
        yield by_deployment(
            GaugeMetricFamily,
            "penstock_head_deployment_program_not_asked",
            "Gateways that do not ask the deployment's router program now: see the status.",
            {
                name: sum(bool(at.counts.unavailable) for at in programs_at(view, it))
                for name, it in view.deployments.items()
                if asks_program(it)
            },
        )


def _counted(view: ClusterView) -> Iterator[Metric]:
    yield gauge("penstock_head_deployments", "Deployments.", len(view.deployments))
    found = (each.state for each in view.replicas.values())
    yield by_kind("penstock_head_replicas", "Replicas by phase.", "phase", ReplicaState, found)
    nodes = (each.state for each in view.nodes.values())
    yield by_kind("penstock_head_nodes", "Node agents by state.", "state", NodeState, nodes)
    gateways = (each.state for each in view.gateways.values())
    yield by_kind("penstock_head_gateways", "Gateways by state.", "state", GatewayState, gateways)
    yield gauge(
        "penstock_head_gateways_alive",
        "Gateways that reported in these seconds.",
        sum(gateway.reporting for gateway in view.gateways.values()),
    )


def _deployments(view: ClusterView) -> Iterator[Metric]:
    ready = Counts(
        (r.deployment, r.deployment_uid)
        for r in view.replicas.values()
        if r.state is ReplicaState.READY
    )
    deployments = view.deployments.items()
    yield by_deployment(
        GaugeMetricFamily,
        "penstock_head_deployment_replicas_wanted",
        "Replicas asked for.",
        {name: each.spec.replicas for name, each in deployments},
    )
    yield by_deployment(
        GaugeMetricFamily,
        "penstock_head_deployment_replicas_ready",
        "Replicas that are ready.",
        {name: ready[name, each.uid] for name, each in deployments},
    )
    yield labelled(
        GaugeMetricFamily,
        "penstock_head_deployment_rollout",
        "1: the present revision is in this state.",
        ("deployment", "state"),
        (((name, _rollout_state(each)), 1) for name, each in deployments),
    )


def _rollout_state(deployment: Deployment) -> str:
    revision = deployment.revision
    waits = deployment.paused and revision.is_rolling_out
    return "paused" if waits else revision.state.replace(" ", "_")


def _traffic(view: ClusterView, totals: Mapping[str, Totals]) -> Iterator[Metric]:
    queued: Counts[str] = Counts()
    in_flight: Counts[str] = Counts()
    for gateway in view.gateways.values():
        for each in gateway.report.deployments if gateway.report and gateway.reporting else ():
            queued[each.deployment] += each.queued
            in_flight[each.deployment] += each.in_flight
    known = {name: totals[name] for name in view.deployments if name in totals}
    yield by_deployment(
        GaugeMetricFamily,
        "penstock_head_deployment_queued",
        "Requests that wait, at all gateways.",
        {name: queued[name] for name in view.deployments},
    )
    yield by_deployment(
        GaugeMetricFamily,
        "penstock_head_deployment_in_flight",
        "Requests at replicas, of all gateways.",
        {name: in_flight[name] for name in view.deployments},
    )
    yield by_deployment(
        CounterMetricFamily,
        "penstock_head_deployment_requests_total",
        "Requests that gateways reported.",
        {name: each.requests for name, each in known.items()},
    )
    yield by_deployment(
        CounterMetricFamily,
        "penstock_head_deployment_rejected_total",
        "Of these, refused by admission.",
        {name: each.rejected for name, each in known.items()},
    )


def _by(
    registry: CollectorRegistry, label: str, kinds: Iterable[str], name: str, said: str
) -> Counter:
    """A counter that tells of each kind from the start."""
    found = Counter(name, said, [label], registry=registry)
    for kind in kinds:
        found.labels(kind)
    return found


def _rollouts(registry: CollectorRegistry) -> Counter:
    text = "Revisions by what came of them; one that failed may be rolled back, too."
    return _by(registry, "result", ROLLOUTS.values(), "penstock_head_rollouts_total", text)


def _wakes(registry: CollectorRegistry) -> Counter:
    text = "Replicas that a sleep changed: they did not answer as before, or not wake in time."
    return _by(registry, "cause", ("wrong", "slow"), "penstock_head_wrong_wakes_total", text)
