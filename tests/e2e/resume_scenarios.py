"""What may happen to replicas while clients read, with as many streams as the test says.

Each scenario fails unless every stream is, byte for byte, what it would have been.
"""

from __future__ import annotations

import asyncio
import logging
import os
import signal
from collections import Counter
from contextlib import AbstractContextManager
from datetime import UTC, datetime

from tests.e2e.resumed_streams import (
    Ask,
    Seen,
    asks,
    busiest,
    differing,
    read,
    reading,
    resumed,
    share,
    undisturbed,
)
from tests.e2e.streams import until
from tests.e2e.system import System

ADAPTER = "pirate"  # an alias that the systems of these tests have
PREFILL = (("ttft_ms", 1500),)  # of a stream that is to be hit in it
log = logging.getLogger(__name__)


async def kill_busiest(system: System) -> datetime:
    """kill -9 of the replica that has most to do, and when."""
    victim = await asyncio.to_thread(busiest, system)
    at = datetime.now(UTC)
    system.kill(victim["pid"])
    return at


def tell(what: str, system: System, before: int, at: datetime) -> None:
    """What was measured of those that went on since, from then to each one's next token."""
    pauses = [(one.at - at).total_seconds() * 1000 for one in resumed(system)[before:]]
    assert pauses, "nobody was hit"
    figures = (len(pauses), share(pauses, 0.5), share(pauses, 0.99))
    log.warning("%s: %d went on; p50 %.0f ms, p99 %.0f ms to the next token", what, *figures)


async def kill(system: System, count: int, **more: int) -> None:
    """A replica is killed under streams of all kinds."""
    wanted = asks(count, adapter=ADAPTER, **more)
    known = await undisturbed(system.gateway_port, wanted)
    before = len(resumed(system))
    async with reading(system.gateway_port, wanted) as seen:
        at = await kill_busiest(system)
    assert differing(seen, known) == []
    times = Counter(one.request_id for one in resumed(system)[before:])
    for one in seen:
        if one.ask.metadata:
            assert one.metadata().get("resumes", 0) == times[one.request_id]
    tell("kill", system, before, at)


async def stop(system: System, count: int) -> None:
    """A replica stops until its streams are elsewhere, and then says more."""
    wanted = asks(count, adapter=ADAPTER)
    known = await undisturbed(system.gateway_port, wanted)
    before = len(resumed(system))
    async with reading(system.gateway_port, wanted) as seen:
        victim = await asyncio.to_thread(busiest, system)
        at = datetime.now(UTC)
        os.kill(victim["pid"], signal.SIGSTOP)
        try:
            await until(lambda: len(resumed(system)) > before, within=20, what="a resume")
            await asyncio.sleep(1)
        finally:
            os.kill(victim["pid"], signal.SIGCONT)
    assert differing(seen, known) == []
    tell("stop", system, before, at)


async def second_death(system: System, count: int) -> None:
    """The replica that goes on dies before it has said anything."""
    wanted = asks(count, simulate=PREFILL, tokens=40)
    known = await undisturbed(system.gateway_port, wanted)
    before, there = len(resumed(system)), len(system.replicas())
    async with reading(system.gateway_port, wanted) as seen:
        at = await kill_busiest(system)
        await until(lambda: len(system.replicas()) < there, within=5, what="one to be missed")
        await kill_busiest(system)
    assert differing(seen, known) == []
    tell("two kills", system, before, at)


async def leave(system: System, count: int) -> None:
    """Half of the clients leave while their streams pause."""
    wanted = asks(count, simulate=PREFILL, tokens=40)
    known = await undisturbed(system.gateway_port, wanted)
    seen = [Seen(ask) for ask in wanted]
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(read(system.gateway_port, one)) for one in seen]
        await until(lambda: all(one.begun(3) for one in seen), within=60, what="streams under way")
        await kill_busiest(system)
        await asyncio.sleep(0.5)
        for task in tasks[::2]:
            task.cancel()
    assert all(one.left for one in seen[::2])
    assert differing(seen[1::2], known) == []


async def read_late(system: System, count: int) -> None:
    """Clients take nothing while their replica dies, and read on later."""
    wanted = asks(count, tokens=8000, simulate=(("tokens_per_second", 2000),))
    known = await undisturbed(system.gateway_port, wanted)
    before, hold = len(resumed(system)), asyncio.Event()
    async with reading(system.gateway_port, wanted, begun=1, window=4096, hold=hold) as seen:
        await kill_busiest(system)
        await asyncio.sleep(1)
        hold.set()
    assert differing(seen, known) == []
    assert resumed(system)[before:], "nobody was hit"


async def headless(system: System, count: int, without: AbstractContextManager[None]) -> None:
    """A replica dies while there is no head."""
    wanted = asks(count)
    known = await undisturbed(system.gateway_port, wanted)
    before, victim = len(resumed(system)), await asyncio.to_thread(busiest, system)
    with without:
        async with reading(system.gateway_port, wanted) as seen:
            at = datetime.now(UTC)
            system.kill(victim["pid"])
    assert differing(seen, known) == []
    tell("no head", system, before, at)


async def unary(system: System, count: int) -> None:
    """A replica dies under answers that have not begun."""
    wanted = [Ask(number, stream=False, tokens=40, long=number % 4 == 0) for number in range(count)]
    known = await undisturbed(system.gateway_port, wanted)
    seen = [Seen(ask) for ask in wanted]
    async with asyncio.TaskGroup() as group:
        for one in seen:
            group.create_task(read(system.gateway_port, one))
        await asyncio.sleep(1)
        await kill_busiest(system)
    assert differing(seen, known) == []
