"""A real node agent, impatient, whose replicas are `fake_replica_process.py`.

Usage: python -m tests.fakes.node_with_fake_replicas DATA_DIR HEAD [START_LIMIT_SECONDS [METRICS
[PROVIDER_HOST]]]

With the environment's PENSTOCK_TEST_ZYGOTE it has a warm pool: "simulated" is the real one, whose
members are real replicas of the simulated engine, anything else a file for `fake_zygote.py`.
"""

from __future__ import annotations

import asyncio
import os
import sys
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

from penstock.control.cli.loading import loading

with loading():
    from penstock.control.node import run_node

from penstock.control.node_agent import warm_policy
from penstock.control.node_agent.dependencies import SupervisionTimings
from penstock.control.node_agent.replica_command import ReplicaHome, replica_command
from penstock.control.node_pool import WarmSetup
from penstock.control.outside import warm_processes
from penstock.control.settings import NodeSettings
from penstock.control.supervision.restart_policy import RestartPolicy
from penstock.v1 import nodes_pb2

ZYGOTE = os.environ.get("PENSTOCK_TEST_ZYGOTE", "")
FAKE = Path(__file__).with_name("fake_replica_process.py")
POLICY = RestartPolicy(
    first_delay=timedelta(seconds=0.05), longest_delay=timedelta(seconds=0.2), crash_loop_after=3
)


FAKE_ZYGOTE = Path(__file__).with_name("fake_zygote.py")
PATIENCE = replace(
    warm_policy.PATIENCE,
    orders_first=timedelta(seconds=0.2),
    answers_first=timedelta(seconds=0.2),
    register_limit=timedelta(seconds=3),
    zygotes=RestartPolicy(timedelta(seconds=0.2), timedelta(seconds=1)),
)


def fake_command(spec: nodes_pb2.ReplicaSpec, home: ReplicaHome) -> list[str]:
    """The real command line, with the fake in the place of `-m penstock.replica`."""
    python, _, _, *rest = replica_command(spec, home)
    return [python, str(FAKE), *rest]


def main() -> int:
    """Runs the agent until SIGTERM."""
    data_dir, head, *more = sys.argv[1:]
    timings = SupervisionTimings(
        ping_every=timedelta(seconds=0.1),
        ping_timeout=timedelta(seconds=0.5),
        loading_ping_every=timedelta(seconds=0.05),
        hang_after=timedelta(seconds=1),
        keep_again_after=timedelta(seconds=0.1),
        measure_every=timedelta(seconds=0.2),
        memory_again_after=timedelta(seconds=0.05),
        stop_grace=timedelta(seconds=0.5),
    )
    settings = NodeSettings(
        head=head,
        data_dir=Path(data_dir),
        node_id="node-1",
        zone="zone-1",
        metrics=more[1] if more[1:] else "",
        start_limit=timedelta(seconds=float(more[0]) if more else 30),
        provider_hosts=tuple(more[2:]),
        warm=1 if ZYGOTE else 0,
    )
    real = ZYGOTE == "simulated"
    argv = warm_processes.ZYGOTE if real else (sys.executable, str(FAKE_ZYGOTE), ZYGOTE)
    warm = WarmSetup("simulated", (*argv, "--engine", "simulated"), PATIENCE)
    command = replica_command if real else fake_command
    return asyncio.run(
        run_node(settings, command=command, policy=POLICY, timings=timings, warm=warm)
    )


if __name__ == "__main__":
    raise SystemExit(main())
