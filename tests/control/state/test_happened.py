"""What happened between two views."""

from __future__ import annotations

import re
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from penstock.adapters.adapter import AdapterRef
from penstock.adapters.alias import Alias, Move, Target
from penstock.adapters.version import VersionState
from penstock.control.state.cluster import ClusterView, Gateway, GatewayState
from penstock.control.state.events import WARNINGS, EventKind, EventType, Reason
from penstock.control.state.fleet.replica import (
    FailedAdapter,
    NodeState,
    Replica,
    ReplicaStart,
    ReplicaState,
    StartKind,
)
from penstock.control.state.happened import happened
from penstock.control.state.rollout.deployment import (
    Deployment,
    after_failure,
    changed,
    created,
    paused,
    resumed,
)
from penstock.control.state.rollout.revision import Cause, Origin
from penstock.control.state.routing.suspects import EngineDeath, Suspect
from penstock.control.state.shadow.shadows import Compared, Shadow, Shadows
from penstock.control.state.shadow.spec import Candidate, Primary, ShadowSpec
from penstock.control.state.tenancy.spend import Spending
from tests.adapters.examples import version
from tests.fakes.control_values import (
    MINI,
    NOON,
    SECOND,
    deployment,
    in_service,
    node,
    replica,
    spec,
)

EMPTY = ClusterView()
LATER = NOON + SECOND


def told(before: ClusterView, after: ClusterView) -> list[tuple[str, str, str]]:
    return [(e.name, e.reason, e.text) for e in happened(before, after, NOON)]


def reasons(before: ClusterView, after: ClusterView) -> list[str]:
    return [reason for _, reason, _ in told(before, after)]


def having(known: Deployment) -> ClusterView:
    return EMPTY.with_deployment(known)


def test_nothing_is_told_of_what_is_as_it_was() -> None:
    view = having(deployment()).with_node(node()).with_replica(replica())
    assert told(view, view) == []
    assert told(view, replace(view, replicas=dict(view.replicas))) == []


def test_a_deployment_that_comes_changes_and_goes_is_told_with_what_changed() -> None:
    new, more = deployment(), changed(deployment(), spec(replicas=3), LATER)
    assert told(EMPTY, having(new)) == [
        ("mini", "DeploymentCreated", "mini is created, for 1 replica of penstock-mini"),
        ("mini", "RevisionStarted", "mini: revision 1 of penstock-mini begins"),
    ]
    assert told(having(new), having(more)) == [
        ("mini", "DeploymentChanged", "mini is changed (generation 2): replicas 1 -> 3")
    ]
    assert reasons(having(more), EMPTY) == ["DeploymentDeleted"]


def test_a_namesake_is_told_as_another_one() -> None:
    other = created(spec(), LATER, uid="u2")
    found = reasons(having(deployment()), having(other))
    assert found == ["DeploymentDeleted", "DeploymentCreated", "RevisionStarted"]


def test_a_revision_is_told_when_it_begins_and_when_it_serves() -> None:
    first = in_service(deployment())
    assert reasons(having(deployment()), having(first)) == ["RevisionServed"]
    next_one = changed(first, spec(model="b"), LATER, Origin("alice", "faster"))
    assert told(having(first), having(next_one)) == [
        ("mini", "RevisionStarted", "mini: revision 2 of b begins by alice: faster")
    ]


@pytest.mark.parametrize("kept", [1, 10])
def test_a_rollback_tells_what_failed_and_why_once_however_few_are_kept(kept: int) -> None:
    known = in_service(deployment())
    few = replace(known.spec, rollout=replace(known.spec.rollout, revision_limit=kept))
    rolling = changed(
        replace(known, spec=few), replace(few, template=spec(model="b").template), LATER
    )
    back = after_failure(rolling, Cause("r2 failed: no such path /x"), LATER)
    found = told(having(rolling), having(back))
    assert sorted(reason for _, reason, _ in found) == ["RevisionFailed", "RolledBack"]
    assert all("no such path /x" in text for *_, text in found)
    assert told(having(back), having(in_service(back))) == [
        ("mini", "RevisionServed", "mini: revision 3 serves")
    ]


def test_a_rollout_that_is_paused_and_goes_on_is_told() -> None:
    known = changed(in_service(deployment()), spec(model="b"), LATER)
    stopped = paused(known, LATER)
    assert reasons(having(known), having(stopped)) == ["RolloutPaused"]
    assert reasons(having(stopped), having(resumed(stopped, LATER))) == ["RolloutResumed"]


def moved(one: Replica, state: ReplicaState, *, last_error: str = "", **more: Any) -> Replica:
    status = replace(one.status, state=state, last_error=last_error)
    return replace(one, state=state, status=status, **more)


