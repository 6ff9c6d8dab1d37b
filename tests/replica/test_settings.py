"""The replica's settings from its command line."""

from __future__ import annotations

import os

import pytest

from penstock.replica.settings import Settings, parse_settings
from penstock.replica.values import CannotLoad

_WORDS = ("--replica-id", "r", "--deployment", "d", "--engine", "simulated", "--model", "none")


def _parsed(*engine_args: str) -> Settings:
    words = [*_WORDS]
    for one in engine_args:
        words += ["--engine-arg", one]
    return parse_settings(words)


def test_a_deployment_says_how_long_its_engine_may_be_silent() -> None:
    settings = _parsed("engine_hung_after=60", "engine_stuck_after=1200", "ttft_ms=5")
    assert (settings.hung_after, settings.stuck_after) == (60, 1200)
    assert settings.engine_args == {"ttft_ms": "5"}


def test_an_engine_may_be_silent_for_ten_seconds_and_at_work_for_ten_minutes() -> None:
    settings = _parsed()
    assert (settings.hung_after, settings.stuck_after) == (10, 600)


@pytest.mark.parametrize("text", ["0", "-1", "soon"])
def test_a_silence_that_is_no_time_is_refused(text: str) -> None:
    with pytest.raises(CannotLoad, match=f"engine_hung_after={text}: say seconds"):
        _parsed(f"engine_hung_after={text}")


def test_tokens_are_taken_out_of_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PENSTOCK_CALLERS_TOKEN", "for-callers")
    monkeypatch.setenv("PENSTOCK_REPLICA_TOKEN", "r1:own")
    settings = parse_settings(_WORDS)
    assert (settings.callers_token, settings.own_token) == ("for-callers", "r1:own")
    assert not {"PENSTOCK_CALLERS_TOKEN", "PENSTOCK_REPLICA_TOKEN"} & os.environ.keys()
    assert "own" not in repr(settings).replace("own_token", "")
    assert parse_settings(_WORDS).callers_token == ""
