"""What a shadow of all requests costs clients' waits: on and off in turn, on the simulated engine.

The candidate and the comparer have what the machine's other processes leave (`SCHED_IDLE`; by
niceness Linux weighs processes of one session alone), as if they were on a machine of their own:
what is measured is what happens on a client's way, not who has the cores.
"""

from __future__ import annotations

import contextlib
import json
import os
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

import psutil

from penstock.evals.admin_api import AdminApi
from penstock.evals.comparison.intervals import Interval, mean_ratio
from penstock.evals.errors import EvalError
from penstock.evals.native import Load, NativePrograms
from penstock.evals.penstock_system import MODEL, System, penstock, simulated

MOST: Final = {"p50": 1.03, "p99": 1.10}
MOST_BUSY: Final = 40.0  # per cent of the machine, without the shadow
CONFIDENCE: Final = 0.95
SEED: Final = 1
TOKENS: Final = 10
ENGINE: Final = "ttft_ms=20 tokens_per_second=50 max_running=64 per_request=1"
"""As quick with its first token as a small model."""
CANDIDATE: Final = "candidate"
NAME: Final = "latency"
CONNECTIONS: Final = 32
CONNECTS_PER_SECOND: Final = 160
"""Spread over the time of an answer, as clients are who know nothing of each other."""
WARM_UP_MS: Final = 1500
READY_SECONDS: Final = 60.0


@dataclass(frozen=True, slots=True)
class Look:
    """One window: milliseconds to the first event and to the end, and how busy the machine was."""

    first: dict[str, float]
    whole: dict[str, float]
    answers: int
    busy: float


@dataclass(frozen=True, slots=True)
class Found:
    """All rounds; `looks`: without and with the shadow."""

    looks: Sequence[tuple[Look, Look]]
    outcomes: dict[str, int]  # of the sampled requests

    @property
    def busy(self) -> float:
        """Per cent of the machine without the shadow, at most."""
        return max(off.busy for off, _ in self.looks)

    def ratio(self, what: str, quantile: str) -> Interval:
        """With the shadow, times without. Raises `EvalError`."""
        pairs = [
            (getattr(on, what)[quantile], getattr(off, what)[quantile]) for off, on in self.looks
        ]
        found = mean_ratio(pairs, CONFIDENCE, SEED)
        if found is None:
            raise EvalError("too few rounds for an interval")
        return found

    @property
    def passed(self) -> bool:
        """Whether clients wait no longer."""
        within = all(
            self.ratio(what, quantile).high < most
            for what in ("first", "whole")
            for quantile, most in MOST.items()
        )
        return within and self.busy < MOST_BUSY


def measure(
    serve: Sequence[str],
    native: NativePrograms,
    rounds: int,
    seconds: float,
    folder: Path,
    progress: Callable[[str], None],
) -> Found:
    """Raises `EvalError` where something does not start, or an answer fails."""
    folder.mkdir(parents=True, exist_ok=True)
    body = folder / "body.json"
    question = {"role": "user", "content": "What is a gateway?"}
    asked = {"model": MODEL, "messages": [question], "max_tokens": TOKENS, "stream": True}
    body.write_text(json.dumps(asked))
    with penstock(serve, simulated(ENGINE), folder) as system, _shadowed(system.admin, folder):
        looks = []
        for number in range(rounds):
            progress(f"round {number + 1} of {rounds}")
            order = (False, True) if number % 2 else (True, False)
            seen = {on: _look(system, native, seconds, body, on=on) for on in order}
            looks.append((seen[False], seen[True]))
        told = system.admin.get(f"shadows/{NAME}/report")["report"]
    return Found(looks, told["outcomes"])


