"""Asks both endpoints a dataset, streamed, as clients ask; and the primary again for a share of it.

Where the primary is asked again, candidate and control go first, in an order that the seed draws,
and the primary's own answer comes last: so both find like caches, whether they share one or not.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

import httpx

from penstock.evals.client import CHAT_PATH
from penstock.evals.closed_loop import run_clients
from penstock.evals.comparison.pair import Answer, Asked, Mark, Pair
from penstock.evals.comparison.questions import Question, WrongLine, read
from penstock.evals.comparison.replies import HOPELESS, StreamedReply, error_of
from penstock.evals.errors import EvalError

_OTHERS_FIELDS = ("reference", "checks")
"""What adapter-regression goes by in the same datasets, and this does not."""


class Arm(Enum):
    """What an answer is for."""

    PRIMARY = "primary"
    CANDIDATE = "candidate"
    AGAIN = "again"  # the primary too


@dataclass(frozen=True, slots=True)
class Line:
    """One line of a dataset."""

    question: Question
    session: str  # lines of one session count once


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Who is asked, for which model, with which key."""

    url: str
    model: str
    key: str = field(default="", repr=False)

    def headers(self) -> dict[str, str]:
        """With the key, if there is one."""
        return {"authorization": f"Bearer {self.key}"} if self.key else {}

    def __str__(self) -> str:
        """As reports name it."""
        return f"{self.model} at {self.url}"


@dataclass(frozen=True, slots=True)
class Asking:
    """How all questions are asked."""

    primary: Endpoint
    candidate: Endpoint
    self_permille: int = 1000  # of the questions: of the primary again
    concurrency: int = 4  # questions at a time
    seed: int = 0
    max_tokens: int = 256
    temperature: float = 0.0
    timeout_s: float = 120.0
    progress: Callable[[int, int], None] = field(default=lambda done, of: None)

    def endpoint(self, arm: Arm) -> Endpoint:
        """Who answers for that arm."""
        return self.candidate if arm is Arm.CANDIDATE else self.primary

    def body(self, question: Question, arm: Arm) -> dict[str, Any]:
        """The chat request."""
        own = {"temperature": self.temperature, "max_tokens": self.max_tokens, "seed": self.seed}
        streamed = {"stream": True, "stream_options": {"include_usage": True}}
        return {**question.body(self.endpoint(arm).model, **own), **streamed}


def lines(data: bytes) -> list[Line]:
    """Reads the bytes of a dataset. Raises `BadDataset`."""

    def line(question: Question, told: Mapping[str, Any]) -> Line:
        session = told.get("session", "")
        if not isinstance(session, str):
            raise WrongLine("session: must be a text")
        return Line(question, session)

    return read(data, ("session", *_OTHERS_FIELDS), line)


def ask(dataset: Sequence[Line], asking: Asking) -> list[Pair]:
    """The pairs, in the dataset's order. What fails is an answer with an error. Raises `EvalError`
    where nothing can be answered."""
    found: dict[int, Pair] = {}
    work = _orders(len(dataset), asking)

    async def client(http: httpx.AsyncClient, number: int) -> None:
        for index, order in work:
            question = dataset[index].question
            got = {arm: await _ask(http, question, arm, asking) for arm in order}
            found[index] = _pair(dataset[index], got, asking)
            asking.progress(len(found), len(dataset))

    # What cannot answer at all is a wrong address, no worse candidate; and a first call waits for
    # an adapter's loading, which is no latency of its answers.
    async def first(http: httpx.AsyncClient, number: int) -> None:
        for arm in (Arm.PRIMARY, Arm.CANDIDATE):
            answer, _ = await _ask(http, dataset[0].question, arm, asking)
            if answer.error.startswith("no answer"):
                raise EvalError(f"{asking.endpoint(arm).url}: {answer.error}: is it there?")

    run_clients(asking.primary.url, 1, first)
    run_clients(asking.primary.url, min(asking.concurrency, len(dataset)), client)
    return [found[number] for number in range(len(dataset))]


def only_model(url: str, key: str) -> str:
    """The model that an endpoint serves, adapters aside. Raises `EvalError` where there is not
    one."""
    try:
        headers = {"authorization": f"Bearer {key}"} if key else {}
        reply = httpx.get(f"{url}/v1/models", headers=headers, timeout=30, trust_env=False)
        names = [str(each["id"]) for each in reply.json()["data"]]
    except (httpx.HTTPError, ValueError, LookupError, TypeError) as error:
        raise EvalError(f"{url}/v1/models does not tell its models: {error!r}") from error
    deployments = [each for each in names if ":" not in each]
    if len(deployments) != 1:
        told = ", ".join(names) or "no model"
        raise EvalError(f"{url} serves {told}: say which by --primary-model and --candidate-model")
    return deployments[0]


def _orders(count: int, asking: Asking) -> Iterator[tuple[int, list[Arm]]]:
    chance = random.Random(asking.seed)
    drawn = []
    for number in range(count):
        again = chance.randrange(1000) < asking.self_permille
        order = chance.sample([Arm.CANDIDATE, Arm.AGAIN if again else Arm.PRIMARY], 2)
        drawn.append((number, [*order, Arm.PRIMARY] if again else order))
    return iter(drawn)


Got = tuple[Answer, frozenset[Mark]]


async def _ask(http: httpx.AsyncClient, question: Question, arm: Arm, asking: Asking) -> Got:
    endpoint = asking.endpoint(arm)
    began = time.perf_counter()
    try:
        async with http.stream(
            "POST",
            endpoint.url + CHAT_PATH,
            json=asking.body(question, arm),
            headers=endpoint.headers(),
            timeout=asking.timeout_s,
        ) as reply:
            return await _read(reply, endpoint, began)
    except httpx.HTTPError as error:
        return Answer(error=f"no answer: {error!r}"[:300]), frozenset()


async def _read(reply: httpx.Response, endpoint: Endpoint, began: float) -> Got:
    if reply.status_code != 200:
        told = f"{reply.status_code} {error_of((await reply.aread()).decode(errors='replace'))}"
        if reply.status_code in HOPELESS:
            raise EvalError(f"{endpoint}: {told}")
        refused = frozenset([Mark.REFUSED]) if reply.status_code == 429 else frozenset()
        return Answer(error=told), refused
    streamed = StreamedReply(reply.headers)
    async for data in reply.aiter_bytes():
        streamed.feed(data, time.perf_counter() - began)
    return streamed.answer(time.perf_counter() - began), streamed.marks


def _pair(line: Line, got: Mapping[Arm, Got], asking: Asking) -> Pair:
    again = got.get(Arm.AGAIN)
    return Pair(
        id=line.question.id,
        primary=got[Arm.PRIMARY][0],
        candidate=got[Arm.CANDIDATE][0],
        again=again and again[0],
        asked=Asked.of(asking.body(line.question, Arm.PRIMARY)),
        session=line.session,
        marks=frozenset().union(*(marks for _, marks in got.values())),
    )


__all__ = ["Arm", "Asking", "Endpoint", "Line", "ask", "lines", "only_model"]
