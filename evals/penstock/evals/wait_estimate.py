"""How well the gateway foresees waits: what it told beside what it was, where clients must queue.

Clients in a closed loop ask two simulated replicas for more than they can run. Every answer says
how long the gateway had thought that it would wait and how long it did (`x-penstock-estimated-
wait-ms`, `-queue-ms`); the gateway counts the error of waits over 100 ms by itself, too.
"""

from __future__ import annotations

import asyncio
import random
import statistics
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import httpx

from penstock.evals.client import CHAT_PATH
from penstock.evals.closed_loop import run_clients
from penstock.evals.errors import EvalError
from penstock.evals.penstock_system import MODEL, System, penstock, simulated
from penstock.evals.scraping import page, series

MOST_ERROR = 0.3  # the goal: of half of the waits
SHORT_MS = 100.0  # waits up to this do not count
LEARNING = 100  # answers before the first that counts

REPLICAS = 2
ENGINE = "tokens_per_second=100 max_running=8 per_request=1"
LIMITS = ("--set", "max_queued=1000", "--set", "queue_deadline_ms=0")
MEAN_TOKENS = 50  # half a second
METRIC = "penstock_gateway_wait_estimate_error_ratio_bucket"


@dataclass(frozen=True, slots=True)
class Shape:
    """A load in a closed loop: so many clients, each with one request at a time."""

    name: str
    title: str
    clients: int
    varied: bool = True  # lengths of answers are exponential, not equal
    told: bool = True  # requests name their length; else the gateway can only learn the mean
    pause: float = 0.0  # mean seconds between an answer and the next request, exponential


SHAPES = (
    Shape("equal", "64 clients, answers of half a second", 64, varied=False),
    Shape("told", "64 clients, exponential lengths that requests name", 64),
    Shape("untold", "64 clients, exponential lengths that nobody names", 64, told=False),
    Shape("pauses", "96 clients with pauses of a second, exponential lengths, told", 96, pause=1),
)


@dataclass(frozen=True, slots=True)
class Wait:
    """One answer's wait in milliseconds, as it was told and as it was."""

    estimated: float
    real: float

    @property
    def error(self) -> float:
        """How far the estimate was off, as a share of the wait."""
        return abs(self.estimated - self.real) / self.real


@dataclass(frozen=True, slots=True)
class Foresight:
    """What came of one shape; of the waits over 100 ms, once 100 requests had been served."""

    name: str
    title: str
    answers: int
    waits: int
    wait_p50_ms: float
    error_p50: float
    error_p90: float
    bias_p50: float  # above 0: estimates are too long
    counted_p50: float | None  # the gateway's own histogram says so

    @property
    def passed(self) -> bool:
        """Whether the goal is met."""
        return self.error_p50 < MOST_ERROR


def measure(serve: Sequence[str], shape: Shape, seconds: float, folder: Path) -> Foresight:
    """One shape on a Penstock of its own. Raises `EvalError` when something fails."""
    folder.mkdir(parents=True)
    with penstock(serve, [*simulated(ENGINE), *LIMITS], folder, replicas=REPLICAS) as system:
        found, before = _load(system, shape, seconds)
        return foresight(shape, found, histogram_median(before, page(system.metrics_url)))


def foresight(shape: Shape, found: Sequence[Wait], counted: float | None) -> Foresight:
    """The figures of a load. Raises `EvalError` where nobody had to wait."""
    waits = [each for each in found[LEARNING:] if each.real > SHORT_MS]
    if not waits:
        raise EvalError(f"{shape.name}: nobody waited over {SHORT_MS:g} ms: measure for longer")
    errors = sorted(each.error for each in waits)
    return Foresight(
        name=shape.name,
        title=shape.title,
        answers=len(found),
        waits=len(waits),
        wait_p50_ms=statistics.median(each.real for each in waits),
        error_p50=statistics.median(errors),
        error_p90=errors[int(0.9 * (len(errors) - 1))],
        bias_p50=statistics.median(each.estimated / each.real - 1 for each in waits),
        counted_p50=counted,
    )


