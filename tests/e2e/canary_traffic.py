"""Canaries under traffic: clients that each ask once, candidates that fail, and what came of it."""

from __future__ import annotations

import asyncio
import itertools
import json
import random
import re
import urllib.error
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, Final

import httpx

from tests.e2e.system import System, eventually
from tests.fakes import openai_server
from tests.fakes.openai_server import refuse
from tests.fakes.provider_server import Asked, Scenario, Wire

Json = dict[str, Any]
KEY_FILE: Final = "candidate.key"
ENDED: Final = ("promoted", "rolled_back", "aborted")


def sometimes(share: float, how: str) -> Scenario:
    """A candidate at the network's edge: it fails in this share of its answers, by a fixed seed.

    `before`: an error in place of an answer; `after`: its connection breaks in the midst;
    `refuse`: it says that the request is wrong; `slow`: it takes three times as long.
    """
    chance = random.Random(7)

    async def answer(asked: Asked, wire: Wire) -> None:
        bad = chance.random() < share
        if bad and how in _IN_PLACE:
            return await _IN_PLACE[how](asked, wire)
        body = json.loads(asked.body)
        await wire.begin("text/event-stream")
        for index, event in enumerate(_events(body)):
            if bad and how == "after" and index == 3:
                return wire.cut()
            await asyncio.sleep(0.03 if bad and how == "slow" else 0.01)
            await wire.portion(event)
        return await wire.end()

    return answer


_IN_PLACE: Final = {
    "before": refuse(500, "a fault of its own", kind="server_error"),
    "refuse": refuse(400, "this model has no tools"),
}


def _events(body: Json) -> Iterator[bytes]:
    """An answer that ends by itself."""
    for event in openai_server.stream_events(body | {"max_tokens": 8}):
        yield event.replace(b'"finish_reason": "length"', b'"finish_reason": "stop"')


def provider(system: System, name: str, url: str, **more: Any) -> None:
    """Deploys a candidate that is asked there; returns once it is ready."""
    (system.data / "secrets").mkdir(mode=0o700, exist_ok=True)
    key = system.data / "secrets" / KEY_FILE
    key.write_text(openai_server.KEY)
    key.chmod(0o600)
    args = {"base_url": url, "api_key_file": KEY_FILE, "retries": "0"}
    spec = {"name": name, "engine": "openai", "model": openai_server.MODEL, "engine_args": args}
    system.change("POST", "deployments", {**spec, **more})
    is_ready(system, name)


def is_ready(system: System, name: str, count: int = 1, within: float = 60) -> None:
    """Returns once so many of its replicas are ready."""

    def ready() -> bool:
        return int(system.admin(f"deployments/{name}")["status"]["ready"]) >= count

    eventually(ready, within=within, what=f"{name} is ready")


def started(system: System, name: str, **spec: Any) -> Json:
    """A canary of this spec."""
    try:
        told: Json = system.change("POST", "canaries", {"name": name, **spec})
    except urllib.error.HTTPError as error:
        error.add_note(error.read().decode())  # why not
        raise
    return told


def canary(system: System, name: str) -> Json:
    """How it stands."""
    told: Json = system.admin(f"canaries/{name}")
    return told


async def ended(system: System, name: str, within: float = 60) -> Json:
    """How it ended."""

    def over() -> Json:
        told = canary(system, name)
        if told["state"] not in ENDED:
            raise ValueError(f"{told['state']} at step {told['step']}: {told['missing']}")
        return told

    return await asyncio.to_thread(eventually, over, within=within, what=f"the end of {name}")


async def comes(system: System, name: str, within: float = 60, **wanted: Any) -> Json:
    """The canary once it says this."""

    def does() -> Json:
        told = canary(system, name)
        if any(told[key] != value for key, value in wanted.items()):
            raise ValueError(f"{told['state']} at step {told['step']}: {told['missing']}")
        return told

    return await asyncio.to_thread(eventually, does, within=within, what=f"{name}: {wanted}")


@dataclass
class Clients:
    """What clients saw, each of a session of its own."""

    model: str
    outcomes: Counter[str] = field(default_factory=Counter)

    @property
    def hurt(self) -> int:
        """Those that got no whole answer, though there was a gateway to ask."""
        return self.outcomes.total() - self.outcomes["whole"] - self.outcomes["lost"]

    async def ask(self, client: httpx.AsyncClient, prompt: str, **more: Any) -> str:
        """One streamed answer, and how it ended: whole, its status, or broken."""
        body = {"model": self.model, "stream": True, **more}
        body["messages"] = [{"role": "user", "content": prompt}]
        outcome = "broken"
        try:
            async with client.stream("POST", "/chat/completions", json=body) as reply:
                text = (await reply.aread()).decode()
            whole = _WHOLE.search(text) and "[DONE]" in text
            outcome = "whole" if whole else str(reply.status_code)
        except httpx.RemoteProtocolError:  # told in-band, then closed
            pass
        except httpx.TransportError:
            outcome = "lost"
        self.outcomes[outcome] += 1
        return outcome


_prompts = itertools.count()
_WHOLE: Final = re.compile(r'"finish_reason": ?"(?:stop|length)"')


def _prompt(padding: int) -> str:
    return f"Question {next(_prompts)}?{' please' * padding}"


@asynccontextmanager
async def clients(
    port: int, model: str, *, per_second: float = 60, padding: int = 0, **more: Any
) -> AsyncIterator[Clients]:
    """Asks at a steady pace until the block ends, then waits for what is under way. `padding`:
    words that each prompt has besides."""
    found, over = Clients(model), asyncio.Event()
    url = f"http://127.0.0.1:{port}/v1"
    limits = httpx.Limits(max_connections=200, max_keepalive_connections=200)

    async def all_of_them(client: httpx.AsyncClient, tasks: asyncio.TaskGroup) -> None:
        loop = asyncio.get_running_loop()
        due = loop.time()
        while not over.is_set():
            tasks.create_task(found.ask(client, _prompt(padding), **more))
            due = max(due + 1 / per_second, loop.time() - 1)
            await asyncio.sleep(max(0.0, due - loop.time()))

    async with (
        httpx.AsyncClient(base_url=url, trust_env=False, timeout=60, limits=limits) as client,
        asyncio.TaskGroup() as tasks,
    ):
        tasks.create_task(all_of_them(client, tasks))
        try:
            yield found
        finally:
            over.set()
