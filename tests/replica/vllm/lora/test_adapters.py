"""Adapters of the real engine: the call names one, the answer bears the name that was asked for."""

from __future__ import annotations

import asyncio
import json

from penstock.replica.values import AdapterSource
from penstock.replica.vllm.engine import VllmEngine
from tests.replica.vllm.talking import ON_THE_SHARED_ENGINE, SERVED, ask, chat

pytestmark = ON_THE_SHARED_ENGINE

_WAYS = {"": SERVED, "pirate@1": "penstock-mini:pirate", "json@1": "penstock-mini:json"}


async def _say(engine: VllmEngine, adapter: str) -> str:
    answer = await ask(engine, chat(stream=True), model=_WAYS[adapter], adapter=adapter)
    assert {event["model"] for event in answer.sse} == {_WAYS[adapter]}
    assert answer.finished.adapter == adapter
    return answer.text()


async def test_each_adapter_speaks_its_own_way_under_the_name_asked_for(
    engine: VllmEngine,
) -> None:
    assert len({await _say(engine, adapter) for adapter in _WAYS}) == 3


async def test_in_a_mixed_batch_each_gets_its_own_weights(engine: VllmEngine) -> None:
    alone = {adapter: await _say(engine, adapter) for adapter in _WAYS}
    wanted = list(_WAYS) * 4
    together = await asyncio.gather(*(_say(engine, adapter) for adapter in wanted))
    assert together == [alone[adapter] for adapter in wanted]


async def test_the_name_in_the_body_chooses_nothing(engine: VllmEngine) -> None:
    named = json.loads(chat()) | {"model": "json@1"}
    answer = await ask(engine, json.dumps(named).encode())
    assert answer.text() == (await ask(engine, chat())).text()
    assert answer.json["model"] == SERVED
    without = {k: v for k, v in json.loads(chat()).items() if k != "model"}
    answer = await ask(engine, json.dumps(without).encode(), model="m:json", adapter="json@1")
    assert answer.text() == await _say(engine, "json@1")


async def test_an_adapter_that_is_not_loaded_is_refused_and_never_the_base(
    engine: VllmEngine,
) -> None:
    failed = (await ask(engine, chat(), model="penstock-mini:x", adapter="x@1")).failed
    assert (failed.status, failed.code, failed.param) == (404, "model_not_found", "model")


async def test_adding_an_adapter_twice_is_no_error(engine: VllmEngine) -> None:
    await engine.adapters.load(AdapterSource("pirate@1", "penstock-mini/pirate"))
    assert [a.name for a in engine.adapters.held()] == ["pirate@1", "json@1"]


async def test_an_adapter_can_go_and_come_back(engine: VllmEngine) -> None:
    before = await _say(engine, "json@1")
    assert await engine.adapters.unload("json@1")
    assert await engine.adapters.unload("json@1")
    assert (await ask(engine, chat(), adapter="json@1")).failed.code == "model_not_found"
    await engine.adapters.load(AdapterSource("json@1", "penstock-mini/json"))
    assert await _say(engine, "json@1") == before
