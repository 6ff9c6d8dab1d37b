"""Adapters that come into the real engine on calls, over two slots."""

from __future__ import annotations

import asyncio
import json
import random
import shutil
from collections.abc import AsyncIterator
from contextlib import aclosing
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import pytest_asyncio

from penstock.adapters.fitness import FamilyLimits
from penstock.replica.adapters.values import AdapterUnavailable, Prepared
from penstock.replica.calls.answers import events_of
from penstock.replica.default_model import shipped
from penstock.replica.values import AdapterSource, Chunk, EngineError
from penstock.replica.vllm.engine import VllmEngine
from penstock.replica.vllm.lora.adapters import VllmWeights
from tests.fakes.lora_adapters import random_adapter
from tests.replica.vllm.conftest import ADAPTERS, CONTENTS
from tests.replica.vllm.talking import (
    COMPLETIONS,
    ON_THE_SHARED_ENGINE,
    Answer,
    ask,
    body,
    call,
    chat,
    until,
)

pytestmark = ON_THE_SHARED_ENGINE


@pytest_asyncio.fixture(autouse=True, loop_scope="session")
async def _as_it_began(engine: VllmEngine) -> AsyncIterator[None]:
    """Afterwards the engine holds what it held at first."""
    yield
    for adapter in engine.adapters.held():
        await until(lambda: not engine.adapters.in_use(), "nobody uses an adapter")
        assert await engine.adapters.unload(adapter.name)
    for adapter in ADAPTERS:
        await engine.adapters.load(adapter)


def _made(directory: Path, seed: int, **fields: Any) -> AdapterSource:
    """An adapter whose content the agent has."""
    digest = random_adapter(directory / f"{seed}", seed, **fields)
    CONTENTS.directories[digest] = directory / f"{seed}"
    return AdapterSource(f"made-{seed}@1", digest=digest)


async def _say(engine: VllmEngine, adapter: AdapterSource | None, **fields: Any) -> Answer:
    """The adapter's answer, or the base model's; asked for until there is room."""
    name, digest = (adapter.name, adapter.digest) if adapter else ("", "")
    while True:
        content = chat(max_tokens=8, ignore_eos=True, **fields)
        answer = await ask(engine, content, adapter=name, adapter_digest=digest)
        if answer.head is not None:
            assert answer.finished.adapter == name
            return answer
        assert answer.failed.code == "adapter_slots_full", answer.failed
        await asyncio.sleep(0)


async def _in_vllm(engine: VllmEngine) -> int:
    """How many adapters vLLM itself says that it has."""
    return len(await engine.launched.llm.list_loras())


async def test_eight_adapters_over_two_slots_each_answer_with_their_own_weights(
    engine: VllmEngine, tmp_path: Path
) -> None:
    ours = list(engine.adapters.held())
    adapters = [_made(tmp_path, seed) for seed in range(6)] + [
        AdapterSource(one.name, one.source, one.digest) for one in ours
    ]
    for one in ours:
        source = shipped(one.source)
        assert source is not None
        CONTENTS.directories[one.digest] = source
    asked = [*adapters, None]
    alone = {one: (await _say(engine, one)).text() for one in asked}
    assert len(set(alone.values())) == 9
    traffic = asked * 4
    random.Random(11).shuffle(traffic)
    for begin in range(0, len(traffic), 6):
        some = traffic[begin : begin + 6]
        answers = await asyncio.gather(*(_say(engine, one) for one in some))
        assert [answer.text() for answer in answers] == [alone[one] for one in some]
    assert await _in_vllm(engine) == len(engine.adapters.held()) == 2


