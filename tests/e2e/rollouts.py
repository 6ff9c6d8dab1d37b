"""A deployment that is changed while clients ask, and what they saw of it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import openai

from tests.e2e.streams import client_of
from tests.e2e.system import System, eventually

Json = dict[str, Any]


class Sessions:
    """Sessions that go on and on, each in turns."""

    def __init__(self, model: str) -> None:
        self.answers = 0
        self.failures: list[str] = []
        self._model = model
        self._over = False

    def end(self) -> None:
        """Each finishes the answer that it reads."""
        self._over = True

    async def talk(self, client: openai.AsyncOpenAI) -> None:
        """One session until the end: an answer is whole, or it is a failure."""
        while not self._over:
            try:
                await self._ask(client)
            except openai.APIError as error:
                self.failures.append(repr(error))

    async def _ask(self, client: openai.AsyncOpenAI) -> None:
        finish = None
        stream = await client.chat.completions.create(
            model=self._model,
            messages=[{"role": "user", "content": "Hello"}],
            max_tokens=16,
            stream=True,
        )
        async for chunk in stream:
            if chunk.choices:
                finish = chunk.choices[0].finish_reason or finish
        if finish in ("stop", "length"):
            self.answers += 1
        else:
            self.failures.append(f"ended with {finish}")


@asynccontextmanager
async def sessions(system: System, model: str, count: int) -> AsyncIterator[Sessions]:
    """So many clients that talk as long as this lasts."""
    talking = Sessions(model)
    async with client_of(system) as client, asyncio.TaskGroup() as group:
        for _ in range(count):
            group.create_task(talking.talk(client))
        try:
            yield talking
        finally:
            talking.end()


def without_aliases(system: System, name: str) -> None:
    """Lets it have another model: adapters that it is named for would not fit."""
    for alias in system.admin(f"deployments/{name}")["aliases"]:
        system.change("DELETE", f"aliases/{name}/{alias}")


def changed(system: System, name: str, **spec: Any) -> Json:
    """Changes a deployment's spec; what the head says of it then."""
    known = system.admin(f"deployments/{name}")["spec"]
    told: Json = system.change("PUT", f"deployments/{name}", {**known, **spec})
    return told


async def rolled_out(system: System, name: str, *, within: float) -> Json:
    """The rollout of a deployment once it has ended, whatever came of it."""

    def ended() -> Json | None:
        told: Json = system.admin(f"deployments/{name}")["status"]
        rollout: Json = told["rollout"]
        over = rollout["state"] in ("served", "failed") and not rollout["old"]
        return rollout if over and rollout["ready"] == told["wanted"] else None

    return await asyncio.to_thread(eventually, ended, within=within, what="a rollout's end")


def revisions(system: System, name: str) -> list[Json]:
    """Those that are kept, newest first."""
    found: list[Json] = system.admin(f"deployments/{name}/revisions")
    return found
