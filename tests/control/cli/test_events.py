"""`penstock events` and `penstock describe`, against a real admin API."""

from __future__ import annotations

import asyncio
import json
from contextlib import aclosing
from dataclasses import replace

from penstock.control.admin.event_models import EventModel, GapModel
from penstock.control.outside.admin_client import AdminClient, token_in
from penstock.control.state.events import Event, EventKind, Reason
from penstock.control.state.fleet.replica import (
    ReplicaId,
    ReplicaStart,
    ReplicaState,
    StartKind,
    StartStage,
)
from tests.control.cli.conftest import AskedHead
from tests.fakes.control_values import MINI, NOON, SECOND, replica

FAILED = "mini-1 failed: there is no model /no/such/path: name one that is there"


def happened(head: AskedHead) -> None:
    """A replica is started, and fails twice."""
    said = (
        (Reason.REPLICA_STARTED, "mini-1 is given to node n1", NOON),
        (Reason.REPLICA_FAILED, FAILED, NOON + SECOND),
        (Reason.REPLICA_FAILED, FAILED, NOON + 90 * SECOND),
    )
    told = [Event(EventKind.REPLICA, "mini-1", *each, "mini") for each in said]
    asyncio.run(head.admin.store.keep_events(told))


def test_events_are_shown_a_line_each_and_as_json(asked_head: AskedHead) -> None:
    happened(asked_head)
    told = asked_head.run("events")
    assert told.exit_code == 0, told.stderr
    first, second = told.stdout.splitlines()
    assert first.split()[:4] == ["2026-01-02", "12:00:00", "normal", "ReplicaStarted"]
    assert second.split()[1:4] == ["12:01:30", "warning", "ReplicaFailed"]
    assert second.endswith(f"{FAILED} (2 times since 01-02 12:00)")
    asked = ("--type", "warning", "--deployment", "mini", "--kind", "replica", "--json")
    (event,) = json.loads(asked_head.run("events", *asked).stdout)
    assert (event["id"], event["count"]) == (3, 2)
    assert asked_head.run("events", "--since", "1h").stdout == ""
    assert asked_head.run("events", "--since", "999999d").exit_code == 0
    assert "such as 30m" in asked_head.run("events", "--since", "noon").stderr


def test_whoever_follows_has_what_is_kept_then_what_is_gone_and_where_to_go_on(
    asked_head: AskedHead,
) -> None:
    happened(asked_head)
    token = token_in(asked_head.data_dir / "admin.token")

    async def told(after: int, count: int) -> list[EventModel | GapModel | int]:
        async with (
            AdminClient(f"http://{asked_head.address}", token) as admin,
            aclosing(admin.follow_events({"kind": "replica"}, after)) as found,
        ):
            return [await anext(found) for _ in range(count)]

    one, two = asyncio.run(told(0, 2))
    assert isinstance(one, EventModel)
    assert isinstance(two, EventModel)
    assert (one.id, two.id, two.count) == (1, 3, 2)
    assert asyncio.run(told(3, 1)) == [3]
    gap, *_, again = asyncio.run(told(9, 3))
    assert isinstance(gap, GapModel)
    assert (gap.after, again) == (9, two)


def test_a_deployment_is_described_with_why_it_is_not_as_wanted(asked_head: AskedHead) -> None:
    deploy = ("deploy", "mini", "--engine", "simulated", "--model", "m", "--replicas", "2")
    asked_head.run(*deploy, "--engine-arg", "ttft_ms=1", "--reason", "a start")
    cluster = asked_head.admin.cluster
    known = cluster.view().deployments[MINI]
    one = replica("mini-1", ReplicaState.FAILED, uid=known.uid, digest=known.template_digest)
    one = replace(one, status=replace(one.status, last_error="no such path"))
    stages = (StartStage("claim", 40), StartStage("load", 1230))
    start = ReplicaStart(StartKind.WARM, stages=stages)
    cold = ReplicaStart(StartKind.COLD, "the pool is not filled yet")
    one = replace(one, status=replace(one.status, start=start))
    two = replace(one, status=replace(one.status, start=cold))
    two = replace(
        two, id=ReplicaId("mini-2"), state=ReplicaState.DRAINING, leaving="more than wanted"
    )
    cluster.replace(cluster.view().with_replica(one).with_replica(two))
    happened(asked_head)
    told = asked_head.run("describe", "mini")
    assert told.exit_code == 0, told.stderr
    lines = [" ".join(line.split()) for line in told.stdout.splitlines()]
    assert lines[0] == "mini: failed, 0 of 2 replicas ready"
    assert "why: mini-1 failed: no such path" in lines
    assert 'engine_args: {"ttft_ms": "1"}' in lines
    assert "replicas: 2" in lines
    assert not any("max_queued" in line for line in lines), "as by default"
    assert "1: a start" in lines
    assert "mini-1: no such path" in lines
    assert "mini-2: more than wanted" in lines
    assert any(line.endswith("warm: claim 0.0, load 1.2") for line in lines)
    assert any(line.endswith("cold: begins") for line in lines)
    assert "mini-2: the pool is not filled yet" in lines
    assert lines[-1].endswith(f"{FAILED} (2 times since 01-02 12:00)")
    found = json.loads(asked_head.run("describe", "mini", "--json").stdout)
    assert set(found) == {"deployment", "revisions", "replicas", "events", "canaries"}


def test_a_deployment_that_is_not_there_is_not_described(asked_head: AskedHead) -> None:
    told = asked_head.run("describe", "nothing")
    assert (told.exit_code, told.stderr) == (
        1,
        "penstock describe: error: no deployment 'nothing'\n",
    )