@pytest.mark.parametrize(
    ("start", "text"),
    [
        (ReplicaStart(StartKind.WARM), "r1 is ready on node n1, 0.9 s after a warm start"),
        (
            ReplicaStart(StartKind.COLD, "the warm pool is not filled yet"),
            "r1 is ready on node n1, 0.9 s after a cold start (the warm pool is not filled yet)",
        ),
        (ReplicaStart(StartKind.COLD), "r1 is ready on node n1, 0.9 s after a cold start"),
        (ReplicaStart(), "r1 is ready on node n1"),
    ],
)
def test_a_replica_that_is_ready_tells_how_it_was_started(start: ReplicaStart, text: str) -> None:
    pending = replica("r1", ReplicaState.PENDING)
    ready = moved(pending, ReplicaState.READY)
    status = replace(ready.status, start=start, started_at_ms=10_000, ready_at_ms=10_900)
    view = having(deployment())
    after = view.with_replica(replace(ready, status=status))
    ((_, _, said),) = told(view.with_replica(pending), after)
    assert said == text


def test_the_life_of_a_replica_is_told_with_its_engines_last_words() -> None:
    view = having(deployment())
    pending = replica("r1", ReplicaState.PENDING)
    ready = moved(pending, ReplicaState.READY)
    failed = moved(pending, ReplicaState.FAILED, last_error="no such path\n/x")
    drained = moved(ready, ReplicaState.DRAINING, leaving="more than wanted")
    for before, after, text in (
        (None, pending, "r1 is given to node n1, of revision 1"),
        (pending, ready, "r1 is ready on node n1"),
        (pending, failed, "r1 failed: no such path /x"),
        (ready, drained, "r1 drains: more than wanted"),
        (ready, moved(ready, ReplicaState.LOST, leaving="its node n1 is lost"),
         "r1 is lost: its node n1 is lost"),
        (drained, None, "r1 has ended"),
    ):  # fmt: skip
        one, other = (view.with_replica(each) if each else view for each in (before, after))
        ((name, _, said),) = told(one, other)
        assert (name, said) == ("r1", text)
    lost = moved(ready, ReplicaState.LOST)
    assert told(view.with_replica(lost), view) == [], "it was told when it was lost"


def test_a_replica_that_ends_again_and_again_says_the_same_each_time() -> None:
    view = having(deployment())
    crashed = [
        view.with_replica(moved(replica("r1"), ReplicaState.BACKOFF, last_error="boom", crashes=n))
        for n in range(5)
    ]
    found = [told(one, other) for one, other in pairwise(crashed)]
    assert [[reason for _, reason, _ in each] for each in found] == [
        ["ReplicaEnded"],
        ["ReplicaEnded"],
        ["ReplicaCrashLooping"],
        ["ReplicaCrashLooping"],
    ]
    assert found[2] == found[3]
    assert found[2][0][2] == "r1 ends again and again: boom"


def test_a_node_is_told_when_it_comes_falls_silent_is_lost_comes_back_and_is_empty() -> None:
    here, silent, lost = (EMPTY.with_node(node("n1", s)) for s in _STATES)
    assert reasons(EMPTY, here) == ["NodeJoined"]
    assert reasons(here, silent) == ["NodeSilent"]
    assert reasons(silent, lost) == ["NodeLost"]
    assert reasons(lost, here) == ["NodeBack"]
    leaving = EMPTY.with_node(replace(node(), draining=True))
    busy = leaving.with_replica(replica(node_id="n1"))
    assert reasons(here.with_replica(replica(node_id="n1")), busy) == ["NodeDraining"]
    assert reasons(busy, leaving) == ["ReplicaStopped", "NodeDrained"]
    assert reasons(here, leaving) == ["NodeDraining", "NodeDrained"]


_STATES = (NodeState.READY, NodeState.SILENT, NodeState.LOST)


def test_a_gateway_is_told_when_it_is_connected_lost_and_gone() -> None:
    started, ready, ended = (
        EMPTY.with_gateway(Gateway("gw-1", state, last_error=error))
        for state, error in (
            (GatewayState.STARTING, ""),
            (GatewayState.READY, ""),
            (GatewayState.BACKOFF, "ended with exit code 1"),
        )
    )
    assert told(EMPTY, started) == []
    assert reasons(started, ready) == ["GatewayConnected"]
    assert told(ready, ended) == [
        ("gw-1", "GatewayLost", "gateway gw-1 is backoff: ended with exit code 1")
    ]
    assert reasons(ready, EMPTY) == ["GatewayStopped"]


def test_an_alias_says_from_where_to_where_it_moved() -> None:
    one, two = (Target.of(AdapterRef.parse(each)) for each in ("pirate@1", "pirate@2"))
    alias = Alias("mini", "p", (Move(one, NOON, "alice"),))
    after = alias.moved(Move(two, LATER, "bob"))
    old, new = (replace(EMPTY, adapters=EMPTY.adapters.with_alias(each)) for each in (alias, after))
    assert reasons(EMPTY, old) == ["AliasSet"]
    assert told(old, new) == [
        ("mini:p", "AliasMoved", "mini:p moved from pirate@1 to pirate@2, by bob")
    ]
    (event,) = happened(old, new, NOON)
    assert event.deployment == "mini"


