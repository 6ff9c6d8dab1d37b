"""A shadow between a deployment with traffic and a candidate, until its verdict: what it was, by
which checks, after how many sessions, and how many `penstock shadow create` had promised."""

from __future__ import annotations

import asyncio
import logging
import signal
import time
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, closing, suppress
from dataclasses import dataclass, field
from itertools import cycle
from typing import Any, Literal

import openai
import psutil

from tests.e2e.streams import client_of
from tests.e2e.system import System

CLIENTS = 8
TIMES = ("ttft", "tpot", "total")
_log = logging.getLogger(__name__)
Json = dict[str, Any]


@dataclass(frozen=True)
class Judged:
    """What a shadow came to."""

    name: str
    report: Json
    answered: int  # of the primary's clients: each had a whole answer
    seconds: float

    @property
    def verdict(self) -> str:
        return str(self.report["verdict"])

    @property
    def sessions(self) -> int:
        return int(self.report["sessions"])

    def gates(self, verdict: str) -> set[str]:
        """Those that came out so."""
        return {e["name"] for e in self.report["checks"] if e["gate"] and e["verdict"] == verdict}

    def check(self, name: str) -> Json:
        """One check's counts."""
        return next(each for each in self.report["checks"] if each["name"] == name)

    def promised(self, gate: str, which: Literal["equal", "worse"], noise: int = 0) -> int:
        """Pairs that this takes by the plan; noise 0: where little differs by chance."""
        rows = [each for each in self.report["plan"] if each["name"] == gate]
        return int(rows[noise][which])

    def tell(self, promised: int) -> None:
        """Logs it as a row of a table."""
        gates = ", ".join(sorted(self.gates("worse"))) or "none worse"
        told = (self.name, self.verdict, gates, self.sessions, promised, self.seconds)
        _log.warning("%s: %s (%s) after %d sessions, promised %d, %.0f s", *told)


@dataclass
class Traffic:
    """Clients of the primary, each asking one question after the other."""

    system: System
    questions: Iterator[Json]
    answered: int = 0
    over: bool = False
    ended: list[str] = field(default_factory=list)

    async def ask(self, client: openai.AsyncOpenAI) -> None:
        """Until it is over. Raises what a client would see of any trouble."""
        while not self.over:
            body = next(self.questions)
            answer: Any = await client.chat.completions.create(**body)
            if body.get("stream"):
                parts = [part async for part in answer]
                reasons = [each.finish_reason for part in parts for each in part.choices]
                assert any(reasons), "a stream without an end"
            else:
                assert answer.choices[0].finish_reason
            self.answered += 1


@asynccontextmanager
async def asking(
    system: System, questions: Sequence[Json], clients: int = CLIENTS
) -> AsyncIterator[Traffic]:
    """The primary's clients ask while the block runs; whatever they see but answers fails it."""
    traffic = Traffic(system, cycle(questions))
    async with client_of(system) as client, asyncio.TaskGroup() as group:
        for _ in range(clients):
            group.create_task(traffic.ask(client))
        try:
            yield traffic
        finally:
            traffic.over = True


async def judged(
    system: System,
    name: str,
    spec: Json,
    questions: Sequence[Json],
    *,
    enough: Callable[[Judged], bool] = lambda found: found.verdict != "undecided",
    within: float = 300,
    clients: int = CLIENTS,
) -> Judged:
    """Has everything that clients ask repeated until there is enough."""
    began = time.monotonic()
    spec = {"name": name, "share_permille": 1000, "max_concurrent": 4 * clients, **spec}
    await asyncio.to_thread(system.change, "POST", "shadows", spec)
    with closing(_Deleted(system, name)):
        async with asking(system, questions, clients) as traffic:
            while True:
                await asyncio.sleep(0.2)
                told = await asyncio.to_thread(system.admin, f"shadows/{name}/report")
                seconds = time.monotonic() - began
                found = Judged(name, told["report"], traffic.answered, seconds)
                if enough(found):
                    return found
                assert seconds < within, (told["markdown"], told["state"], told["message"])


@dataclass(frozen=True)
class _Deleted:
    system: System
    name: str

    def close(self) -> None:
        self.system.change("DELETE", f"shadows/{self.name}")


def chats(model: str, prompts: Sequence[str], **fields: Any) -> list[Json]:
    """Questions, four of five streamed."""
    streamed = {"stream": True, "stream_options": {"include_usage": True}}
    return [
        {
            "model": model,
            "messages": [{"role": "user", "content": prompt}],
            "temperature": 0,
            **fields,
            **(streamed if number % 5 else {}),
        }
        for number, prompt in enumerate(prompts)
    ]


def pids(system: System, name: str) -> list[int]:
    """Of the deployment's replicas that are ready."""
    return [int(each["pid"]) for each in system.replicas() if each["deployment"] == name]


@asynccontextmanager
async def signalled(system: System, name: str, number: signal.Signals) -> AsyncIterator[None]:
    """The deployment's replicas are sent the signal as soon as they are ready."""
    over = asyncio.Event()

    async def send() -> None:
        while not over.is_set():
            for pid in await asyncio.to_thread(pids, system, name):
                with suppress(psutil.NoSuchProcess):
                    psutil.Process(pid).send_signal(number)
            await asyncio.sleep(0.05)

    async with asyncio.TaskGroup() as group:
        group.create_task(send())
        try:
            yield
        finally:
            over.set()


def assert_worse(found: Judged, *gates: str) -> None:
    """By these gates, each after no more pairs than were promised where little differs by
    chance."""
    found.tell(min(found.promised(gate, "worse") for gate in gates))
    assert found.verdict == "worse"
    for gate in gates:
        assert gate in found.gates("worse")
        assert found.check(gate)["pairs"] <= found.promised(gate, "worse")


def assert_equal(found: Judged, *gates: str) -> None:
    """These gates and all times are, by when the last one was promised to be: where little differs
    by chance; times, where much does."""
    promised = max(found.promised(gate, "equal") for gate in gates)
    promised = max(promised, *(found.promised(gate, "equal", -1) for gate in TIMES))
    found.tell(promised)
    assert found.verdict == "equal"
    assert found.gates("equal") >= {*gates, *TIMES}
    assert found.sessions <= promised
