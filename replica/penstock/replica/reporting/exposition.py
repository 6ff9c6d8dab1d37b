"""The replica's own figures as Prometheus text, format 0.0.4. Pure, apart from `memory`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

import psutil

from penstock.replica.microserving.values import MicroServingFigures
from penstock.replica.reporting import metric_table as table
from penstock.replica.reporting.metric_table import Metric
from penstock.v1 import inference_pb2

_STATES: Final = ("starting", "ready", "draining", "asleep")
_Values = Mapping[str, float]  # by labels, as they stand in the text


@dataclass(frozen=True, slots=True)
class Memory:
    """Bytes in memory: of this process, and of those that it started."""

    replica: int
    children: int


def memory() -> Memory:
    """What this process and its children hold; those that end meanwhile hold nothing."""
    here = psutil.Process()
    return Memory(_resident(here), sum(_resident(one) for one in here.children(recursive=True)))


def text(
    load: inference_pb2.Load, held: Memory, engine: str, moving: MicroServingFigures | None = None
) -> str:
    """All of it; `engine` is the engine's own text, which comes last."""
    families = {**_families(load, held), **(_of_moving(moving) if moving else {})}
    lines = [line for metric, values in families.items() for line in _lines(metric, values)]
    return "\n".join([*lines, engine])


def _families(load: inference_pb2.Load, held: Memory) -> dict[Metric, _Values]:
    name = inference_pb2.ReplicaState.Name(load.state).removeprefix("REPLICA_STATE_").lower()
    return {
        table.STATE: {f'{{state="{state}"}}': float(state == name) for state in _STATES},
        **{metric: {"": getattr(load, field)} for field, metric in table.OF_LOAD.items()},
        table.STEP: {"": load.step_us / 1e6},
        table.MEMORY: {'{process="replica"}': held.replica, '{process="children"}': held.children},
    }


def _of_moving(moving: MicroServingFigures) -> dict[Metric, _Values]:
    return {
        table.LEASES: {"": moving.leases},
        table.LEASED_BLOCKS: {"": moving.leased_blocks},
        table.TRANSFERS: {"": moving.transfers},
        table.MOVED_BYTES: {_IN: moving.bytes_in, _OUT: moving.bytes_out},
        table.MOVED_SECONDS: {_IN: moving.seconds_in, _OUT: moving.seconds_out},
        table.FAILURES: {
            f'{{cause="{cause}"}}': count for cause, count in sorted(moving.failures.items())
        },
    }


_IN: Final = '{direction="in"}'
_OUT: Final = '{direction="out"}'


def _lines(metric: Metric, values: _Values) -> Iterator[str]:
    yield f"# HELP {metric.name} {metric.help}"
    yield f"# TYPE {metric.name} {metric.type}"
    for labels, value in values.items():
        yield f"{metric.name}{labels} {value:.15g}"


def _resident(process: psutil.Process) -> int:
    try:
        resident: int = process.memory_info().rss
    except psutil.Error:
        return 0
    return resident
