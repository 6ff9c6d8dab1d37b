"""`penstock engines` and `penstock run`, against a real admin API."""

from __future__ import annotations

import json

import pytest

from tests.control.cli.conftest import AskedHead
from tests.fakes.control_values import node

START = ("engines", "start", "penstock-mini", "--engine", "simulated", "--no-wait")


@pytest.fixture
def head(asked_head: AskedHead) -> AskedHead:
    """One that has a node."""
    cluster = asked_head.admin.cluster
    cluster.replace(cluster.view().with_node(node()))
    return asked_head


def test_an_engine_is_started_listed_shown_and_stopped(head: AskedHead) -> None:
    said = head.run(*START, "--name", "try", "--engine-arg", "ttft_ms=5", "--ttl", "60")
    assert (said.exit_code, said.stderr) == (0, "")
    assert said.stdout == "try is starting: http://127.0.0.1:8080/v1\n"
    listed = " ".join(head.run("engines", "list").stdout.split())
    assert listed == (
        "Engines name state start ready ms model by ends"
        " try starting penstock-mini admin 2026-01-02 12:01"
    )
    shown = head.run("engines", "show", "try").stdout.splitlines()
    assert 'engine_args: {"ttft_ms": "5"}' in shown
    assert "start: " in shown
    told = json.loads(head.run("engines", "show", "try", "--json").stdout)
    assert (told["state"], told["start"], told["by"]) == ("starting", None, "admin")
    assert head.run("engines", "stop", told["id"]).stdout == f"{told['id']} is ended\n"
    gone = head.run("engines", "stop", "try")
    assert (gone.exit_code, gone.stdout) == (1, "")
    assert "penstock engines stop: error: no engine 'try': there are none" in gone.stderr


def test_what_is_asked_for_reaches_the_head_whole(head: AskedHead) -> None:
    for words, error in (
        (("--ttl", "3000000"), "ttl_s"),
        (("--adapter", "pirate@1"), "adapters names 'pirate@1'"),
        (("--name", "No"), "name is 'No'"),
        (("--engine-arg", "oops"), "engine setting 'oops'"),
    ):
        refused = head.run(*START, *words)
        assert refused.exit_code == 1
        assert error in refused.stderr
    assert head.run("engines", "list", "--json").stdout.strip() == "[]"


def test_run_tells_why_there_is_no_engine(asked_head: AskedHead) -> None:
    refused = asked_head.run("run", "penstock-mini", "Hello", "--engine", "simulated")
    assert (refused.exit_code, refused.stdout) == (1, "")
    assert refused.stderr.startswith("penstock run: error: ")
    assert "no engine is started: no node is ready" in refused.stderr


def test_run_asks_nothing_that_is_no_text(head: AskedHead) -> None:
    refused = head.run("run", "penstock-mini", "\udcff", "--engine", "simulated")
    assert (refused.exit_code, refused.stdout) == (1, "")
    assert "penstock run: error: the question is no text" in refused.stderr
    assert head.run("engines", "list", "--json").stdout.strip() == "[]"


def test_a_name_that_is_no_text_is_one_line(head: AskedHead) -> None:
    refused = head.run("engines", "show", "\udcff")
    assert (refused.exit_code, refused.stdout) == (1, "")
    assert refused.stderr.startswith("penstock engines show: error: what is given is no text: ")


def test_status_shows_engines_apart(head: AskedHead) -> None:
    head.run("deploy", "mini", "--model", "penstock-mini", "--engine", "simulated")
    assert "Engines" not in head.run("status").stdout
    head.run(*START, "--name", "try")
    lines = head.run("status").stdout.splitlines()
    deployments, engines = lines.index("Deployments"), lines.index("Engines")
    assert [line.split()[0] for line in lines[deployments + 2 : engines] if line[:1].strip()] == [
        "mini"
    ]
    assert lines[engines + 2].split()[0] == "try"
