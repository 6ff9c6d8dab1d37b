"""What the head tells Prometheus."""

from __future__ import annotations

import re
from contextlib import closing
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from sqlite3 import connect

import pytest

from penstock.control.errors import StoreUnavailable
from penstock.control.managers.routing.traffic import Totals
from penstock.control.metrics.head import HeadFacts, HeadMetrics
from penstock.control.state.canary.canary import Canaries, CanaryState, Counted
from penstock.control.state.canary.counts import Counts, Reading
from penstock.control.state.cluster import (
    ClusterView,
    DeploymentCounts,
    Gateway,
    GatewayReport,
    GatewayState,
)
from penstock.control.state.fleet.replica import WOKE_WRONG, NodeId, ReplicaId, ReplicaState
from penstock.control.state.happened import happened
from penstock.control.state.rollout.actions import Place, Stop
from penstock.control.state.rollout.deployment import after_failure, changed, paused
from penstock.control.state.rollout.revision import Cause
from penstock.control.state.routing.slo import Objectives, Slo, SloCount
from penstock.control.state.tenancy.spend import Budgets, Spending
from penstock.control.state.tenancy.tenancy import Standing
from penstock.control.state.tenancy.tenants import Tenant, TenantSpec
from penstock.control.store.sqlite import SqliteStore
from penstock.control.store.store import Author, Change, Key
from penstock.control.store.timed_writes import TimedWrites
from tests.architecture.metrics_reference import head_rows
from tests.fakes.canary_values import CANARY_UID, arm, canary
from tests.fakes.control_clock import ManualClock
from tests.fakes.control_values import MINI, NOON, deployment, in_service, node, replica, spec
from tests.fakes.promtool import complaints, samples

FAMILY = re.compile(r"# HELP (\w+) (.*)\n# TYPE \S+ (\w+)\n")
COUNTS = (DeploymentCounts("mini", queued=3, in_flight=4), DeploymentCounts("gone", queued=9))


def metrics_of(view: ClusterView) -> HeadMetrics:
    totals = {"mini": Totals(requests=7, rejected=2), "gone": Totals(requests=1)}
    return HeadMetrics(HeadFacts(lambda: view, lambda: 12, lambda: totals, lambda: 3))


def busy() -> ClusterView:
    """A deployment with a ready and a failed replica, a node, and two gateways of which one is
    silent."""
    view = ClusterView().with_deployment(deployment(spec(replicas=2))).with_node(node())
    view = view.with_replica(replica("a")).with_replica(replica("b", ReplicaState.FAILED))
    for name, reporting in (("gw-1", True), ("gw-2", False)):
        report = GatewayReport(NOON, 1, COUNTS)
        gateway = Gateway(name, GatewayState.REMOTE, report=report, reporting=reporting)
        view = view.with_gateway(gateway)
    return view


def test_the_page_tells_what_the_head_knows_and_promtool_finds_nothing_wrong() -> None:
    page = metrics_of(busy()).page()
    found = samples(page)
    for name, value in {
        "penstock_head_deployments": 1,
        'penstock_head_replicas{phase="ready"}': 1,
        'penstock_head_replicas{phase="failed"}': 1,
        'penstock_head_replicas{phase="lost"}': 0,
        'penstock_head_nodes{state="ready"}': 1,
        'penstock_head_gateways{state="remote"}': 2,
        "penstock_head_gateways_alive": 1,
        "penstock_head_snapshot_version": 12,
        "penstock_head_holds_still": 0,
        "penstock_head_refused_peers": 3,
        'penstock_head_deployment_replicas_wanted{deployment="mini"}': 2,
        'penstock_head_deployment_replicas_ready{deployment="mini"}': 1,
        'penstock_head_deployment_replicas_failing{deployment="mini"}': 1,
        'penstock_head_deployment_queued{deployment="mini"}': 3,
        'penstock_head_deployment_in_flight{deployment="mini"}': 4,
        'penstock_head_deployment_requests_total{deployment="mini"}': 7,
        'penstock_head_deployment_rejected_total{deployment="mini"}': 2,
    }.items():
        assert found[name] == value, name
    assert complaints(page) == ""


