"""Two thousand requests whose KV moves in both directions, while whoever takes part is killed."""

from __future__ import annotations

import asyncio
import itertools
import logging
import random
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import openai
import psutil
import pytest

from tests.e2e.moved_context import MODEL, Json, at_rest, runs, sets, up
from tests.e2e.streams import client_of, until
from tests.e2e.system import System

log = logging.getLogger(__name__)
OPERATIONS, AT_ONCE, KILLS, BETWEEN_KILLS = 2000, 12, 24, 30
PROMPTS = 400  # more than engines hold, so that KV moves to the end
ROUNDING = 0.3  # of a log probability in bfloat16
BOTH_WAYS = """
USES = {"prep_recv", "remote_send"}


async def route(request, engines, stats):
    sender, receiver = (list(engines) * 2)[hash(request.id) % 2 :][:2]
    try:
        kv, held = await receiver.prep_recv(request)
        await sender.remote_send(kv, begin=held)
    except EngineCallError:
        return RouteDecision(receiver)  # which may have half of it
    return RouteDecision(receiver, kv)
"""


@pytest.fixture(scope="module")
def pair(folder: Path) -> Iterator[System]:
    """Two engines of the default model without roles, with few blocks, so that they are used up;
    three tenths of them are enough leases for all that is done at once."""
    args = {"num_gpu_blocks_override": 480, "max_num_batched_tokens": 512}
    fields: Json = {"model": "penstock-mini", "engine_args": args, "replicas": 2}
    with up(folder, within=600, **fields) as system:
        yield system


@pytest.mark.long
@pytest.mark.timeout(5400)
def test_two_thousand_requests_with_kills_are_answered_rightly_or_failed_truthfully(
    pair: System,
) -> None:
    asyncio.run(_operations(pair))


async def _operations(system: System) -> None:
    chance = random.Random(29)
    prompts = [_prompt(chance, number) for number in range(PROMPTS)]
    sets(system, selection_policy="power_of_two")
    async with client_of(system) as client:
        expected = await _answers(client, prompts)
    await asyncio.to_thread(runs, system, BOTH_WAYS)
    work, moved = itertools.count(), list[int]()
    wrong, failed = list[tuple[int, int, object]](), list[str]()
    off: dict[bool, list[float]] = {True: [], False: []}

    async def worker() -> None:
        async with client_of(system) as client:
            while (number := next(work)) < OPERATIONS or not kills.done():
                index = chance.randrange(len(prompts))
                try:
                    said = await _answer(client, prompts[index])
                except openai.APIError as error:
                    failed.append(str(error))
                    await asyncio.sleep(0.2)  # as clients do that are told to try again
                    continue
                moved.append(said.moved)
                off[bool(said.moved)].append(said.distance(expected[index]))
                if unlike := expected[index].unlike(said):
                    wrong.append((number, index, unlike))

    async with asyncio.TaskGroup() as group:
        kills = group.create_task(_kills(system, chance, moved))
        for _ in range(AT_ONCE):
            group.create_task(worker())
    log.warning("%d answered, %d failed, %d tokens moved", len(moved), len(failed), sum(moved))
    for kind, values in off.items():
        if values:
            log.warning("KV moved %s: first token off by %.3f at most, %.3f mean, of %d", kind,
                        max(values), sum(values) / len(values), len(values))  # fmt: skip
    log.warning("what clients were told: %s", sorted(set(failed)))
    assert wrong == []
    assert sum(map(bool, moved)) > KILLS * BETWEEN_KILLS
    assert len(failed) < next(work) / 4
    at_rest(system)


@dataclass(frozen=True)
class Answer:
    """Tokens with their log probabilities, and how far ahead of the second best each was."""

    tokens: tuple[tuple[str, float, float], ...]
    moved: int = 0

    def unlike(self, other: Answer) -> object:
        """Where another one, whose sums are rounded in another order, is not what this one is:
        other tokens come only where that decides between two. None: nowhere."""
        for mine, others in zip(self.tokens, other.tokens, strict=False):
            if mine[0] != others[0]:
                return None if mine[2] < ROUNDING else (mine, others, other.moved)
            if abs(mine[1] - others[1]) > ROUNDING:
                return (mine, others, other.moved)
        return None if len(self.tokens) == len(other.tokens) else (self, other)

    def distance(self, other: Answer) -> float:
        """Of the first token's log probability."""
        return abs(self.tokens[0][1] - other.tokens[0][1])


async def _answer(client: openai.AsyncOpenAI, prompt: str) -> Answer:
    """A whole answer; one without a finish reason fails the test."""
    tokens, finish = [], None
    reply = await client.chat.completions.with_raw_response.create(
        model=MODEL,
        messages=[{"role": "user", "content": prompt}],
        max_tokens=16,
        temperature=0,
        logprobs=True,
        top_logprobs=2,
        stream=True,
    )
    async for chunk in reply.parse():
        for choice in chunk.choices:
            for each in choice.logprobs.content or () if choice.logprobs else ():
                best, second = (one.logprob for one in each.top_logprobs)
                tokens.append((each.token, each.logprob, best - second))
            finish = choice.finish_reason or finish
    assert finish in ("stop", "length"), f"ended with {finish} after {tokens}"
    return Answer(tuple(tokens), int(reply.headers.get("x-penstock-kv-moved", 0)))


async def _answers(client: openai.AsyncOpenAI, prompts: list[str]) -> list[Answer]:
    """Of one engine each, a few at once."""
    few = asyncio.Semaphore(AT_ONCE // 2)

    async def answer(prompt: str) -> Answer:
        async with few:
            return await _answer(client, prompt)

    return await asyncio.gather(*map(answer, prompts))


async def _kills(system: System, chance: random.Random, moved: list[int]) -> None:
    """kill -9 of one after the other, each while KV moves again."""
    for who in itertools.islice(itertools.cycle(_victims(system)), KILLS):
        enough = sum(map(bool, moved)) + BETWEEN_KILLS
        await until(
            lambda enough=enough: sum(map(bool, moved)) >= enough,
            within=600,
            what="KV that moves",
        )
        await asyncio.sleep(chance.uniform(0, 1))  # in whatever state it is then
        with suppress(psutil.NoSuchProcess):
            await asyncio.to_thread(who)


def _victims(system: System) -> list[Callable[[], None]]:
    def killed(who: str, found: list[psutil.Process]) -> None:
        if found:
            log.warning("kill -9 of a %s", who)
            random.choice(found).kill()

    def engines() -> list[psutil.Process]:
        replicas = [psutil.Process(each["pid"]) for each in system.replicas()]
        below = [child for each in replicas for child in each.children(recursive=True)]
        return [each for each in below if "EngineCore" in " ".join(each.cmdline())]

    return [
        lambda: killed("replica", system.processes("penstock.replica", "--replica-id")),
        lambda: killed("program", system.processes("penstock.control.router")),
        lambda: killed("engine", engines()),
        lambda: killed("gateway", system.processes("penstock-gateway")),
    ]


def _prompt(chance: random.Random, number: int) -> str:
    words = ("river", "stone", "cloud", "ember", "winter", "garden", "mirror", "copper", "lantern")
    return f"Tale {number}: " + " ".join(chance.choices(words, k=chance.randrange(20, 300)))
