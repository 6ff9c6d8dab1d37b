"""A crowd of registered adapters before a few slots: found, right, and there after a kill."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.e2e.adapter_traffic import Answer, ask, client_of
from tests.e2e.system import System, get_json, running
from tests.fakes.lora_adapters import random_adapter
from tests.fakes.waiting import until

CONTENTS, ASKED, CLIENTS = 16, 40, 16


@pytest.fixture(scope="module")
def system(folder: Path) -> Iterator[System]:
    """Two simulated replicas of four slots each."""
    settings = "tokens_per_second=5000 answer_tokens=8 adapter_load_ms=5"
    options = ("--engine", "simulated", "--name", "sim", "--max-adapters", "4")
    with running(folder, *options, "--engine-args", settings, replicas=2) as system:
        yield system


@asynccontextmanager
async def admin_of(system: System) -> AsyncIterator[httpx.AsyncClient]:
    async with httpx.AsyncClient(
        base_url=f"http://127.0.0.1:{system.admin_port}/admin/v1",
        headers={"authorization": f"Bearer {system.admin_token}"},
        trust_env=False,
        timeout=60,
    ) as client:
        yield client


async def register_all(system: System, folder: Path, names: list[str]) -> None:
    """All names, many at a time; each content has several of them."""
    sources = [folder / f"content-{number}" for number in range(CONTENTS)]
    for number, source in enumerate(sources):
        random_adapter(source, seed=number, rank=1)

    # For whoever waits within httpx, it looks through all who wait at each end of a request.
    turns = asyncio.Semaphore(CLIENTS)

    async with admin_of(system) as client:

        async def register(number: int, full_name: str) -> Any:
            name, version = full_name.split("@")
            source = str(sources[number % CONTENTS])
            body = {"name": name, "version": version, "base": "sim", "source": source}
            async with turns:
                reply = await client.post("/adapters", json=body)
            assert reply.status_code == 201, reply.text
            return reply.json()

        made = await asyncio.gather(*(register(*each) for each in enumerate(names)))
    assert len({each["digest"] for each in made}) == CONTENTS


def listed(system: System) -> set[str]:
    """The versions among the models that clients are shown."""
    models = get_json(system.base_url + "/models")["data"]
    return {each["id"].removeprefix("sim:") for each in models if "@" in each["id"]}


async def answers(system: System, names: list[str]) -> dict[str, Answer]:
    """What some of them say, spread over all, no more at a time than there are slots."""
    asked, slots = names[:: len(names) // ASKED], asyncio.Semaphore(4)

    async with client_of(system) as client:

        async def answer(name: str) -> Answer:
            async with slots:
                return await ask(client, f"sim:{name}")

        found = await asyncio.gather(*(answer(name) for name in asked))
    return dict(zip(asked, found, strict=True))


@pytest.mark.parametrize("crowd", [240, pytest.param(1000, marks=pytest.mark.long)])
async def test_hundreds_of_adapters_are_listed_and_right_and_outlive_the_head(
    system: System, folder: Path, crowd: int
) -> None:
    names = [f"crowd-{number}@1" for number in range(crowd)]
    everybody = set(names)
    await register_all(system, folder, names)
    await until(lambda: everybody <= listed(system), "that all are listed")
    before = await answers(system, names)
    assert {(a.status, a.version == name) for name, a in before.items()} == {(200, True)}, before
    assert len({answer.text for answer in before.values()}) == len(before)
    head = system.pid_of("head")
    system.kill(head)
    assert await answers(system, names) == before
    await asyncio.to_thread(system.wait_ready, 2, within=40)
    assert system.pid_of("head") != head
    assert everybody <= {each["adapter"] for each in system.admin("adapters")}
    assert everybody <= listed(system)
    assert await answers(system, names) == before