def test_the_head_tells_what_it_declares_and_nothing_else() -> None:
    page = metrics_of(busy()).page().decode()
    told = {family for family in FAMILY.findall(page) if not family[0].startswith("process_")}
    assert told == {(row.name, row.help, row.type) for row in head_rows()}


def test_objectives_are_told_of_deployments_that_have_any() -> None:
    asked = Objectives(Slo(ttft_p50_ms=800, error_rate=0.02))
    view = ClusterView().with_deployment(deployment(replace(spec(), objectives=asked)))
    view = view.with_deployment(deployment(spec(name="other")))
    counts = {("mini", "ttft_p50"): SloCount("ttft_p50", 40, 10)}
    facts = HeadFacts(lambda: view, int, dict, int, slo_totals=lambda: counts)
    page = HeadMetrics(facts).page()
    found = {name: value for name, value in samples(page).items() if "_slo_" in name}
    ttft = '{deployment="mini",objective="ttft_p50"}'
    errors = '{deployment="mini",objective="error_rate"}'
    assert found == {
        f"penstock_head_slo_requests_total{ttft}": 40,
        f"penstock_head_slo_requests_total{errors}": 0,
        f"penstock_head_slo_bad_requests_total{ttft}": 10,
        f"penstock_head_slo_bad_requests_total{errors}": 0,
        f"penstock_head_slo_budget_ratio{ttft}": 0.5,
        f"penstock_head_slo_budget_ratio{errors}": 0.02,
    }
    assert complaints(page) == ""


def test_limits_of_the_day_that_are_used_up_are_told() -> None:
    known = deployment(replace(spec(), budgets=Budgets(usd_per_day=1)))
    view = ClusterView().with_deployment(known).with_deployment(deployment(spec(name="free")))
    view = replace(view, spending=Spending(used_up=frozenset({"mini", "free"})))
    tenants = {
        name: Tenant(name, name, 1, TenantSpec(tokens_per_day=limit), NOON, NOON)
        for name, limit in (("acme", 5), ("idle", 5), ("any", 0))
    }
    standing = Standing(used_up=frozenset({"acme"}))
    view = replace(view, tenancy=replace(view.tenancy, tenants=tenants, standing=standing))
    found = samples(metrics_of(view).page())
    used_up = {name: value for name, value in found.items() if "_used_up" in name}
    assert used_up == {
        'penstock_head_deployment_budget_used_up{deployment="mini"}': 1,
        'penstock_head_tenant_used_up{limit="tokens",tenant="acme"}': 1,
    }


def test_replicas_that_hold_an_adapter_are_counted() -> None:
    holds = replica("a")
    holds = replace(holds, status=replace(holds.status, adapters=("pirate@1",)))
    found = samples(metrics_of(busy().with_replica(holds)).page())
    name = 'penstock_head_adapter_replicas{adapter="pirate@1",deployment="mini"}'
    assert found[name] == 1


def test_series_of_a_deleted_deployment_are_gone() -> None:
    assert "gone" not in metrics_of(busy()).page().decode()
    assert '"mini"' not in metrics_of(busy().without_deployment(MINI)).page().decode()


def test_a_head_that_holds_still_says_so() -> None:
    page = metrics_of(replace(busy(), held="another is in command")).page()
    assert samples(page)["penstock_head_holds_still"] == 1


def test_actions_are_counted_and_rounds_timed() -> None:
    metrics = metrics_of(ClusterView())
    metrics.reconciled([Place(MINI, NodeId("n1")), Stop(ReplicaId("r"))], 0.01)
    metrics.reconciled([Stop(ReplicaId("r"))], 0.3)
    found = samples(metrics.page())
    assert found['penstock_head_reconcile_actions_total{action="place"}'] == 1
    assert found['penstock_head_reconcile_actions_total{action="stop"}'] == 2
    assert found["penstock_head_reconcile_seconds_count"] == 2
    assert found['penstock_head_reconcile_seconds_bucket{le="0.02"}'] == 1


