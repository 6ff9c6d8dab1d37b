"""Every metric that a node agent tells of itself: a new one is a row here, and a line where it is
told. What its replicas tell is in `replica/penstock/replica/reporting/metric_table.py`.

After a change: `.venv/bin/python -m tests.architecture.metrics_reference`.
"""

from __future__ import annotations

from functools import partial
from typing import Final

from penstock.control.metrics.declared import DeclaredMetric, MetricType

OF_REPLICA: Final = ("replica", "deployment")
_OF_GPU: Final = ("gpu", "uuid", "name")


def _declared(
    type: MetricType, name: str, labels: tuple[str, ...], unit: str, help: str
) -> DeclaredMetric:
    return DeclaredMetric(f"penstock_node_{name}", type, labels, unit, help)


_counter = partial(_declared, MetricType.COUNTER)
_gauge = partial(_declared, MetricType.GAUGE)

REPLICAS: Final = _gauge("replicas", ("phase",), "replicas", "Replicas by phase.")
RESTARTS: Final = _counter(
    "replica_restarts_total",
    OF_REPLICA,
    "times",
    "Times that a replica was started again after it ended by itself.",
)
WAKES: Final = _counter(
    "replica_wakes_total", OF_REPLICA, "times", "Times that a replica's process was woken."
)
WAKE_SECONDS: Final = _gauge(
    "replica_wake_seconds", OF_REPLICA, "seconds", "Time that the last of them took."
)
START_STAGES: Final = _gauge(
    "replica_start_stage_seconds",
    (*OF_REPLICA, "kind", "stage"),
    "seconds",
    "What each part of the running process's start took.",
)
POOL_MEMBERS: Final = _gauge(
    "warm_pool_members", ("state",), "processes", "Processes that wait to be a replica."
)
STARTS: Final = _counter(
    "replica_starts_total",
    ("kind",),
    "processes",
    "Processes of replicas that the warm pool is for, by how they were started.",
)
MEMORY: Final = _gauge(
    "replica_memory_bytes",
    OF_REPLICA,
    "bytes",
    "Memory of a replica's processes; pages that several share count by their part.",
)
GPU_MEMORY: Final = _gauge(
    "replica_gpu_memory_bytes",
    OF_REPLICA,
    "bytes",
    "Memory of accelerators that a replica's processes hold.",
)
METRICS_UP: Final = _gauge(
    "replica_metrics_up", OF_REPLICA, "yes or no", "1: the replica told its metrics in time."
)
CPUS: Final = _gauge("cpus", (), "cores", "Cores of the machine.")
CPU_IDLE: Final = _counter(
    "cpu_idle_seconds_total", (), "seconds", "Time that cores had nothing to do, all together."
)
MACHINE_MEMORY: Final = _gauge("memory_bytes", (), "bytes", "Memory of the machine.")
MACHINE_MEMORY_AVAILABLE: Final = _gauge(
    "memory_available_bytes", (), "bytes", "Memory that new processes can have."
)
DEVICE_MEMORY: Final = _gauge("gpu_memory_bytes", _OF_GPU, "bytes", "Memory of an accelerator.")
DEVICE_MEMORY_USED: Final = _gauge(
    "gpu_memory_used_bytes", _OF_GPU, "bytes", "Of that, used by whichever process."
)