async def test_what_an_adapter_answers_is_what_vllm_itself_answers(
    engine: VllmEngine, tmp_path: Path
) -> None:
    from vllm import SamplingParams

    adapter = _made(tmp_path, 20)
    prompt = list(range(10, 40))
    content = body(prompt=prompt, max_tokens=12, ignore_eos=True)
    answer = await ask(
        engine,
        content,
        COMPLETIONS,
        adapter=adapter.name,
        adapter_digest=adapter.digest,
        token_groups=True,
    )
    ours = [token for group in answer.groups for token in group.token_ids]
    parameters = SamplingParams(temperature=0, max_tokens=12, ignore_eos=True)
    request = engine._weights._requests[adapter.name]
    own: list[int] = []
    async for output in engine.launched.llm.generate(
        {"prompt_token_ids": prompt}, parameters, "own", lora_request=request
    ):
        own = list(output.outputs[0].token_ids)
    assert ours == own != []


async def test_a_stream_of_the_base_model_is_the_same_while_adapters_come_and_go(
    engine: VllmEngine, tmp_path: Path
) -> None:
    adapters = [_made(tmp_path, seed) for seed in range(30, 34)]
    content = chat("Tell me a story.", max_tokens=150, ignore_eos=True, stream=True)
    alone = (await ask(engine, content)).text()
    async with asyncio.TaskGroup() as tasks:
        streams = [tasks.create_task(ask(engine, content)) for _ in range(2)]
        for adapter in adapters:
            await _say(engine, adapter)
    assert [stream.result().text() for stream in streams] == [alone] * 2


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"rank": 64}, "its rank is 64"),
        ({"width": 96}, "is 96 to 96 wide in it"),
        ({"modules": ("x_proj",)}, "x_proj, which its base model does not have"),
        ({"use_dora": True}, "use_dora"),
    ],
)
async def test_an_adapter_that_does_not_fit_is_refused_and_the_engine_unharmed(
    engine: VllmEngine, tmp_path: Path, fields: dict[str, Any], words: str
) -> None:
    adapter = _made(tmp_path, 40, **fields)
    failed = (await ask(engine, chat(), adapter=adapter.name, adapter_digest=adapter.digest)).failed
    assert (failed.status, failed.code, failed.retryable) == (503, "adapter_load_failed", True)
    assert words in failed.message
    assert [one.name for one in engine.adapters.held()] == ["pirate@1", "json@1"]
    assert adapter.name in [failure.name for failure in engine.adapters.failed()]
    assert (await _say(engine, None)).text()


async def test_bytes_that_rotted_are_refused(engine: VllmEngine, tmp_path: Path) -> None:
    adapter = _made(tmp_path, 41)
    weights = tmp_path / "41" / "adapter_model.safetensors"
    rotten = bytearray(weights.read_bytes())
    rotten[-1] ^= 1
    weights.write_bytes(rotten)
    with pytest.raises(AdapterUnavailable, match=f"they are to be {adapter.digest}"):
        await engine.adapters.load(adapter)


async def test_what_vllm_refuses_leaves_nothing_in_it(engine: VllmEngine, tmp_path: Path) -> None:
    before = await _in_vllm(engine)
    await engine.adapters.unload("json@1")
    gone = Prepared(AdapterSource("gone@1", digest="d" * 64), tmp_path / "gone")
    with pytest.raises(EngineError, match=r"adapter gone@1: "):
        await engine._weights.add(gone)
    random_adapter(tmp_path / "odd", 1, modules=("x_proj",))
    odd = Prepared(AdapterSource("odd@1", digest="d" * 64), tmp_path / "odd")
    with pytest.raises(EngineError, match=r"adapter odd@1: "):
        await engine._weights.add(odd)
    assert await _in_vllm(engine) == before - 1
    assert (await ask(engine, chat(), adapter="odd@1")).failed.code == "model_not_found"
    adapter = _made(tmp_path, 50)
    assert (await _say(engine, adapter)).text() != (await _say(engine, None)).text()