async def test_writes_of_the_store_are_timed_and_failures_counted(tmp_path: Path) -> None:
    metrics, store = metrics_of(ClusterView()), await SqliteStore.open(tmp_path / "a.db")
    store.observe(writes := TimedWrites(ManualClock(), metrics))
    changes, author = [Change(Key("node", "n"), {})], Author("a", "b")
    assert await store.apply(changes, author, NOON) == 1
    with closing(connect(tmp_path / "a.db")) as meddler:
        meddler.execute("ALTER TABLE transactions RENAME TO gone")
    with pytest.raises(StoreUnavailable):
        await store.apply(changes, author, NOON)
    assert await store.usage(NOON.date(), NOON.date()) == []
    assert writes.failing
    await store.record([])
    assert not writes.failing
    await store.keep_events([])
    await store.close()
    with pytest.raises(StoreUnavailable):
        await store.record([])
    assert writes.failing
    found = samples(metrics.page())
    assert found["penstock_head_store_write_seconds_count"] == 5
    assert found["penstock_head_store_write_failures_total"] == 2


@pytest.mark.parametrize(
    ("said", "cause"),
    [
        ("woke wrongly: the model answers otherwise than before the sleep", "wrong"),
        ("did not wake: no answer within 120 s", "slow"),
    ],
)
def test_wakes_that_went_wrong_are_counted_by_cause(said: str, cause: str) -> None:
    starting = replica(state=ReplicaState.STARTING)
    status = replace(starting.status, exit_code=WOKE_WRONG, last_error=said)
    ended = replace(starting, state=ReplicaState.BACKOFF, status=status, crashes=1)
    views = [ClusterView().with_replica(each) for each in (starting, ended)]
    metrics = metrics_of(views[-1])
    metrics.happened(list(happened(views[0], views[1], NOON)))
    found = samples(metrics.page())
    counts = {
        each: found[f'penstock_head_wrong_wakes_total{{cause="{each}"}}']
        for each in ("wrong", "slow")
    }
    assert counts == {"wrong": 0, "slow": 0, cause: 1}


def test_rollouts_are_counted_by_what_came_of_them_and_the_present_one_is_shown() -> None:
    known = deployment()
    views = [ClusterView().with_deployment(known)]
    views.append(ClusterView().with_deployment(in_service(known)))
    later = changed(in_service(known), spec(model="b"), NOON)
    views.append(ClusterView().with_deployment(later))
    views.append(ClusterView().with_deployment(after_failure(later, Cause("no such path"), NOON)))
    metrics = metrics_of(views[-1])
    for before, after in pairwise(views):
        metrics.happened(list(happened(before, after, NOON)))
    metrics.events_lost(4)
    found = samples(metrics.page())
    for result in ("served", "failed", "rolled_back"):
        assert found[f'penstock_head_rollouts_total{{result="{result}"}}'] == 1
    assert found["penstock_head_events_lost_total"] == 4
    state = 'penstock_head_deployment_rollout{deployment="mini",state="rolling_out"}'
    assert found[state] == 1
    assert [name for name in found if "deployment_rollout" in name] == [state]
    stopped = ClusterView().with_deployment(paused(later, NOON))
    assert 'state="paused"' in metrics_of(stopped).page().decode()


def test_each_canary_tells_where_it_stands_and_what_was_counted_of_its_arms() -> None:
    held = canary(state=CanaryState.HELD, weighted=True)
    canaries = Canaries({"try": held}).having_counted(Counted(CANARY_UID, 1, reading()))
    page = metrics_of(replace(busy(), canaries=canaries)).page()
    found = samples(page)
    for name, value in {
        'penstock_head_canary_step{canary="try"}': 1,
        'penstock_head_canary_permille{canary="try"}': 100,
        'penstock_head_canary_state{canary="try",state="held"}': 1,
        'penstock_head_canary_state{canary="try",state="running"}': 0,
        'penstock_head_canary_sessions{arm="stable",canary="try"}': 90,
        'penstock_head_canary_sessions{arm="candidate",canary="try"}': 10,
        'penstock_head_canary_bad_sessions{arm="candidate",canary="try"}': 3,
    }.items():
        assert found[name] == value, name
    assert complaints(page) == ""


def reading() -> tuple[Reading, ...]:
    return (Reading("gw-1", "i1", NOON, Counts(arm(90), arm(10, bad=3))),)
