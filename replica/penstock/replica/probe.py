"""Times the engine alone: `python -m penstock.replica.probe --model penstock-mini --requests 200`.

Starts vLLM's engine in this process and answers streamed requests one after another, with no gRPC
and no gateway. Prints one JSON object: milliseconds to the first event, sorted. The load benchmark
of the evals room sets the same requests sent through the gateway beside it.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
import time
from contextlib import aclosing

from penstock.replica.calls.answers import events_of
from penstock.replica.engine import Engine
from penstock.replica.values import Call, Chunk


async def time_to_first_event(engine: Engine, call: Call) -> float:
    """Milliseconds from the call to its first event; the rest of the answer is read as well."""
    began = time.perf_counter()
    first = 0.0
    async with aclosing(events_of(engine.answer, call)) as events:
        async for event in events:
            if isinstance(event, Chunk) and not first:
                first = time.perf_counter() - began
    return first * 1000


async def probe(model: str, body: bytes, requests: int) -> list[float]:
    """Sorted milliseconds of `requests` sequential calls, after ten that are not counted."""
    from penstock.replica.vllm.engine import VllmEngine

    engine: Engine = VllmEngine(model, "probe", (), {})
    await engine.start()
    try:
        taken = []
        for index in range(requests + 10):
            call = Call(f"probe-{index}", "/v1/chat/completions", body, "probe")
            taken.append(await time_to_first_event(engine, call))
        return sorted(taken[10:])
    finally:
        await engine.stop()


def main() -> int:
    """Runs the command line."""
    parser = argparse.ArgumentParser(description="Times the engine alone.")
    parser.add_argument("--model", default="penstock-mini")
    parser.add_argument("--requests", type=int, default=200)
    parser.add_argument("--prompt", default="What is a gateway?")
    parser.add_argument("--max-tokens", type=int, default=8)
    args = parser.parse_args()
    body = {
        "model": "probe",
        "stream": True,
        "temperature": 0,
        "max_tokens": args.max_tokens,
        "messages": [{"role": "user", "content": args.prompt}],
    }
    taken = asyncio.run(probe(args.model, json.dumps(body).encode(), args.requests))
    sys.stdout.write(json.dumps({"ttft_ms": taken}) + "\n")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
