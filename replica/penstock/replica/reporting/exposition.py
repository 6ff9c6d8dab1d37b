"""The replica's own figures as Prometheus text, format 0.0.4. Pure, apart from `memory`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

import psutil

from penstock.replica.microserving.values import MicroServingFigures
from penstock.v1 import inference_pb2

_STATES: Final = ("starting", "ready", "draining", "asleep")


@dataclass(frozen=True, slots=True)
class Memory:
    """Bytes in memory: of this process, and of those that it started."""

    replica: int
    children: int


@dataclass(frozen=True, slots=True)
class _Family:
    name: str
    help: str
    values: Mapping[str, float]  # by labels, as they stand in the text


def memory() -> Memory:
    """What this process and its children hold; those that end meanwhile hold nothing."""
    here = psutil.Process()
    return Memory(_resident(here), sum(_resident(one) for one in here.children(recursive=True)))


def text(
    load: inference_pb2.Load, held: Memory, engine: str, moving: MicroServingFigures | None = None
) -> str:
    """All of it; `engine` is the engine's own text, which comes last."""
    families = [*_families(load, held), *(_of_moving(moving) if moving else ())]
    lines = [line for family in families for line in _lines(family)]
    return "\n".join([*lines, engine])


def _families(load: inference_pb2.Load, held: Memory) -> Iterator[_Family]:
    name = inference_pb2.ReplicaState.Name(load.state).removeprefix("REPLICA_STATE_").lower()
    states = {f'{{state="{state}"}}': float(state == name) for state in _STATES}
    yield _Family("state", "1 for the state that the replica is in.", states)
    for name, field, says in _OF_LOAD:
        yield _Family(name, says, {"": getattr(load, field)})
    yield _Family("step_seconds", "Of the last step of the engine.", {"": load.step_us / 1e6})
    yield _Family(
        "resident_memory_bytes",
        "Of the replica's process, and of those that it started.",
        {'{process="replica"}': held.replica, '{process="children"}': held.children},
    )


def _of_moving(moving: MicroServingFigures) -> Iterator[_Family]:
    yield _Family("microserving_leases", "Leases that stand.", {"": moving.leases})
    yield _Family(
        "microserving_leased_blocks",
        "KV blocks that are leased for KV that is to come.",
        {"": moving.leased_blocks},
    )
    yield _Family("microserving_transfers", "Transfers of KV under way.", {"": moving.transfers})
    yield _Family(
        "microserving_bytes_total",
        "Of KV, moved.",
        {_IN: moving.bytes_in, _OUT: moving.bytes_out},
    )
    yield _Family(
        "microserving_transfer_seconds_total",
        "That transfers of KV took.",
        {_IN: moving.seconds_in, _OUT: moving.seconds_out},
    )
    yield _Family(
        "microserving_failures_total",
        "Calls of MicroServing that failed, and transfers that broke.",
        {f'{{cause="{cause}"}}': count for cause, count in sorted(moving.failures.items())},
    )


_IN: Final = '{direction="in"}'
_OUT: Final = '{direction="out"}'

_OF_LOAD: Final = (
    ("calls", "calls", "Calls under way, of all gateways."),
    ("gateways", "gateways", "Gateways that had calls in the last ten seconds."),
    ("sequences_running", "running", "Sequences in the engine's batch."),
    ("sequences_waiting", "waiting", "Sequences queued in the engine."),
    ("sequences_max", "max_running", "Slots of the batch; 0: not known."),
    ("waiting_tokens", "waiting_tokens", "Prompt tokens of the sequences that wait."),
    ("kv_usage_ratio", "kv_usage", "Share of KV blocks in use."),
    ("kv_blocks", "kv_blocks", "KV blocks; 0: not known."),
    ("kv_blocks_used", "kv_blocks_used", "KV blocks in use."),
    ("prefix_queries_total", "prefix_queries", "Prompt tokens looked up in the prefix cache."),
    ("prefix_hits_total", "prefix_hits", "Of these, found."),
    ("completion_tokens_total", "tokens", "Tokens generated."),
    ("prompt_tokens_total", "prompt_tokens", "Prompt tokens computed, cached ones not counted."),
    ("preemptions_total", "preemptions", "Sequences that lost their place for want of KV blocks."),
    ("steps_total", "steps", "Steps that the engine has finished."),
    ("resumes", "resumes", "1: it goes on with answers that others of its configuration began."),
)
"""The figures of a load: what each is called in the text, and what the load calls it."""


def _lines(family: _Family) -> Iterator[str]:
    name = f"penstock_replica_{family.name}"
    yield f"# HELP {name} {family.help}"
    yield f"# TYPE {name} {'counter' if name.endswith('_total') else 'gauge'}"
    for labels, value in family.values.items():
        yield f"{name}{labels} {value:.15g}"


def _resident(process: psutil.Process) -> int:
    try:
        resident: int = process.memory_info().rss
    except psutil.Error:
        return 0
    return resident
