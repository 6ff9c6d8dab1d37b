"""Loads of adapters and the streams beside them: `python replica/benchmarks/adapter_loads.py`.

vLLM in this process with penstock-mini and one slot for an adapter: calls for two of them in turns,
each of which has to be loaded. Beside them streams of the base model. Prints one JSON object:
milliseconds between two tokens of a stream, without loads and with them, in turns of a few seconds
each so that a busy machine is as busy for both; and milliseconds to the first token of calls whose
adapter was not there (cold), and was (warm).
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import json
import sys
import time
from contextlib import aclosing
from dataclasses import dataclass, field

from penstock.replica.adapters.values import AdapterRoom
from penstock.replica.calls.answers import events_of
from penstock.replica.values import AdapterSource, Call, Chunk, Failed
from penstock.replica.vllm.engine import VllmEngine

_NAMES = ("penstock-mini/pirate", "penstock-mini/json")
_CHAT = "/v1/chat/completions"


@dataclass
class Figures:
    """What was measured, in milliseconds."""

    gaps: dict[bool, list[float]] = field(default_factory=lambda: {False: [], True: []})
    cold: list[float] = field(default_factory=list)
    warm: list[float] = field(default_factory=list)


def _call(name: str, tokens: int, adapter: str = "") -> Call:
    body = {
        "messages": [{"role": "user", "content": "Tell me a story."}],
        "stream": True,
        "max_tokens": tokens,
        "ignore_eos": True,
        "temperature": 0,
    }
    return Call(name, _CHAT, json.dumps(body).encode(), "m", adapter=adapter)


async def stream(engine: VllmEngine, name: str, until: float, gaps: list[float]) -> None:
    """Streams until that time, one answer after the other; the first gap of each is not counted."""
    while time.monotonic() < until:
        last = 0.0
        async with aclosing(events_of(engine.answer, _call(name, 1000))) as events:
            async for event in events:
                now = time.monotonic()
                if isinstance(event, Chunk) and event.tokens:
                    if last:
                        gaps.append((now - last) * 1000)
                    last = now
                if now >= until:
                    break


async def first_token(engine: VllmEngine, adapter: str) -> float:
    """Milliseconds to the first token of a call with the adapter, loaded first if it has to be."""
    began = time.monotonic()
    call = _call("adapted", 2, adapter)
    if engine.adapters.find(adapter) is None:
        await engine.adapters.load(AdapterSource(adapter, _NAMES[int(adapter[1])]))
    took = 0.0
    async with aclosing(events_of(engine.answer, call)) as events:
        async for event in events:
            if isinstance(event, Failed):
                raise SystemExit(event.message)
            if isinstance(event, Chunk) and event.tokens and not took:
                took = (time.monotonic() - began) * 1000
    return took


async def load_in_turns(engine: VllmEngine, until: float, pause: float, figures: Figures) -> None:
    """Two adapters through one slot, as often as `pause` seconds allow."""
    for name in itertools.cycle(("a0@1", "a1@1")):
        if time.monotonic() >= until:
            return
        figures.cold.append(await first_token(engine, name))
        figures.warm.append(await first_token(engine, name))
        await asyncio.sleep(pause)


async def measure(streams: int, turns: int, seconds: float, pause: float) -> Figures:
    """Turns without loads and with them, one after the other."""
    engine = VllmEngine("penstock-mini", "m", (), {}, room=AdapterRoom(slots=1))
    figures = Figures()
    await engine.start()
    try:
        for loads in [False, True] * turns:
            until = time.monotonic() + seconds
            async with asyncio.TaskGroup() as tasks:
                for index in range(streams):
                    gaps = figures.gaps[loads]
                    tasks.create_task(stream(engine, f"s{index}", until, gaps))
                if loads:
                    tasks.create_task(load_in_turns(engine, until, pause, figures))
    finally:
        await engine.stop()
    return figures


def summary(values: list[float]) -> dict[str, float]:
    """Count, median, 99th percentile and most."""
    ordered = sorted(values)
    at = {"p50": 0.5, "p99": 0.99}
    found = {name: round(ordered[int(share * len(ordered))], 2) for name, share in at.items()}
    return {"count": len(ordered), **found, "most": round(ordered[-1], 2)}


def main() -> int:
    """Runs the command line."""
    parser = argparse.ArgumentParser(description="Streams beside loads of adapters.")
    parser.add_argument("--streams", type=int, default=8)
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=3.0, help="of each turn")
    parser.add_argument("--pause", type=float, default=0.5, help="seconds between two loads")
    args = parser.parse_args()
    figures = asyncio.run(measure(args.streams, args.turns, args.seconds, args.pause))
    told = {
        "inter_token_ms": summary(figures.gaps[False]),
        "inter_token_ms_with_loads": summary(figures.gaps[True]),
        "ttft_ms_cold": summary(figures.cold),
        "ttft_ms_warm": summary(figures.warm),
    }
    sys.stdout.write(json.dumps(told) + "\n")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
