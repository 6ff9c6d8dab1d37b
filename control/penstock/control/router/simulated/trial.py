"""A program before simulated engines: what it decided for each request, and what that cost."""

from __future__ import annotations

import asyncio
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from random import Random, seed
from typing import Final

from penstock.control.router.api import Engines, Request, RouteDecision
from penstock.control.router.asks import Ask, run
from penstock.control.router.program import Program
from penstock.control.router.simulated import engines as simulated
from penstock.control.router.simulated.engines import A100, Machine, SimulatedEngine
from penstock.control.router.simulated.load import Arrival
from penstock.control.router.simulated.time import run_in_no_time
from penstock.control.router.simulated.verbs import Verbs
from penstock.control.router.stats import Stats
from penstock.v1.router_pb2 import EngineCall, RouteAsk
from penstock.v1.router_pb2 import RouteDecision as RoutingDecision

SEED: Final = 1
PATIENCE: Final = 60.0  # seconds, for a decision; a gateway has less


@dataclass(frozen=True, slots=True)
class Outcome:
    """One request: where it went, and how long that took."""

    prompt: int
    engine: str
    begin: int  # tokens that were said to be there
    calls: tuple[str, ...]  # engine calls, in order
    moved: int  # tokens
    ttft: float  # seconds
    total: float
    trouble: str  # why power_of_two decided; empty: it did not


@dataclass(frozen=True, slots=True)
class Figures:
    """All requests together; seconds and tokens."""

    ttft_mean: float
    ttft_p99: float
    total_mean: float
    total_p99: float
    moved: int
    computed: int  # of prompts, at all engines
    failed: int


@dataclass(frozen=True, slots=True)
class Trial:
    """What came of it."""

    outcomes: Sequence[Outcome]
    figures: Figures


def power_of_two() -> Program:
    """The gateway's own policy: of two engines by chance the one with fewer calls."""
    random = Random(SEED)

    async def route(_: Request, engines: Engines, __: Stats) -> RouteDecision:
        among = engines.decode
        two = random.sample(among, min(2, len(among)))
        return RouteDecision(min(two, key=lambda each: each.load))

    return Program("power_of_two", route, frozenset(), "")


def try_program(
    program: Program,
    args: Mapping[str, object],
    arrivals: Sequence[Arrival],
    roles: Sequence[str],
    machine: Machine = A100,
) -> Trial:
    """Sends all of them; `roles`: of each engine, empty for none. The same again gives the same."""
    seed(SEED)  # of what chooses among equals
    return run_in_no_time(_tried(program, args, arrivals, roles, machine))


async def _tried(
    program: Program,
    args: Mapping[str, object],
    arrivals: Sequence[Arrival],
    roles: Sequence[str],
    machine: Machine,
) -> Trial:
    engines = [SimulatedEngine(f"e{n}", role, machine) for n, role in enumerate(roles, 1)]
    world = _World(program, args, {each.name: each for each in engines})
    async with asyncio.TaskGroup() as tasks:
        working = [tasks.create_task(each.run()) for each in engines]
        async with asyncio.TaskGroup() as requests:
            sent = [requests.create_task(world.send(n, it)) for n, it in enumerate(arrivals, 1)]
        for each in working:
            each.cancel()
    outcomes = [each.result() for each in sent]
    return Trial(outcomes, _figures(outcomes, sum(each.computed for each in engines)))


class _World:
    """The gateway."""

    def __init__(
        self, program: Program, args: Mapping[str, object], engines: Mapping[str, SimulatedEngine]
    ) -> None:
        self._program = program
        self._args = json.dumps(args).encode()
        self._engines = engines
        self._stats = Stats()
        self._own = power_of_two()

    async def send(self, number: int, arrival: Arrival) -> Outcome:
        """One request, from its arrival to its last token."""
        await asyncio.sleep(arrival.at)
        began = asyncio.get_running_loop().time()
        verbs = Verbs(self._engines, arrival, arrival.session or f"r{number}")
        chosen, begin, trouble = await self._planned(number, arrival, verbs)
        engine = self._engines[chosen]
        sequence = simulated.Sequence(verbs.key, arrival.prompt, arrival.answer)
        sequence.computed = verbs.present(engine)
        engine.add(sequence)
        await sequence.first.wait()
        first = asyncio.get_running_loop().time()
        await sequence.done.wait()
        total = asyncio.get_running_loop().time() - began
        calls = tuple(verbs.calls)
        return Outcome(
            *(arrival.prompt, chosen, begin, calls, verbs.moved, first - began, total, trouble)
        )

    async def _planned(self, number: int, arrival: Arrival, verbs: Verbs) -> tuple[str, int, str]:
        """Where it goes, what may be expected there, and why the program did not say."""
        async with asyncio.TaskGroup() as tasks:

            def make(call: EngineCall) -> None:
                tasks.create_task(answer(call))

            async def answer(call: EngineCall) -> None:
                ask.replied(await verbs.reply(call))

            asked = RouteAsk(
                ask_id=number,
                args=self._args,
                request_id=f"r{number}",
                session=arrival.session,
                estimated_tokens=arrival.prompt,
                engines=[each.view() for each in self._engines.values()],
            )
            ask = Ask(asked, make)
            planning = tasks.create_task(run(self._program, ask, asked, self._stats))
            found = await _in_time(planning, ask)
            if found.replica_id:
                return found.replica_id, found.begin, ""
            own = await run(
                self._own, Ask(asked, make), RouteAsk(engines=asked.engines), self._stats
            )
        why = f"{found.error}: {found.detail}" if found.error else "left to the gateway"
        return own.replica_id, 0, why


async def _in_time(planning: asyncio.Task[RoutingDecision], ask: Ask) -> RoutingDecision:
    """What the program says, or that it is slow."""
    await asyncio.wait({planning}, timeout=PATIENCE)
    if planning.done():
        return planning.result()
    ask.task = planning
    ask.cancel()
    return RoutingDecision(error="slow", detail=f"no decision in {PATIENCE:g} s")


def _figures(outcomes: Sequence[Outcome], computed: int) -> Figures:
    firsts = sorted(each.ttft for each in outcomes)
    totals = sorted(each.total for each in outcomes)
    return Figures(
        _mean(firsts),
        _p99(firsts),
        _mean(totals),
        _p99(totals),
        sum(each.moved for each in outcomes),
        computed,
        sum(bool(each.trouble) for each in outcomes),
    )


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)


def _p99(ordered: Sequence[float]) -> float:
    return ordered[math.ceil(0.99 * len(ordered)) - 1]
