"""Every kind of answer, cut at every point; another engine, which is busy, goes on with it."""

from __future__ import annotations

import asyncio
import logging
import random
import shutil
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from penstock.replica.adapters.values import AdapterRoom
from penstock.replica.default_model import shipped
from penstock.replica.vllm.engine import VllmEngine
from tests.fakes.engine_nursery import NurseryEngine
from tests.replica.vllm.conftest import _SETTINGS, ADAPTERS, CONTENTS
from tests.replica.vllm.resume.cutting import checked, gone_on, streamed
from tests.replica.vllm.resume.kinds import KINDS, call
from tests.replica.vllm.talking import ON_THE_SHARED_ENGINE, SERVED, ask, chat, until

log = logging.getLogger(__name__)

pytestmark = [*ON_THE_SHARED_ENGINE, pytest.mark.long, pytest.mark.timeout(1800)]

_AT_ONCE = 12
_NEIGHBOURS = 8

_OTHERS = {
    "as the first": {},
    "without a prefix cache": {"enable_prefix_caching": "false"},
    "in small steps, of few blocks": {
        "max_num_batched_tokens": "48",
        "max_num_seqs": "24",
        "num_gpu_blocks_override": "40",
    },
}
"""The second engine's settings: none of them changes an answer."""


@asynccontextmanager
async def _engine(settings: dict[str, str]) -> AsyncIterator[VllmEngine]:
    room = AdapterRoom(contents=CONTENTS)
    told = {**_SETTINGS, **settings}
    engine = VllmEngine(SERVED, SERVED, ADAPTERS, told, room=room, forked=NurseryEngine())
    try:
        await engine.start()
        await until(lambda: engine.no_resume() is not None, "the self-test is over", 120)
        assert engine.no_resume() == ""
        yield engine
    finally:
        await engine.stop()


async def _neighbour(engine: VllmEngine, seed: int) -> None:
    rng = random.Random(seed)
    while True:
        fields = {"max_tokens": rng.randint(5, 60), "temperature": 1, "stream": True}
        await ask(engine, chat("Tell me about the Rhine. " * rng.randint(1, 12), **fields))


async def _all_cuts(first: VllmEngine, second: VllmEngine, kind: str, adapter: str) -> Counter[str]:
    asked = call(kind, f"long-{kind.replace(' ', '-')}-{adapter}", adapter=adapter)
    whole = await streamed(first, asked)
    found: Counter[str] = Counter()
    slots = asyncio.Semaphore(_AT_ONCE)

    async def cut(count: int) -> None:
        async with slots:
            rest = await gone_on(second, asked, whole, count)
        found["bytes" if checked(whole, count, rest) else "contents"] += 1

    await asyncio.gather(*(cut(count) for count in range(1, len(whole.chunks) + 1)))
    return found


@pytest.mark.parametrize("settings", _OTHERS.values(), ids=_OTHERS)
async def test_cut_anywhere_another_engine_goes_on(
    engine: VllmEngine, settings: dict[str, str]
) -> None:
    found: Counter[str] = Counter()
    async with _engine(settings) as second, asyncio.TaskGroup() as tasks:
        busy = [tasks.create_task(_neighbour(second, seed)) for seed in range(_NEIGHBOURS)]
        for kind in KINDS:
            for adapter in ("", "pirate@1"):
                found += await _all_cuts(engine, second, kind, adapter)
        log.warning("cuts: %s, preemptions: %d", dict(found), second.load().preemptions)
        for one in busy:
            one.cancel()
    assert found.total() > 1000


async def test_an_engine_of_two_workers_goes_on(engine: VllmEngine) -> None:
    del engine  # runs beside it
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("VLLM_CPU_OMP_THREADS_BIND", "0|1")  # one core for each
        await _two_workers()


async def _two_workers() -> None:
    async with _engine({"tensor_parallel_size": "2"}) as two:
        found: Counter[str] = Counter()
        for kind in KINDS:
            found += await _all_cuts(two, two, kind, "")
    log.warning("cuts: %s", dict(found))
    assert found.total() > 500


def _thinking(folder: Path) -> Path:
    """penstock-mini, whose calls of tools are taken for its thoughts."""
    model = shipped(SERVED)
    assert model is not None
    shutil.copytree(model, folder / "model")
    for name in ("tokenizer.json", "chat_template.jinja"):
        path = folder / "model" / name
        path.write_text(path.read_text().replace("tool_call>", "think>"))
    return folder / "model"


_THOUGHTFUL = {
    "reasoning_parser": "deepseek_r1",
    "structured_outputs_config": '{"backend": "xgrammar", "disable_any_whitespace": true}',
}


@pytest.mark.parametrize("kind", ["reasoning", "reasoning before a schema", "response reasoning"])
async def test_reasoning_goes_on(engine: VllmEngine, tmp_path: Path, kind: str) -> None:
    """Also where a grammar binds only what comes behind it."""
    del engine  # runs beside it
    model = str(await asyncio.to_thread(_thinking, tmp_path))
    thoughtful = VllmEngine(model, SERVED, (), _THOUGHTFUL, forked=NurseryEngine())
    try:
        await thoughtful.start()
        await until(lambda: thoughtful.no_resume() == "", "the self-test is over", 120)
        found = await _all_cuts(thoughtful, thoughtful, kind, "")
        log.warning("%s: cuts: %s", kind, dict(found))
        whole = await streamed(thoughtful, call(kind, "thoughts"))
        assert b"reasoning" in whole.body
    finally:
        await thoughtful.stop()
