"""Asks both endpoints a dataset, streamed, as clients ask; and the primary again for a share of it.

Where the primary is asked again, candidate and control go first, in an order that the seed draws,
and the primary's own answer comes last: so both find like caches, whether they share one or not.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Final

import httpx

from penstock.evals.client import CHAT_PATH
from penstock.evals.closed_loop import run_clients
from penstock.evals.comparison.pair import Answer, Asked, Mark, Pair
from penstock.evals.comparison.questions import Question, WrongLine, read
from penstock.evals.comparison.recording import Recorded
from penstock.evals.comparison.replies import HOPELESS, StreamedReply, error_of
from penstock.evals.endpoint import Endpoint, Posted, post
from penstock.evals.errors import EvalError

ALL: Final = "all"
"""The slice that every line is in."""
_SLICE: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,39}")
_OTHERS_FIELDS: Final = ("reference", "checks")
"""What adapter-regression goes by in the same datasets, and this does not."""

_RUNS_OWN = ("model", "messages", "stream", "stream_options")


class Arm(Enum):
    """What an answer is for."""

    PRIMARY = "primary"
    CANDIDATE = "candidate"
    AGAIN = "again"  # the primary too


@dataclass(frozen=True, slots=True)
class Line:
    """One line of a dataset, or one request of a recording."""

    question: Question
    session: str = ""  # lines of one session count once
    slice: str = ""  # what quantization-regression holds to a gate of its own
    recorded: bool = False  # asked as it was, without the run's settings


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

    def body(self, line: Line, arm: Arm) -> dict[str, Any]:
        """The chat request."""
        own = {"temperature": self.temperature, "max_tokens": self.max_tokens, "seed": self.seed}
        told = line.question.body(self.endpoint(arm).model, **({} if line.recorded else own))
        return {**told, "stream": True, "stream_options": {"include_usage": True}}


def lines(data: bytes) -> list[Line]:
    """Reads the bytes of a dataset. Raises `BadDataset`."""

    def line(question: Question, told: Mapping[str, Any]) -> Line:
        session, part = told.get("session", ""), told.get("slice", "")
        if not isinstance(session, str):
            raise WrongLine("session: must be a text")
        if not isinstance(part, str) or (part and not _SLICE.fullmatch(part)) or part == ALL:
            raise WrongLine(f"slice: must be a text of letters, digits, _ and -, and not {ALL!r}")
        return Line(question, session, part)

    return read(data, ("session", "slice", *_OTHERS_FIELDS), line)


def recorded_lines(requests: Iterable[Recorded]) -> list[Line]:
    """The chats of a recording, in its order."""
    return [
        Line(_question(each), each.session, recorded=True)
        for each in requests
        if each.path == CHAT_PATH and isinstance(each.body.get("messages"), list)
    ]


def _question(recorded: Recorded) -> Question:
    body = recorded.body
    own = {name: value for name, value in body.items() if name not in _RUNS_OWN}
    return Question(recorded.id, tuple(body["messages"]), own)


def ask(dataset: Sequence[Line], asking: Asking) -> list[Pair]:
    """The pairs, in the dataset's order. What fails is an answer with an error. Raises `EvalError`
    where nothing can be answered."""
    found: dict[int, Pair] = {}
    work = _orders(len(dataset), asking)

    async def client(http: httpx.AsyncClient, number: int) -> None:
        for index, order in work:
            got = {arm: await _ask(http, dataset[index], arm, asking) for arm in order}
            found[index] = _pair(dataset[index], got, asking)
            asking.progress(len(found), len(dataset))

    # What cannot answer at all is a wrong address, no worse candidate; and a first call waits for
    # an adapter's loading, which is no latency of its answers.
    async def first(http: httpx.AsyncClient, number: int) -> None:
        for arm in (Arm.PRIMARY, Arm.CANDIDATE):
            answer, _ = await _ask(http, dataset[0], arm, asking)
            if answer.error.startswith("no answer"):
                raise EvalError(f"{asking.endpoint(arm).url}: {answer.error}: is it there?")

    run_clients(asking.primary.url, 1, first)
    run_clients(asking.primary.url, min(asking.concurrency, len(dataset)), client)
    return [found[number] for number in range(len(dataset))]


def _orders(count: int, asking: Asking) -> Iterator[tuple[int, list[Arm]]]:
    chance = random.Random(asking.seed)
    drawn = []
    for number in range(count):
        again = chance.randrange(1000) < asking.self_permille
        order = chance.sample([Arm.CANDIDATE, Arm.AGAIN if again else Arm.PRIMARY], 2)
        drawn.append((number, [*order, Arm.PRIMARY] if again else order))
    return iter(drawn)


Got = tuple[Answer, frozenset[Mark]]


async def _ask(http: httpx.AsyncClient, line: Line, arm: Arm, asking: Asking) -> Got:
    endpoint = asking.endpoint(arm)
    body = asking.body(line, arm)
    done = await post(http, endpoint, CHAT_PATH, body, StreamedReply, timeout_s=asking.timeout_s)
    if done.error or done.reply is None:
        return _without_answer(done, endpoint)
    return done.reply.answer(done.seconds), done.reply.marks


def _without_answer(done: Posted[StreamedReply], endpoint: Endpoint) -> Got:
    if done.error:
        return Answer(error=done.error), frozenset()
    told = f"{done.status} {error_of(done.body.decode(errors='replace'))}"
    if done.status in HOPELESS:
        raise EvalError(f"{endpoint}: {told}")
    return Answer(error=told), frozenset([Mark.REFUSED] if done.status == 429 else [])


def _pair(line: Line, got: Mapping[Arm, Got], asking: Asking) -> Pair:
    again = got.get(Arm.AGAIN)
    return Pair(
        id=line.question.id,
        primary=got[Arm.PRIMARY][0],
        candidate=got[Arm.CANDIDATE][0],
        again=again and again[0],
        asked=Asked.of(asking.body(line, Arm.PRIMARY)),
        session=line.session,
        marks=frozenset().union(*(marks for _, marks in got.values())),
    )
