"""`penstock rollout`, against a real admin API."""

from __future__ import annotations

import json

from penstock.control.state.rollout.deployment import Deployment
from tests.control.cli.conftest import AskedHead
from tests.fakes.control_values import MINI, in_service, replica

DEPLOY = ("deploy", "mini", "--engine", "simulated")


def served(head: AskedHead) -> Deployment:
    """Has the present revision serve with one replica of it, and none of another."""
    cluster = head.admin.cluster
    view = cluster.view()
    known = in_service(view.deployments[MINI])
    one = replica(uid=known.uid, digest=known.template_digest)
    cluster.replace(view.with_deployment(known).with_replica(one))
    return known


def test_history_says_what_was_served_and_undo_goes_back(asked_head: AskedHead) -> None:
    asked_head.run(*DEPLOY, "--model", "m", "--engine-arg", "ttft_ms=1", "--reason", "a start")
    served(asked_head)
    asked_head.run("deploy", "mini", "--engine-arg", "ttft_ms=2", "--reason", "faster")
    told = asked_head.run("rollout", "history", "mini")
    assert told.exit_code == 0, told.stderr
    _, _, second, first = told.stdout.splitlines()
    assert second.split()[:4] == ["2", "(current)", "rolling", "out"]
    assert first.split()[:4] == ["1", "served", "m", "ttft_ms=1"]
    assert "a start" in first
    undone = asked_head.run("rollout", "undo", "mini")
    assert undone.stdout.startswith("mini: revision 3 rolling out, 1 of 1 ready")
    spec = json.loads(asked_head.run("rollout", "history", "mini", "--json").stdout)[0]["spec"]
    assert spec["engine_args"] == {"ttft_ms": "1"}


def test_settings_have_a_history_of_their_own(asked_head: AskedHead) -> None:
    asked_head.run(*DEPLOY, "--model", "m")
    asked_head.run("set", "mini", "max_queued=7", "--reason", "a crowd")
    asked_head.run("set", "mini", "max_queued=9", "kv_pressure=0.5")
    told = asked_head.run("rollout", "history", "mini", "--settings", "--json")
    second, first = json.loads(told.stdout)
    assert second["before"] == {"max_queued": 7, "kv_pressure": 0.93}
    assert first["reason"] == "a crowd"
    assert "7 -> 9" in asked_head.run("rollout", "history", "mini", "--settings").stdout

    def undone(*to: str) -> int:
        made = asked_head.run("rollout", "undo", "mini", "--settings", "--json", *to)
        assert made.exit_code == 0, made.stderr
        return int(json.loads(made.stdout)["spec"]["max_queued"])

    assert undone() == 7
    assert undone("--to", "2") == 9
    assert undone("--to", "0") == 100


def test_waiting_ends_once_the_revision_serves(asked_head: AskedHead) -> None:
    asked_head.run(*DEPLOY, "--model", "m")
    served(asked_head)
    for verb in (("rollout", "status", "mini"), ("set", "mini", "max_queued=3", "--wait")):
        told = asked_head.run(*verb)
        assert told.exit_code == 0, told.stderr
        assert told.stderr.splitlines()[-1] == "mini: revision 1 serves, 1 replica ready"


def test_status_without_waiting_says_how_far_it_has_come(asked_head: AskedHead) -> None:
    asked_head.run(*DEPLOY, "--model", "m")
    told = asked_head.run("rollout", "status", "mini", "--no-wait")
    assert told.stdout.startswith("mini: revision 1 rolling out, 0 of 1 ready: no node is ready")


def test_a_paused_rollout_is_not_waited_for(asked_head: AskedHead) -> None:
    asked_head.run(*DEPLOY, "--model", "m")
    served(asked_head)
    asked_head.run("deploy", "mini", "--engine-arg", "ttft_ms=2")
    assert asked_head.run("rollout", "pause", "mini").exit_code == 0
    told = asked_head.run("rollout", "status", "mini")
    assert told.exit_code == 1
    assert "is paused: `penstock rollout resume mini` goes on" in told.stderr
    assert asked_head.run("rollout", "resume", "mini").stdout.startswith("mini: revision 2 rolling")


def test_what_is_not_there_is_one_line(asked_head: AskedHead) -> None:
    for verb in ("status", "history", "undo", "restart", "pause", "resume"):
        told = asked_head.run("rollout", verb, "nobody")
        assert told.exit_code == 1
        assert told.stderr.startswith(f"penstock rollout {verb}: error: no deployment 'nobody'")
    asked_head.run(*DEPLOY, "--model", "m")
    told = asked_head.run("rollout", "undo", "mini", "--to", "7")
    assert "no revision 7 is kept: there are 1" in told.stderr


def test_whoever_hurries_has_streams_handed_over_at_once(asked_head: AskedHead) -> None:
    asked_head.run(*DEPLOY, "--model", "m")
    served(asked_head)
    commands = (
        ("rollout", "restart", "mini"),
        ("scale", "mini", "2"),
        ("deploy", "mini", "--model", "n"),
        ("rollout", "undo", "mini", "--to", "1"),
    )
    for command in commands:
        made = asked_head.run(*command, "--hand-over", "--json")
        assert made.exit_code == 0, made.stderr
        assert json.loads(made.stdout)["hand_over"], command
        asked_head.run("set", "mini", f"max_queued={len(command)}")
