"""What routing by prefix saves on real vLLM: prefix hits and first tokens beside power_of_two.

Two replicas of penstock-mini, and users of several applications: those of one share a long system
prompt. All these prompts together do not fit into one replica's KV cache, half of them do. So a
policy that sends a prompt anywhere has both replicas compute all of them again and again; one that
sends each to where it was computed has them there.
"""

from __future__ import annotations

import json
import random
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import httpx

from penstock.evals.client import CHAT_PATH, DONE
from penstock.evals.closed_loop import run_clients
from penstock.evals.errors import EvalError
from penstock.evals.penstock_system import MODEL, System, penstock
from penstock.evals.scraping import page, total

POLICIES = ("power_of_two", "prefix_aware")
REPLICAS = 2
CLIENTS = 4
APPLICATIONS = 16
PROMPT_WORDS = 640
WARM_UP = 2 * APPLICATIONS  # requests that are not counted: nothing is cached at first
ENGINE = ("--engine-arg", "cpu_kvcache_gib=0.05")
QUERIED, HIT = "vllm:prefix_cache_queries_total", "vllm:prefix_cache_hits_total"

WORDS = (
    "canal lock gate water pond river keeper boat barge rain weir sluice paddle mooring tow "
    "bridge basin lift summit wharf crew cargo level flood gauge bank reed heron mill night"
)


@dataclass(frozen=True, slots=True)
class Asked:
    """One answered request."""

    prompt_tokens: int
    cached_tokens: int
    first_token_ms: float


@dataclass(frozen=True, slots=True)
class Routed:
    """What came of one policy."""

    policy: str
    requests: int
    prompt_tokens: int  # of a request, mean
    hit_rate: float  # cached tokens over prompt tokens, as the answers tell
    engines_hit_rate: float | None  # the same of both engines, as their metrics tell
    first_token_p50_ms: float
    first_token_p99_ms: float


def measure(serve: Sequence[str], policy: str, requests: int, folder: Path) -> Routed:
    """One policy on a Penstock of its own. Raises `EvalError` when something fails."""
    folder.mkdir(parents=True)
    options = [*ENGINE, "--set", f"selection_policy={policy}"]
    with penstock(serve, options, folder, replicas=REPLICAS) as system:
        _ask_all(system, WARM_UP, seed=1)
        before = page(system.node_metrics_url)
        asked = _ask_all(system, requests, seed=2)
        return routed(policy, asked, engines_hit_rate(before, page(system.node_metrics_url)))


def routed(policy: str, asked: Sequence[Asked], engines: float | None) -> Routed:
    """The figures of the requests that were asked with a policy."""
    firsts = sorted(each.first_token_ms for each in asked)
    prompts = sum(each.prompt_tokens for each in asked)
    return Routed(
        policy=policy,
        requests=len(asked),
        prompt_tokens=round(prompts / len(asked)),
        hit_rate=sum(each.cached_tokens for each in asked) / prompts,
        engines_hit_rate=engines,
        first_token_p50_ms=firsts[len(firsts) // 2],
        first_token_p99_ms=firsts[int(0.99 * (len(firsts) - 1))],
    )


def engines_hit_rate(before: str, after: str) -> float | None:
    """The hit rate of the replicas' engines between two pages; None where they tell none."""
    queried = total(after, QUERIED) - total(before, QUERIED)
    return (total(after, HIT) - total(before, HIT)) / queried if queried > 0 else None


def system_prompt(application: int) -> str:
    """What all users of an application share. The same for the same number."""
    words = random.Random(application).choices(WORDS.split(), k=PROMPT_WORDS)
    return f"You answer for application {application}. {' '.join(words)}"


def body_of(application: int, question: int) -> dict[str, object]:
    """The request of one user of an application."""
    return {
        "model": MODEL,
        "stream": True,
        "stream_options": {"include_usage": True},
        "temperature": 0,
        "max_tokens": 8,
        "messages": [
            {"role": "system", "content": system_prompt(application)},
            {"role": "user", "content": f"Question {question}: what is a gateway?"},
        ],
    }


def _ask_all(system: System, requests: int, seed: int) -> list[Asked]:
    """Asks in a closed loop, each request of an application at random; the same for the same seed.

    Which client asks which depends on who is free; the order of the requests does not.
    """
    chance = random.Random(seed)
    waiting = iter([(chance.randrange(APPLICATIONS), number) for number in range(requests)])
    asked: list[Asked] = []

    async def client(http: httpx.AsyncClient, _: int) -> None:
        for application, question in waiting:
            asked.append(await _ask(http, body_of(application, question)))

    run_clients(system.url, CLIENTS, client)
    return asked


async def _ask(http: httpx.AsyncClient, body: dict[str, object]) -> Asked:
    began = time.perf_counter()
    first: float | None = None
    whole = b""
    try:
        async with http.stream("POST", CHAT_PATH, json=body) as reply:
            async for piece in reply.aiter_raw():
                first = first or (time.perf_counter() - began) * 1000
                whole += piece
    except httpx.HTTPError as error:
        raise EvalError(f"the gateway does not answer: {error!r}") from error
    if reply.status_code != 200 or not whole.endswith(DONE) or first is None:
        raise EvalError(f"the gateway answered {reply.status_code}: {whole[-300:]!r}")
    usage = usage_of(whole)
    return Asked(usage[0], usage[1], first)


def usage_of(stream: bytes) -> tuple[int, int]:
    """Prompt tokens and those of them that were cached, of a stream with usage."""
    events = [event for event in stream.removesuffix(DONE).split(b"\n\n") if event]
    usage = json.loads(events[-1].removeprefix(b"data: "))["usage"]
    return usage["prompt_tokens"], (usage["prompt_tokens_details"] or {}).get("cached_tokens", 0)


def as_markdown(results: Sequence[Routed]) -> str:
    """The policies side by side."""
    tokens = results[0].prompt_tokens
    lines = [
        f"{REPLICAS} replicas, {CLIENTS} clients, {APPLICATIONS} system prompts, "
        f"{tokens:,} tokens a request; the first {WARM_UP} requests are not counted.",
        "",
        "| selection policy | requests | prefix hits, of answers | of the engines' metrics "
        "| first token p50 | p99 |",
        "|---|" + "---:|" * 5,
    ]
    for each in results:
        engines = "-" if each.engines_hit_rate is None else f"{each.engines_hit_rate:.0%}"
        lines.append(
            f"| `{each.policy}` | {each.requests} | {each.hit_rate:.0%} | {engines} "
            f"| {each.first_token_p50_ms:.1f} ms | {each.first_token_p99_ms:.1f} ms |"
        )
    return "\n".join(lines)


def as_dict(results: Sequence[Routed]) -> list[dict[str, Any]]:
    """For JSON."""
    return [asdict(each) for each in results]
