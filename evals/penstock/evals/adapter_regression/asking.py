"""Asks the gateway for both versions of every prompt, and believes no answer without its name.

The requests of one prompt follow each other at once, in an order that the seed draws, so that
neither version has the quieter machine.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import httpx

from penstock.adapters.adapter import AdapterRef, BadAdapterRef
from penstock.evals.adapter_regression.dataset import Prompt
from penstock.evals.adapter_regression.scores import Answer
from penstock.evals.client import CHAT_PATH
from penstock.evals.closed_loop import run_clients
from penstock.evals.comparison.orders import orders
from penstock.evals.comparison.replies import HOPELESS, VERSION_HEADER, error_of
from penstock.evals.comparison.text import whole
from penstock.evals.endpoint import bearer
from penstock.evals.errors import EvalError

BASE: Final = "base"
_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._/-]{0,126}")


class WrongVersion(EvalError):
    """An answer that was not made by the version that was asked for."""


@dataclass(frozen=True, slots=True)
class Version:
    """What is asked for: an adapter's version, or a deployment's base model."""

    deployment: str
    ref: AdapterRef | None  # None: the base model

    @classmethod
    def parse(cls, deployment: str, text: str) -> Version:
        """Reads `name@version` or `base`. Raises `EvalError`."""
        if not _NAME.fullmatch(deployment):
            raise EvalError(f"{deployment!r} is no name of a deployment")
        try:
            return cls(deployment, None if text == BASE else AdapterRef.parse(text))
        except BadAdapterRef as error:
            raise EvalError(f"{error}, or {BASE} for the deployment without one") from error

    @property
    def model(self) -> str:
        """What requests name as their model."""
        return self.deployment if self.ref is None else f"{self.deployment}:{self.ref}"

    def __str__(self) -> str:
        """As reports name it."""
        return BASE if self.ref is None else str(self.ref)


@dataclass(frozen=True, slots=True)
class Asking:
    """How all prompts are asked."""

    gateway: str  # its address for clients
    api_key: str = ""
    concurrency: int = 4  # prompts at a time
    seed: int = 0
    max_tokens: int = 256
    temperature: float = 0.0
    timeout_s: float = 120.0
    progress: Callable[[int, int], None] = field(default=lambda done, of: None)

    def body(self, prompt: Prompt, version: Version) -> dict[str, Any]:
        """The chat request. What the prompt says itself goes before the run's settings."""
        own = {"temperature": self.temperature, "max_tokens": self.max_tokens, "seed": self.seed}
        return prompt.question.body(version.model, **own)


def ask_both(
    prompts: Sequence[Prompt], candidate: Version, baseline: Version, asking: Asking
) -> list[tuple[Answer, Answer]]:
    """The answers of candidate and baseline to each prompt, in the prompts' order.

    What fails is an answer with an error. Raises `WrongVersion` at the first answer of another
    version than was asked for, and `EvalError` where nothing can be answered.
    """
    found: dict[int, dict[Version, Answer]] = {}
    work = orders(len(prompts), (candidate, baseline), asking.seed)

    async def client(http: httpx.AsyncClient, number: int) -> None:
        for index, order in work:
            answers = {
                version: await _ask(http, prompts[index], version, asking) for version in order
            }
            found[index] = answers
            asking.progress(len(found), len(prompts))

    # An adapter's first call waits for its loading, which is no latency of its answers.
    async def first(http: httpx.AsyncClient, number: int) -> None:
        for version in (candidate, baseline):
            await _ask(http, prompts[0], version, asking)

    run_clients(asking.gateway, 1, first)
    run_clients(asking.gateway, min(asking.concurrency, len(prompts)), client)
    return [(found[n][candidate], found[n][baseline]) for n in range(len(prompts))]


async def _ask(http: httpx.AsyncClient, prompt: Prompt, version: Version, asking: Asking) -> Answer:
    body, headers = asking.body(prompt, version), bearer(asking.api_key)
    began = time.perf_counter()
    try:
        reply = await http.post(CHAT_PATH, json=body, headers=headers, timeout=asking.timeout_s)
    except httpx.ConnectError as error:
        raise EvalError(f"{asking.gateway} does not answer: {error!r}: is it there?") from error
    except httpx.HTTPError as error:
        return Answer(error=f"no answer: {error!r}"[:300])
    latency_ms = (time.perf_counter() - began) * 1000
    check_version(version, prompt.id, reply.status_code, reply.headers)
    if reply.status_code in HOPELESS:
        raise EvalError(f"{version.model}: {reply.status_code} {error_of(reply.text)}")
    return answer_from(reply, latency_ms)


def check_version(asked: Version, prompt: str, status: int, headers: Mapping[str, str]) -> None:
    """Raises `WrongVersion` unless the answer names what was asked for; an error may name none."""
    told = headers.get(VERSION_HEADER)
    if told is None and status != 200:
        return
    if told != (None if asked.ref is None else str(asked.ref)):
        request = headers.get("x-request-id", "unnamed")
        raise WrongVersion(
            f"{asked.model} was asked for, and {VERSION_HEADER} says {told or 'nothing'!r} "
            f"(prompt {prompt}, request {request}): these answers are not the version's, so "
            "nothing is compared"
        )


def answer_from(reply: httpx.Response, latency_ms: float) -> Answer:
    """The answer in a reply, or the error."""
    request_id = reply.headers.get("x-request-id", "")
    if reply.status_code != 200:
        error = f"{reply.status_code} {error_of(reply.text)}"
        return Answer(error=error, latency_ms=latency_ms, request_id=request_id)
    try:
        told = reply.json()
        choice = told["choices"][0]
        text = choice["message"]["content"]
        tokens = (told.get("usage") or {}).get("completion_tokens")
        return Answer(
            text=whole(text or ""),
            latency_ms=latency_ms,
            finish_reason=str(choice.get("finish_reason") or ""),
            tokens=tokens if isinstance(tokens, int) else None,
            request_id=request_id,
        )
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError):
        error = f"200, but no chat completion: {whole(reply.text)[:200]!r}"
        return Answer(error=error, latency_ms=latency_ms, request_id=request_id)
