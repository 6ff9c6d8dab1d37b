"""Engines as a user has them: by the SDK, by `penstock run`, and when things die meanwhile."""

from __future__ import annotations

import os
import signal
import subprocess
import threading
import urllib.error
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import openai
import pytest

from tests.e2e.system import MARK, PENSTOCK, System, eventually, running

MODEL = {"model": "some-model", "engine": "simulated"}
CHAT: Any = [{"role": "user", "content": "What is a gateway?"}]


@pytest.fixture(scope="module")
def system(folder: Path) -> Iterator[System]:
    """A machine whose own deployment nobody asks for anything here."""
    with running(folder, "--engine", "simulated", "--name", "sim", within=60) as system:
        yield system


def penstock_run(system: System, *words: str) -> subprocess.Popen[str]:
    """`penstock run`, asking this system."""
    at = ["--admin", f"127.0.0.1:{system.admin_port}", "--data-dir", str(system.data)]
    return subprocess.Popen(
        [str(PENSTOCK), "run", "some-model", "Hello", "--engine", "simulated", *words, *at],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, MARK: system.run_id},
    )


def engine_of(system: System, state: str) -> Any:
    """The one engine, once it is in this state."""

    def found() -> Any:
        known = system.admin("engines")
        return known[0] if known and known[0]["state"] == state else None

    return eventually(found, within=30, what=f"an engine that is {state}")


def none_is_left(system: System) -> None:
    """Returns once neither engine nor replica of one is there."""

    def gone() -> bool:
        return not system.admin("engines") and len(system.processes("penstock.replica")) == 1

    eventually(gone, within=30, what="no engine")


def test_the_first_request_to_an_engine_is_answered_and_its_name_is_free_at_once(
    system: System,
) -> None:
    for number in range(3):
        made = system.change("POST", "engines", {**MODEL, "name": "scratch"})
        assert (made["state"], made["message"]) == ("ready", "")
        assert made["base_url"] == system.base_url
        assert made["ready_ms"] > 0
        client = openai.OpenAI(base_url=made["base_url"], api_key="none", max_retries=0)
        reply = client.chat.completions.create(model=made["name"], messages=CHAT, max_tokens=9)
        assert reply.choices[0].message.content, number
        system.change("DELETE", f"engines/{made['id']}")
    with pytest.raises(openai.NotFoundError):
        client.chat.completions.create(model="scratch", messages=CHAT)
    none_is_left(system)


def test_an_engine_that_cannot_start_is_told_with_the_replicas_own_words(system: System) -> None:
    keyless = {"model": "gpt", "engine": "openai", "engine_args": {"api_key_env": "NO_SUCH_KEY"}}
    with pytest.raises(urllib.error.HTTPError) as refused:
        system.change("POST", "engines", keyless)
    assert refused.value.code == 409
    assert "NO_SUCH_KEY" in refused.value.read().decode()
    none_is_left(system)


def test_run_prints_the_answer_alone_and_gives_its_engine_back(system: System) -> None:
    asked = penstock_run(system, "--max-tokens", "5")
    out, err = asked.communicate(timeout=60)
    assert (asked.returncode, len(out.split())) == (0, 5), err
    assert err.startswith("run-")
    none_is_left(system)


@pytest.mark.parametrize(
    ("state", "number"),
    [("starting", signal.SIGINT), ("ready", signal.SIGINT), ("ready", signal.SIGTERM)],
)
def test_run_gives_its_engine_back_when_it_is_told_to_stop(
    system: System, state: str, number: signal.Signals
) -> None:
    asked = penstock_run(system, "--engine-arg", "tokens_per_second=1", "--max-tokens", "500")
    engine_of(system, state)
    asked.send_signal(number)
    asked.communicate(timeout=30)
    assert asked.returncode == 128 + signal.SIGINT
    none_is_left(system)


def test_run_gives_its_engine_back_when_its_answer_breaks_off(system: System) -> None:
    asked = penstock_run(system, "--engine-arg", "die_after_tokens=3", "--max-tokens", "50")
    _, err = asked.communicate(timeout=60)
    assert asked.returncode == 1
    assert "penstock run: error:" in err
    none_is_left(system)


def test_a_head_that_dies_while_somebody_waits_leaves_an_engine_that_gets_ready(
    system: System,
) -> None:
    answers: list[object] = []

    def ask() -> None:
        try:
            answers.append(system.change("POST", "engines", {**MODEL, "name": "orphan"}))
        except OSError as error:
            answers.append(error)

    asking = threading.Thread(target=ask)
    asking.start()
    engine_of(system, "starting")
    system.kill(system.pid_of("head"))
    asking.join(60)
    assert isinstance(answers[0], OSError)
    made = engine_of(system, "ready")
    assert (made["name"], made["ready_ms"] > 0) == ("orphan", True)
    client = openai.OpenAI(base_url=made["base_url"], api_key="none")
    assert client.chat.completions.create(model="orphan", messages=CHAT, max_tokens=3).choices
    system.change("DELETE", "engines/orphan")
    none_is_left(system)
