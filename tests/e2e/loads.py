"""Clients that ask again and again, obey when they are sent away, and remember how it went."""

from __future__ import annotations

import asyncio
import json
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import openai

from tests.e2e.streams import sdk_at
from tests.e2e.system import System

Json = dict[str, Any]


@dataclass
class Answer:
    """How one try of a request ended."""

    status: int  # 0: the connection broke
    headers: Mapping[str, str]
    again: bool  # it had been sent away, and came back when it was told to
    seconds: float  # from send to the end
    error: str = ""
    at: float = 0.0  # by the monotonic clock, when it was sent

    @property
    def reason(self) -> str:
        """Why it was refused."""
        return self.headers.get("x-penstock-drop-reason", "")

    @property
    def waited_ms(self) -> float:
        """What the gateway says that it waited for a place."""
        return float(self.headers["x-penstock-queue-ms"])

    @property
    def estimated_ms(self) -> float:
        """How long the gateway had thought that it would wait."""
        return float(self.headers["x-penstock-estimated-wait-ms"])

    @property
    def retry_seconds(self) -> float:
        """When it may come back."""
        return float(self.headers["retry-after-ms"]) / 1000

    @property
    def retry_whole_seconds(self) -> float:
        """The same, as who only knows HTTP's own header reads it."""
        return float(self.headers["retry-after"])


@dataclass
class Load:
    """Answers of many clients so far."""

    answers: list[Answer] = field(default_factory=list)

    @property
    def served(self) -> list[Answer]:
        """Those with an answer."""
        return [a for a in self.answers if a.status == 200]

    @property
    def refused(self) -> list[Answer]:
        """Those that were sent away."""
        return [a for a in self.answers if a.status in (408, 429, 503)]

    @property
    def lost(self) -> list[Answer]:
        """Those that were neither answered nor refused."""
        return [a for a in self.answers if a not in self.served and a not in self.refused]

    def waits(self) -> list[float]:
        """Milliseconds that those who were served had waited."""
        return [a.waited_ms for a in self.served]


def share(values: list[float], part: float) -> float:
    """A quantile."""
    return sorted(values)[min(int(part * len(values)), len(values) - 1)]


def sdk(system: System, key: str = "none") -> openai.AsyncOpenAI:
    """An SDK client that shows every refusal."""
    return sdk_at(system.base_url, key)


async def ask_once(
    client: openai.AsyncOpenAI, text: str, *, again: bool = False, **body: Any
) -> Answer:
    """One try, whatever comes of it."""
    began = time.monotonic()
    headers = body.pop("headers", None)
    try:
        reply = await client.chat.completions.with_raw_response.create(
            model="sim",
            messages=[{"role": "user", "content": text}],
            extra_body=body,
            extra_headers=headers,
        )
        status, found, error = reply.status_code, reply.headers, ""
    except openai.APIStatusError as failure:
        status, found, error = failure.status_code, failure.response.headers, failure.message
    except openai.APIConnectionError as failure:
        return Answer(0, {}, again, time.monotonic() - began, repr(failure))
    return Answer(status, dict(found), again, time.monotonic() - began, error, began)


def after(seconds: float) -> Callable[[], bool]:
    """Whether so much time has gone by since."""
    until = time.monotonic() + seconds
    return lambda: time.monotonic() >= until


async def obeying(
    client: openai.AsyncOpenAI,
    load: Load,
    name: str,
    over: Callable[[], bool],
    *,
    comes_back: Callable[[Answer], float] = lambda answer: answer.retry_seconds,
    **body: Any,
) -> None:
    """Asks until it is over; where it is refused, it comes back exactly when it is told to."""
    asked = 0
    while not over():
        asked += 1
        answer = await ask_once(client, f"{name} asks {asked}", **body)
        load.answers.append(answer)
        while answer.status in (408, 429, 503) and not over():
            await asyncio.sleep(comes_back(answer))
            answer = await ask_once(client, f"{name} asks {asked}", again=True, **body)
            load.answers.append(answer)


def admin(system: System, method: str, path: str, body: Json | None = None) -> Any:
    """A change by the admin REST API; nothing where it answers with nothing."""
    request = urllib.request.Request(
        f"http://127.0.0.1:{system.admin_port}/admin/v1/{path}",
        method=method,
        data=None if body is None else json.dumps(body).encode(),
        headers={
            "authorization": f"Bearer {system.admin_token}",
            "content-type": "application/json",
        },
    )
    with urllib.request.urlopen(request, timeout=10) as reply, suppress(ValueError):
        return json.loads(reply.read())
    return None


def configure(system: System, **settings: object) -> None:
    """Changes what the deployment goes by."""
    admin(system, "PATCH", "deployments/sim/settings", settings)


def metric(system: System, name: str, **labels: str) -> float:
    """The sum of a gateway's metric over all series that have these labels."""
    with urllib.request.urlopen(f"http://127.0.0.1:{system.metrics_port}/metrics") as reply:
        lines = reply.read().decode().splitlines()
    wanted = [f'{key}="{value}"' for key, value in labels.items()]
    found = [line for line in lines if line.startswith((name + "{", name + " "))]
    return sum(float(x.rsplit(" ", 1)[1]) for x in found if all(w in x for w in wanted))
