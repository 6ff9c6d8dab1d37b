"""`penstock record`, against a real admin API."""

from __future__ import annotations

import json

import pytest

from tests.control.cli.conftest import AskedHead


@pytest.fixture
def head(asked_head: AskedHead) -> AskedHead:
    asked_head.run("deploy", "chat", "--engine", "simulated", "--model", "m")
    return asked_head


def test_a_recording_is_started_shown_listed_stopped_and_deleted(head: AskedHead) -> None:
    made = head.run(
        *("record", "start", "monday", "chat", "share-permille=1000", "until.requests=500"),
        *("endpoints=/v1/chat/completions", "--json"),
    )
    assert made.exit_code == 0, made.stderr
    told = json.loads(made.stdout)
    assert told["until"] == {"requests": 500, "mib": 256, "at": None}
    assert "endpoints: /v1/chat/completions\n" in head.run("record", "show", "monday").stdout
    assert json.loads(head.run("record", "list", "--json").stdout) == [told]
    stopped = head.run("record", "stop", "monday")
    assert stopped.stdout == "recording monday is stopped: redacted requests of chat\n"
    assert "somebody stopped it" in head.run("record", "list").stdout
    deleted = head.run("record", "delete", "monday", "--yes")
    assert deleted.stdout == "recording monday is deleted\n"
    assert "no recording 'monday'" in head.run("record", "export", "monday").stderr


def test_the_file_comes_as_it_is(head: AskedHead) -> None:
    head.run("record", "start", "monday", "chat")
    head.admin.recorded.parts = [b'{"a": 1}\n', b'{"b": 2}\n']
    assert head.run("record", "export", "monday").stdout == '{"a": 1}\n{"b": 2}\n'


def test_wrong_words_are_told_by_name_and_value(head: AskedHead) -> None:
    wrong = head.run("record", "start", "monday", "chat", "until.requests=0")
    assert "until.requests" in wrong.stderr
    assert "not 0" in wrong.stderr
    assert "there is no such key" in head.run("record", "start", "m", "chat", "pairs=3").stderr


def test_nothing_is_forgotten_without_yes_where_nobody_can_be_asked(head: AskedHead) -> None:
    head.run("record", "start", "monday", "chat")
    refused = head.run("record", "delete", "monday")
    assert "say --yes" in refused.stderr
    assert "monday" in head.run("record", "list").stdout
