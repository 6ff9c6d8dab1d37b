"""Streams of every kind before two engines of vLLM, of which one is killed or stopped time and
again: each says what it would have said, and its client notices a pause."""

from __future__ import annotations

import asyncio
import logging
import os
import random
import signal
import time
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import pairwise
from os.path import commonpath
from pathlib import Path
from typing import Any

import httpx
import psutil
import pytest

from tests.e2e.resumed_kinds import Json, said, some
from tests.e2e.streams import until
from tests.e2e.system import System, running

pytestmark = [pytest.mark.long, pytest.mark.timeout(5400)]
log = logging.getLogger(__name__)

MINI = "penstock-mini"
ROUNDS = int(os.environ.get("PENSTOCK_RESUME_ROUNDS", "30"))
STREAMS = 48
BLOWS = ("engine", "replica", "stop")
STOPPED_S = 6
HELD_BACK_S = 1.5  # without a death, of 96 streams at once


@dataclass
class Stream:
    """What a client has had so far, and when."""

    kind: str
    replica: str = ""
    status: int = 0
    bytes: bytes = b""
    came: list[float] = field(default_factory=list)

    def longest_silence(self) -> float:
        """Seconds, behind the first words; where a parser holds back what comes it is long, whoever
        dies."""
        return max((later - each for each, later in pairwise(self.came[2:])), default=0)

    def pause_after(self, moment: float) -> float:
        """Seconds from then to what came next."""
        return next((each for each in self.came if each > moment), moment) - moment


async def read(client: httpx.AsyncClient, path: str, body: Json, stream: Stream) -> Stream:
    """The whole answer."""
    async with client.stream("POST", path, json=body) as reply:
        stream.status = reply.status_code
        stream.replica = reply.headers.get("x-penstock-replica", "")
        with suppress(httpx.RemoteProtocolError):  # one that is told why closes its connection
            async for chunk in reply.aiter_raw():
                stream.bytes += chunk
                if not chunk.startswith(b":"):
                    stream.came.append(time.monotonic())
    return stream


async def read_all(client: httpx.AsyncClient, asked: list[tuple[str, str, Json]]) -> list[Stream]:
    """All at once."""
    streams = [Stream(kind) for kind, _, _ in asked]
    reading = (
        read(client, path, body, stream)
        for (_, path, body), stream in zip(asked, streams, strict=True)
    )
    return await asyncio.gather(*reading)


def strike(system: System, blow: str, replica: dict[str, Any]) -> list[int]:
    """Who is stopped by it, to be let go on."""
    process = psutil.Process(replica["pid"])
    family = [process, *process.children(recursive=True)]
    if blow == "stop":
        for each in family:
            each.suspend()
        return [each.pid for each in family]
    if blow == "engine":
        family = [each for each in family if "EngineCore" in " ".join(each.cmdline())]
    system.kill(family[0].pid)
    return []


async def struck(
    system: System,
    client: httpx.AsyncClient,
    asked: list[tuple[str, str, Json]],
    blow: str,
    chance: random.Random,
) -> tuple[list[Stream], list[tuple[str, float]]]:
    """The streams, and how long each paused whose replica was struck, by its kind."""
    streams = [Stream(kind) for kind, _, _ in asked]
    async with asyncio.TaskGroup() as tasks:
        reading = [
            tasks.create_task(read(client, path, body, stream))
            for (_, path, body), stream in zip(asked, streams, strict=True)
        ]
        first = chance.randrange(STREAMS * 5, STREAMS * 150)
        await until(
            lambda: sum(len(each.came) for each in streams) >= first, within=120, what="events"
        )
        victim = chance.choice(system.replicas())
        there = [
            stream
            for stream, task in zip(streams, reading, strict=True)
            if stream.replica == victim["id"] and not task.done()
        ]
        moment = time.monotonic()
        if stopped := strike(system, blow, victim):
            await asyncio.sleep(STOPPED_S)
            for pid in filter(psutil.pid_exists, stopped):
                os.kill(pid, signal.SIGCONT)
    return streams, [(each.kind, each.pause_after(moment)) for each in there]


def differs(stream: Stream, whole: Stream) -> str:
    """How it differs from what it would have said; empty: it does not."""
    try:
        mine, wanted = said(stream.bytes), said(whole.bytes)
    except AssertionError as error:
        return f"{stream.kind}: {error}"
    return "; ".join(
        f"{stream.kind}: {name}: {_first_difference(str(mine[name]), str(wanted[name]))}"
        for name in wanted
        if mine[name] != wanted[name]
    )


def _first_difference(mine: str, wanted: str) -> str:
    at = len(commonpath((mine, wanted)))
    return f"{mine[max(0, at - 60) : at + 90]!r}, not {wanted[max(0, at - 60) : at + 90]!r}"


def _tell(pauses: dict[str, list[tuple[str, float]]], held_back: set[str]) -> None:
    for blow, all_paused in pauses.items():
        for how, held in (("come as they are made", False), ("are held back", True)):
            took = sorted(each for kind, each in all_paused if (kind in held_back) == held)
            if took:
                half, most = took[len(took) // 2], took[int(len(took) * 0.99)]
                told = (blow, len(took), how, 1000 * half, 1000 * most)
                log.warning("%s: %d paused whose words %s, p50 %.0f ms, p99 %.0f ms", *told)


async def test_streams_over_a_death_say_what_they_would_have_said(folder: Path) -> None:
    chance, wrong = random.Random(5), list[str]()
    pauses: dict[str, list[tuple[str, float]]] = {}
    asked = some(2 * STREAMS)
    with running(folder, replicas=2, within=240) as system:
        settings = {"progress_deadline_ms": 2000}
        system.change("PATCH", f"deployments/{MINI}/settings", settings)
        limits = httpx.Limits(max_connections=None)
        async with httpx.AsyncClient(
            base_url=system.gateway_url, timeout=300, limits=limits, trust_env=False
        ) as client:
            undisturbed = await read_all(client, asked)
            again = await read_all(client, asked)
            # What is near a tie may say something else in another batch, whoever is killed.
            steady = [
                index
                for index, (one, other) in enumerate(zip(again, undisturbed, strict=True))
                if not differs(one, other)
            ]
            log.warning("%d of %d say the same twice", len(steady), len(asked))
            held_back = {each.kind for each in again if each.longest_silence() > HELD_BACK_S}
            log.warning("words are held back of %s", ", ".join(sorted(held_back)))
            assert len(steady) > 0.95 * len(asked)
            for number in range(ROUNDS):
                blow = BLOWS[number % len(BLOWS)]
                chosen = chance.sample(steady, STREAMS)
                streams, paused = await struck(
                    system, client, [asked[each] for each in chosen], blow, chance
                )
                for stream, index in zip(streams, chosen, strict=True):
                    if why := differs(stream, undisturbed[index]):
                        wrong.append(f"round {number}, {blow}, {why}")
                pauses.setdefault(blow, []).extend(paused)
                log.warning("round %d, %s: %d cut, %d wrong", number, blow, len(paused), len(wrong))
                await asyncio.to_thread(system.wait_ready, 2, within=180)
    _tell(pauses, held_back)
    assert sum(map(len, pauses.values())) > ROUNDS * STREAMS / 5
    assert not wrong, "\n".join(wrong)
