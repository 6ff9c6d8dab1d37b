"""`penstock adapters` and `penstock alias`, against a real admin API."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.control.cli.conftest import AskedHead

PIRATE = str(Path("replica/penstock/replica/default_model/weights/adapters/pirate").resolve())
JSON = str(Path("replica/penstock/replica/default_model/weights/adapters/json").resolve())


@pytest.fixture
def head(asked_head: AskedHead) -> AskedHead:
    """A head that serves mini, with pirate@1."""
    deploy = ("deploy", "mini", "--model", "penstock-mini", "--engine", "simulated")
    assert asked_head.run(*deploy, "--max-adapters", "2").exit_code == 0
    added = asked_head.run("adapters", "add", "pirate@1", PIRATE, "--base", "mini")
    assert added.stdout.startswith("pirate@1 is registered (sha256 "), added.stderr
    return asked_head


def test_a_directory_here_is_uploaded_and_one_of_the_heads_is_read_there(head: AskedHead) -> None:
    add = ("adapters", "add", "pirate@2", PIRATE, "--base", "mini", "--label", "run=7")
    told = json.loads(head.run(*add, "--json").stdout)
    assert (told["source"], told["registered_by"]) == ("upload", "admin")
    assert told["labels"] == {"run": "7"}
    again = head.run(*add).stdout
    assert again.startswith("pirate@2 was registered before, with the same bytes")
    read = head.run("adapters", "add", "pirate@3", PIRATE, "--base", "mini", "--on-head", "--json")
    assert json.loads(read.stdout)["source"] == PIRATE
    assert json.loads(read.stdout)["digest"] == told["digest"]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("pirate", PIRATE, "--base", "mini"), "name@version"),
        (("pirate@1", JSON, "--base", "mini"), "taken by other bytes"),
        (("pirate@2", PIRATE, "--base", "other"), "base is 'other'"),
        (("pirate@2", "./nowhere", "--base", "mini"), "./nowhere is not there, on this machine"),
        (("pirate@2", __file__, "--base", "mini"), f"{__file__} is no directory, on this machine"),
        (
            ("pirate@2", "/nowhere", "--base", "mini", "--on-head"),
            "is not there, on the machine of",
        ),
        (("pirate@2", "/tmp", "--base", "mini"), "adapter_config.json"),
        (("pirate@2", PIRATE, "--base", "mini", "--label", "x"), "run=1234"),
    ],
)
def test_what_cannot_be_added_is_one_line_that_says_why(
    head: AskedHead, arguments: tuple[str, ...], words: str
) -> None:
    refused = head.run("adapters", "add", *arguments)
    assert refused.exit_code == 1
    (line,) = refused.stderr.strip().splitlines()
    assert line.startswith("penstock adapters add: error: ")
    assert words in line


def test_versions_are_listed_shown_compared_promoted_retired_and_removed(head: AskedHead) -> None:
    head.run("adapters", "add", "json@1", JSON, "--base", "penstock-mini")
    listed = head.run("adapters", "list").stdout
    assert "pirate@1" in listed
    assert "candidate" in listed
    shown = head.run("adapters", "show", "pirate@1").stdout
    assert "rank: 8\n" in shown
    differs = head.run("adapters", "diff", "pirate@1", "json@1").stdout
    assert "  - pirate@1\n  + json@1\n" in differs
    assert "family" not in differs
    assert set(json.loads(head.run("adapters", "diff", "pirate@1", "json@1", "--json").stdout)) > {
        "adapter",
        "digest",
    }
    promote = ("adapters", "promote", "pirate@1", "--to")
    assert head.run(*promote, "canary").stdout == "pirate@1 is canary\n"
    assert head.run("adapters", "promote", "pirate@1").stdout == "pirate@1 is live\n"
    assert "--to is 'up'" in head.run(*promote, "up").stderr
    assert json.loads(head.run("adapters", "where", "pirate@1", "--json").stdout) == []
    assert head.run("adapters", "retire", "pirate@1").stdout == "pirate@1 is retired\n"
    assert head.run("adapters", "remove", "pirate@1", "-y").stdout == "pirate@1 is deleted\n"
    assert (
        "no adapter pirate@1: registered are json"
        in head.run("adapters", "show", "pirate@1").stderr
    )


def test_the_policy_is_shown_and_changed(head: AskedHead) -> None:
    assert head.run("adapters", "policy").stdout == "evidence before: nothing\n"
    changed = head.run("adapters", "policy", "evidence_for=live,canary", "not_older_than_hours=24")
    assert changed.stdout == (
        "evidence before: canary, live\nof kind: adapter-regression, at most 24 h old\n"
    )
    refused = head.run("adapters", "promote", "pirate@1")
    assert "it has no evidence of kind adapter-regression" in refused.stderr
    assert head.run("adapters", "policy", "evidence_for=").stdout == "evidence before: nothing\n"


def test_an_alias_is_set_split_undone_remembered_and_deleted(head: AskedHead) -> None:
    head.run("adapters", "add", "pirate@2", PIRATE, "--base", "mini")
    assert head.run("alias", "set", "mini:sea", "pirate@1").stdout == "mini:sea names pirate@1\n"
    split = ("alias", "split", "mini:sea", "pirate@1=90", "pirate@2=10", "--preload", "1")
    assert head.run(*split).stdout == "mini:sea names pirate@1 90 %, pirate@2 10 %\n"
    (told,) = json.loads(head.run("alias", "list", "--json").stdout)
    assert (told["preload"], told["pinned"]) == (1, False)
    assert "mini:sea" in head.run("alias", "list").stdout
    assert head.run("alias", "undo", "mini:sea").stdout == "mini:sea names pirate@1\n"
    history = json.loads(head.run("alias", "history", "mini:sea", "--json").stdout)
    assert [move["undoes"] for move in history] == [True, False, False]
    assert head.run("alias", "delete", "mini:sea", "--yes").stdout == "mini:sea is deleted\n"


def test_a_move_keeps_what_it_does_not_say_of_the_alias(head: AskedHead) -> None:
    head.run("adapters", "add", "pirate@2", PIRATE, "--base", "mini")

    def told(verb: str, *arguments: str) -> tuple[int | None, bool]:
        it = json.loads(head.run("alias", verb, "mini:sea", *arguments, "--json").stdout)
        return it["preload"], it["pinned"]

    head.run("alias", "set", "mini:other", "pirate@1", "--preload", "3")
    assert told("set", "pirate@1") == (None, False)
    assert told("set", "pirate@1", "--preload", "1", "--pinned") == (1, True)
    assert told("set", "pirate@2") == (1, True)
    assert told("split", "pirate@1=1", "pirate@2=1") == (1, True)
    assert told("split", "pirate@1=1", "pirate@2=2", "--no-pinned") == (1, False)
    assert told("set", "pirate@1", "--pinned") == (1, True)
    assert told("set", "pirate@1", "--preload", "all") == (None, True)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("set", "mini", "pirate@1"), "DEPLOYMENT:ALIAS"),
        (("set", "mini:sea", "pirate@9"), "pirate@9 is not registered; of pirate there is 1"),
        (("set", "none:sea", "pirate@1"), "no deployment 'none'"),
        (("set", "mini:sea", "pirate@1", "--preload", "most"), "--preload is 'most'"),
        (("split", "mini:sea", "pirate@1"), "NAME@VERSION=WEIGHT"),
        (("split", "mini:sea", "pirate@1=1", "pirate@1=2"), "stands twice"),
        (("split", "mini:sea", "pirate@1=0"), "gives pirate@1 no share"),
        (("undo", "mini:sea"), "mini has no alias 'sea'"),
    ],
)
def test_what_no_alias_can_be_is_said(
    head: AskedHead, arguments: tuple[str, ...], words: str
) -> None:
    refused = head.run("alias", *arguments)
    assert refused.exit_code == 1
    assert words in refused.stderr
