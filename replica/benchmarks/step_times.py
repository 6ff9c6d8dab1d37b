"""What a step of vLLM takes: the costs of the simulation's step model.

    export OMP_NUM_THREADS=1 VLLM_LOGGING_LEVEL=ERROR
    .venv/bin/python replica/benchmarks/step_times.py

vLLM in this process, with penstock-mini and as many threads as a replica gives it, computes random
prompts of 16 to 1,500 tokens, one to 32 at once, and times its steps. Even steps are fitted, odd
ones tell how far off that is. CPU time, which is what a step takes where nobody else uses the core:
it computes on one thread. A step of twice its figure or more is left out, and counted. Prints one
JSON object, seconds, with the names of the costs in `gateway_cpp/simulation/step_engine.h`.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
from scipy.optimize import nnls

from penstock.replica.vllm.start.arguments import UNIPROC

SHIPPED = Path(__file__).parents[1] / "penstock/replica/default_model/weights/model"
NAMES = ("fixed", "token", "decode", "pair", "context")


def engine_of(model: Path, budget: int) -> Any:
    """vLLM, without a process of its own."""
    from vllm import EngineArgs
    from vllm.v1.engine.llm_engine import LLMEngine
    from vllm.v1.executor.abstract import Executor

    config = EngineArgs(
        model=str(model),
        max_model_len=2048,
        max_num_batched_tokens=budget,
        max_num_seqs=64,
        kv_cache_memory_bytes=1 << 29,
        distributed_executor_backend=UNIPROC,
        async_scheduling=False,
        enforce_eager=True,
    ).create_engine_config()
    return LLMEngine(config, Executor.get_class(config), log_stats=False, multiprocess_mode=False)


def terms(scheduled: Any) -> list[float]:
    """What a step's batch counts for each cost."""
    before = {new.req_id: new.num_computed_tokens for new in scheduled.scheduled_new_reqs}
    cached = scheduled.scheduled_cached_reqs
    before |= dict(zip(cached.req_ids, cached.num_computed_tokens, strict=True))
    decoding = {
        name for name, done in zip(cached.req_ids, cached.num_output_tokens, strict=True) if done
    }
    pairs = contexts = 0.0
    for name, count in scheduled.num_scheduled_tokens.items():
        if name in decoding:
            contexts += before[name]
        else:
            pairs += count * before[name] + count * (count + 1) / 2
    return [1, scheduled.total_num_scheduled_tokens, len(decoding), pairs, contexts]


class Watched:
    """Steps of an engine, and what each took."""

    def __init__(self, engine: Any) -> None:
        core = engine.engine_core.engine_core
        self.rows: list[list[float]] = []
        self.seconds: list[float] = []
        self._schedule, self._step = core.scheduler.schedule, core.step_fn
        core.scheduler.schedule, core.step_fn = self._scheduled, self._stepped

    def _scheduled(self, *words: Any) -> Any:
        scheduled = self._schedule(*words)
        self.rows.append(terms(scheduled))
        return scheduled

    def _stepped(self) -> Any:
        began = time.process_time()
        answer = self._step()
        self.seconds.append(time.process_time() - began)
        return answer


def load(engine: Any, seconds: float) -> None:
    """Prompts, so many at once that it changes each second."""
    from vllm import SamplingParams

    chance, names, ends = random.Random(1), 0, time.monotonic() + seconds
    while (now := time.monotonic()) < ends:
        at_once = 1 << (int(now) % 6)
        while engine.get_num_unfinished_requests() < at_once:
            ids = [chance.randrange(10, 1500) for _ in range(int(16 * 94 ** chance.random()))]
            wanted = SamplingParams(
                temperature=0, max_tokens=chance.randrange(8, 100), ignore_eos=True
            )
            engine.add_request(str(names := names + 1), {"prompt_token_ids": ids}, wanted)
        engine.step()


def fit(rows: np.ndarray, seconds: np.ndarray) -> dict[str, Any]:
    """Costs that are not below zero, by relative errors."""

    def costs_of(chosen: np.ndarray) -> np.ndarray:
        took = seconds[chosen]
        return np.asarray(nnls(rows[chosen] / took[:, None], np.ones(len(took)))[0])

    even = np.arange(len(seconds)) % 2 == 0
    ours = seconds < 2 * (rows @ costs_of(even))
    costs = costs_of(even & ours)
    errors = (rows @ costs / seconds - 1)[~even & ours]
    return {
        **dict(zip(NAMES, (float(f"{cost:.3g}") for cost in costs), strict=True)),
        "steps": len(seconds),
        "left_out": round(1 - float(ours.mean()), 4),
        "median_error": round(float(np.median(np.abs(errors))), 3),
        "mean_error": round(float(errors.mean()), 3),
    }


def main() -> int:
    """Runs the command line."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--model", type=Path, default=SHIPPED)
    parser.add_argument("--budget", type=int, default=512, help="tokens of a step")
    parser.add_argument("--seconds", type=float, default=60)
    args = parser.parse_args()
    engine = engine_of(args.model, args.budget)
    load(engine, 5)
    watched = Watched(engine)
    load(engine, args.seconds)
    told = fit(np.array(watched.rows), np.array(watched.seconds))
    sys.stdout.write(json.dumps(told, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
