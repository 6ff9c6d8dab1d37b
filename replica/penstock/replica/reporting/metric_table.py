"""Every metric that a replica tells of itself, in this order: a new one is a row here, and a value
in `exposition.py`. The agent of its machine adds the labels `replica` and `deployment`.

After a change: `.venv/bin/python -m tests.architecture.metrics_reference`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Metric:
    """One family."""

    name: str
    unit: str  # what a value counts
    help: str
    labels: tuple[str, ...] = ()

    @property
    def type(self) -> str:
        """As Prometheus has it."""
        return "counter" if self.name.endswith("_total") else "gauge"


def _declared(name: str, unit: str, help: str, *labels: str) -> Metric:
    return Metric(f"penstock_replica_{name}", unit, help, labels)


STATE: Final = _declared("state", "yes or no", "1 for the state that the replica is in.", "state")
OF_LOAD: Final = {
    "calls": _declared("calls", "calls", "Calls under way, of all gateways."),
    "gateways": _declared(
        "gateways", "gateways", "Gateways that had calls in the last ten seconds."
    ),
    "running": _declared("sequences_running", "sequences", "Sequences in the engine's batch."),
    "waiting": _declared("sequences_waiting", "sequences", "Sequences queued in the engine."),
    "max_running": _declared("sequences_max", "sequences", "Slots of the batch; 0: not known."),
    "waiting_tokens": _declared(
        "waiting_tokens", "tokens", "Prompt tokens of the sequences that wait."
    ),
    "kv_usage": _declared("kv_usage_ratio", "ratio", "Share of KV blocks in use."),
    "kv_blocks": _declared("kv_blocks", "blocks", "KV blocks; 0: not known."),
    "kv_blocks_used": _declared("kv_blocks_used", "blocks", "KV blocks in use."),
    "prefix_queries": _declared(
        "prefix_queries_total", "tokens", "Prompt tokens looked up in the prefix cache."
    ),
    "prefix_hits": _declared("prefix_hits_total", "tokens", "Of these, found."),
    "tokens": _declared("completion_tokens_total", "tokens", "Tokens generated."),
    "prompt_tokens": _declared(
        "prompt_tokens_total", "tokens", "Prompt tokens computed, cached ones not counted."
    ),
    "preemptions": _declared(
        "preemptions_total", "sequences", "Sequences that lost their place for want of KV blocks."
    ),
    "steps": _declared("steps_total", "steps", "Steps that the engine has finished."),
    "resumes": _declared(
        "resumes",
        "yes or no",
        "1: it goes on with answers that others of its configuration began.",
    ),
}
"""Those that are a field of its load, by that field."""

STEP: Final = _declared("step_seconds", "seconds", "Of the last step of the engine.")
MEMORY: Final = _declared(
    "resident_memory_bytes",
    "bytes",
    "Of the replica's process, and of those that it started.",
    "process",
)
LEASES: Final = _declared("microserving_leases", "leases", "Leases that stand.")
LEASED_BLOCKS: Final = _declared(
    "microserving_leased_blocks", "blocks", "KV blocks that are leased for KV that is to come."
)
TRANSFERS: Final = _declared("microserving_transfers", "transfers", "Transfers of KV under way.")
MOVED_BYTES: Final = _declared("microserving_bytes_total", "bytes", "Of KV, moved.", "direction")
MOVED_SECONDS: Final = _declared(
    "microserving_transfer_seconds_total",
    "seconds",
    "That transfers of KV took.",
    "direction",
)
FAILURES: Final = _declared(
    "microserving_failures_total",
    "calls",
    "Calls of MicroServing that failed, and transfers that broke.",
    "cause",
)
