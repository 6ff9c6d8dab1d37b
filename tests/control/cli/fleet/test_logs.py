"""`penstock logs`, against a real admin API and agents that say what they were told to."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest

from penstock.control.errors import NodeUnreachable
from penstock.control.managers.fleet.replica_logs import MOST_LINES, LogPart, LogRequest
from penstock.control.state.rollout.deployment import after_failure
from penstock.control.state.rollout.revision import Cause
from tests.control.cli.conftest import AskedHead
from tests.fakes.control_values import MINI, in_service, node, replica
from tests.fakes.waiting import until


@pytest.fixture
def head(asked_head: AskedHead) -> AskedHead:
    """Two replicas of a deployment on a node each."""
    asked_head.run("deploy", "mini", "--engine", "simulated", "--model", "m", "--replicas", "2")
    cluster, kept = asked_head.admin.cluster, asked_head.admin.logs.kept
    view = cluster.view().with_node(node("n1")).with_node(node("n2"))
    known = view.deployments[MINI]
    for number in (1, 2):
        view = view.with_replica(
            replica(
                f"mini-{number}",
                node_id=f"n{number}",
                uid=known.uid,
                digest=known.template_digest,
            )
        )
        kept[f"n{number}:7000", f"mini-{number}"] = [LogPart(f"of {number}\n".encode())]
    cluster.replace(view.with_deployment(in_service(known)))
    return asked_head


def test_a_replicas_log_is_shown_as_it_is_asked_for(head: AskedHead) -> None:
    told = head.run("logs", "mini-1", "--tail", "3", "--previous")
    assert (told.exit_code, told.stdout) == (0, "of 1\n")
    assert head.admin.logs.asked == [("n1:7000", "mini-1", LogRequest(3, previous=True))]


def test_of_a_deployment_each_replicas_lines_have_its_id_before_them(head: AskedHead) -> None:
    told = head.run("logs", "mini")
    assert told.stdout == "mini-1: of 1\nmini-2: of 2\n"


def test_the_replica_that_the_newest_revision_failed_by_is_shown_though_it_is_gone(
    head: AskedHead,
) -> None:
    head.run("deploy", "mini", "--engine-arg", "ttft_ms=1")
    cluster = head.admin.cluster
    view, now = cluster.view(), head.admin.clock.now()
    bad = after_failure(view.deployments[MINI], Cause("mini-3 failed: no", "mini-3"), now)
    cluster.replace(view.with_deployment(bad))
    head.admin.logs.kept["n2:7000", "mini-3"] = [LogPart(b"why\n")]
    told = head.run("logs", "mini")
    assert told.stdout == "mini-1: of 1\nmini-2: of 2\nmini-3: why\n"
    said = "revision 2 failed: mini-3 failed: no; `penstock logs mini-3` shows its log"
    assert said in head.run("rollout", "status", "mini", "--no-wait").stdout
    assert f"mini: {said}" in head.run("status").stdout


def test_one_log_that_breaks_off_leaves_the_others_and_the_exit_code_tells(
    head: AskedHead,
) -> None:
    gone = NodeUnreachable("it is silent")
    head.admin.logs.kept["n1:7000", "mini-1"] = [LogPart(b"begun\n", "cut"), gone]
    told = head.run("logs", "mini")
    assert (told.exit_code, told.stdout) == (1, "mini-1: begun\nmini-2: of 2\n")
    assert told.stderr.splitlines() == [
        "mini-1: penstock: cut",
        "mini-1: penstock: error: node n1: it is silent",
    ]
    head.admin.logs.kept["n1:7000", "mini-1"] = [gone]
    told = head.run("logs", "mini")
    assert (told.exit_code, told.stdout) == (1, "mini-2: of 2\n")
    assert "mini-1: penstock: error: " in told.stderr


@pytest.mark.parametrize("name", ["mini", "mini-1"])
def test_what_has_ended_is_not_followed(head: AskedHead, name: str) -> None:
    told = head.run("logs", name, "--previous", "--follow")
    assert (told.exit_code, head.admin.logs.asked) == (1, [])
    assert "--previous and --follow" in told.stderr


def test_following_a_deployment_ends_where_no_head_answers_for_it(head: AskedHead) -> None:
    logs = head.admin.logs
    for key in logs.kept:
        logs.kept[key] = [*logs.kept[key], NodeUnreachable("it is silent")]
    (head.data_dir / "admin.token").unlink()
    told = head.run("logs", "mini", "-f")
    assert told.exit_code == 1
    assert "no admin token" in told.stderr


def test_following_a_deployment_takes_in_all_of_a_replica_that_comes_and_ends_with_it(
    head: AskedHead,
) -> None:
    cluster, logs = head.admin.cluster, head.admin.logs
    for key in logs.kept:
        logs.kept[key] = [*logs.kept[key], NodeUnreachable("it is silent")]
    with ThreadPoolExecutor() as pool:
        running = pool.submit(head.run, "logs", "mini", "-f", "--tail", "1")
        asyncio.run(until(lambda: len(logs.asked) == 2, "both replicas to be followed"))
        logs.kept["n1:7000", "mini-9"] = [LogPart(b"new\n"), NodeUnreachable("it is silent")]
        view = cluster.view()
        uid = view.deployments[MINI].uid
        cluster.replace(view.with_replica(replica("mini-9", uid=uid)))
        asyncio.run(until(lambda: len(logs.asked) == 3, "the newcomer to be followed"))
        cluster.replace(replace(cluster.view(), deployments={}))
        told = running.result()
    assert [asked for *_, asked in logs.asked] == [
        *[LogRequest(1, follow=True)] * 2,
        LogRequest(MOST_LINES, follow=True),
    ]
    assert (told.exit_code, "mini-9: new\n" in told.stdout) == (1, True)


def test_a_name_that_is_nobodys_is_told_so(head: AskedHead) -> None:
    told = head.run("logs", "none")
    assert (told.exit_code, told.stdout) == (1, "")
    assert "penstock logs: error: no log of a replica 'none' is kept" in told.stderr
    assert "'replica'" not in told.stderr


def test_a_deployment_without_replicas_is_told_from_one_that_is_not_there(
    head: AskedHead,
) -> None:
    cluster = head.admin.cluster
    cluster.replace(replace(cluster.view(), replicas={}))
    assert "mini has no replica" in head.run("logs", "mini").stderr


def test_nothing_in_a_log_moves_the_terminals_cursor(head: AskedHead) -> None:
    head.admin.logs.kept["n1:7000", "mini-1"] = [LogPart(b"a\x1b[2Jb\tc\xff\n")]
    assert head.run("logs", "mini-1").stdout == "a\ufffd[2Jb\tc\ufffd\n"