def test_an_adapter_version_is_told_when_it_comes_is_trusted_and_goes() -> None:
    new = version("pirate@1")
    live = replace(new, state=VersionState.LIVE)
    one, other = (replace(EMPTY, adapters=EMPTY.adapters.with_version(v)) for v in (new, live))
    assert reasons(EMPTY, one) == ["AdapterRegistered"]
    assert told(one, other) == [("pirate@1", "AdapterLive", "pirate@1 is live")]
    assert reasons(other, EMPTY) == ["AdapterDeleted"]


def test_a_verdict_is_told_when_it_changes_and_not_when_it_is_first_known() -> None:
    shadow = Shadow(ShadowSpec("s", Primary("chat"), Candidate("small"), 100), "u9", 7, NOON)
    unknown, even, worse = (
        replace(EMPTY, shadows=Shadows({"s": shadow}, Compared(verdicts=verdicts)))
        for verdicts in ({}, {"u9": "equal"}, {"u9": "worse"})
    )
    assert told(unknown, even) == []
    assert told(even, worse) == [
        ("s", "VerdictChanged", "shadow s, small against chat: worse, no longer equal")
    ]
    over = replace(EMPTY, shadows=Shadows({"s": replace(shadow, ended="2 pairs are counted")}))
    assert told(even, over) == [("s", "ShadowEnded", "shadow s has ended: 2 pairs are counted")]


def test_an_adapter_that_a_replica_cannot_load_is_told_once() -> None:
    one = replica()
    failed = (FailedAdapter("pirate@1", "d", "rank 64 is too large"),)
    other = replace(one, status=replace(one.status, failed_adapters=failed))
    before, after = EMPTY.with_replica(one), EMPTY.with_replica(other)
    assert told(before, after) == [
        ("pirate@1", "AdapterFailed", "r1 could not load pirate@1: rank 64 is too large")
    ]
    assert told(after, after.with_replica(replace(other, unreported=1))) == []


def test_a_budget_that_is_used_up_is_told() -> None:
    after = replace(EMPTY, spending=Spending(NOON.date(), frozenset({MINI})))
    (event,) = happened(EMPTY, after, NOON)
    assert (event.kind, event.name, event.type) == (EventKind.BUDGET, "mini", EventType.WARNING)


def test_a_request_that_is_refused_is_told_by_its_fingerprint_alone() -> None:
    deaths = tuple(EngineDeath(f"r{n}", n * 60_000, "gw-1") for n in range(2))
    suspect = Suspect(bytes(range(32)), "mini", "u1", "/v1/chat/completions", deaths, 9)
    before = replace(EMPTY, suspects={suspect.fingerprint: replace(suspect, deaths=deaths[:1])})
    after = replace(EMPTY, suspects={suspect.fingerprint: suspect})
    assert told(before, after) == [
        (
            "000102030405",
            "RequestQuarantined",
            "a request to /v1/chat/completions is refused: 2 engines died with it aboard",
        )
    ]
    assert reasons(after, EMPTY) == ["RequestReleased"]


def test_what_looks_like_a_secret_is_not_told() -> None:
    failed = moved(replica(), ReplicaState.FAILED, last_error="cannot use sk-abcdefgh1234")
    before = EMPTY.with_replica(replica("r1", ReplicaState.STARTING))
    ((_, reason, text),) = told(before, EMPTY.with_replica(failed))
    assert reason == "ReplicaFailed"
    assert "sk-" not in text


def test_what_an_engine_says_at_length_is_cut() -> None:
    failed = moved(replica(), ReplicaState.FAILED, last_error="x" * 5000)
    before = EMPTY.with_replica(replica("r1", ReplicaState.STARTING))
    ((*_, text),) = told(before, EMPTY.with_replica(failed))
    assert len(text) == 800


def test_the_docs_name_every_kind_and_reason_and_which_are_warnings() -> None:
    docs = Path(__file__).parents[3] / "docs" / "operate" / "watching.md"
    _, _, table = docs.read_text().partition("| kind | reasons;")
    rows = {
        kind: cells[2]
        for line in table.partition("\n\n")[0].splitlines()
        if line.startswith("| `")
        for cells in [line.split("|")]
        for kind in [cells[1].strip(" `")]
    }
    assert set(rows) == set(EventKind)
    found = {word for row in rows.values() for word in re.findall(r"\*?[A-Z]\w+[a-z]\*?", row)}
    assert found == {f"*{each}*" if each in WARNINGS else str(each) for each in Reason}
