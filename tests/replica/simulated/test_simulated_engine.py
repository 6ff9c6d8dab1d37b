"""The simulated engine's settings, and calls of the replica itself."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from penstock.replica.calls.answers import events_of
from penstock.replica.calls.inbox import Inbox
from penstock.replica.simulated.engine import SimulatedEngine, SimulatedSettings, parse_simulated
from penstock.replica.values import (
    AdapterSource,
    Call,
    CannotLoad,
    Chunk,
    EngineError,
    Failed,
    Finished,
    Head,
)


@asynccontextmanager
async def running(**engine_args: str) -> AsyncIterator[SimulatedEngine]:
    """An engine without a server before it."""
    inbox = Inbox()
    named = (AdapterSource("pirate@1", digest="d" * 64),)
    engine = SimulatedEngine("m", "served", named, engine_args, inbox)
    inbox.open()
    try:
        await engine.start()
        yield engine
    finally:
        inbox.close()
        await engine.stop()


def call(**fields: object) -> Call:
    """A completion call."""
    body = json.dumps({"prompt": "Hello", **fields}).encode()
    return Call("own", "/v1/completions", body, "served")


def test_settings_are_numbers_with_limits() -> None:
    parsed = parse_simulated({"ttft_ms": "20", "tokens_per_second": "2.5", "per_request": "1"})
    assert parsed == SimulatedSettings(ttft_ms=20, tokens_per_second=2.5, per_request=1)
    assert parse_simulated({}) == SimulatedSettings()


@pytest.mark.parametrize(
    ("key", "text"),
    [
        ("ttft_ms", "1.5"),
        ("ttft_ms", "-1"),
        ("ttft_ms", ""),
        ("answer_tokens", "0"),
        ("max_running", "0"),
        ("refuse_share", "nan"),
        ("per_request", "yes"),
        ("tokens_per_second", "inf"),
    ],
)
def test_a_wrong_value_is_named_with_its_limits(key: str, text: str) -> None:
    with pytest.raises(CannotLoad, match=f"{key} is '{text}': it must be a"):
        parse_simulated({key: text})


def test_an_unknown_setting_is_answered_with_the_known_ones() -> None:
    with pytest.raises(CannotLoad, match="no setting 'rate': it knows ttft_ms, tokens_per_second"):
        parse_simulated({"rate": "5"})


async def test_a_call_of_the_replica_itself_is_answered() -> None:
    async with running() as engine:
        events = [event async for event in events_of(engine.answer, call(max_tokens=5))]
    assert [type(event) for event in events] == [Head, Chunk, Finished]
    assert isinstance(events[-1], Finished)
    assert events[-1].completion_tokens == 5
    assert events[-1].finish_reasons == ("length",)


async def test_a_bad_call_fails_with_the_clients_fault() -> None:
    async with running() as engine:
        (event,) = [event async for event in events_of(engine.answer, call(max_tokens=0))]
    assert isinstance(event, Failed)
    assert (event.status, event.fault, event.retryable) == (400, "client", False)


async def test_a_probe_returns_while_the_engine_lives() -> None:
    async with running() as engine, asyncio.timeout(10):
        await engine.probe()


async def test_a_probe_of_an_engine_that_cannot_answer_raises() -> None:
    async with running() as engine, asyncio.timeout(10):
        engine._die(0, b"struck")
        assert str(await engine.died()) == "struck"
        with pytest.raises(EngineError, match="struck"):
            await engine.probe()


async def test_engines_of_the_same_words_have_equal_hashes_whatever_their_pace() -> None:
    async with running() as one, running(ttft_ms="1", max_running="3") as same:
        hashes = {(await engine.start()).config_hash for engine in (one, same)}
    assert len(hashes) == 1
    async with running(answer_tokens="3") as short, running(per_request="1") as other:
        hashes |= {(await engine.start()).config_hash for engine in (short, other)}
    assert len(hashes) == 3


async def test_an_engine_says_why_it_does_not_resume() -> None:
    async with running() as one, running(no_resume="its self-test fails") as other:
        assert (one.no_resume(), other.no_resume()) == ("", "its self-test fails")


async def test_adapters_come_and_go() -> None:
    async with running() as engine:
        assert [adapter.name for adapter in engine.adapters.held()] == ["pirate@1"]
        assert await engine.adapters.unload("pirate@1")
        assert await engine.adapters.unload("ghost@1")
        await engine.adapters.load(AdapterSource("json@1", "y"))
        assert [adapter.name for adapter in engine.adapters.held()] == ["json@1"]


@pytest.mark.parametrize(
    ("text", "fails"), [("pirate@1,x@1", True), ("x@1", False), ("1", True), ("0", False)]
)
async def test_loads_fail_by_name_or_by_share(text: str, fails: bool) -> None:
    async with running(fail_adapter_loads=text) as engine:
        assert bool(engine.adapters.failed()) == fails


async def test_a_share_of_failing_loads_is_a_share() -> None:
    with pytest.raises(CannotLoad, match=r"fail_adapter_loads is '1\.5': it must be a share"):
        parse_simulated({"fail_adapter_loads": "1.5"})
