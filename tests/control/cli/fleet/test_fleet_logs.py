"""`penstock logs --all`, `--request` and `--since`, against a real admin API."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta

import pytest

from penstock.control.errors import Unavailable
from penstock.control.machine_logs.lines import micros
from penstock.control.machine_logs.values import Author, LogQuestion
from tests.control.cli.conftest import AskedHead
from tests.fakes.control_values import node
from tests.fakes.logging_machine import NOON_US, LoggingMachine, line_of

GATEWAY, PROGRAM = Author("gateway", "gw-1"), Author("program", "mini")
SETTLED = line_of(GATEWAY, 2, "settled \u001b[2J")
ROUTED = line_of(PROGRAM, 1, "routed")


@pytest.fixture
def head(asked_head: AskedHead) -> AskedHead:
    cluster, logs = asked_head.admin.cluster, asked_head.admin.logs
    cluster.replace(cluster.view().with_node(node("n1")))
    logs.own.written = [SETTLED]
    logs.machines["n1:7000"] = LoggingMachine(ROUTED)
    return asked_head


def asked(head: AskedHead) -> LogQuestion:
    return head.admin.logs.machines["n1:7000"].asked[-1]


def test_each_line_has_who_wrote_it_before_it(head: AskedHead) -> None:
    told = head.run("logs", "--all")
    assert (told.exit_code, told.stderr) == (0, "")
    assert told.stdout == f"program mini on n1: {ROUTED.text}\ngateway gw-1: {SETTLED.text}\n"


def test_for_programs_each_line_is_an_object(head: AskedHead) -> None:
    told = head.run("logs", "--all", "--json")
    assert [json.loads(line)["process"] for line in told.stdout.splitlines()] == [
        "program",
        "gateway",
    ]


def test_what_is_missing_is_said_on_stderr_and_by_the_exit_code(head: AskedHead) -> None:
    head.admin.logs.machines["n1:7000"].error = Unavailable("it is away")
    told = head.run("logs", "--all")
    assert (told.exit_code, told.stdout) == (1, f"gateway gw-1: {SETTLED.text}\n")
    assert told.stderr == "penstock: error: node n1: it is away\n"


def test_a_request_is_looked_for_in_the_last_hour_unless_one_says_since_when(
    head: AskedHead,
) -> None:
    hour_ago = micros(datetime.now(UTC) - timedelta(hours=1))
    assert head.run("logs", "--request", "mine").exit_code == 0
    assert asked(head).ids == ("mine",)
    assert 0 <= asked(head).since_us - hour_ago < 60_000_000
    told = head.run("logs", "--request", "mine", "--since", "2026-01-31T12:00:00Z")
    assert (told.exit_code, asked(head).since_us) == (0, NOON_US)


def test_of_one_deployment_what_all_its_processes_wrote(head: AskedHead) -> None:
    head.run("logs", "mini", "--since", "2d", "--tail", "7")
    assert (asked(head).of, asked(head).tail) == ("mini", 7)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([], "name a replica or a deployment, or say --all"),
        (["--since", "1h"], "name a replica or a deployment, or say --all"),
        (["mini", "--all"], "mini and --all: say one of them"),
        (["--all", "--previous"], "--previous: of one replica"),
        (["--all", "--since", "yesterday"], "--since is 'yesterday': it must be such as 30m"),
        (["--all", "--since", "5"], "--since is '5'"),
    ],
)
def test_what_cannot_be_meant_is_refused(head: AskedHead, words: list[str], said: str) -> None:
    told = head.run("logs", *words)
    assert (told.exit_code, told.stdout) == (1, "")
    assert said in " ".join(told.stderr.split())
