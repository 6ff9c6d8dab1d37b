"""Requests at a steady pace to a deployment that has a ladder, and what each came to."""

from __future__ import annotations

import asyncio
import time
import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import httpx

from tests.e2e.system import System, eventually

SORRY = "We are busy. Please ask again in a minute."


def canned(system: System, name: str, *more: str, **settings: object) -> None:
    """A deployment that answers with a text."""
    args = dict(each.split("=", 1) for each in (f"text={SORRY}", *more))
    spec = {"engine": "canned", "model": "sorry", "engine_args": args, **settings}
    system.change("POST", "deployments", {"name": name, **spec})
    eventually(
        lambda: any(r["deployment"] == name for r in system.replicas()),
        within=20,
        what=f"{name} is ready",
    )


@dataclass
class Answer:
    """How a request ended."""

    status: int
    backend: str
    degraded: str
    reason: str
    seconds: float
    waited_ms: float
    text: str


@asynccontextmanager
async def client_of(system: System) -> AsyncIterator[httpx.AsyncClient]:
    async with httpx.AsyncClient(
        base_url=system.base_url,
        limits=httpx.Limits(max_connections=1000, max_keepalive_connections=1000),
        trust_env=False,
        timeout=60,
    ) as client:
        yield client


async def ask(client: httpx.AsyncClient, model: str = "sim", **body: Any) -> Answer:
    """One request, which is like no other."""
    began = time.monotonic()
    # Each is another: one that two engines died under would be kept from all others.
    messages = [{"role": "user", "content": f"What is a gateway? {uuid.uuid4()}"}]
    reply = await client.post(
        "/chat/completions", json={"model": model, "messages": messages, **body}
    )
    said = reply.headers
    whole = reply.status_code == 200
    return Answer(
        reply.status_code,
        said.get("x-penstock-backend", ""),
        said.get("x-penstock-degraded", ""),
        said.get("x-penstock-drop-reason", ""),
        time.monotonic() - began,
        float(said.get("x-penstock-queue-ms", "0")),
        reply.json()["choices"][0]["message"]["content"] if whole else reply.text,
    )


async def at_rate(
    client: httpx.AsyncClient, rate: float, seconds: float, **body: Any
) -> list[Answer]:
    """So many requests a second for so long, whatever becomes of those before."""
    async with asyncio.TaskGroup() as tasks:
        asked = []
        began = time.monotonic()
        for number in range(int(rate * seconds)):
            await asyncio.sleep(max(0.0, began + number / rate - time.monotonic()))
            asked.append(tasks.create_task(ask(client, **body)))
    return [each.result() for each in asked]


def check_told(answers: list[Answer], fallback: str) -> None:
    """Each answer says whose it is, and that it is another's where it is."""
    for answer in answers:
        assert answer.status == 200, answer
        assert (answer.backend == fallback) == bool(answer.degraded), answer
        assert (answer.text == SORRY) == (answer.backend == fallback), answer
