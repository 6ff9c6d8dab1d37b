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
from prometheus_client.core import Metric

from penstock.control.managers.routing.traffic import Totals
from penstock.control.metrics import head_table as table
from penstock.control.metrics.canaries import canaries
from penstock.control.metrics.declared import DeclaredMetric
from penstock.control.metrics.usage import UsageMetrics
from penstock.control.state.cluster import ClusterView, GatewayState
from penstock.control.state.events import Event, Reason
from penstock.control.state.fleet.replica import NodeState, Replica, ReplicaState
from penstock.control.state.problems import Problem, ProblemKind
from penstock.control.state.rollout.deployment import Deployment
from penstock.control.state.routing.program_reports import asks_program, programs_at
from penstock.control.state.routing.slo import SloCount
from penstock.control.state.tenancy.usage import UsageRow

# Seconds: a plan of a small cluster takes less than the first, one that waits for a disk more.
RECONCILE_BUCKETS = (0.001, 0.005, 0.02, 0.1, 0.5, 2, 10)
FAILING = {ReplicaState.BACKOFF, ReplicaState.FAILED, ReplicaState.LOST}
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
    slo_totals: Callable[[], Mapping[tuple[str, str], SloCount]] = dict
    usage_today: Callable[[], Iterable[UsageRow]] = tuple
    certificate_ends: Callable[[], Mapping[str, float]] = dict  # seconds since 1970


class HeadMetrics:
    """Observes the managers' work; `page` may be called from any thread."""

    def __init__(self, facts: HeadFacts) -> None:
        # When a counter began is worth no series.
        disable_created_metrics()  # type: ignore[no-untyped-call]
        self._registry = CollectorRegistry()
        self._actions = self._counter(table.ACTIONS)
        self._reconciling = self._histogram(table.RECONCILING, RECONCILE_BUCKETS)
        self._writing = self._histogram(table.WRITING, WRITE_BUCKETS)
        self._failed_writes = self._counter(table.FAILED_WRITES)
        self._rollouts = self._counter(table.ROLLOUTS, ROLLOUTS.values())
        self._wrong_wakes = self._counter(table.WRONG_WAKES, ("wrong", "slow"))
        self._lost_events = self._counter(table.LOST_EVENTS)
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

    def _counter(self, metric: DeclaredMetric, kinds: Iterable[str] = ()) -> Counter:
        """It tells of these kinds from the start."""
        found = Counter(metric.name, metric.help, metric.labels, registry=self._registry)
        for kind in kinds:
            found.labels(kind)
        return found

    def _histogram(self, metric: DeclaredMetric, buckets: tuple[float, ...]) -> Histogram:
        return Histogram(metric.name, metric.help, buckets=buckets, registry=self._registry)


class _Cluster:
    """What follows from the view: whatever left it, leaves the page."""

    def __init__(self, facts: HeadFacts) -> None:
        self._facts = facts
        self._usage = UsageMetrics(facts.usage_today)

    def collect(self) -> Iterator[Metric]:
        """Every family, from one view."""
        view, facts = self._facts.view(), self._facts
        yield table.SNAPSHOT_VERSION.one(facts.snapshot_version())
        yield table.HOLDS_STILL.one(bool(view.held))
        yield table.REFUSED_PEERS.one(facts.refused_peers())
        kinds = (problem.kind for problem in facts.problems())
        yield table.PROBLEMS.by_kind(ProblemKind, kinds)
        yield table.CERTIFICATE_ENDS.by(facts.certificate_ends())
        yield from _counted(view)
        yield from _deployments(view)
        yield from _traffic(view, facts.totals())
        yield from _objectives(view, facts.slo_totals())
        yield from canaries(view)
        yield from self._usage.collect(view)
        yield _tenants_used_up(view, self._usage)
        yield _adapter_replicas(view, self._usage)


def _counted(view: ClusterView) -> Iterator[Metric]:
    yield table.DEPLOYMENTS.one(len(view.deployments))
    yield table.ADAPTERS.one(len(view.adapters.versions))
    found = (each.state for each in view.replicas.values())
    yield table.REPLICAS.by_kind(ReplicaState, found)
    yield table.NODES.by_kind(NodeState, (each.state for each in view.nodes.values()))
    yield table.GATEWAYS.by_kind(GatewayState, (each.state for each in view.gateways.values()))
    yield table.GATEWAYS_ALIVE.one(sum(each.reporting for each in view.gateways.values()))


def _deployments(view: ClusterView) -> Iterator[Metric]:
    replicas = view.replicas.values()
    ready = Counts(_deployment_of(it) for it in replicas if it.state is ReplicaState.READY)
    failing = Counts(_deployment_of(it) for it in replicas if it.state in FAILING)
    deployments = view.deployments.items()
    yield table.REPLICAS_WANTED.by({name: each.spec.replicas for name, each in deployments})
    yield table.REPLICAS_READY.by({name: ready[name, each.uid] for name, each in deployments})
    yield table.REPLICAS_FAILING.by({name: failing[name, it.uid] for name, it in deployments})
    yield table.ROLLOUT.each(((name, _rollout_state(each)), 1) for name, each in deployments)
    yield table.PROGRAM_NOT_ASKED.by(
        {
            name: sum(bool(at.counts.unavailable) for at in programs_at(view, it))
            for name, it in deployments
            if asks_program(it)
        }
    )
    yield table.BUDGET_USED_UP.by(
        {name: name in view.spending.used_up for name, it in deployments if it.spec.budgets}
    )


def _deployment_of(replica: Replica) -> tuple[str, str]:
    return replica.deployment, replica.deployment_uid


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
    yield table.QUEUED.by({name: queued[name] for name in view.deployments})
    yield table.IN_FLIGHT.by({name: in_flight[name] for name in view.deployments})
    yield table.REQUESTS.by({name: each.requests for name, each in known.items()})
    yield table.REJECTED.by({name: each.rejected for name, each in known.items()})


def _objectives(view: ClusterView, totals: Mapping[tuple[str, str], SloCount]) -> Iterator[Metric]:
    """Of each that is asked for, those that judged nothing yet included."""
    budgets = {
        (str(name), str(objective)): share
        for name, each in view.deployments.items()
        for objective, share in each.spec.objectives.slo.budgets().items()
    }
    counts = {key: totals.get(key, SloCount(key[1])) for key in budgets}
    yield table.SLO_REQUESTS.each((key, it.requests) for key, it in counts.items())
    yield table.SLO_BAD_REQUESTS.each((key, it.bad) for key, it in counts.items())
    yield table.SLO_BUDGET.each(budgets.items())


def _tenants_used_up(view: ClusterView, labels: UsageMetrics) -> Metric:
    """Of those that share a label, whether any is. One that is idle takes no label for it."""
    standing = view.tenancy.standing
    found: dict[tuple[str, ...], bool] = {}
    for name, tenant in view.tenancy.tenants.items():
        for limit, asked, used_up in (
            ("tokens", tenant.spec.tokens_per_day, standing.used_up),
            ("usd", tenant.spec.usd_per_day, standing.out_of_money),
        ):
            if asked and (name in used_up or labels.knows_tenant(name)):
                key = (labels.tenant(name), limit)
                found[key] = found.get(key, False) or name in used_up
    return table.TENANT_USED_UP.each(found.items())


def _adapter_replicas(view: ClusterView, labels: UsageMetrics) -> Metric:
    counts = Counts(
        (replica.deployment, labels.adapter(adapter))
        for replica in view.replicas.values()
        if replica.state is ReplicaState.READY
        for adapter in replica.status.adapters
    )
    return table.ADAPTER_REPLICAS.each(counts.items())
