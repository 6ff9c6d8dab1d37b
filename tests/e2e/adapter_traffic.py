"""Traffic over adapters in the end-to-end tests: who answered, and with whose words."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx

from tests.e2e.system import System
from tests.fakes.lora_adapters import random_adapter
from tests.fakes.waiting import until


def made(folder: Path, name: str) -> Path:
    """The directory of an adapter whose weights follow from its name."""
    directory = folder / "adapters" / name
    random_adapter(directory, seed=sum(name.encode()))
    return directory


def register(system: System, base: str, name: str, directory: Path) -> dict[str, Any]:
    own, version = name.split("@")
    body = {"name": own, "version": version, "base": base, "source": str(directory)}
    registered: dict[str, Any] = system.change("POST", "adapters", body)
    return registered


@dataclass
class Answer:
    """What one request came to."""

    status: int
    version: str
    text: str


async def ask(client: httpx.AsyncClient, model: str, prompt: str = "Hello there") -> Answer:
    body = {"model": model, "prompt": prompt, "max_tokens": 8, "temperature": 0}
    reply = await client.post("/completions", json=body)
    version = reply.headers.get("x-penstock-adapter-version", "")
    text = reply.json()["choices"][0]["text"] if reply.status_code == 200 else reply.text
    return Answer(reply.status_code, version, text)


def client_of(system: System) -> httpx.AsyncClient:
    limits = httpx.Limits(max_connections=64, max_keepalive_connections=64)
    return httpx.AsyncClient(base_url=system.base_url, trust_env=False, timeout=60, limits=limits)


async def own_words(
    client: httpx.AsyncClient, deployment: str, versions: Sequence[str]
) -> dict[str, str]:
    """What each version says when nobody else asks."""
    words = {}
    for version in versions:
        answer = await ask(client, f"{deployment}:{version}")
        assert (answer.status, answer.version) == (200, version), answer
        words[version] = answer.text
    assert len(set(words.values())) == len(versions)
    return words


@dataclass
class Traffic:
    """Requests at a steady pace, and what came of them."""

    answers: list[Answer] = field(default_factory=list)

    async def more(self, count: int) -> None:
        """Returns when so many more have been answered."""
        enough = len(self.answers) + count
        await until(lambda: len(self.answers) >= enough, f"{count} more answers")


@asynccontextmanager
async def traffic(
    client: httpx.AsyncClient, models: Sequence[str], per_second: float
) -> AsyncIterator[Traffic]:
    """Asks the models in turn until the block ends, then for what is under way."""
    found, over = Traffic(), asyncio.Event()

    async def one(model: str) -> None:
        found.answers.append(await ask(client, model))

    async def all_of_them(tasks: asyncio.TaskGroup) -> None:
        loop = asyncio.get_running_loop()
        due = loop.time()
        for model in itertools.cycle(models):
            if over.is_set():
                return
            tasks.create_task(one(model))
            due += 1 / per_second
            await asyncio.sleep(max(0.0, due - loop.time()))

    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(all_of_them(tasks))
        yield found
        over.set()
