"""The engine's load, told by vLLM once per engine step.

Touch point: `AggregateStatLoggerBase` and the statistics that it is given.
Imports vLLM: only after `environment.prepare`.
"""

from __future__ import annotations

from typing import Any

from vllm.v1.metrics.loggers import AggregateStatLoggerBase

from penstock.replica.engine import LoadFigures


class Gauges(AggregateStatLoggerBase):  # type: ignore[misc]
    """Keeps the newest figures. vLLM says nothing while idle; its last word then has the zeros."""

    def __init__(self, vllm_config: Any, engine_indexes: list[int]) -> None:
        self._steps: dict[int, tuple[int, int, float]] = dict.fromkeys(engine_indexes, (0, 0, 0.0))
        self._queries = 0
        self._hits = 0
        self._tokens = 0
        self._finished_steps = 0

    def record(
        self,
        scheduler_stats: Any,
        iteration_stats: Any,
        mm_cache_stats: Any = None,
        engine_idx: int = 0,
    ) -> None:
        self._finished_steps += 1
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

    def log_engine_initialized(self) -> None:
        """Nothing to say: the replica tells of readiness itself."""

    def figures(self) -> LoadFigures:
        """The sum over this replica's engines; KV usage of the fullest."""
        steps = self._steps.values()
        return LoadFigures(
            running=sum(step[0] for step in steps),
            waiting=sum(step[1] for step in steps),
            kv_usage=max(step[2] for step in steps),
            prefix_queries=self._queries,
            prefix_hits=self._hits,
            tokens=self._tokens,
            steps=self._finished_steps,
        )


__all__ = ["Gauges"]
