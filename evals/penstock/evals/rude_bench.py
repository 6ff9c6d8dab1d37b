"""What rude clients of one tenant do to another's chats and streams, on real vLLM.

A tenant's short chats and running streams are watched alone, and then beside 20 clients of another
tenant that send what costs most: each kind for itself, and all of them together.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from penstock.evals.account import open_account
from penstock.evals.errors import EvalError
from penstock.evals.neighbours import Neighbour, Seen
from penstock.evals.penstock_system import MODEL, System, penstock
from penstock.evals.rude_kinds import KINDS

CLIENTS = 20
ALL = "all"
ALONE = "alone"
FIRST_TOKEN_MS = 250.0  # or twice what it is alone, where that is more
SILENCE_MS = 200.0
WARM_UP_SECONDS = 3.0


@dataclass(frozen=True, slots=True)
class Beside:
    """What the neighbour saw beside a kind of rude clients, and what these were answered."""

    kind: str
    chats: int
    p50: float
    p99: float
    most_p99: float
    silence: float
    failures: int
    load: float  # of the machine, at the end
    answers: dict[str, int]
    rude_cpu_seconds: float

    @property
    def passed(self) -> bool:
        """Whether the neighbour was left alone."""
        return self.p99 <= self.most_p99 and self.silence <= SILENCE_MS and not self.failures


def measure(
    serve: Sequence[str],
    kinds: Sequence[str],
    seconds: float,
    folder: Path,
    progress: Callable[[str], None],
) -> list[Beside]:
    """Each kind beside the same neighbour. Raises `EvalError` when something does not start."""
    folder.mkdir(parents=True, exist_ok=True)
    with penstock(serve, ["--set", "context=trim"], folder) as system:
        rude = open_account(system.admin, system.url, "rude")
        key = open_account(system.admin, system.url, "neighbour")
        neighbour = Neighbour(system.target.port, MODEL, key)
        neighbour.look(WARM_UP_SECONDS)
        alone = neighbour.look(seconds)
        results = [beside(ALONE, alone, alone, {"answers": {}, "cpu_seconds": 0.0})]
        for kind in kinds:
            progress(f"beside {kind}")
            seen, told = _rudely(system, rude, kind, neighbour, seconds)
            results.append(beside(kind, seen, alone, told))
    return results


def _rudely(
    system: System, key: str, kind: str, neighbour: Neighbour, seconds: float
) -> tuple[Seen, dict[str, Any]]:
    words = [str(system.target.port), MODEL, kind, str(CLIENTS), str(seconds)]
    rude = subprocess.Popen(
        [sys.executable, "-m", "penstock.evals.rude_clients", *words],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert rude.stdin is not None
        rude.stdin.write(f"{key}\n")
        rude.stdin.flush()
        seen = neighbour.look(seconds)
        told, _ = rude.communicate(timeout=60)
    except subprocess.TimeoutExpired as error:
        raise EvalError(f"the rude clients ({kind}) do not end") from error
    finally:
        rude.kill()
    if rude.returncode != 0:
        raise EvalError(f"the rude clients ({kind}) ended with {rude.returncode}")
    return seen, json.loads(told)


def beside(kind: str, seen: Seen, alone: Seen, rude: dict[str, Any]) -> Beside:
    """The figures of a kind; `rude`: what its process told."""
    return Beside(
        kind=kind,
        chats=len(seen.first_tokens),
        p50=seen.p50,
        p99=seen.p99,
        most_p99=max(FIRST_TOKEN_MS, 2 * alone.p99),
        silence=seen.longest_silence,
        failures=len(seen.failures),
        load=os.getloadavg()[0],
        answers=rude["answers"],
        rude_cpu_seconds=rude["cpu_seconds"],
    )


def as_markdown(results: Sequence[Beside]) -> str:
    """A row for each kind."""
    lines = [
        f"Goal: first token p99 within {results[0].most_p99:.0f} ms, no stream silent for more "
        f"than {SILENCE_MS:.0f} ms. {CLIENTS} rude clients.",
        "",
        "| beside | chats | first token p50, ms | p99 | longest silence | failures | goal "
        "| the rude were answered | their CPU, s | load |",
        "|---|" + "---:|" * 5 + "---|---|---:|---:|",
    ]
    for each in results:
        answers = ", ".join(f"{count} x {what}" for what, count in sorted(each.answers.items()))
        lines.append(
            f"| {each.kind} | {each.chats} | {each.p50:.0f} | {each.p99:.0f} | {each.silence:.0f} "
            f"| {each.failures} | {'met' if each.passed else 'missed'} | {answers or '-'} "
            f"| {each.rude_cpu_seconds:.1f} | {each.load:.1f} |"
        )
    return "\n".join(lines)


CHOICES = (*KINDS, ALL)