async def test_a_directory_that_vanishes_harms_nobody(engine: VllmEngine, tmp_path: Path) -> None:
    adapter, *others = (_made(tmp_path, seed) for seed in (60, 61, 62))
    before = (await _say(engine, adapter)).text()
    shutil.rmtree(tmp_path / "60")
    assert (await _say(engine, adapter)).text() == before
    for other in others:
        await _say(engine, other)
    with pytest.raises(AdapterUnavailable, match="there is no directory"):
        await engine.adapters.load(adapter)
    assert (await _say(engine, others[0])).text()


async def test_other_bytes_at_the_same_place_are_not_answered_from_the_prefix_cache(
    engine: VllmEngine, tmp_path: Path
) -> None:
    story = "Once upon a time there was a gateway. " * 30
    place = AdapterSource("place@1", str(tmp_path / "place"))
    texts = []
    for seed in (70, 71):
        random_adapter(tmp_path / "place", seed)
        await engine.adapters.load(place)
        held = engine.adapters.find("place@1")
        assert held is not None
        texts.append((await ask(engine, chat(story), adapter="place@1")).text())
        assert await engine.adapters.unload("place@1")
    other = _made(tmp_path, 71)
    fresh = await ask(engine, chat(story), adapter=other.name, adapter_digest=other.digest)
    assert texts[0] != texts[1] == fresh.text()


async def test_an_adapter_stays_until_vllm_is_done_with_its_last_request(
    engine: VllmEngine, tmp_path: Path
) -> None:
    adapter = _made(tmp_path, 80)
    content = chat(max_tokens=2000, ignore_eos=True, stream=True)
    asked = call(content, adapter=adapter.name, adapter_digest=adapter.digest)
    async with aclosing(events_of(engine.answer, asked)) as events:
        async for event in events:
            if isinstance(event, Chunk):
                break
        assert engine.adapters.in_use() == {adapter.name}
        assert not await engine.adapters.unload(adapter.name)
    await until(lambda: not engine.adapters.in_use(), "the call has ended")
    assert await engine.adapters.unload(adapter.name)
    states = engine.launched.llm.output_processor.request_states
    assert not [state for state in states.values() if state.lora_name]


class _Unwilling:
    """As vLLM's engine client, which lets go of an adapter only where it is `willing`."""

    output_processor = SimpleNamespace(request_states={})

    def __init__(self) -> None:
        self.willing = False

    async def add_lora(self, request: Any) -> bool:
        return True

    async def pin_lora(self, lora_id: int) -> bool:
        return True

    async def remove_lora(self, lora_id: int) -> bool:
        if not self.willing:
            raise RuntimeError("busy")
        return True


async def test_an_adapter_that_vllm_does_not_let_go_of_is_kept_and_tried_again() -> None:
    weights, llm, requests = VllmWeights(None), _Unwilling(), dict[str, Any]()
    weights.open(llm, SimpleNamespace(lora_requests=requests), FamilyLimits())
    await weights.add(Prepared(AdapterSource("a@1", digest="d"), Path("/a")))
    assert not await weights.remove("a@1")
    assert list(requests) == list(weights.uses()) == ["a@1"], "calls find it as before"
    llm.willing = True
    assert await weights.remove("a@1")
    assert not requests


async def test_a_deadline_holds_while_the_adapter_is_loaded(engine: VllmEngine) -> None:
    digest = "5" * 64
    CONTENTS.slow.add(digest)
    answer = await ask(engine, chat(), adapter="slow@1", adapter_digest=digest, deadline_ms=30)
    CONTENTS.go.set()
    assert (answer.failed.status, answer.failed.code) == (504, "deadline_exceeded")


async def test_the_first_answer_of_an_adapter_names_it_streamed_and_whole(
    engine: VllmEngine, tmp_path: Path
) -> None:
    adapter = _made(tmp_path, 90)
    streamed = await ask(
        engine,
        chat(stream=True),
        model="penstock-mini:made",
        adapter=adapter.name,
        adapter_digest=adapter.digest,
    )
    assert {event["model"] for event in streamed.sse} == {"penstock-mini:made"}
    assert json.loads((await _say(engine, adapter)).body)["model"] == "penstock-mini"