def histogram_median(before: str, after: str) -> float | None:
    """The median of what a gateway counted between two pages, as Prometheus would tell it."""
    earlier, later = _buckets(before), _buckets(after)
    counts = [(bound, count - earlier.get(bound, 0.0)) for bound, count in sorted(later.items())]
    if not counts or counts[-1][1] <= 0:
        return None
    half = counts[-1][1] / 2
    low, below = 0.0, 0.0
    for bound, count in counts:
        if count >= half:
            inside = (half - below) / (count - below)
            return low if bound == float("inf") else low + (bound - low) * inside
        low, below = bound, count
    return None


def _buckets(text: str) -> dict[float, float]:
    return {float(labels["le"]): value for labels, value in series(text, METRIC)}


def _load(system: System, shape: Shape, seconds: float) -> tuple[list[Wait], str]:
    """The waits in the order of the answers, and the metrics when the first hundred were there."""
    found: list[Wait] = []
    before = ""
    until = time.monotonic() + seconds

    async def client(http: httpx.AsyncClient, number: int) -> None:
        nonlocal before
        chance = random.Random(number)
        while time.monotonic() < until:
            found.append(await _ask(http, body_of(shape, chance)))
            if len(found) == LEARNING:
                before = await asyncio.to_thread(page, system.metrics_url)
            await asyncio.sleep(chance.expovariate(1 / shape.pause) if shape.pause else 0)

    run_clients(system.url, shape.clients, client)
    return found, before


def body_of(shape: Shape, chance: random.Random) -> dict[str, object]:
    """A request of that shape."""
    tokens = max(1, round(chance.expovariate(1 / MEAN_TOKENS))) if shape.varied else MEAN_TOKENS
    length = {"max_tokens": tokens} if shape.told else {"simulate": {"answer_tokens": tokens}}
    return {"model": MODEL, "messages": [{"role": "user", "content": "How long?"}], **length}


async def _ask(http: httpx.AsyncClient, body: Mapping[str, object]) -> Wait:
    try:
        reply = await http.post(CHAT_PATH, json=body)
    except httpx.HTTPError as error:
        raise EvalError(f"the gateway does not answer: {error!r}") from error
    if reply.status_code != 200:
        raise EvalError(f"the gateway answered {reply.status_code}: {reply.text[:300]}")
    told = reply.headers
    return Wait(float(told["x-penstock-estimated-wait-ms"]), float(told["x-penstock-queue-ms"]))


def as_markdown(results: Sequence[Foresight]) -> str:
    """A table, and how each load's goal came out."""
    lines = [
        f"Waits over {SHORT_MS:g} ms at 16 places, once {LEARNING} requests had been served; "
        "error: |told - was| / was.",
        "",
        "| load | answers | waits | wait p50 | error p50 | error p90 | told too long by, p50 "
        "| error p50 as the gateway counts it |",
        "|---|" + "---:|" * 7,
    ]
    for each in results:
        counted = "-" if each.counted_p50 is None else f"{each.counted_p50:.0%}"
        lines.append(
            f"| {each.title} | {each.answers:,} | {each.waits:,} | {each.wait_p50_ms:,.0f} ms "
            f"| {each.error_p50:.0%} | {each.error_p90:.0%} | {each.bias_p50:+.0%} | {counted} |"
        )
    verdicts = [
        f"- {'PASS' if each.passed else 'FAIL'}: {each.name}: half of the estimates are off by "
        f"less than {MOST_ERROR:.0%} ({each.error_p50:.0%})"
        for each in results
    ]
    return "\n".join([*lines, "", *verdicts])


def as_dict(results: Sequence[Foresight]) -> list[dict[str, Any]]:
    """For JSON."""
    return [{**asdict(each), "passed": each.passed} for each in results]