@contextlib.contextmanager
def _shadowed(admin: AdminApi, folder: Path) -> Iterator[None]:
    """A candidate like the primary, and a shadow that is paused."""
    spec = {"name": CANDIDATE, "engine": "simulated", "model": "tiny"}
    settings = dict(each.split("=") for each in ENGINE.split())
    admin.post("deployments", {**spec, "engine_args": settings})
    shadow = {"name": NAME, "primary": MODEL, "candidate": CANDIDATE, "share_permille": 1000}
    _until(lambda: len(_ready(admin)) == 2, "the candidate")
    admin.post("shadows", {**shadow, "max_concurrent": 4 * CONNECTIONS})
    _until(lambda: admin.get(f"shadows/{NAME}")["state"] == "running", "the comparer")
    _stand_back(admin, folder)
    yield


def _ready(admin: AdminApi) -> list[dict[str, Any]]:
    return [each for each in admin.get("replicas") if each["state"] == "ready"]


def _until(condition: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + READY_SECONDS
    while not condition():
        if time.monotonic() > deadline:
            raise EvalError(f"{what} is not there within {READY_SECONDS:g} s")
        time.sleep(0.1)


def _stand_back(admin: AdminApi, folder: Path) -> None:
    """Has all threads of the candidate's replica and of the comparer go last."""
    (candidate,) = [each["pid"] for each in _ready(admin) if each["deployment"] == CANDIDATE]
    mine = f"penstock.control.comparer --data-dir {folder / 'data'} "
    comparers = [
        each.pid
        for each in psutil.process_iter(["cmdline"])
        if mine in " ".join(each.info["cmdline"] or ()) + " "
    ]
    for pid in (candidate, *comparers):
        for thread in psutil.Process(pid).threads():
            os.sched_setscheduler(thread.id, os.SCHED_IDLE, os.sched_param(0))
    if len(comparers) != 1:
        raise EvalError(f"there are {len(comparers)} comparers of {folder / 'data'}")


def _look(system: System, native: NativePrograms, seconds: float, body: Path, *, on: bool) -> Look:
    system.admin.post(f"shadows/{NAME}/{'resume' if on else 'pause'}", None)
    wanted = "running" if on else "paused"
    _until(lambda: system.admin.get(f"shadows/{NAME}")["state"] == wanted, wanted)
    psutil.cpu_percent()
    load = Load(
        CONNECTIONS, WARM_UP_MS, round(seconds * 1000), connects_per_second=CONNECTS_PER_SECOND
    )
    told = native.load(system.target, load, body)
    if told["problem"]:
        raise EvalError(f"a request failed: {told['problem']}")
    return Look(
        first=_milliseconds(told["first_event_us"]),
        whole=_milliseconds(told["answer_us"]),
        answers=told["answer_us"]["count"],
        busy=psutil.cpu_percent(),
    )


def _milliseconds(told: dict[str, float]) -> dict[str, float]:
    return {name: told[name] / 1000 for name in MOST}


def as_dict(found: Found) -> dict[str, Any]:
    """For JSON."""
    looks = [{"off": asdict(off), "on": asdict(on)} for off, on in found.looks]
    return {"rounds": looks, "outcomes": found.outcomes, "passed": found.passed}


def as_markdown(found: Found) -> str:
    """A row for each figure."""
    lines = [
        f"{len(found.looks)} paired rounds of {found.looks[0][0].answers:,} answers; the machine "
        f"was up to {found.busy:.0f} % busy without the shadow (goal: under {MOST_BUSY:g} %). "
        f"Sampled requests: {', '.join(f'{n} {c:,}' for n, c in sorted(found.outcomes.items()))}.",
        "",
        "| clients' wait | without, ms | with, ms | times | 95 % interval | goal |",
        "|---|---:|---:|---:|---|---|",
    ]
    for what, words in (("first", "first event"), ("whole", "whole answer")):
        for quantile, most in MOST.items():
            ratio = found.ratio(what, quantile)
            off, on = (
                sum(getattr(each[at], what)[quantile] for each in found.looks) / len(found.looks)
                for at in (0, 1)
            )
            met = "met" if ratio.high < most else "missed"
            lines.append(
                f"| {words} {quantile} | {off:.2f} | {on:.2f} | {ratio.value:.3f} "
                f"| {ratio.low:.3f} to {ratio.high:.3f} | under {most:g}: {met} |"
            )
    return "\n".join(lines)
