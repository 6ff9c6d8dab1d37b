"""The engine's load, told by vLLM once per engine step.

Imports vLLM: only after `environment.prepare`.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from itertools import islice
from typing import Any

from vllm.v1.metrics.loggers import AggregateStatLoggerBase

from penstock.replica.values import LoadFigures


class Gauges(AggregateStatLoggerBase):  # type: ignore[misc]
    """Keeps the newest figures. vLLM says nothing while idle; its last word then has the zeros.

    `changed` is called after each step, and before it `stepped` with the seconds that it took,
    where these are known. `requests`: vLLM's states of all that it has, by arrival. `held`: how
    many sequences wait before the engine, and the tokens of their prompts.
    """

    def __init__(self, vllm_config: Any, engine_indexes: list[int]) -> None:
        self.changed: Callable[[], None] = _nobody_asks
        self.stepped: Callable[[float], None] = _nobody_asks
        self.held: Callable[[], tuple[int, int]] = _nobody_waits
        self.requests: Mapping[str, Any] = {}
        self._cache_config = vllm_config.cache_config
        self._steps: dict[int, tuple[int, int, float]] = dict.fromkeys(engine_indexes, (0, 0, 0.0))
        self._queries = 0
        self._hits = 0
        self._tokens = 0
        self._prompt_tokens = 0
        self._preemptions = 0
        self._finished_steps = 0
        self._step_s = 0.0
        self._last_step_at = 0.0

    def record(
        self,
        scheduler_stats: Any,
        iteration_stats: Any,
        mm_cache_stats: Any = None,
        engine_idx: int = 0,
    ) -> None:
        self._finished_steps += 1
        busy = self._steps[engine_idx][0] > 0
        if scheduler_stats is not None:
            self._steps[engine_idx] = (
                scheduler_stats.num_running_reqs,
                scheduler_stats.num_waiting_reqs + scheduler_stats.num_skipped_waiting_reqs,
                scheduler_stats.kv_cache_usage,
            )
            self._queries += scheduler_stats.prefix_cache_stats.queries
            self._hits += scheduler_stats.prefix_cache_stats.hits
        if iteration_stats is not None:
            self._tokens += iteration_stats.num_generation_tokens
            self._prompt_tokens += iteration_stats.prompt_token_stats.computed
            self._preemptions += iteration_stats.num_preempted_reqs
        self._time_step(iteration_stats, busy=busy)
        self.changed()

    def log_engine_initialized(self) -> None:
        """Nothing to say: the replica tells of readiness itself."""

    def figures(self) -> LoadFigures:
        """The sum over this replica's engines; KV usage of the fullest."""
        steps = self._steps.values()
        waiting = sum(step[1] for step in steps)
        held, held_tokens = self.held()
        usage = max(step[2] for step in steps)
        # One of vLLM's blocks is never given to anybody.
        blocks = max((self._cache_config.num_gpu_blocks or 0) - 1, 0)
        return LoadFigures(
            running=sum(step[0] for step in steps),
            waiting=waiting + held,
            waiting_tokens=self._waiting_tokens(waiting) + held_tokens,
            kv_usage=usage,
            kv_blocks=blocks,
            kv_blocks_used=round(usage * blocks),
            prefix_queries=self._queries,
            prefix_hits=self._hits,
            tokens=self._tokens,
            prompt_tokens=self._prompt_tokens,
            preemptions=self._preemptions,
            steps=self._finished_steps,
            step_us=round(self._step_s * 1e6),
        )

    def _time_step(self, iteration_stats: Any, *, busy: bool) -> None:
        """The time between two tokens of one request, by the engine's own clock; where no request
        got its second, the time since the step before, if the engine has worked since."""
        now = time.monotonic()
        if iteration_stats is not None and iteration_stats.inter_token_latencies_iter:
            self._step_s = max(min(iteration_stats.inter_token_latencies_iter), 0.0)
        elif busy:
            self._step_s = now - self._last_step_at
        else:
            self._last_step_at = now
            return
        self._last_step_at = now
        self.stepped(self._step_s)

    def _waiting_tokens(self, waiting: int) -> int:
        """Prompt tokens of as many as wait: of those without a token the last to arrive, since
        vLLM does not say which of them it has begun."""
        if not waiting:
            return 0
        without = (one for one in reversed(tuple(self.requests.values())) if one.is_prefilling)
        return sum(one.prompt_len for one in islice(without, waiting))


def _nobody_asks(*_: float) -> None:
    """Stands in until somebody wants to hear of steps."""


def _nobody_waits() -> tuple[int, int]:
    return 0, 0
